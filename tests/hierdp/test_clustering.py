"""Clustered histograms: rules by definition, sensitivities over all neighbours, and spends."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp import release
from hierdp.counts.axes import Numbers
from hierdp.errors import InputError
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.clustering import METHODS, ahp_rules, clustering
from hierdp.mechanisms.clustering import structure_first as sf
from hierdp.mechanisms.clustering.ahp import laplace_scale, sorted_counts
from hierdp.mechanisms.clustering.ahp_rules import RULES, by_place, empirical, greedy, optimal, rules_of_thumb
from hierdp.privacy.budget import CHOICE, Ledger
from hierdp.privacy.noise import Drawn, ExactNoise, SimulatedNoise, geometric
from hierdp.record.spool import Steps
from hierdp.record.step import Step
from hierdp.tables.binning import Histogram
from models import Clustering
from models.arithmetic.run_costs import sums_of
from solvers.fast.segment_paths import layers
from tests.brute import blocks
from tests.hierdp.doubles import Double, clustered, everything_in
from tests.marks import quick


class Choosing(Double):
    """Make the given choices (the first by default); record scores and spends.

    Counts get the double's noise.
    """

    def __init__(self, choices=(), **given):
        super().__init__(**given)
        self.choices, self.scores, self.queried = iter(choices), [], []

    def draw(self, query, true):
        if query.noise != CHOICE:
            return super().draw(query, true)
        self.scores += [score.copy() for score in true]
        self.queried.append((query.name, query.sensitivity, query.loss))
        chosen = [next(self.choices, 0) % len(score) for score in true]
        return Drawn(np.array(chosen, np.int64), self.spend(query))


# The rules for clusters


def printed(values, noise):
    """Algorithm 3 as the paper prints it, including prefix sums and stop condition; `noise` is 2/ε₂²."""
    n = len(values)
    prefix = [Fraction(0)]
    for value in values:
        prefix.append(prefix[-1] + value)

    def mean(j, last):  # of bins j … last, from 1
        return (prefix[last] - prefix[j - 1]) / (last - j + 1)

    def error(first, last):
        here = mean(first, last)
        return sum((v - here) ** 2 for v in values[first - 1 : last]) + noise / (last - first + 1)

    def least(j):
        for last in range(j, n + 1):
            now = (values[j - 1] - mean(j, last)) ** 2
            if last == n:
                break
            rise = (values[j - 1] - mean(j, last + 1)) ** 2 - now
            if rise >= noise / (last - j + 1) ** 2 - noise / (n - j + 1) ** 2:
                break
        # "we can conclude that": but an earlier `last` may have given less
        return min(
            (values[j - 1] - mean(j, end)) ** 2 + noise / (end - j + 1) ** 2 for end in range(j, last + 1)
        )

    starts, first = [0], 1
    for j in range(2, n + 1):
        if not error(first, j) < error(first, j - 1) + least(j):
            starts.append(j - 1)
            first = j
    return starts


def dpbench(values, noise):
    """The greedy rule of DPBench's program, in fractions; its search for err* ends later."""
    n = len(values) + 1
    x = [Fraction(0), *map(Fraction, values)]
    sums, squares = [Fraction(0)] * n, [Fraction(0)] * n
    for k in range(1, n):
        sums[k], squares[k] = sums[k - 1] + x[k], squares[k - 1] + x[k] ** 2

    def error(i, j):
        length = j - i + 1
        return squares[j] - squares[i - 1] - (sums[j] - sums[i - 1]) ** 2 / length + noise / length

    def least(j):
        found, last_1, last_2 = noise, Fraction(0), noise
        for end in range(j + 1, n):
            length = end - j + 1
            now_1 = (x[j] - (sums[end] - sums[j - 1]) / length) ** 2
            now_2 = noise / length**2
            if now_1 - last_1 >= last_2 - noise / (n - j + 1) ** 2:
                break
            found, last_1, last_2 = min(found, now_1 + now_2), now_1, now_2
        return found

    starts, i = [0], 1
    for j in range(2, n):
        if error(i, j) >= error(i, j - 1) + least(j):
            starts.append(j - 1)
            i = j
    return starts


