"""All regions at once, and steps that the fast path does not take."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp import execution, plan
from hierdp.checking import HOLDS, check
from hierdp.errors import InputError
from hierdp.mechanisms.tabulation import joint
from hierdp.mechanisms.tabulation.audit import CELLS, _run, _table
from hierdp.mechanisms.tabulation.solving import solve_step
from hierdp.privacy.charging import ChargingNoise
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import NotSolved
from models import Workload, WorkloadLeastSquares, WorkloadRounding
from solvers import fast, solve
from tests.hierdp.test_tabulation_methods import NONE, constraints, solved, tables
from tests.marks import quick


@pytest.mark.parametrize("seed", quick(range(4), first=1))
def test_no_method_costs_less_than_all_regions_at_once(seed):
    true, measured = tables(seed, most=9)
    held = constraints(true, seed)
    found, (step,) = solved(measured, held, "Joint")
    assert step.model.violations(np.concatenate(found)) == []
    assert step.proved.proved_optimal == (step.solution.certificate.gap == 0)
    assert float(step.proved.bound) <= step.solution.objective
    for method in ("TopDown", "BlueDown"):
        other, _ = solved(measured, held, method)
        assert step.model.violations(np.concatenate(other)) == []
        assert step.model.objective(np.concatenate(other)) >= step.solution.objective


def test_whole_weights_have_the_proportions_of_the_variances():
    _, measured = tables(0)
    weights = joint.joint_model(measured, NONE).weights
    assert weights.tolist() == [[2, 1, 4, 2]] * 3
    some = replace(measured, variance=np.where([[True, False, True, True]], measured.variance, np.inf))
    assert joint.joint_model(some, NONE).weights.tolist() == [[1, 0, 2, 1]] * 3


def test_too_large_a_program_is_refused_with_its_size(monkeypatch):
    _, measured = tables(0)
    monkeypatch.setattr(joint, "LARGEST", 65)
    with pytest.raises(InputError, match=r"up to 65 whole variables; this one has 66 \(11 regions"):
        solved(measured, NONE, "Joint")


def test_too_large_a_program_is_refused_before_noise_is_drawn(monkeypatch):
    monkeypatch.setattr(joint, "LARGEST", 5)
    drawing = ChargingNoise(SimulatedNoise(1), lambda: pytest.fail("noise was drawn"))
    with pytest.raises(InputError, match="Joint is one integer program, for up to 5"):
        _run(_table(CELLS), drawing, CELLS, "Joint")
    with pytest.raises(InputError, match="Joint is one integer program, for up to 5"):
        plan("tabulation", epsilon=1, delta=1e-8, method="Joint", levels=["town=3"], attributes=["age=2"])


def test_a_release_of_all_regions_at_once_passes_its_check(tmp_path):
    made = _run(_table(CELLS), SimulatedNoise(3), CELLS, "Joint")
    assert [step.proved.proved_optimal for step in made.steps] == [True]
    found = {line.check: line.verdict for line in check(made.write(tmp_path / "joint", report=False))}
    assert found["table from steps"] == found["certificates"] == HOLDS


CROSSED = Workload.marginals((2, 2, 2), [(0, 1), (1, 2), (0, 2), (0, 1, 2)])


def test_roundings_whose_queries_cross_are_solved_and_proved():
    values = np.random.default_rng(0).integers(0, 40, (2, 8)) / 8
    model = WorkloadRounding(CROSSED, values)
    assert solve(model).status == "unsupported"
    step = solve_step("A: rounding", model)
    assert step.model.violations(step.solution.x) == []
    assert step.proved.proved_optimal
    assert model.certificate(step.solution.x, step.solution.witness).optimal


@pytest.mark.slow
def test_tables_whose_sums_cross_keep_them():
    true, measured = tables(1)
    held = constraints(true, 1, sums=((0,), (1,)))
    sums = [held.sums.answers(t).astype(float) for t in true]
    held = replace(held, lower=sums, upper=sums)
    found, _ = solved(measured, held, "TopDown")
    assert all(np.array_equal(held.sums.answers(t), s) for t, s in zip(found, sums, strict=True))


@pytest.mark.slow
def test_least_squares_that_the_fast_path_does_not_take_are_solved_and_proved(monkeypatch):
    workload = Workload.marginals((2,), [(), (0,)])
    totals = Workload.marginals((2,), [()])
    model = WorkloadLeastSquares(
        workload, [[9, 5, 4], [3, 0, 3]], [1, 1], [6, 5], None, totals, [[4], [7]], [[4], [7]]
    )
    expected = solve(model)

    def refused(_):
        raise fast.NoFastPath("no interior")

    monkeypatch.setattr(fast, "answer", refused)
    step = solve_step("A: least squares", model)
    assert step.proved.proved_optimal
    assert step.solution.objective == pytest.approx(expected.objective, rel=1e-6)
    other = WorkloadLeastSquares(
        Workload.marginals((2, 2), [(0, 1)]), [[1, 1, 1, 1]], [1], None, None,
        Workload.marginals((2, 2), [(0,), (1,)]), [4, 4, 0, 0], [9, 9, 1, 1],
    )  # fmt: skip
    with pytest.raises(NotSolved, match="A: least squares has no answer") as failure:
        solve_step("A: least squares", other)
    assert failure.value.status == "infeasible"


@pytest.mark.parametrize(
    ("method", "workers"), quick([("TopDown", 1), ("Joint", 1), ("TopDown", 2)], first=1)
)
def test_contradicting_constraints_are_named_with_their_region(method, workers):
    """Ages add up to more than groups allow; the bounds of no single sum show it."""
    true, measured = tables(1)
    held = constraints(true, 1, sums=((0,), (1,)))
    lower = [np.zeros(held.sums.answers(t).shape) for t in true]
    upper = [np.full(side.shape, np.inf) for side in lower]
    lower[2][4, 3:] = 30
    upper[2][4, :3] = [5, 6, 7]
    held = replace(held, zeros=np.zeros(6, bool), lower=lower, upper=upper)
    with (
        execution.using(workers=workers),
        pytest.raises(InputError, match="county 4: sum 0 at most 5") as failure,
    ):
        solved(measured, held, method)
    words = str(failure.value)
    assert "county 4: sum 1 at most 6" in words
    assert "at least 30" in words
    assert words.endswith("Change or leave out one of them. Nothing is released")
    assert ("county in B:" in words) == (method == "TopDown")
