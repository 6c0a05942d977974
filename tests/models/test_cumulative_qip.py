"""CumulativeQIP: bounds that hold and gaps that are told, by enumeration and by exact backends."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from models import CumulativeQIP, Tree
from models.projections import Consistent, monotone
from solvers import solve


def answers(model):
    """All feasible whole answers of a one-level tree."""
    sizes = model.counts.shape[1]
    leaves = model.tree.leaves.size
    rows = [r for r in itertools.product(range(model.total + 1), repeat=sizes) if list(r) == sorted(r)]
    for chosen in itertools.product(rows, repeat=leaves):
        x = np.vstack([np.sum(chosen, axis=0), chosen]) if model.tree.depth else np.array(chosen)
        if x[0, -1] == model.total:
            yield x


def test_bounds_hold_on_all_tiny_instances():
    proved = told = 0
    for noisy in itertools.product((-1, 1, 2), repeat=6):
        model = CumulativeQIP(Tree([[0, 0]]), np.reshape(noisy, (3, 2)), total=2)
        feasible = list(answers(model))
        best = min(model.objective(x) for x in feasible)
        given = solve(model)
        assert not model.violations(given.x)
        assert given.bound <= best <= given.objective
        assert given.status == ("optimal" if given.gap == 0 else "feasible")
        assert given.gap == given.objective - given.bound
        for x in feasible[::5]:
            proof = model.certificate(x)
            assert proof.bound <= best
            assert not proof.optimal or model.objective(x) == best
        proved += given.gap == 0
        told += given.gap > 0
    assert proved > 300
    assert told  # gaps do occur


@pytest.mark.parametrize("seed", range(12))
def test_relaxation_agrees_with_clarabel_and_highs_bounds_the_integer_answer(seed):
    rng = np.random.default_rng(seed)
    model = CumulativeQIP.random(rng, int(rng.integers(1, 50)))
    relaxed = replace(model, integer=False)
    fast, other = solve(relaxed), solve(relaxed, "clarabel")
    assert fast.status == other.status == "optimal"
    assert fast.objective == pytest.approx(other.objective, rel=1e-5, abs=1e-5)
    given, exact = solve(model), solve(model, "highs", time_limit=300)
    assert given.bound <= exact.objective <= given.objective
    assert fast.objective <= exact.objective * (1 + 1e-9) + 1e-6
    assert given.bound >= np.ceil(fast.bound * (1 - 1e-6) - 1e-6)


def test_the_bound_over_whole_numbers_proves_most_optima():
    proved = 0
    for seed in range(30):
        model = replace(CumulativeQIP.random(np.random.default_rng(seed), 30), integer=True)
        proved += model.certificate(solve(model, "highs").x).optimal
    assert proved >= 20


def test_projections_are_the_nearest_points():
    rng = np.random.default_rng(5)
    tree = Tree([[0, 0, 0], [2, 0, 0, 1]])
    counts = rng.normal(size=(tree.size, 3))
    inner = tree.internal
    rows = np.zeros((inner.size, tree.size))
    for k, r in enumerate(inner):
        rows[k, r] = 1
        rows[k, np.flatnonzero(tree.parent == r)] = -1
    dense = counts - rows.T @ np.linalg.solve(rows @ rows.T, rows @ counts)
    assert np.allclose(Consistent(tree).project(counts), dense)

    counts[0] = [0.4, 0.9, -0.1]  # the bound on the first row's end cuts into its blocks
    for last in (1.0, 0.25, 0.0):
        nearest = monotone(counts, last)
        assert np.all(np.diff(nearest, axis=1) >= 0)
        assert nearest.min() >= 0
        assert nearest[0, -1] == last
        for _ in range(200):  # no feasible point is nearer
            other = np.sort(np.abs(rng.normal(size=counts.shape)), axis=1)
            other[0] = np.minimum(other[0], last)
            other[0, -1] = last
            assert np.all(((counts - nearest) * (other - nearest)).sum(axis=1) <= 1e-12)


def test_a_larger_relaxation_is_proved_to_its_stated_gap():
    rng = np.random.default_rng(6)
    tree = Tree([np.zeros(8, int), rng.integers(0, 8, 60)])
    leaves = np.cumsum(rng.geometric(0.2, size=(tree.leaves.size, 40)), axis=1)
    true = tree.sum_up(leaves)
    noisy = true + rng.integers(-9, 10, true.shape)
    model = CumulativeQIP(tree, noisy, int(true[0, -1]), integer=False)
    assert solve(model).certificate.optimal
    assert not model.certificate(true.astype(float)).optimal


@pytest.mark.parametrize(
    ("leaves", "total", "expected"),
    [
        ([[1.4], [1.3], [0.3]], 3, [[2], [1], [0]]),  # a unit is missing: to the one rounded down furthest
        ([[1.6], [1.7], [0.7]], 4, [[1], [2], [1]]),  # one too many: from the one rounded up furthest
        ([[0, 1.6], [1.7, 1.7], [0, 0.7]], 4, [[0, 1], [2, 2], [0, 1]]),
        ([[0.6, 0.6]] * 5, 3, [[0, 0]] * 2 + [[1, 1]] * 3),  # last cells alone cannot give: rows fall
        ([[0, 1.6, 1.6], [0.7, 0.7, 0.7], [0.7, 0.7, 0.7]], 3, [[0, 1, 1], [1, 1, 1], [1, 1, 1]]),
    ],
)
def test_rounding_to_the_total(leaves, total, expected):
    """The noisy counts are consistent: they are the relaxation's answer, and only rounding is left."""
    tree = Tree([[0] * len(leaves)])
    given = solve(CumulativeQIP(tree, tree.sum_up(np.array(leaves, float)), total))
    assert given.x[1:].tolist() == expected
    assert given.x[0, -1] == total


def test_broken_constraints_are_named():
    model = CumulativeQIP(Tree([[0, 0]]), np.zeros((3, 2)), total=3)
    broken = " ".join(model.violations([[2, 4], [2, 1], [-1, 3]]))
    for name in ("C2 total", "C3 monotone: node 1", "C4 consistency: node 0, size 0", "C5 x >= 0: x[2, 0]"):
        assert name in broken
    assert not model.certificate([[2, 4], [2, 1], [-1, 3]]).optimal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Tree([[0]]), [[1]], 1), "it needs a row for each of the 2 nodes"),
        ((Tree([]), [[1]], -1), "total is -1"),
        ((Tree([]), [[np.inf]], 1), r"noisy\[0, 0\] is inf"),
    ],
)
def test_bad_input_names_the_culprit(arguments, message):
    with pytest.raises(ValueError, match=message):
        CumulativeQIP(*arguments)