def test_the_greedy_rule_is_the_printed_one_and_dpbenchs():
    rng = np.random.default_rng(1)
    for t in range(60):
        n = int(rng.integers(1, 30))
        kinds = [
            rng.integers(0, 6, n),
            rng.integers(-9, 80, n),
            np.floor(rng.pareto(1, n) * 9).clip(0, 10**6),
        ]
        values = np.sort(kinds[t % 3]).astype(np.int64)
        scale = float(rng.choice([0.27, 0.61, 2.3, 8.1]))  # no ties in floats
        marks = greedy(values, scale, Step.solve)
        noise = 2 * Fraction(scale) ** 2
        starts = np.flatnonzero(marks).tolist()
        assert starts == printed(values.tolist(), noise) == dpbench(values.tolist(), noise)


def test_a_bin_that_costs_as_much_joined_as_apart_stays_apart():
    # Joined it costs 3²/2 + 3/2, apart 3 + 3.
    assert ahp_rules._greedy(np.array([0.0, 3.0]), 3.0).tolist() == [1, 1]
    assert ahp_rules._greedy(np.array([0.0, 3.0]), 3.0001).tolist() == [1, 0]


def test_the_papers_example():
    """Example 3.1: 1 1 | 3 3 4 | 6 7 at ε₂ = 0.5."""
    values = np.array([1, 1, 3, 3, 4, 6, 7])
    assert greedy(values, 2.0, Step.solve).tolist() == [1, 0, 1, 0, 0, 1, 0]
    assert Clustering(values, 2.0).objective(optimal(values, 2.0, Step.solve)) <= Fraction(71, 6)


def test_greedy_sums_lose_no_digits_far_from_zero():
    values = np.sort(np.random.default_rng(2).integers(0, 50, 300))
    near = greedy(values, 3.0, Step.solve)
    assert np.array_equal(greedy(values + 2**40, 3.0, Step.solve), near)


def test_rules_of_thumb():
    assert rules_of_thumb(np.zeros(4_096, np.int64)) == {
        "square root": 64, "Sturges": 13, "Doane": 13, "Rice": 32,
    }  # fmt: skip
    assert rules_of_thumb(np.arange(1)) == {"square root": 1, "Sturges": 1, "Doane": 1, "Rice": 1}
    assert rules_of_thumb(np.array([5, 9])) == {"square root": 2, "Sturges": 2, "Doane": 2, "Rice": 2}
    values = np.array([0] * 60 + [1, 2, 4, 300])
    away = values - values.mean()
    s = abs(np.sum(away**3) / np.sum(away**2) ** 1.5) ** (1 / 3)
    spread = math.sqrt(6 * 62 / (65 * 67))
    assert rules_of_thumb(values)["Doane"] == math.ceil(1 + 6 + math.log2(1 + s / spread)) > 8
    assert rules_of_thumb(values) | {"Doane": 0} == {"square root": 8, "Sturges": 7, "Doane": 0, "Rice": 8}


def test_empirical_is_the_best_of_the_rules_of_thumb():
    rng = np.random.default_rng(3)
    for scale in (0.3, 3.0, 30.0):
        values = np.sort(np.floor(rng.pareto(1, 20) * 10)).astype(np.int64)
        steps = Steps()
        marks = empirical(values, scale, steps)
        costs = {step.model.clusters: step.solution.objective for step in steps.kept}
        assert set(costs) == set(rules_of_thumb(values).values())
        assert Clustering(values, scale).objective(marks) == min(costs.values())
        assert all(step.solution.gap == 0 for step in steps.kept)
        best = optimal(values, scale, steps)
        step = steps.kept[-1]
        assert step.solution.objective <= min(costs.values())
        assert np.array_equal(step.solution.x, best)


# AHP


