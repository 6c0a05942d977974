"""A release whose published count is at the edge of int64 is not good, whatever its certificate once said."""

import dataclasses

import pandas as pd
import pytest

from hierdp import SimulatedNoise, release
from hierdp.checking import check
from hierdp.checking.result import FAILS
from hierdp.record.step import Step
from models import NonNegativeInference

PEOPLE = pd.DataFrame({"s": ["A", "B"], "c": ["a", "b"]})
LARGEST = 2**63 - 1
SEED = 0
"""Of a release of which such a count was once proved optimal."""


def forge(name, model, good):
    """An answer at the edge of int64 in place of the optimum; its certificate, or a stolen one."""
    tree, best = model.tree, good.solution.x
    for cut in (0, 1, 5, 50, 500):
        for leaf in tree.leaves:
            leaves = best[tree.leaves].copy()
            leaves[tree.leaves == leaf] = 0
            leaves[tree.leaves == leaf] = LARGEST - cut - leaves.sum()
            x = tree.sum_up(leaves)
            proof = model.certificate(x)
            if proof.optimal:
                break
        if proof.optimal:
            break
    stolen = dataclasses.replace(good.solution.certificate, objective=model.objective(x))
    proof = proof if proof.optimal else stolen
    solution = dataclasses.replace(
        good.solution, x=x, certificate=proof, objective=proof.objective, bound=proof.bound, witness=None
    )
    return Step(name, model, solution, good.problems)


@pytest.mark.parametrize("case", ["a count at the edge of int64"])
def test_a_forged_release_does_not_pass_the_check(case, tmp_path, monkeypatch):
    # `Step.solve` is a default argument of several functions: what it calls is replaced, not it.
    proved, forged = Step.of.__func__, []

    def evil(cls, name, model, solution, problems=()):
        step = proved(cls, name, model, solution, problems)
        if isinstance(model, NonNegativeInference) and model.tree.depth:
            forged.append(forge(name, model, step))
            return forged[-1]
        return step

    monkeypatch.setattr(Step, "of", classmethod(evil))
    made = release(
        PEOPLE,
        "range-query",
        epsilon=0.2,
        axes=[("c", ["s", "c"])],
        regions_from_data=True,
        method="H_tree^c",
        repair="whole, free total",
        noise=SimulatedNoise(SEED),
    )
    assert forged, case
    assert max(made.table["count"]) > 10**6
    made.write(tmp_path / "forged")
    monkeypatch.undo()
    found = {line.check: line.verdict for line in check(tmp_path / "forged")}
    assert found["certificates"] == FAILS
