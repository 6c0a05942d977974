"""DAWA and PrivTree: their noise is enough (or is not), their optimizations are optimal."""

import itertools
import math

import numpy as np
import pytest

from benchmarks.rivals import partition as stage_1
from benchmarks.rivals import privtree as tree
from benchmarks.rivals.dawa import dawa
from benchmarks.rivals.partition import DYADIC, PROGRAM, PROVED
from benchmarks.rivals.weights import all_ranges, binary_tree, greedy, single_bins
from models import lagrangian_certificate

CUTS = {  # all cuts of n bins into runs of 1, 2, 4, … bins
    n: [
        np.cumsum([0, *lengths[:-1]])
        for k in range(1, n + 1)
        for lengths in itertools.product((1, 2, 4, 8), repeat=k)
        if sum(lengths) == n
    ]
    for n in (1, 2, 3, 5, 7)
}


def deviation(counts):
    return float(np.abs(counts - np.mean(counts)).sum())


@pytest.mark.parametrize("noise", [PROGRAM, PROVED, DYADIC])
@pytest.mark.parametrize("n", CUTS)
def test_the_cut_is_the_best_of_all_cuts(n, noise):
    rng = np.random.default_rng(n)
    for _ in range(10):
        counts = rng.integers(0, 30, n)
        made = stage_1.partition(counts, 0.5, 2.0, rng, noise)
        costs = [
            sum(made.costs[int(math.log2(m)), i] for i, m in zip(cut, np.diff([*cut, n]), strict=True))
            for cut in CUTS[n]
        ]
        assert made.potentials[-1] == min(costs)
        assert min(costs) == costs[[cut.tolist() for cut in CUTS[n]].index(made.starts.tolist())]
        assert made.optimal
        if noise == DYADIC:
            assert not (made.starts % np.diff([*made.starts, n])).any()


def test_the_proof_of_a_cut_is_that_of_its_program():
    made = stage_1.partition(np.array([5, 5, 6, 40, 41, 0, 0]), 1.0, 1.5, np.random.default_rng(0))
    program, first, length = stage_1.program_of(made.costs)
    ends = np.append(made.starts[1:], 7)
    chosen = np.isin(first * 8 + length, made.starts * 8 + ends - made.starts).astype(int)
    assert lagrangian_certificate(program, chosen, made.potentials).optimal
    worse = np.where(length == 1, 1, 0)
    assert not lagrangian_certificate(program, worse, made.potentials).optimal
    assert not stage_1.Partition(np.arange(7), made.costs, made.potentials).optimal
    wrong = made.potentials + np.where(np.arange(8) == 4, 10**6, 0)
    assert not stage_1.Partition(made.starts, made.costs, wrong).optimal


