"""Clustering against all partitions, the plain O(n²) program and other solvers; ties and outliers."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from models import Clustering
from models.witnesses import sorted_runs
from solvers import fast, solve
from solvers.fast.clustering import potentials as potentials_of
from tests.brute import blocks
from tests.marks import quick, shares


def run_cost(values, scale) -> Fraction:
    values = [Fraction(v) for v in values]
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) + 2 * Fraction(scale) ** 2 / len(values)


def plain(values, scale) -> list[Fraction]:
    """The least cost of the first j values for each j, by trying all last runs."""
    values = [Fraction(v) for v in values]
    best = [Fraction(0)]
    noise = 2 * Fraction(scale) ** 2
    for j in range(1, len(values) + 1):
        total = squares = Fraction(0)
        least = None
        for i in range(j - 1, -1, -1):
            total, squares = total + values[i], squares + values[i] ** 2
            cost = best[i] + squares + (noise - total * total) / (j - i)
            least = cost if least is None else min(least, cost)
        best.append(least)
    return best


def marks(cut, n) -> np.ndarray:
    x = np.zeros(n, np.int64)
    x[[run.start for run in cut]] = 1
    return x


@pytest.fixture
def in_floats(monkeypatch):
    monkeypatch.setattr(Clustering, "exact_up_to", 0)


def tiny(scale, share):
    """Instances with all their answers, the cost of each, and the least."""
    for n in range(1, 7):
        cuts = list(blocks(n))
        for values in list(combinations_with_replacement(range(-1, 3) if n < 6 else (0, 1, 3), n))[share]:
            answers = [(marks(cut, n), sum(run_cost(values[run], scale) for run in cut)) for cut in cuts]
            yield Clustering(values, scale), answers, min(cost for _, cost in answers)


@shares(3)
@pytest.mark.parametrize("scale", quick([0.5, 1.0, 0.0, 3.0]))
@pytest.mark.usefixtures("in_floats")
def test_every_tiny_instance_in_floats(scale, share):
    for model, answers, best in tiny(scale, share):
        x, witness = fast.answer(model)
        assert float(model.objective(x) - best) == pytest.approx(0, abs=1e-12)
        assert model.certificate(x).optimal
        for cut, cost in answers[:: 1 if x.size < 5 else 5]:
            proof = model.certificate(cut, witness)
            assert proof.optimal == (cost == best)
            assert proof.gap == pytest.approx(float(cost - best), abs=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("in_floats")
def test_the_search_is_the_plain_program_on_hundreds_of_instances():
    rng = np.random.default_rng(3)
    for k in range(500):
        n = int(rng.integers(1, 25 if k % 10 else 90))
        kinds = [
            rng.integers(0, 4, n),
            rng.integers(0, 200, n),
            np.floor(rng.pareto(0.7, n).clip(0, 1e9)).astype(np.int64),
            np.repeat(rng.integers(-50, 50, n), rng.integers(1, 4, n))[:n],
            np.arange(n) * int(rng.integers(0, 5)),
            10**12 + rng.integers(0, 100, n),
        ]
        values = np.sort(kinds[k % len(kinds)])
        scale = float(rng.choice([0.25, 1, 4, 16, 300]))
        model = Clustering(values, scale)
        best = plain(values.tolist(), scale)
        potentials, _ = potentials_of(model)
        np.testing.assert_allclose(potentials, [float(v) for v in best], rtol=1e-12, atol=1e-13)
        x = fast.answer(model)[0]
        assert float(model.objective(x) - best[-1]) <= 1e-12 * float(best[-1])
        assert model.certificate(x).optimal


@pytest.mark.slow
@pytest.mark.usefixtures("in_floats")
def test_the_check_finds_every_pair_that_potentials_break():
    rng = np.random.default_rng(4)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        values = np.sort(rng.integers(0, 30, n))
        model = Clustering(values, float(rng.choice([0.5, 2, 10])))
        d, _ = potentials_of(model)
        if rng.random() < 0.8:
            d = d + rng.normal(0, rng.choice([0.01, 1, 100]), n + 1)
        d[0] = 0
        cost = np.array(
            [[float(model.run_cost(i, j)) if i < j else np.inf for j in range(n + 1)] for i in range(n)]
        )
        broken = np.maximum(0, d[1:] - (d[:n, None] + cost).min(axis=0)[1:]).sum()
        over = sorted_runs.most_over(d, float(model.noise), 0.0, model.sums(), 0.0, n, 0.0)
        assert over == pytest.approx(broken, rel=1e-9, abs=1e-9)
        assert over >= broken


@shares(7)
@pytest.mark.usefixtures("in_floats")
def test_wrong_potentials_prove_less_and_never_too_much(monkeypatch, share):
    along = sorted_runs.along
    for seed in range(100)[share]:
        rng = np.random.default_rng(seed)
        model = Clustering(np.sort(rng.integers(0, 60, 30)), 3.0)
        x, witness = fast.answer(model)
        cost = float(model.objective(x))
        noise = rng.normal(0, 5, 31) * (np.arange(31) > 0)
        other = marks([slice(0, 1), slice(1, 30)], 30)
        for answer in (x, other):
            assert (
                model.certificate(answer, {"potentials": witness["potentials"] + noise}).bound <= cost + 1e-9
            )
            assert model.certificate(answer, witness).bound == pytest.approx(cost, rel=1e-11)
        monkeypatch.setattr(sorted_runs, "along", lambda *data, noise=noise: along(*data) + noise)
        assert model.certificate(x).bound <= cost + 1e-9
        monkeypatch.setattr(sorted_runs, "along", along)
        assert model.certificate(x).bound == pytest.approx(cost, rel=1e-11)


@shares(5)
@pytest.mark.usefixtures("in_floats")
def test_an_optimal_answer_needs_no_other_potentials_than_those_along_it(share):
    rng = np.random.default_rng(share.start)
    models = [replace(Clustering.random(rng, int(rng.integers(1, 90))), clusters=None) for _ in range(10)]
    for model in models:
        x, best = fast.answer(model)[0], potentials_of(model)[0]
        proof = model.certificate(x)
        assert proof.optimal
        np.testing.assert_allclose(proof.witness["potentials"], best, rtol=1e-11, atol=1e-11)
        assert proof.gap <= 1e-10 * max(1, best[-1])


@pytest.mark.usefixtures("in_floats")
def test_costs_along_any_answer_are_costs_of_partitions():
    rng = np.random.default_rng(12)
    for _ in range(60):
        n = int(rng.integers(1, 30))
        model = Clustering(np.sort(rng.integers(0, 30, n)), float(rng.choice([0.5, 2, 10])))
        starts = np.union1d([0], np.flatnonzero(rng.random(n) < rng.choice([0.1, 0.5, 0.9])))
        d, last = np.zeros(n + 1), 0
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True):
            for j in range(start + 1, end + 1):
                d[j] = min(d[i] + float(model.run_cost(i, j)) for i in range(last, start + 1))
            last = start
        np.testing.assert_allclose(
            sorted_runs.along(starts, float(model.noise), 0.0, model.sums()), d, rtol=1e-11, atol=1e-11
        )


@pytest.mark.usefixtures("in_floats")
def test_ties_that_floats_can_see_go_to_the_longest_last_run():
    for n in range(1, 9):
        assert fast.answer(Clustering([5] * n, 0))[0].tolist() == [1] + [0] * (n - 1)
        assert fast.answer(Clustering([0] * n + [8] * n, 0))[0].tolist() == ([1] + [0] * (n - 1)) * 2


def test_the_costs_are_monge():
    rng = np.random.default_rng(6)
    for _ in range(60):
        n = int(rng.integers(3, 12))
        model = Clustering(np.sort(rng.integers(-5, 20, n)), int(rng.integers(0, 6)))
        for i, j in product(range(n - 1), range(3, n + 1)):
            if i + 1 < j - 1:
                inner = model.run_cost(i, j - 1) + model.run_cost(i + 1, j)
                assert inner <= model.run_cost(i, j) + model.run_cost(i + 1, j - 1)


def test_the_relaxation_is_whole():
    model = Clustering(np.sort(np.random.default_rng(8).integers(0, 40, 30)), 4.0)
    theirs = solve(model, "clarabel", time_limit=300)
    assert theirs.bound == pytest.approx(float(solve(model).objective), rel=1e-6)


def test_a_program_is_stated_for_few_values_only():
    with pytest.raises(ValueError, match="401 values have 80,601 runs; a program is stated up to 400"):
        Clustering(np.arange(401), 1).program()
    assert Clustering([1, 2, 4], 1).program().size == 3 + 6


@pytest.mark.usefixtures("in_floats")
def test_far_outliers_and_large_offsets_lose_no_digits():
    values = np.sort(np.concatenate([np.arange(60) * 3, 10**14 + np.arange(40) * 5, [2**61, 2**61 + 999]]))
    model = Clustering(values[:100], 10.0)
    best = plain(values[:100].tolist(), 10)
    assert potentials_of(model)[0][-1] == pytest.approx(float(best[-1]), rel=1e-10)
    nearer = Clustering(np.where(values[:100] > 10**9, values[:100] - 99 * 10**12, values[:100]), 10.0)
    assert nearer.certificate(fast.answer(nearer)[0]).optimal
    rng = np.random.default_rng(1)
    digits = np.sort(np.concatenate([rng.normal(0, 1, 60), 1e8 + rng.normal(0, 1, 40)]))
    potentials, _ = potentials_of(Clustering(digits, 1.5))
    np.testing.assert_allclose(potentials, [float(v) for v in plain(digits, 1.5)], rtol=1e-12)
    shifted = Clustering(values[:60] + 2**61, 10.0)
    assert np.array_equal(potentials_of(shifted)[0], potentials_of(Clustering(values[:60], 10.0))[0])
    whole = Clustering(values, 10.0)
    assert whole.objective([1] + [0] * 101) == run_cost(values.tolist(), 10)


def test_whole_values_have_no_tolerance_however_many_there_are():
    """Costs of about 3e17, whose floats are multiples of 64: one cut is better by a billionth of that."""
    large = 10**8
    values = np.array([0] * 110 + [large] * 39 + [large + 1] + [2 * large] * 110)
    model = Clustering(values, 0, 2)
    x, better = marks([slice(0, 150), slice(150, 260)], 260), marks([slice(0, 110), slice(110, 260)], 260)
    proof, best = model.certificate(x), model.certificate(better)
    assert (proof.optimal, best.optimal) == (False, True)
    assert proof.objective > proof.bound == best.bound == best.objective
    assert isinstance(proof.objective, Fraction)


@shares(4)
@pytest.mark.usefixtures("in_floats")
def test_near_ties_of_many_values_are_decided_exactly(share, monkeypatch):
    rng = np.random.default_rng(share.start)
    for k in range(24)[share]:
        n = int(rng.integers(30, 90))
        values = np.arange(n) if k % 3 else np.sort(rng.integers(0, int(rng.choice([4, 3000])), n))
        model = Clustering(
            values * int(rng.choice([1, 10**7])), (0, 1, 10)[k % 5 % 3], (None, 5, n // 3, n // 2)[k % 4]
        )
        x, witness = fast.answer(model)
        moved, at = x.copy(), int(rng.integers(1, n - 1))
        moved[[at, at + 1]] = moved[[at + 1, at]]
        proofs = [model.certificate(answer, given) for answer in (x, moved) for given in (witness, None)]
        near = (sorted_runs._near_rows, sorted_runs._near_rows.in_arrays)
        monkeypatch.setattr(sorted_runs, "_near_rows", near[1])
        proofs.append(model.certificate(x))
        monkeypatch.setattr(sorted_runs, "_near_rows", near[0])
        monkeypatch.setattr(Clustering, "exact_up_to", 1000)
        best = model.objective(fast.answer(model)[0])
        monkeypatch.setattr(Clustering, "exact_up_to", 0)
        for proof in proofs:
            assert proof.bound is None or proof.bound <= best, model
            assert proof.optimal == (proof.bound is not None and proof.objective == best), model
