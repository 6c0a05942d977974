"""Every model keeps the contract of certificates, and the contract suite detects violations."""

import importlib
import itertools
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import models
from models.arithmetic import kernels
from models.testing import check_model, shared_functions, whole_answers
from solvers import fast, prove, solve
from tests.marks import quick
from tests.models.families import CONTRACTS

SUMS = {
    "Clustering": ["models.partition:Partition.sums"],
    "Merging": ["models.merging:Merging.sums"],
    "Segmentation": ["models.partition:Partition.sums"],
}
"""Sums of a model's own data that its fast path and its certificate may share."""


def found(model):
    """The fast path's answer and witness, if it takes the model."""
    try:
        return fast.answer(model)
    except fast.NoFastPath:
        return None, None


def check(name, tiny, sizes=(12, 40), **effort):
    kind = getattr(models, name.partition(",")[0])
    rng = np.random.default_rng(len(tiny))
    large = [kind.random(rng, size) for size in sizes]
    promises = {"arithmetic": SUMS.get(name, ()), **CONTRACTS[name].promises}
    return check_model(kind, fast=found, tiny=tiny, random=large, **promises, **effort)


def some(name, number, seed):
    """Instances of the family, drawn at random."""
    family = list(CONTRACTS[name].tiny())
    chosen = np.random.default_rng(seed).permutation(len(family))[:number]
    return [family[k] for k in chosen]


def test_only_the_model_of_everything_at_once_has_no_fast_path():
    assert {name for name in CONTRACTS if name.partition(",")[0] not in fast.PATHS} == {"JointTables"}


def test_there_is_a_family_for_every_model():
    kinds = {name for name in models.__all__ if hasattr(getattr(models, name), "certificate")} - {"Model"}
    assert kinds == {name.partition(",")[0] for name in CONTRACTS}


@pytest.mark.parametrize("name", list(CONTRACTS))
def test_the_contract(name):
    assert check(name, some(name, 4, seed=0), sizes=(15,), witnesses=8) > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTRACTS)
def test_the_contract_on_many_instances(name, monkeypatch):
    """In machine code from each kernel's first call; in the quick tests, Python runs most kernels."""
    monkeypatch.setattr(kernels, "SMALL", -1)
    assert check(name, some(name, 10, seed=1), witnesses=40) > 400


def all_shared(names, number):
    """Functions shared by fast path and certificate, for each model; includes kernels if Numba is off."""
    return {
        name: sorted(
            set().union(*(shared_functions(m, found, SUMS.get(name, ())) for m in some(name, number, 2)))
        )
        for name in names
    }


@pytest.fixture(scope="module")
def shared(request):
    """`all_shared` of the models whose tests run, from a process without Numba."""
    here = [item for item in request.session.items if item.path == request.path]
    chosen = [item for item in here if "shared" in getattr(item, "fixturenames", ())]
    names = sorted({item.callspec.params["name"] for item in chosen})
    code = f"import json; from tests.models.test_contract import *; print(json.dumps(all_shared({names}, 2)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", quick(CONTRACTS, every=9))
def test_a_fast_path_and_its_certificate_share_only_arithmetic(name, shared):
    assert shared[name] == []


@pytest.mark.parametrize("name", [name for name in CONTRACTS if name.partition(",")[0] in fast.PATHS])
def test_a_fast_path_that_is_wrong_is_found_out(name, monkeypatch):
    """A worse answer is refused with any witness: the optimum's, none, or an empty one."""
    contract, tried = CONTRACTS[name], 0
    for path in fast.PATHS.values():  # a first import under the patches would keep them
        importlib.import_module(path.partition(":")[0])
    answers = contract.promises.get("answers", whole_answers)
    for model in some(name, 3, seed=3):
        known = list(itertools.islice(answers(model), 200))
        best, witness = found(model)
        cost = model.objective(best) if best is not None else min(map(model.objective, known))
        worse = max(known, key=model.objective, default=None)
        if worse is None or model.objective(worse) <= cost + 1e-6 * abs(cost):
            continue
        for given in (witness, None, {}):
            with monkeypatch.context() as wrong:
                for path in fast.PATHS.values():
                    module, function = path.split(":")
                    wrong.setattr(f"{module}.{function}", lambda _, given=given, worse=worse: (worse, given))
                with suppress(ValueError):
                    solution = solve(model)
                    assert solution.status != "optimal"
                    assert not solution.certificate.optimal
                    assert not prove(model, worse).optimal
                tried += 1
    assert tried