def test_zeros_are_cut_by_place():
    values = np.array([0] * 10 + [50, 51, 90, 90, 90, 400])
    steps = Steps()
    marks = by_place(values, 2.0, steps)
    found = optimal(values, 2.0, Step.solve)
    assert steps.kept[0].solution.x.tolist() == found.tolist()  # the step keeps its proved answer
    assert np.flatnonzero(marks[:10]).tolist() == [0, 2, 5, 7]  # ⌈√16⌉ runs
    assert marks[10:].tolist() == found[10:].tolist()
    none = np.arange(5) * 100 + 1
    assert by_place(none, 2.0, Step.solve).tolist() == optimal(none, 2.0, Step.solve).tolist()
    assert by_place(np.append(values, 900), 2.0, Step.solve)[:10].sum() == 5  # ⌈√17⌉
    one = np.array([0, 300, 600])
    assert by_place(one, 2.0, Step.solve).tolist() == [1, 1, 1]


def test_bins_below_the_threshold_share_means_with_neighbours():
    """Four of nine bins are below the threshold, in two places: ⌈√9⌉ runs keep the places apart."""
    noisy = [900, -3, 1, 900, 900, 900, 2, 0, 900]
    noise = Choosing(make=lambda true: np.resize(noisy, true.shape))
    published = clustered("AHP-by-place", np.arange(9), 1.0, noise)
    assert published.clusters.tolist() == [3, 0, 1, 3, 3, 3, 2, 2, 3]
    assert noise.true[1].tolist() == [1, 2, 6 + 7, 0 + 3 + 4 + 5 + 8]  # the sums that are measured


def test_ahp_step_by_step():
    counts = np.array([40, 0, 41, 2, 39, 1])
    noise = Double(lambda true: true + (1 if true.size == 6 else 10))
    published = clustered("AHP", counts, 2.0, noise, share=0.25, eta=0.7)
    # Noisy 41 1 42 3 40 2 at ε₁ = 0.5; below 0.7·ln 6/0.5 = 2.51 to 0; stable order 1, 5, 3, 4, 0, 2.
    values, order = sorted_counts(counts + 1, 0.5, 0.7)
    assert (values.tolist(), order.tolist()) == ([0, 0, 3, 40, 41, 42], [1, 5, 3, 4, 0, 2])
    assert [(s.query, s.sensitivity, s.epsilon) for s in noise.spends] == [
        ("counts, to sort and cluster the bins", 1, 0.5),
        ("sums of clusters", 1, 1.5),
    ]
    marks = optimal(values, laplace_scale(1.5), Step.solve)
    clusters = np.empty(6, int)
    clusters[order] = np.cumsum(marks) - 1
    assert published.clusters.tolist() == clusters.tolist()
    for cluster in set(clusters.tolist()):
        here = clusters == cluster
        assert published.counts[here] == pytest.approx((counts[here].sum() + 10) / here.sum())
    assert noise.true[1].tolist() == [counts[clusters == c].sum() for c in range(clusters.max() + 1)]
    assert published.settings == {
        "share": 0.25, "eta": 0.7, "clusters": clusters.max() + 1,
    }  # fmt: skip


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_counts_at_the_threshold_stay(eta):
    """Ĥ ≥ θ stays, as printed; DPBench's program drops Ĥ = θ."""
    values, _ = sorted_counts(np.array([-3, 0, 1, 2, 2, 2, 2]), math.log(7) * eta / 2 or 1, eta)
    assert values.tolist() == ([0, 0, 0, 2, 2, 2, 2] if eta else [0, 0, 1, 2, 2, 2, 2])


def test_the_laplace_error_is_that_of_the_noise_drawn():
    for epsilon in (0.01, 1.0, 5.0):
        a = math.exp(-epsilon)
        assert 2 * laplace_scale(epsilon) ** 2 == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-12)
    assert laplace_scale(1e-6) == pytest.approx(1e6)
    assert laplace_scale(2000.0) == 0
    draws = SimulatedNoise(1).draw(geometric("q", 1, 1.0), np.zeros(200_000, np.int64)).answers
    assert 2 * laplace_scale(1.0) ** 2 == pytest.approx(draws.var(), rel=0.03)


# NoiseFirst


def test_standard_errors_where_they_are_known():
    counts = np.arange(2000)
    made = clustering(Histogram.of(counts), 0.5, SimulatedNoise(1), "Laplace")
    (error,) = made.table["standard_error"].unique()
    assert np.std(made.table["count"] - counts) == pytest.approx(error, rel=0.1)
    assert made.manifest()["standard_errors"] == "in the column standard_error"
    others = [method for method in METHODS if method != "Laplace"]
    for method in others:
        few = clustering(Histogram.of(counts[:20]), 0.5, SimulatedNoise(1), method)
        assert "standard_error" not in few.table
        assert few.manifest()["standard_errors"].startswith("not known after post-processing")


