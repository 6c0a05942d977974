"""Segmentation against all partitions, other solvers and wrong potentials."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from models import Clustering, Segmentation
from models.witnesses import ordered_runs
from solvers import fast, solve
from solvers.fast import segment_paths
from tests.brute import blocks
from tests.marks import quick
from tests.models.test_clustering import marks, run_cost


@pytest.fixture(params=quick(["floats", "fractions"]))
def arithmetic(request, monkeypatch):
    if request.param == "floats":
        monkeypatch.setattr(Segmentation, "exact_up_to", 0)
    return request.param


@pytest.fixture
def in_floats(monkeypatch):
    monkeypatch.setattr(Segmentation, "exact_up_to", 0)


def kinds(rng, n):
    return [
        rng.integers(0, 4, n),
        rng.integers(0, 200, n),
        np.floor(rng.pareto(0.7, n).clip(0, 1e9)).astype(np.int64),
        np.repeat(rng.integers(-50, 50, n), rng.integers(1, 6, n))[:n],
        np.repeat(rng.integers(-50, 50, n), 7)[:n] + rng.integers(-3, 4, n),
        10**12 + rng.integers(0, 100, n),
        np.zeros(n, np.int64),
    ]


@pytest.mark.slow
def test_every_tiny_instance(arithmetic):
    exact = arithmetic == "fractions"
    for n in range(1, 6):
        cuts = list(blocks(n))
        for values in list(product((-1, 0, 3), repeat=n))[:: 1 if n < 5 else 5]:
            squares = [sum(run_cost(values[run], 0) for run in cut) for cut in cuts]
            for k, price in ((None, 0), (None, Fraction(1, 2)), (None, 3), (1, 0), (min(2, n), 2), (n, 1)):
                model = Segmentation(values, k, price)
                costs = [c + price * len(cut) for cut, c in zip(cuts, squares, strict=True)]
                best = min(c for cut, c in zip(cuts, costs, strict=True) if k in (None, len(cut)))
                x, witness = fast.answer(model)
                assert x.dtype == np.int64
                assert model.violations(x) == []
                assert float(model.objective(x) - best) == pytest.approx(0, abs=0 if exact else 1e-12)
                for cut, cost in zip(cuts, costs, strict=True):
                    assert (model.certificate(marks(cut, n)).bound or 0) <= best + 1e-12
                    proof = model.certificate(marks(cut, n), witness)
                    assert proof.objective == cost
                    if k not in (None, len(cut)):
                        assert proof.reason == f"not feasible: clusters: {len(cut)} runs, not {k}"
                        continue
                    assert proof.optimal == (cost == best), (model, cut)
                    if exact:
                        assert (proof.bound, proof.gap) == (best, cost - best)
                    else:
                        assert proof.gap == pytest.approx(float(cost - best), abs=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("in_floats")
def test_searches_are_the_plain_programs_on_hundreds_of_instances():
    rng = np.random.default_rng(3)
    for t in range(300):
        n = int(rng.integers(1, 70))
        values = kinds(rng, n)[t % 7]
        price = float(rng.choice([0.25, 1, 40, 3000]))
        away = values - values[0]
        w = np.full((n + 1, n + 1), np.inf)
        for i in range(n):
            sums, squares = np.cumsum(away[i:]), np.cumsum(away[i:] ** 2)
            w[i, i + 1 :] = [
                float(q - Fraction(int(s) ** 2, m + 1))
                for m, (s, q) in enumerate(zip(sums.tolist(), squares.tolist(), strict=True))
            ]
        plain = np.zeros(n + 1)
        for j in range(1, n + 1):
            plain[j] = min(plain[:j] + w[:j, j]) + price
        found, begin = segment_paths.priced(price, Segmentation(values).sums())
        np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-9)
        for j in range(1, n + 1):
            assert found[begin[j]] + w[begin[j], j] + price == pytest.approx(found[j], rel=1e-12)
        most = min(n, int(rng.integers(1, 30)))
        layer = np.full((most + 1, n + 1), np.inf)
        layer[0, 0] = 0
        for r in range(1, most + 1):
            for j in range(r, n + 1):
                layer[r, j] = min(layer[r - 1, :j] + w[:j, j])
        found = segment_paths.layers(most, Segmentation(values).sums(), False)
        np.testing.assert_allclose(found, layer, rtol=1e-11, atol=1e-9)
        starts = segment_paths.layered_starts(found, Segmentation(values).sums())
        assert starts[0] == 0
        ends = np.append(starts[1:], n)
        assert (ends > starts).all()
        assert sum(w[starts, ends]) == pytest.approx(layer[most, n], rel=1e-11, abs=1e-9)


def test_whole_costs_are_rounded_down_exactly():
    rng = np.random.default_rng(4)
    for t in range(24):
        n = int(rng.integers(1, 25))
        values = rng.integers(0, [2, 50, 2**27 // n][t % 3] + 1, n)
        w = {(i, j): int(run_cost(values[i:j].tolist(), 0)) for i in range(n) for j in range(i + 1, n + 1)}
        most = int(rng.integers(1, n + 1))
        layer = [[0] + [None] * n]
        for r in range(1, most + 1):
            above = layer[-1]
            layer.append([None] * (n + 1))
            for j in range(r, n + 1):
                ways = [above[i] + w[i, j] for i in range(r - 1, j) if above[i] is not None]
                layer[-1][j] = min(ways)
        found = segment_paths.layers(most, Segmentation(values).sums(), True)
        for r in range(most + 1):
            for j in range(n + 1):
                assert found[r, j] == (np.inf if layer[r][j] is None else layer[r][j])
    values = rng.integers(0, 2**27 // 2_000 + 1, 2_000)
    costs = np.empty(2_000)
    segment_paths.whole_column(Segmentation(values).sums(), 0, 2_000, costs)
    sums, squares, expected = 0, 0, []
    for m, value in enumerate(reversed(values.tolist()), 1):
        sums, squares = sums + value, squares + value**2
        expected.append(squares + -(sums**2) // m)
    assert costs.tolist() == expected[::-1]


@pytest.mark.parametrize("rounds", quick([20, 100]))
@pytest.mark.usefixtures("in_floats")
def test_wrong_potentials_prove_less_and_never_too_much(rounds):
    rng = np.random.default_rng(9)
    for t in range(rounds):
        n = int(rng.integers(2, 40))
        k = None if t % 2 else int(rng.integers(1, n + 1))
        model = Segmentation(kinds(rng, n)[t % 5], k, float(rng.choice([0, 2, 50])))
        x, witness = fast.answer(model)
        cost, potentials = float(model.objective(x)), witness["potentials"]
        off = rng.normal(0, rng.choice([0.1, 20]), potentials.shape)
        off[potentials == 0] = 0
        starts = np.append(0, rng.choice(np.arange(1, n), (k or n // 2 or 1) - 1, replace=False))
        for answer in (x, np.isin(np.arange(n), starts).astype(int)):
            proof = model.certificate(answer, {"potentials": potentials + off})
            assert proof.bound <= cost + 1e-9 * max(1, cost)
        for shift in (0, 5, -5):  # bounds are differences of potentials
            moved = {"potentials": potentials + shift}
            assert model.certificate(x, moved).bound == pytest.approx(cost, rel=1e-12, abs=1e-9)


@pytest.mark.slow
def test_no_potentials_prove_too_much():
    """Random potentials, checked along random answers of thousands of small instances."""
    rng = np.random.default_rng(12)
    for t in range(1_500):
        n = int(rng.integers(2, 9))
        values = rng.integers(0, 6, n) if t % 3 else np.repeat(rng.integers(0, 9, n), 3)[:n]
        price = float(rng.choice([0, 0.5, 2, 9]))
        sums = Segmentation(values).sums()
        best, _ = segment_paths.priced(price, sums)
        d = best + rng.uniform(-2, 2, n + 1) * (rng.random(n + 1) < 0.5)
        d[0] = 0
        starts = np.flatnonzero(np.append(True, rng.random(n - 1) < 0.4))
        assert d[n] - ordered_runs.most_over(d, price, sums, starts, best[n], 0.0) <= best[n] + 1e-9
        k = int(rng.integers(1, n + 1))
        layer = segment_paths.layers(k, sums, False)
        d = layer + rng.uniform(-9, 9, layer.shape) * (rng.random(layer.shape) < 0.5)
        found = ordered_runs.most_over_layers(ordered_runs.capped(d, 1e3), sums, 1e3, 0.0)
        assert d[k, n] - d[0, 0] - found <= layer[k, n] + 1e-9
        w = [
            [float(np.var(values[i:j]) * (j - i)) if i < j else np.inf for i in range(n)]
            for j in range(n + 1)
        ]
        over = []
        for r in range(1, k + 1):
            least = [min(d[r - 1, i] + w[j][i] for i in range(r - 1, j)) for j in range(r, n + 1)]
            over.append(max(0.0, *(d[r, r:] - least)))
        assert found == pytest.approx(sum(over), abs=1e-9)


@pytest.mark.parametrize("n", quick([5, 30, 105, 700], first=2))
def test_sorted_values_are_those_of_a_clustering_without_noise(n):
    rng = np.random.default_rng(n)
    values = np.sort(np.floor(rng.pareto(1, n) * 20).clip(0, 1e5)).astype(np.int64)
    for k in (1, 3, 5):
        cost = solve(Clustering(values, 0, k)).objective
        assert solve(Segmentation(values, k)).objective == cost


def test_the_least_cost_need_not_be_convex_in_the_number_of_runs():
    """So no price per run finds the best cut into a given number of runs."""
    costs = [solve(Segmentation([0, 0, 9, 9, 0, 0, 9, 9, 0, 0], k)).objective for k in range(1, 6)]
    drops = [a - b for a, b in pairwise(costs)]
    assert drops != sorted(drops, reverse=True)


@pytest.mark.parametrize("far", [10**12, 2**61])
def test_huge_counts_lose_no_digits_or_are_not_proved(monkeypatch, far):
    values = np.concatenate([far + np.arange(15) * 7, np.arange(20) * 3, [far, 0, -far]])
    for k in (None, 6, 25):
        model = Segmentation(values, k, 10)
        exactly = solve(model)
        assert (exactly.status, exactly.gap) == ("optimal", 0)
        monkeypatch.setattr(Segmentation, "exact_up_to", 0)
        proof = model.certificate(*fast.answer(model))
        assert proof.bound == exactly.objective  # of an answer in floats, which may be worse
        assert proof.optimal or far > 2**60
        monkeypatch.undo()


def test_a_program_is_stated_for_few_values_only():
    with pytest.raises(ValueError, match="401 values have 80,601 runs"):
        Segmentation(np.arange(401)).program()


@pytest.mark.parametrize("wrong", [lambda a, _: a.size, lambda *_: 0, lambda a, _: a.size // 2])
@pytest.mark.parametrize("which", ["first_below", "end_below"])
def test_a_bisection_that_is_wrong_hides_no_excess(which, wrong, monkeypatch):
    """The search uses the same bisection; the check omits only what it has verified itself."""
    rng = np.random.default_rng(3)
    for n, k in ((12, 3), (30, 5)):
        sums = Segmentation(rng.integers(0, 60, n)).sums()
        d = segment_paths.layers(k, sums, False)
        d[0, 1:] = 0.0
        for r in range(1, k + 1):
            d[r, :r] = 0.0
            d[r, r:] += rng.uniform(0, 40, n + 1 - r)
        d[0, 1:] = np.inf
        true = ordered_runs._layers_excess.py_func(d, sums)
        assert true > 0
        with monkeypatch.context() as patched:
            patched.setattr(ordered_runs, which, wrong)
            assert ordered_runs._layers_excess.py_func(d, sums) >= true
