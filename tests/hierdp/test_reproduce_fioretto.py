"""hierdp reproduce fioretto2019: published errors against bounds, noise, solvers in floats, and (H2)."""

from dataclasses import replace

import numpy as np
import pytest

from hierdp.counts.size_runs import differences as differenced
from hierdp.experiments.papers import fioretto2019
from hierdp.experiments.papers.fioretto2019 import QUICK, bounds, floats, taxi_bound
from hierdp.privacy.noise import SimulatedNoise, geometric
from models import CumulativeQIP, HierarchyQIP, Tree
from solvers import solve

TREE = Tree([[0, 0], [0, 0, 1, 1, 1]])


def test_which_published_taxi_errors_are_above_their_bound():
    frame = taxi_bound().frames["taxi_bound"]
    above = frame[frame.verdict == "above the bound"]
    assert len(frame) == 36
    assert len(above) == 16
    assert (above[above.method.str.endswith("dp")].groupby("level").size() == [1, 6]).all()
    assert bounds("M_H^dp") == bounds("M_c^dp") == (26_564, 26_564, 26_564)
    assert bounds("M_H^r") == (33_205, 66_410, 2 * 13_282 + 13_282 * 3_973 // 2)
    assert bounds("M_c^r") == (26_564, 26_567, 28_550)


@pytest.mark.parametrize("cumulative", [False, True])
def test_the_total_of_a_rounded_relaxation_is_as_near_to_g_as_the_bounds_say(cumulative):
    rng = np.random.default_rng(0)
    model = CumulativeQIP if cumulative else HierarchyQIP
    rounded_away = 0
    for _ in range(25):
        groups, sizes = int(rng.integers(0, 9)), int(rng.integers(1, 7))
        noisy = rng.integers(-4, 9, (TREE.size, sizes))
        rounded = np.rint(np.asarray(solve(model(TREE, noisy, groups, integer=False)).x, float))
        counts = differenced(rounded) if cumulative else rounded
        assert (counts >= 0).all()
        for level, regions in enumerate(TREE.level_sizes):
            excess = counts[TREE.nodes_of(level)].sum() - groups
            assert excess <= (regions / 2 if cumulative else regions * sizes / 2)
            rounded_away += excess > 0
            if cumulative and level == 0:
                assert excess == 0
    assert rounded_away  # so the bound of exact answers would be wrong


@pytest.mark.parametrize("method", ["M_H^dp", "M_c^dp"])
def test_the_error_of_the_noisy_counts_is_that_of_the_noise(method):
    many, epsilon = 200_000, 0.9
    sensitivity = 1 if method == "M_c^dp" else 2
    drawn = SimulatedNoise(3).draw(geometric("q", sensitivity, epsilon / 3), np.zeros(many, np.int64)).answers
    noise = differenced(drawn) if method == "M_c^dp" else drawn
    assert fioretto2019.raw_noise("census", epsilon, method) == pytest.approx(
        1000 * np.abs(noise).mean(), rel=0.01
    )


def test_without_the_total_the_best_total_is_found():
    rng = np.random.default_rng(1)
    totals = set()
    for case in range(15):
        noisy = rng.integers(-6, 1 if case == 0 else 7, (TREE.size, 3)) * (900 if case % 5 == 1 else 1)
        answer = fioretto2019.without_total(TREE, noisy)
        free = HierarchyQIP(TREE, noisy, int(answer[0].sum()))
        assert not free.violations(answer)
        near = range(max(0, int(answer[0].sum()) - 3), int(answer[0].sum()) + 4)
        nearest = range(40) if np.abs(noisy).max() < 7 else near  # the least cost is convex in the total
        least = min(solve(HierarchyQIP(TREE, noisy, total)).objective for total in nearest)
        assert free.objective(answer) == least, case
        totals.add(int(answer[0].sum()))
    assert 0 in totals
    assert max(totals) > 1024


SMALL = replace(
    QUICK,
    leaves=152,
    sizes=100,
    groups=2_352_608,
    float_leaves=52,
    float_sizes=10,
    epsilons=(0.1, 1.0),
    float_runs=1,
)


@pytest.fixture(scope="module")
def in_floats():
    return fioretto2019.float_rows(SMALL, 0)


def test_with_large_counts_as_unknowns_the_error_of_osqp_does_not_depend_on_epsilon(in_floats):
    exact = in_floats[in_floats.solver == "exact"].set_index(["data", "method", "epsilon"]).level_1
    for (data, method), here in in_floats[in_floats.solver == "OSQP"].groupby(["data", "method"]):
        by = here.set_index(["unknowns", "epsilon"])
        flat = by.level_1["counts"]
        assert flat[0.1] == pytest.approx(flat[1.0], rel=0.05)
        assert flat[1.0] > 100 * exact[data, method, 1.0]
        assert exact[data, method, 0.1] > 4 * exact[data, method, 1.0]
        assert (by.distance["differences"] < 0.01 * by.distance["counts"]).all()


def test_every_solver_answers_if_the_differences_are_unknowns(in_floats):
    here = in_floats[(in_floats.unknowns == "differences") & (in_floats.solver != "exact")]
    assert {"OSQP", "Clarabel"} <= set(here.solver)
    assert here.status.isin(["solved", "Solved", "optimal"]).all()
    assert (here.distance < 40).all()  # of counts up to 117,630,445
    assert (here[here.solver != "OSQP"].distance < 0.5).all()
    missing = in_floats[in_floats.distance.isna() & (in_floats.solver != "exact")]
    assert (missing.status == "PrimalInfeasible").all()
    table = floats(in_floats).frames["float_solvers"]
    assert {"L1_level_1_at_0.1", "L1_level_1_at_1"} <= set(table.columns)


def test_small_counts_are_no_difficulty():
    few = fioretto2019.float_rows(replace(SMALL, float_groups=2_000, epsilons=(1.0,)), 0)
    here = few[(few.solver == "OSQP") & (few.unknowns == "counts")]
    assert (here.distance < 10).all()


def test_the_two_forms_are_one_program():
    rng = np.random.default_rng(2)
    noisy = rng.integers(0, 9, (TREE.size, 3))
    program = CumulativeQIP(TREE, noisy, 7, integer=False).program()
    plain = fioretto2019.ShiftedProgram.of(program, np.zeros(program.size))
    moved = fioretto2019.ShiftedProgram.of(program, noisy.ravel().astype(float))

    def cost(stated, x):
        return float(x @ (stated.weight * x) + stated.slope @ x)

    one, other = rng.normal(0, 5, (2, program.size))
    gap = cost(plain, one) - cost(plain, other)
    assert cost(moved, one - noisy.ravel()) - cost(moved, other - noisy.ravel()) == pytest.approx(gap)
    for x in (one, other):
        shifted = x - noisy.ravel()
        np.testing.assert_allclose(plain.matrix @ x - plain.lower, moved.matrix @ shifted - moved.lower)
        np.testing.assert_allclose(plain.upper - plain.matrix @ x, moved.upper - moved.matrix @ shifted)
        np.testing.assert_allclose(x - plain.least, shifted - moved.least)
        np.testing.assert_allclose(plain.most - x, moved.most - shifted)
    fixed = np.flatnonzero(plain.most < np.inf)
    assert fixed.tolist() == [2]  # (C2): the root's last cumulative count
    assert plain.least[2] == plain.most[2] == 7