def test_noise_first_has_the_least_estimated_error_over_all_numbers_of_runs():
    rng = np.random.default_rng(4)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        noisy, epsilon = rng.integers(-3, 12, n), float(rng.choice([0.3, 1.0, 3.0]))
        published = clustered("NF", noisy, epsilon, Double())
        variance = 2 * laplace_scale(epsilon) ** 2

        def estimated(cut, noisy=noisy, variance=variance, n=n):
            squares = sum(((noisy[run] - noisy[run].mean()) ** 2).sum() for run in cut)
            return squares + (2 * len(cut) - n) * variance

        ends = [*np.flatnonzero(np.diff(published.clusters)) + 1, n]
        chosen = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        assert estimated(chosen) == pytest.approx(min(map(estimated, blocks(n))), abs=1e-9)
        for run in chosen:
            assert published.counts[run] == pytest.approx(noisy[run].mean())
            m = run.stop - run.start  # the authors' program would undo no run
            squares = ((noisy[run] - noisy[run].mean()) ** 2).sum()
            assert squares - (m - 2) * variance <= m * variance + 1e-9


# StructureFirst


def all_scores(counts, clusters, bound, ends):
    """The scores of every boundary, if the boundaries drawn before it are at these places."""
    noise = Choosing(ends)
    MeasureTruth(np.array(counts), noise)(sf.boundaries(len(counts), clusters, bound, 1.0))
    return noise.scores


@pytest.mark.parametrize(("bins", "most"), quick([(3, 3), (4, 2), (4, 3), (3, 6), (5, 2)]))
def test_scores_move_by_no_more_than_their_sensitivity(bins, most):
    reached = 0
    for clusters in range(2, bins):
        for ends in itertools.product(range(bins - 1), repeat=clusters - 1):
            for counts in itertools.product(range(most + 1), repeat=bins):
                here = all_scores(counts, clusters, most, ends)
                for i in range(bins):
                    if counts[i] < most:
                        other = all_scores(
                            (*counts[:i], counts[i] + 1, *counts[i + 1 :]), clusters, most, ends
                        )
                        for a, b in zip(here, other, strict=True):
                            reached = max(reached, int(np.abs(a - b).max()))
            if ends[0] > 0:
                break
    longest = bins - 1  # the longest run that a boundary may still cut
    assert (1 - 1 / longest) * (2 * most - 1) - 1 < reached <= sf.sensitivity(most)


def test_scores_are_the_least_costs_of_what_lies_before_a_boundary():
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(3, 8))
        k, bound = int(rng.integers(2, n)), int(rng.integers(1, 12))
        counts = rng.integers(0, 15, n)
        noise = Choosing(rng.integers(0, 5, k))
        made = MeasureTruth(counts, noise)(sf.boundaries(n, k, bound, 0.5))
        starts, spend = sf.starts_of(made.answers), made.spend
        capped = [min(int(c), bound) for c in counts]
        end = n
        for r, scores in zip(range(k - 1, 0, -1), noise.scores, strict=True):
            assert scores.size == end - r
            for at, score in enumerate(scores.tolist(), r):
                cuts = (cut for cut in blocks(end) if len(cut) == r + 1 and cut[-1].start == at)
                assert -score == min(sum(_rounded(capped[run]) for run in cut) for cut in cuts)
            end = int(starts[r])
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        assert spend.epsilon == pytest.approx(0.5)
        assert noise.queried == [(spend.query, 2 * bound - 1, 0.5 / (k - 1))] * (k - 1)
        assert spend.query == f"{k - 1} boundaries of runs, one after the other"


def _rounded(run):
    mean = Fraction(sum(run), len(run))
    return math.floor(sum((v - mean) ** 2 for v in run))


