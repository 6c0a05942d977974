"""Every model on tiny instances: the fast path against all answers, its ties, and the gap of each answer."""

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from models.certificate import FLOAT_TOLERANCE
from models.model import ByProgram
from models.testing import whole_answers
from solvers import prove
from tests.brute import top_down_key
from tests.marks import quick
from tests.models.families import CONTRACTS
from tests.models.test_contract import found, some
from tests.models.test_hostile import COSTLY

WITHOUT = {"JointTables", "CostTable, not convex"}
"""They have no fast path."""

MOST = 300
"""Answers of an instance that are tried; those of the largest instances are a sample."""


def first(_, x):
    """Units go to the earlier entry or child."""
    return x.ravel().tolist()


def nearest_then_first(model, x):
    away = (x - model.data[0]).tolist() if model.p == 1 else [0]
    return -sum(v * v for v in away), *x.tolist()


def least_or_greatest(model, x):
    """The least for p = 1, the greatest for p = 2: each is so in all entries at once."""
    return [-v if model.p == 1 else v for v in x.tolist()]


def longest_last_runs(model, x):
    return [-v for v in x.tolist()[::-1]] if model.clusters is None else None


def from_the_top(model, x):
    return top_down_key(model.tree, x) if model.weights is None else None


TIES = {
    "ControlledRounding": first,
    "CostTable": first,
    "Clustering": longest_last_runs,
    "FixedSum": nearest_then_first,
    "HierarchyQIP": from_the_top,
    "Isotonic": least_or_greatest,
    "Isotonic, side by side": least_or_greatest,
    "SimplexQP": first,
}
"""Of all answers of least cost over whole numbers, the fast path finds the one with the largest of these
keys; no key: any."""


def costs_by_terms(model, answers):
    """The costs in Fractions, variable by variable; for models that are no program, what they say."""
    if not isinstance(model, ByProgram):
        return [model.objective(x) for x in answers]
    data = []
    for term in model.program().objective:
        tables = [table.tolist() for table in term.tables] or [None] * term.index.size
        weights, centers = (list(map(Fraction, part.tolist())) for part in term.data)
        data += [
            (term.kind, *each) for each in zip(term.index.tolist(), weights, centers, tables, strict=True)
        ]

    def cost(kind, value, weight, center, table):
        if kind == "linear":
            return weight * value
        if kind == "table":
            return Fraction(table[int(value - center)])
        return weight * (abs(value - center) if kind == "absolute" else (value - center) ** 2)

    held = [list(map(Fraction, model.variables(x).tolist())) for x in answers]
    return [sum(cost(kind, v[j], *rest) for kind, j, *rest in data) for v in held]


@pytest.mark.parametrize("name", [name for name in CONTRACTS if name not in WITHOUT])
@pytest.mark.parametrize("start", quick(range(20)))
def test_the_fast_path_finds_the_least_cost_and_every_answer_has_its_gap(name, start):
    promises, number, worse = CONTRACTS[name].promises, 8 if name in COSTLY else 40, 0
    for model in some(name, 5_000, seed=7)[start * number : (start + 1) * number]:
        best, _ = found(model)
        if best is None:  # over the reals with a window, there is no fast path
            continue
        known = list(islice(promises.get("answers", whole_answers)(model), MOST))
        *costs, least = costs_by_terms(model, [*known, best])
        in_floats = isinstance(least, float) or np.asarray(best).dtype.kind == "f"
        near = FLOAT_TOLERANCE * max(1, abs(least)) if in_floats else 0
        assert model.objective(best) == (pytest.approx(float(least)) if in_floats else least), model
        assert all(cost >= least - near for cost in costs), (model, best)
        key = TIES.get(name, lambda *_: None)
        if getattr(model, "integer", True) and 0 < len(known) < MOST and key(model, best) is not None:
            most = max(key(model, x) for x, cost in zip(known, costs, strict=True) if cost == least)
            assert key(model, best) == most, (model, best)
        for k in range(start % 3, len(known), 1 + len(known) // 10):
            proof, miss = prove(model, known[k]), costs[k] - least
            worse += miss > near
            assert proof.bound <= least + near
            assert proof.gap >= miss - near
            if promises.get("exact_gap", True):
                assert abs(proof.gap - miss) <= near, (model, known[k])
                assert proof.optimal == (miss <= near), (model, known[k])
    assert worse or start
