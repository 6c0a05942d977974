"""A model's own fast bound equals the Lagrangian bound of its witness, read as row prices."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import models
from models import lagrangian_bound
from models.certificate import FLOAT_TOLERANCE
from models.check.checker import cost_unit
from models.model import ByProgram
from models.testing import whole_answers
from tests.marks import quick
from tests.models.families import CONTRACTS
from tests.models.test_contract import found, some

ROUNDED_UP = {"Chebyshev", "TreeChebyshev"}
"""Distances are whole, so the certificate rounds up the bound that the prices prove."""

WITHOUT = {
    "BudgetSplit": "no Program",
    "StrategySDP": "no Program",
    "SparsestChebyshev": "it counts positive entries; prices prove less, as in any relaxation of such counts",
    "JointTables": "no fast path finds its prices; a test of its own compares bounds",
}

NAMES = [
    name
    for name in CONTRACTS
    if hasattr(getattr(models, name.partition(",")[0]), "row_prices") and name not in WITHOUT
]


def test_models_without_row_prices_give_a_reason():
    kinds = {name.partition(",")[0] for name in CONTRACTS}
    assert kinds - {name.partition(",")[0] for name in NAMES} == set(WITHOUT)


def proved(model):
    """The fast path's answer and witness, or any answer if the model has no fast path."""
    x, witness = found(model)
    return (x, witness) if x is not None else (next(whole_answers(model), None), None)


def agrees(model, x, witness):
    """Compare the two bounds; False if the witness does not give row prices, or nothing can be compared."""
    if x is None:
        return False
    proof = model.certificate(x, witness)
    if getattr(model, "clusters", None) is not None or not math.isfinite(proof.bound):
        return False
    if isinstance(model, models.TreeChebyshev) and model.rounds:
        return False  # its changes are rounded one by one
    program = (model.exact_program if hasattr(model, "exact_program") else model.program)()
    if isinstance(model, models.ChangePoints | models.Clustering | models.Segmentation):
        program = replace(program, rounded=False)  # costs of runs of floats are rounded, and compared as such
    general = lagrangian_bound(program, model.row_prices(proof.witness))
    name, own = type(model).__name__, Fraction(proof.bound)
    if isinstance(model, ByProgram) and (unit := cost_unit(model._structure[0])):
        general = Fraction(math.ceil(general * unit), unit)  # every answer costs a multiple of 1/unit
    if isinstance(proof.bound, float) or name in (
        "ChangePoints",
        "Clustering",
        "Segmentation",
    ):  # programs hold costs as floats
        assert abs(float(general - own)) <= FLOAT_TOLERANCE * max(1, abs(own)), (model, proof, general)
    elif name in ROUNDED_UP:
        segments = len(np.ravel(model.total))
        assert own - segments < general <= own, (model, proof, general)
    else:
        assert general == own, (model, proof, general)
    return True


@pytest.mark.parametrize("name", quick(NAMES, every=3))
def test_the_bounds_are_the_same(name):
    kind = getattr(models, name.partition(",")[0])
    rng = np.random.default_rng(1)
    medium = [kind.random(rng, size) for size in (20, 60)]
    assert sum(agrees(model, *proved(model)) for model in [*some(name, 12, seed=4), *medium]) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_bounds_are_the_same_on_many_instances(name):
    kind = getattr(models, name.partition(",")[0])
    rng = np.random.default_rng(2)
    medium = [kind.random(rng, size) for size in (10, 30, 100, 100, 300)]
    assert sum(agrees(model, *proved(model)) for model in [*some(name, 200, seed=5), *medium]) > 20