def test_large_counts_are_scored_in_units():
    """If n·F exceeds 2²⁷, counts (here of 2³⁰) are scored in units; their squares are still exact."""
    counts = np.array([2**30, 5, 2**30 - 9, 2**29, 2**29 + 1, 0])
    noise = Choosing([2, 1])
    MeasureTruth(counts, noise)(sf.boundaries(6, 3, 2**30, 1.0))
    unit = -(-6 * 2**30 // 2**27)
    bound = 2**30 // unit
    assert noise.queried[0][1] == 2 * bound - 1
    plain = np.minimum(counts // unit, bound)
    least = layers(2, sums_of(plain), True)
    assert [-noise.scores[0][at - 2] for at in (2, 3, 4)] == [
        least[2, at] + _rounded(plain[at:].tolist()) for at in (2, 3, 4)
    ]
    for i in range(6):  # one more person changes no count in units by more than one
        assert np.abs(np.minimum((counts + (np.arange(6) == i)) // unit, bound) - plain).max() <= 1


def test_structure_first_step_by_step():
    counts = np.array([7, 7, 0, 1, 50, 49, 51, 2, 2, 2, 2])
    noise = Choosing([3], make=lambda true: true + 3)
    published = clustered("SF", counts, 1.0, noise, share=0.4)
    assert published.settings == {"clusters": 2, "share": 0.4}
    assert [(s.query, s.epsilon) for s in published.spends] == [
        ("largest count", 0.05),
        ("1 boundaries of runs, one after the other", pytest.approx(0.95 * 0.4)),
        ("sums of clusters", pytest.approx(0.95 * 0.6)),
    ]
    assert published.clusters.tolist() == [0] * 4 + [1] * 7
    assert published.counts == pytest.approx([18 / 4] * 4 + [(counts[4:].sum() + 3) / 7] * 7)
    shown = clustered("SF", counts, 1.0, Choosing([3]), largest=60)
    assert [s.epsilon for s in shown.spends] == [0.5, 0.5]
    assert shown.settings["largest"] == 60
    for k, clusters in ((1, [0] * 11), (11, list(range(11)))):
        whole = clustered("SF", counts, 1.0, Choosing(), clusters=k)
        assert [s.epsilon for s in whole.spends] == [1.0]  # nothing to choose, so all is for the sums
        assert whole.clusters.tolist() == clusters


def test_a_negative_noisy_maximum_bounds_counts_by_one():
    noise = Choosing(make=lambda true: true - 10)
    clustered("SF", np.array([1, 0, 2, 0, 1]), 1.0, noise, clusters=2)
    assert noise.queried[0][1] == 1


# All methods


@pytest.mark.parametrize("method", quick(METHODS, every=3))
def test_all_methods_release_any_histogram_within_their_budget(method):
    rng = np.random.default_rng(6)
    for shape in [(1,), (2,), (3,), (40,), (5, 6), (2, 3, 4)]:
        for counts in (np.zeros(shape, int), rng.integers(0, 5, shape), rng.integers(0, 10**9, shape)):
            for epsilon in (0.01, 9.0):
                data = Histogram.of(counts)
                release = clustering(data, epsilon, SimulatedNoise(1), method)
                assert release.ledger.spent == pytest.approx(epsilon, rel=1e-9)
                assert release.table["count"].notna().all()
                assert len(release.table) == counts.size
                assert release.mechanism == method
                manifest = release.manifest()
                assert manifest["all_proved_optimal"]
                assert manifest["budget"]["neighbouring_relation"].startswith("one person joins or leaves")
                json.dumps(manifest)


@pytest.mark.parametrize("method", METHODS)
def test_equal_answers_give_equal_releases(method):
    """Methods use only the answers of the noise, never the counts."""
    for counts in ([4, 0, 9, 9, 1, 3], [0, 0, 0, 0, 0, 1]):
        releases = []
        for more in (0, 1):
            rng = np.random.default_rng(7)
            noise = Choosing(
                rng.integers(0, 3, 20), make=lambda true, rng=rng: rng.integers(-5, 30, true.shape)
            )
            data = Histogram.of(np.add(counts, [0, more, 0, 0, 0, 0]))
            release = clustering(data, 1.0, noise, method)
            releases.append((release.table.to_csv(), release.ledger, release.settings))
        assert releases[0] == releases[1]


def test_exact_noise_is_private_and_adds_up(tmp_path):
    counts = np.arange(30) ** 2 + 70_001
    for method in METHODS:
        release = clustering(Histogram.of(counts), 0.01, ExactNoise(), method)
        assert release.ledger.private
        assert release.ledger.spent == pytest.approx(0.01, rel=1e-9)
        release.write(tmp_path / method)
        text = everything_in(tmp_path / method)
        shown = [str(count) for count in counts.tolist() if str(count) in text]
        assert len(shown) < 10  # a noisy count may equal a true one


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=40), st.integers(0, 99))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_clusters_are_means_of_noisy_sums(counts, seed):
    for name in RULES:
        published = METHODS[name].publish(np.array(counts), 1.0, SimulatedNoise(seed))
        sizes = np.bincount(published.clusters)
        assert (sizes > 0).all()
        sums = np.bincount(published.clusters, published.counts)
        assert np.abs(sums - np.rint(sums)).max() <= 1e-3
        one = pd.Series(published.counts).groupby(published.clusters).nunique()
        assert (one == 1).all()


def test_flattening_runs_the_last_axis_fastest():
    counts = np.arange(6).reshape(2, 3) * 100
    table = clustering(Histogram.of(counts, "x", "y"), 50.0, SimulatedNoise(0), "Laplace").table
    assert table.columns.tolist() == ["x", "y", "cluster", "count", "standard_error"]
    assert np.rint(table["count"] / 100).tolist() == list(range(6))
    assert table["y"].tolist() == table["y"].tolist()[:3] * 2


def test_from_a_table():
    people = pd.DataFrame({"age": [3, 17, 18, 64, 65, 66], "n": [5, 0, 1, 2, 2, 9]})
    given = {"epsilon": 1.0, "noise": SimulatedNoise(1)}
    made = release(people, "clustering", axes=[Numbers("age", 0, 80, 4)], count="n", **given)
    assert made.mechanism == "AHP"
    assert made.table["age"].tolist() == Numbers("age", 0, 80, 4).labels
    assert made.settings["axes"][0]["name"] == "age"
    made = release(people, "clustering", axes=[Numbers("age", 0, 80)], method="GS", width=8, **given)
    assert made.settings["width"] == 8


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("AHP", {"share": 1.0}, "share is 1.0: it must lie between 0 and 1"),
        ("AHP", {"share": "much"}, "share must be a number, got 'much'"),
        ("AHP", {"eta": -1.0}, "eta is -1.0: it must be 0 or more"),
        ("AHP", {"eta": math.nan}, "eta is nan"),
        ("AHP", {"clusters": 3}, "AHP takes no clusters; it takes share, eta"),
        ("NF", {"share": 0.5}, "NF takes no share; it takes no options"),
        ("SF", {"clusters": 0}, "clusters is 0: 5 bins form 1 to 5 runs"),
        ("SF", {"clusters": 6}, "clusters is 6: 5 bins form 1 to 5 runs"),
        ("SF", {"largest": 0}, "largest is 0: it must be 1 or more"),
        ("SF", {"share": 0.0}, "share is 0.0"),
        ("ahp", {}, "no method 'ahp'; did you mean 'AHP' or 'PHP'\\? There are 'AHP', 'AHP-empirical'"),
    ],
)
def test_bad_options_are_named_before_any_noise(method, options, message):
    noise = Choosing()
    with pytest.raises(InputError, match=message):
        clustering(Histogram.of([1, 2, 3, 4, 5]), 1.0, noise, method, **options)
    assert noise.true == []


def test_names_of_axes_that_the_result_has():
    with pytest.raises(InputError, match="an axis is called 'count', like a column of the result; rename it"):
        clustering(Histogram.of([1, 2], "count"), 1.0, Choosing())


def test_a_ledger_holds_what_each_rule_spends():
    for rule in RULES:
        published = clustered(rule, np.arange(20), 3.0, SimulatedNoise(2))
        ledger = Ledger(3.0, 0.0, "", published.spends)
        assert ledger.spent == pytest.approx(3.0)
        with pytest.raises(InputError, match="more than the budget"):
            replace(ledger, epsilon=2.9)
