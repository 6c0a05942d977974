"""Clustering into a given number of runs, against all partitions, layer by layer, and other solvers."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

from models import Clustering, runs
from models.witnesses import sorted_runs
from solvers import fast, solve
from solvers.fast import monge
from solvers.fast.clustering import potentials as potentials_of
from tests.brute import blocks
from tests.marks import quick, shares
from tests.models.test_clustering import marks, run_cost


@pytest.fixture(params=["fractions", "floats"])
def arithmetic(request, monkeypatch):
    if request.param == "floats":
        monkeypatch.setattr(Clustering, "exact_up_to", 0)
    return request.param


def layered(values, scale) -> list[Fraction]:
    """The least costs of 1, 2, … n runs, by trying all last runs for each."""
    n = len(values)
    cost = {(i, j): run_cost(values[i:j], scale) for i in range(n) for j in range(i + 1, n + 1)}
    best = [Fraction(0), *[None] * n]
    found = []
    for r in range(1, n + 1):
        best = [
            min((best[i] + cost[i, j] for i in range(r - 1, j) if best[i] is not None), default=None)
            if j >= r
            else None
            for j in range(n + 1)
        ]
        found.append(best[n])
    return found


@shares(5)
@pytest.mark.parametrize("scale", quick([Fraction(1, 2), 0, 3]))
def test_every_tiny_instance(scale, arithmetic, share):
    exact = arithmetic == "fractions"
    for n in range(1, 6):
        cuts = list(blocks(n))
        for values in list(combinations_with_replacement((-1, 0, 1, 4), n))[share]:
            costs = [sum(run_cost(values[run], scale) for run in cut) for cut in cuts]
            for k in range(1, n + 1):
                model = Clustering(values, scale, k)
                best = min(cost for cut, cost in zip(cuts, costs, strict=True) if len(cut) == k)
                x, witness = fast.answer(model)
                assert x.dtype == np.int64
                assert x.sum() == k
                assert float(model.objective(x) - best) == pytest.approx(0, abs=0 if exact else 1e-12)
                for cut, cost in list(zip(cuts, costs, strict=True))[:: 1 if n < 5 else 3]:
                    proof = model.certificate(marks(cut, n), witness)
                    assert proof.objective == cost
                    if len(cut) != k:
                        assert proof.bound is None
                        assert proof.reason == f"not feasible: clusters: {len(cut)} runs, not {k}"
                    elif exact:
                        assert (proof.bound, proof.gap) == (best, cost - best)
                        assert proof.optimal == (cost == best)
                    else:
                        assert proof.gap == pytest.approx(float(cost - best), abs=1e-9)
                        assert proof.optimal == (cost == best)


def test_layer_by_layer_on_hundreds_of_instances(arithmetic):
    rng = np.random.default_rng(1)
    for t in range(8):
        n = int(rng.integers(1, 13))
        kinds = [
            rng.integers(0, 4, n),
            rng.integers(0, 200, n),
            np.floor(rng.pareto(0.5, n).clip(0, 1e12)).astype(np.int64),
            4 ** np.arange(n),
        ]
        values = np.sort(kinds[t % len(kinds)])
        scale = Fraction(int(rng.integers(0, 40)), 4)
        best = layered(values.tolist(), scale)
        differences = np.diff(np.array(best, dtype=object))
        assert all(a <= b for a, b in pairwise(differences))  # convex in k
        for k in range(1, n + 1):
            model = Clustering(values, scale, k)
            solution = solve(model)
            assert solution.status == "optimal", model
            assert solution.x.sum() == k
            if arithmetic == "fractions":
                assert (solution.objective, solution.gap) == (best[k - 1], 0)
            else:
                assert float(solution.objective) == pytest.approx(float(best[k - 1]), rel=1e-12, abs=1e-12)


def test_the_price_is_what_one_run_more_would_save():
    values = np.sort(np.random.default_rng(2).integers(0, 50, 20))
    best = layered(values.tolist(), 2)
    for k in range(1, 20):
        model = Clustering(values, 2, k)
        price = model.certificate(*fast.answer(model)).witness["price"]
        assert price == best[k - 1] - best[k]
    model = Clustering(values, 2, 20)
    assert model.certificate([1] * 20).witness == {}


def test_wrong_potentials_and_prices_prove_less_and_never_too_much(monkeypatch):
    monkeypatch.setattr(Clustering, "exact_up_to", 0)
    rng = np.random.default_rng(3)
    along, one_more = sorted_runs.along, sorted_runs.one_more
    for _ in range(12):
        n = int(rng.integers(3, 30))
        model = Clustering(np.sort(rng.integers(0, 60, n)), 3.0, int(rng.integers(1, n)))
        x, witness = fast.answer(model)
        cost = float(model.objective(x))
        other = runs.marks_of(np.append(0, rng.choice(np.arange(1, n), model.clusters - 1, replace=False)), n)
        noise, off = rng.normal(0, 5, n + 1) * (np.arange(n + 1) > 0), rng.normal(0, 20)
        wrong = {"price": witness["price"] + off, "potentials": witness["potentials"] + noise}
        for answer in (x, other):
            assert model.certificate(answer, wrong).bound <= cost + 1e-9
            assert model.certificate(answer, witness).bound == pytest.approx(cost, rel=1e-11)
        monkeypatch.setattr(sorted_runs, "along", lambda *given, noise=noise: along(*given) + noise)
        assert model.certificate(x).bound <= cost + 1e-9
        monkeypatch.setattr(sorted_runs, "along", along)
        monkeypatch.setattr(sorted_runs, "one_more", lambda *given, off=off: one_more(*given) + off)
        assert model.certificate(x).bound <= cost + 1e-9
        monkeypatch.setattr(sorted_runs, "one_more", one_more)
        assert model.certificate(x).bound == pytest.approx(cost, rel=1e-11)


@shares(61)
def test_an_optimal_answer_needs_no_search(monkeypatch, share):
    """The saving of one more run is found near the answer, and is the price that proves the answer."""
    monkeypatch.setattr(Clustering, "exact_up_to", 0)
    rng = np.random.default_rng(share.start)
    for t in range(300)[share]:
        n = int(rng.integers(2, 60))
        values = [rng.integers(0, 5, n), rng.integers(0, 900, n), np.floor(rng.pareto(0.7, n).clip(0, 1e9))][
            t % 3
        ]
        model = Clustering(np.sort(values), float(rng.choice([0, 0.5, 3, 40])), int(rng.integers(1, n)))
        x = fast.answer(model)[0]
        more = replace(model, clusters=model.clusters + 1)
        least = float(model.objective(fast.answer(more)[0]))
        found = sorted_runs.one_more(np.flatnonzero(x), float(model.noise), model.sums())
        assert found == pytest.approx(least, rel=1e-12, abs=1e-9)
        proof = model.certificate(x)
        assert proof.optimal
        assert proof.gap <= 1e-9 * max(1, proof.objective)


def test_ties_are_cut_into_the_given_number_of_runs():
    for n in range(1, 7):
        for k in range(1, n + 1):
            for values in ([7] * n, list(range(n)), [0] * (n // 2) + [9] * (n - n // 2)):
                for scale in (0, 1):
                    assert solve(Clustering(values, scale, k)).status == "optimal"


def test_the_relaxation_costs_no_less():
    rng = np.random.default_rng(8)
    for k in (2, 7, 15):
        model = Clustering(np.sort(rng.integers(0, 40, 30)), 4.0, k)
        theirs = solve(model.program().relaxed(), "highs", time_limit=300)
        assert float(theirs.objective) == pytest.approx(float(solve(model).objective), rel=1e-7)


@pytest.mark.parametrize("size", quick([60, 500, 5_000]))
def test_few_prices_are_tried(monkeypatch, size):
    """5 to 20 shortest paths, whereas layers take k; a few dozen for costs that halve 400 times."""
    tried = []
    walk = runs.walk
    monkeypatch.setattr(runs, "walk", lambda begins: tried.append(1) or walk(begins))
    rng = np.random.default_rng(5)
    for values in (
        np.floor(rng.pareto(0.5, size).clip(0, 1e9)),
        rng.normal(0, 1, size),
        2.0 ** np.arange(min(size, 400)),
    ):
        n = values.size
        for k in {2, 9, min(70, n - 2), n // 2, n - 1}:
            tried.clear()
            fast.answer(Clustering(np.sort(values), 1.0, k))[0]
            assert len(tried) <= (70 if n == 400 else 25)  # no other values are 400


def test_scaling_fractions_to_integers_keeps_the_cut():
    values = np.array([Fraction(v, 6) for v in (-7, 1, 1, 2, 9, 30, 31)], dtype=object)
    for k in (None, 2, 4, 6):
        parts = solve(Clustering(values, Fraction(1, 5), k))
        whole = solve(Clustering((values * 6).astype(int), Fraction(6, 5), k))
        assert np.array_equal(parts.x, whole.x)
        assert parts.gap == whole.gap == 0
        assert parts.objective * 36 == whole.objective


@pytest.mark.parametrize("far", [10**12, 2**61])
def test_huge_counts_lose_no_digits_or_are_not_proved(monkeypatch, far):
    values = np.sort(np.concatenate([np.arange(20) * 3, far + np.arange(15) * 7]))
    for k in (None, 2, 5, 30):
        model = Clustering(values, 10.0, k)
        exactly = solve(model)
        assert (exactly.status, exactly.gap) == ("optimal", 0)
        monkeypatch.setattr(Clustering, "exact_up_to", 0)
        proof = model.certificate(*fast.answer(model))
        assert proof.bound == exactly.objective  # of an answer in floats, which may be worse
        assert proof.optimal or far > 2**60
        monkeypatch.undo()


def test_a_price_is_paid_for_every_run():
    values = np.sort(np.random.default_rng(6).integers(0, 30, 12))
    model = Clustering(values, 2.0)
    for price in (Fraction(7, 3), Fraction(-5)):
        exactly, begins = potentials_of(model, price)
        floats, begins_too = monge.least_costs(float(model.noise), float(price), model.sums())
        np.testing.assert_allclose(floats, exactly.astype(float), rtol=1e-12)
        starts = runs.walk(begins)
        assert model.objective(runs.marks_of(starts, 12)) + price * starts.size == exactly[-1]
        assert np.array_equal(runs.walk(begins_too), starts)
