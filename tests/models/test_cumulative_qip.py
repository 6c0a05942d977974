"""CumulativeQIP: bounds that hold for every witness, and the answers that they prove."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from models import CumulativeQIP, Tree
from models.cumulative_qip import _tree
from solvers import fast, solve
from tests.marks import quick


def prices(y, falls):
    """Prices of (C4), and of (C3), each times two."""
    return {"C4 consistency": 2 * np.asarray(y), "C3 monotone": 2 * np.asarray(falls)}


def drawn(seed, size=60):
    """Instances of all kinds: whole and float counts, large and negative ones, totals far from the counts."""
    rng = np.random.default_rng(seed)
    model = CumulativeQIP.random(rng, int(rng.integers(1, size)))
    changes = [
        {},
        {"noisy": model.counts + rng.normal(size=model.counts.shape)},
        {"noisy": model.counts - 100},
        {"noisy": model.counts * 1_000_000},
        {"total": 0},
        {"total": 10 * model.total + 1_000},
        {"noisy": model.counts / 4 + 2.0**-20},
    ]
    return replace(model, **changes[seed % len(changes)])


@pytest.mark.parametrize("seed", quick(range(60), every=3))
def test_relaxed_answers_are_proved(seed):
    model = replace(drawn(seed, 200), integer=False)
    x, witness = fast.answer(model)
    assert model.violations(x) == []
    assert model.certificate(x, witness).optimal
    worse = x.copy()
    worse[:, :-1] *= 0.9
    proof = model.certificate(worse, witness)
    assert proof.optimal == (proof.objective <= model.objective(x) * (1 + 1e-7) + 1e-7)


@pytest.mark.parametrize("total", [0, 5, 20])
def test_prices_read_off_a_relaxed_optimum_prove_it(total):
    """On three levels, only the root's price of the total is free; the prices below follow from it."""
    tree = Tree([[0, 0], [0, 0, 1, 1]])
    model = CumulativeQIP(tree, np.arange(28).reshape(7, 4) * 3 % 11, total, integer=False)
    x, _ = fast.answer(model)
    assert model.certificate(x).optimal


HOSTILE = [
    {"C4 consistency": np.full((3, 4), np.nan), "C3 monotone": np.zeros((6, 3))},
    {"C4 consistency": np.full((3, 4), np.inf), "C3 monotone": np.zeros((6, 3))},
    {"C4 consistency": np.full((3, 4), 1e289), "C3 monotone": np.zeros((6, 3))},
    {"C4 consistency": np.full((3, 4), 1e15), "C3 monotone": np.full((6, 3), 1e17)},
    {"C4 consistency": np.zeros((3, 4)), "C3 monotone": np.full((6, 3), -5)},
    {"C4 consistency": np.full((3, 4), Fraction(1, 3), object), "C3 monotone": np.zeros((6, 3), int)},
    {"C4 consistency": np.zeros((4, 3))},
    {"C4 consistency": None},
    {},
    [1, 2],
    "prices",
]


def branched(branches, sets=1):
    return {**prices(np.zeros((sets, 3, 4)), np.zeros((sets, 6, 3))), "branches": np.array(branches)}


BRANCHED = [
    branched([[0, 0, 1, 1], [-1, 0, 0, 0]]),  # a case listed twice
    branched([[0, 0, 0, 1], [-1, 0, 0, 0]]),  # a case within itself
    branched([[0, 0, 1, 2], [-1, 0, 0, 0]]),  # a case that does not exist
    branched([[0, 0, 1, 2], [-1, 0, 0, 0], [-1, 0, 0, 0], [-1, 0, 0, 0]]),  # a case that cannot be reached
    branched([[0, 0, 2, 1], [-1, 1, 0, 0], [-1, 0, 0, 0]]),  # prices that do not exist
    branched([[-1, -1, 0, 0]]),
    branched([[99, 0, 1, 2], [-1, 0, 0, 0], [-1, 0, 0, 0]]),  # a cell that does not exist
    branched([[0, 2**62, 1, 2], [-1, 0, 0, 0], [-1, 0, 0, 0]]),
    branched([[0.5, 0, 1, 2]]),
    branched(np.zeros((0, 4), int)),
    branched([-1, 0, 0, 0]),
    {**branched([[-1, 0, 0, 0]]), "C3 monotone": None},
    {**branched([[-1, 0, 0, 0]]), "C4 consistency": np.float64(3)},
    branched([[0, -7, 1, 2], [-1, 0, 0, 0], [-1, 0, 0, 0]]),  # an empty case is allowed
    branched([[5, 1, 2, 1], [-1, 1, 0, 0], [-1, 0, 0, 0]], 2),
]


@pytest.mark.parametrize("witness", HOSTILE + BRANCHED)
@pytest.mark.parametrize("integer", [True, False])
def test_a_hostile_witness_proves_nothing_false(witness, integer):
    tree = Tree([[0, 0], [0, 0, 1]])
    model = CumulativeQIP(tree, np.arange(24).reshape(6, 4) % 7 - 1, total=5, integer=integer)
    x = np.asarray(tree.sum_up(np.array([[0, 0, 1, 1], [0, 1, 2, 2], [1, 1, 1, 2]])))
    best = solve(replace(model, integer=False)).bound
    try:
        proof = model.certificate(x, witness)
    except ValueError as said:
        assert str(said)  # noqa: PT017
        return
    assert proof.bound <= (best if not integer else solve(model, "highs").objective) + 1e-6
    assert not proof.optimal