def test_deviations_are_those_of_every_window():
    counts = np.random.default_rng(0).integers(0, 9, 21)
    found = stage_1.deviations(counts)
    for k, row in enumerate(found):
        for i in range(21 + 1 - 2**k):
            assert row[i] == pytest.approx(deviation(counts[i : i + 2**k]), abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_one_person_changes_a_deviation_by_the_stated_amount_at_most(m):
    changes = []
    for counts in itertools.product(range(6), repeat=m):
        for i in range(m):
            more = np.array(counts)
            more[i] += 1
            changes.append(abs(deviation(more) - deviation(counts)))
    assert max(changes) == pytest.approx(stage_1.change(m))
    assert stage_1.change(10**9) == pytest.approx(2)


@pytest.mark.parametrize("bins", [8, 13])
def test_noise_on_all_dyadic_runs_is_enough_for_all_their_costs(bins):
    rng = np.random.default_rng(bins)
    worst = 0.0
    for counts in (rng.integers(0, 9, bins) for _ in range(30)):
        i = rng.integers(bins)
        before, after = (stage_1.deviations(counts + step * (np.arange(bins) == i)) for step in (0, 1))
        loss = 0.0
        for k in range(1, before.shape[0]):
            at = i - i % 2**k
            if at + 2**k <= bins:
                loss += abs(after[k, at] - before[k, at]) / stage_1.scale(2**k, bins, 0.7, DYADIC)
        worst = max(worst, loss)
    assert 0.3 < worst <= 0.7 + 1e-12
    equal = np.full(8, 4)
    before, after = (stage_1.deviations(equal + step * (np.arange(8) == 3)) for step in (0, 1))
    changed = sum(after[k, 0] - before[k, 0] for k in (2, 3)) + after[1, 2] - before[1, 2]
    assert changed / stage_1.scale(2, 8, 0.7, DYADIC) == pytest.approx(0.7)  # attained


def test_noise_on_all_runs_covers_the_proof():
    for m, n in ((1, 16), (2, 16), (16, 16)):
        assert stage_1.scale(m, n, 0.5, PROVED) * 0.5 == stage_1.change(m) + stage_1.change(n)


def test_the_program_of_the_authors_spends_more_than_it_says():
    """On three bins, by simulation of the cut itself; by the formula, on more."""
    epsilon, price, draws = 1.0, 1.0, 2_000
    rng, seen = np.random.default_rng(0), []
    for counts in ([7, 7, 7], [7, 8, 7]):
        cuts = [stage_1.partition(np.array(counts), epsilon, price, rng, PROGRAM) for _ in range(draws)]
        seen.append(sum(cut.starts.size == 3 for cut in cuts) / draws)
    loss = stage_1.loss_of_program(3, epsilon, price)
    assert loss == pytest.approx(2 / (7 / 6))
    assert math.log(seen[1] / seen[0]) == pytest.approx(loss, abs=0.3)
    assert loss > 1.5 * epsilon
    assert stage_1.loss_of_program(8, epsilon, 3.0) > 6 * epsilon
    assert stage_1.loss_of_program(2, epsilon, price) <= epsilon


def gram(starts, n):
    """QᵀQ of all ranges, on runs, from its definition."""
    runs = np.repeat(np.arange(starts.size), np.diff([*starts, n]))
    part = (np.arange(starts.size)[:, None] == runs) / np.bincount(runs)[:, None]
    ranges = [[low <= i <= high for i in range(n)] for low in range(n) for high in range(low, n)]
    reduced = np.array(ranges, float) @ part.T
    return reduced.T @ reduced


def test_the_workload_of_all_ranges():
    starts, n = np.array([0, 1, 4, 5, 9]), 11
    square, left, right = all_ranges(starts, n)
    wanted = gram(starts, n)
    assert square == pytest.approx(np.diag(wanted))
    for a, b in itertools.combinations(range(5), 2):
        assert left[a] * right[b] == pytest.approx(wanted[a, b])
    assert single_bins(starts, n)[0] == pytest.approx([1, 1 / 3, 1, 1 / 4, 1 / 2])


def dense(first, end, weight, wanted):
    """The error of a workload with these weights, at ε = 1 and noise of variance 1."""
    rows = [w * ((np.arange(end.max()) >= a) & (np.arange(end.max()) < b))
            for a, b, w in zip(first, end, weight, strict=True)]  # fmt: skip
    return float(np.trace(wanted @ np.linalg.inv(np.array(rows).T @ np.array(rows))))


def mostly_the_total(starts, _):
    return np.full(starts.size, 1.01), np.ones(starts.size), np.ones(starts.size)


@pytest.mark.parametrize("workload", [all_ranges, mostly_the_total])
@pytest.mark.parametrize("leaves", [2, 6, 13])
def test_the_share_of_the_root_is_the_best_for_the_weights_below_it(leaves, workload):
    nodes, first, end = binary_tree(leaves)
    starts = np.arange(leaves)
    weight = greedy(nodes, first, workload(starts, leaves), discount=False)
    wanted = gram(starts, leaves) if workload is all_ranges else 1 + 0.01 * np.eye(leaves)
    errors = []
    for step in range(100):
        other = weight * (1 - step / 100) / (1 - weight[0])
        other[0] = step / 100
        errors.append(dense(first, end, other, wanted))
    assert errors[round(weight[0] * 100)] == pytest.approx(min(errors))
    if leaves == 2:
        assert (weight[0] > 0) == (workload is mostly_the_total)


@pytest.mark.parametrize("leaves", [1, 5, 64])
@pytest.mark.parametrize("workload", [all_ranges, single_bins])
def test_weights_add_up_to_one_on_every_path(leaves, workload):
    nodes, first, end = binary_tree(leaves)
    weight = greedy(nodes, first, workload(np.arange(leaves), leaves))
    paths = [weight[(first <= leaf) & (leaf < end)].sum() for leaf in range(leaves)]
    assert paths == pytest.approx(np.ones(leaves))
    assert (weight[end - first > 1] > 0).any() == (workload is all_ranges and leaves == 64)


@pytest.mark.parametrize("noise", [PROGRAM, PROVED, DYADIC])
def test_dawa_is_proved_and_close_if_epsilon_is_large(noise):
    counts = np.repeat([50, 0, 7, 90], [9, 16, 4, 3])
    made = dawa(counts, 1e4, 0, noise=noise)
    assert made.proved
    assert np.abs(made.counts - counts).max() < 0.1
    assert dawa(np.array([3]), 1e4, 0, noise=noise).counts.tolist() == [3]


def loss_of_tree(counts, scale, step):
    """ln of P(all are split but the last) for counts along a path, over that of one person less."""

    def log(values):
        seen = np.array([tree.biased(np.array([c]), d, step)[0] for d, c in enumerate(values)]) / scale
        tail = math.log(0.5) - np.abs(seen)
        over, under = (np.where(side, tail, np.log1p(-np.exp(tail))) for side in (seen <= 0, seen > 0))
        return over[:-1].sum() + under[-1]

    return log(counts) - log(counts - 1)


def test_privtree_spends_its_budget_on_paths_of_any_depth():
    epsilon, rng, losses = 0.5, np.random.default_rng(0), []
    scale, step = tree.noise_scale(epsilon), tree.decay(epsilon)
    assert (scale, step) == (6.0, 6.0 * math.log(2))
    assert tree.noise_scale(epsilon, 4) == pytest.approx(7 / 3 / epsilon)
    paths = [np.full(depth, float(count)) for depth in (1, 2, 9, 40) for count in range(1, 400, 3)]
    paths += [np.sort(rng.integers(1, 300, rng.integers(1, 30)))[::-1].astype(float) for _ in range(200)]
    for counts in paths:
        losses.append(abs(loss_of_tree(counts, scale, step)))
    assert 0.6 * epsilon < max(losses) <= epsilon
    less = [abs(loss_of_tree(counts, scale / 2, step / 2)) for counts in paths]
    assert max(less) > epsilon


def test_privtree_splits_where_people_are():
    counts = np.zeros(64, np.int64)
    counts[40] = 10**6
    released, starts = tree.privtree(counts, 1.0, 0)
    assert {40, 41} <= set(starts.tolist())
    assert starts[0] == 0
    assert abs(released[40] - 10**6) < 50
    assert released.sum() == pytest.approx(10**6, abs=200)
    assert tree.privtree(np.array([4]), 50.0, 0)[1].tolist() == [0]