@pytest.mark.parametrize(
    "branches",
    [
        *(witness["branches"] for witness in BRANCHED[:11]),
        [[0, 0, 1, 2], [-1, 0, 0, 0], [0, 0, 3, 3], [-1, 0, 0, 0]],
        [[0, 0, 1, 2], [-1, 0, 0, 0], [0, 0, 3, 1], [-1, 0, 0, 0], [-1, 0, 0, 0]],
    ],
)
def test_cases_that_are_no_tree_are_refused(branches):
    with pytest.raises(ValueError, match="branches must"):
        _tree(branches, 1, 24)


def test_the_least_bound_of_the_cases_counts():
    """Either the first child holds at most 2 and misses by 1, or at least 3 and the second misses by 1."""
    model = CumulativeQIP(Tree([[0, 0]]), [[4], [3], [0]], total=4)
    x, falls = [[4], [3], [1]], np.zeros((2, 3, 0))
    cases = [[1, 2, 1, 2], [-1, 0, 0, 0], [-1, 1, 0, 0]]
    bounds = [
        model.certificate(x, {**prices([[[a]], [[b]]], falls), "branches": cases}).bound
        for a, b in ((0, 0), (0, -0.5), (-0.5, 0), (-0.5, -0.5))
    ]
    assert bounds == [0, 1, 0, 1]


def test_the_bound_of_counts_that_are_not_whole_is_not_rounded_up():
    fifths = [[Fraction(1)], [Fraction(3, 5)], [Fraction(2, 5)]]
    model = CumulativeQIP(Tree([[0, 0]]), np.array(fifths, object), total=1)
    proof = model.certificate([[1], [0], [1]], prices([[0]], np.zeros((3, 0))))
    assert (proof.objective, proof.bound, proof.optimal) == (Fraction(18, 25), Fraction(8, 25), False)


def test_a_negative_price_of_a_rise_proves_nothing():
    """Rises cost nothing, so the bound is 0; the price -1 would raise it to 9, the cost of a bad answer."""
    model, price = CumulativeQIP(Tree([]), [[0, 5]], total=5), prices(np.zeros((0, 2)), [[-1.0]])
    assert model.certificate([[0, 5]], price).optimal
    assert (model.certificate([[3, 5]], price).objective, model.certificate([[3, 5]], price).bound) == (9, 0)


def test_cases_are_for_whole_numbers():
    model = CumulativeQIP(Tree([[0, 0]]), [[4], [3], [0]], total=4, integer=False)
    witness = {**prices([[[0]]], np.zeros((1, 3, 0))), "branches": [[-1, 0, 0, 0]]}
    with pytest.raises(ValueError, match="whole numbers"):
        model.certificate([[4.0], [3.0], [1.0]], witness)


def test_counts_beyond_64_bits_are_exact():
    model = CumulativeQIP(Tree([[0, 0]]), np.array([[2**61], [2**60], [2**60 - 3]]), total=2**61)
    x = np.array([[2**61], [2**60 + 1], [2**60 - 1]])
    assert model.certificate(x, prices([[-1.5]], np.zeros((3, 0)))).bound == 5
    assert model.certificate(x, prices([[-1.5]], np.zeros((3, 0)))).gap == 0
    thirds = CumulativeQIP(Tree([[0]]), np.array([[Fraction(1, 3)], [Fraction(2, 3)]], object), 1)
    assert thirds.certificate([[1], [1]], prices([[0]], np.zeros((2, 0)))).bound == Fraction(5, 9)


def test_a_larger_relaxation_is_proved_to_its_stated_gap():
    rng = np.random.default_rng(6)
    tree = Tree([np.zeros(8, int), rng.integers(0, 8, 60)])
    leaves = np.cumsum(rng.geometric(0.2, size=(tree.leaves.size, 40)), axis=1)
    true = tree.sum_up(leaves)
    noisy = true + rng.integers(-9, 10, true.shape)
    model = CumulativeQIP(tree, noisy, int(true[0, -1]), integer=False)
    found = solve(model)
    assert found.certificate.optimal
    assert not model.certificate(true.astype(float), found.certificate.witness).optimal
    assert not model.certificate(true.astype(float)).optimal


def test_a_broken_search_proves_nothing(monkeypatch):
    """The witness of a broken fast path does not prove a worse answer."""
    from solvers.fast import cumulative_newton

    model = replace(drawn(14, 200), integer=False)
    best = solve(model).objective
    monkeypatch.setattr(cumulative_newton, "_newton", lambda left, *_: np.sign(left))
    monkeypatch.setattr(cumulative_newton, "_STEPS", 3)
    x, witness = fast.answer(model)
    proof = model.certificate(x, witness)
    assert proof.objective > best * (1 + 1e-6)
    assert proof.bound <= best
    assert not proof.optimal


@pytest.mark.parametrize(
    ("leaves", "total", "expected"),
    [
        ([[1.4], [1.3], [0.3]], 3, [[2], [1], [0]]),  # one unit short: to the value rounded down most
        ([[1.6], [1.7], [0.7]], 4, [[1], [2], [1]]),  # one unit over: from the value rounded up most
        ([[0, 1.6], [1.7, 1.7], [0, 0.7]], 4, [[0, 1], [2, 2], [0, 1]]),
    ],
)
def test_rounding_to_the_total(leaves, total, expected):
    """The noisy counts are consistent, so they solve the relaxation, and only rounding remains."""
    tree = Tree([[0] * len(leaves)])
    given = solve(CumulativeQIP(tree, tree.sum_up(np.array(leaves, float)), total))
    assert given.x[1:].tolist() == expected
    assert given.x[0, -1] == total
