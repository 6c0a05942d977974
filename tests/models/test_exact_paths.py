"""Exact least costs of few values against the plain program in Fractions, where floats do not suffice."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from models import Clustering, Segmentation, runs
from models.arithmetic.run_costs import run_cost, spread
from models.arithmetic.whole_sums import whole_sums
from solvers import fast, solve
from solvers.fast import exact_paths

pytestmark = pytest.mark.slow

NOISES = [Fraction(0), Fraction(1, 3), 2 * Fraction(0.1) ** 2, Fraction(2), Fraction(2**61)]
PRICES = [Fraction(0), Fraction(7, 3), Fraction(-5), Fraction(0.1), Fraction(4000), Fraction(10**30 + 1, 7)]


def kinds(rng, n):
    """Ties, huge and negative counts, and costs whose differences are far below rounding errors."""
    small = rng.integers(0, 5, n)
    ends = np.where(np.arange(n) % max(n - 1, 1), 0, 1)
    return [
        small,
        rng.integers(0, 10_000, n),
        np.full(n, int(rng.integers(-3, 4))),
        rng.integers(0, 2, n) * 2**53 + small,
        2**62 - small,
        rng.integers(-(2**62), 2**62, n),
        -(rng.integers(0, 4, n) * 10**12) + small,
        small + np.append(np.resize([0, 2**40], n // 2), np.zeros(n - n // 2, np.int64)),
        small + ends * int(rng.integers(1, 2**60)),
        np.array([Fraction(int(a), int(b)) for a, b in rng.integers(1, 30, (n, 2))], dtype=object),
        np.array([int(a) * 10**40 + int(b) for a, b in rng.integers(0, 3, (n, 2))], dtype=object),
    ]


def costs_of_runs(values, noise):
    """The costs w[j][i] of all runs of values i … j − 1."""
    w = [[]]
    for j in range(1, len(values) + 1):
        total = squares = Fraction(0)
        w.append([])
        for i in range(j - 1, -1, -1):
            total, squares = total + values[i], squares + Fraction(values[i]) ** 2
            w[j].insert(0, squares + (noise - total**2) / (j - i))
    return w


def plain(w, price, most):
    """Least costs by trying all pairs (no price in layers), and their cut; ties go to early starts."""
    n = len(w) - 1
    best, begins = {(0, 0): Fraction(0)}, {}
    for r in range(1, most + 1) if most else (0,):
        for j in range(max(r, 1), n + 1):
            before = max(r - 1, 0)
            ways = [(best[before, i] + w[j][i], i) for i in range(j) if (before, i) in best]
            least, begins[r, j] = min(ways)
            best[r, j] = least + (0 if most else price)
    end, starts = (most, n), []
    while end[1]:
        starts.insert(0, begins[end])
        end = (max(end[0] - 1, 0), begins[end])
    return best, starts


def instances(count, most):
    rng = np.random.default_rng(1)
    for t in range(count):
        n = int(rng.integers(1, most))
        values = kinds(rng, n)[t % 11]
        noise, price = rng.choice(NOISES), rng.choice(PRICES)
        yield rng, np.sort(values) if t % 3 else values, noise, price


def test_least_costs_cuts_and_potentials_are_exact():
    """The bound is exact, ties give the same cut, and the potentials prove it without changes."""
    for rng, values, noise, price in instances(330, 22):
        n = values.size
        w = costs_of_runs(values.tolist(), noise)
        wholes = whole_sums(values)
        for most in (0, int(rng.integers(1, n + 1))):
            best, starts = plain(w, price, most)
            potentials, begins = exact_paths.least_costs(wholes, noise, 0 if most else price, most)
            assert isinstance(potentials.flat[-1], Fraction)
            assert potentials.flat[-1] == best[most, n]
            assert runs.walk(begins).tolist() == starts
            assert exact_paths.cost_of(wholes, noise, np.array(starts)) == sum(
                w[end][start] for start, end in pairwise([*starts, n])
            )
            d = np.atleast_2d(potentials)
            assert {place for place in np.ndindex(d.shape) if d[place] != np.inf} == set(best)
            proved = {place: Fraction(d[place]) for place in best}
            assert proved[0, 0] == 0
            for (r, j), held in proved.items():
                before = max(r - 1, 0)
                for i in range(before, j):
                    if (before, i) in proved and (r, j) != (0, 0):
                        assert held <= proved[before, i] + w[j][i] + (0 if most else price)


@pytest.mark.parametrize("largest", [9, 2**26, 2**53, 2**62, 10**40])
def test_costs_in_floats_are_off_by_less_than_is_claimed(largest):
    rng = np.random.default_rng(2)
    for t in range(30):
        n = int(rng.integers(1, 60))
        values = [int(largest * part) for part in rng.uniform(-1, 1, n)]
        if t % 2:  # far from the middle value and close together, so all digits cancel
            values = [v // 10**6 + (largest if k > n // 2 + 1 else 0) for k, v in enumerate(values)]
        given = whole_sums(np.array(values, dtype=object))
        w = costs_of_runs(values, Fraction(0))
        sums = np.array(given.floats)
        for j in range(1, n + 1):
            for i in range(j):
                found = spread(*sums[:, i], tuple(sums[:, j]), float(j - i))
                allowed = Fraction(2.0**-51) * w[j][i] + Fraction(given.lost) / 2
                assert abs(Fraction(found) - w[j][i]) <= allowed


def test_models_are_solved_and_proved_exactly():
    for rng, values, _, price in instances(165, 34):
        n = values.size
        k = int(rng.integers(1, n + 1))
        w = costs_of_runs(values.tolist(), Fraction(0))
        segments, into = Segmentation(values, None, abs(price)), Segmentation(values, k, abs(price))
        for model, best in (
            (segments, plain(w, abs(price), 0)[0][0, n]),
            (into, plain(w, 0, k)[0][k, n] + k * abs(price)),
        ):
            given = solve(model)
            assert (given.status, given.objective, given.bound) == ("optimal", best, best)
            other = runs.marks_of(np.unique(np.append(0, rng.choice(n, k - 1, replace=False))), n)
            proof = model.certificate(other, given.certificate.witness)
            assert proof.optimal == (not model.violations(other) and proof.objective == best)
            assert proof.bound in (best, None)
    for rng, values, _, _ in instances(110, 20):
        values, scale = np.sort(values), rng.choice([0, 0.1, Fraction(1, 3), 3, 10**6])
        n = values.size
        w = costs_of_runs(values.tolist(), 2 * Fraction(scale) ** 2)
        k = int(rng.integers(1, n + 1))
        for clusters, best in ((None, plain(w, 0, 0)[0][0, n]), (k, plain(w, 0, k)[0][k, n])):
            model = Clustering(values, scale, clusters)
            given = solve(model)
            assert (given.status, given.objective, given.bound) == ("optimal", best, best)
            if clusters in (None, n):
                continue
            proof = given.certificate
            paid, price = proof.witness["potentials"], Fraction(proof.witness["price"])
            assert paid[n] - k * price == best
            for j in range(1, n + 1):
                assert all(Fraction(paid[j]) <= Fraction(paid[i]) + w[j][i] + price for i in range(j))


def test_costs_of_cuts_are_those_of_their_runs():
    rng = np.random.default_rng(3)
    for values in kinds(rng, 30):
        starts = np.union1d([0], rng.choice(30, 9))
        ends = np.append(starts[1:], 30)
        for noise in NOISES:
            expected = sum(run_cost(values[i:j], noise) for i, j in zip(starts, ends, strict=True))
            assert exact_paths.cost_of(whole_sums(values), noise, starts) == expected


def test_exact_arithmetic_is_used_only_when_needed(monkeypatch):
    """For plain counts only a few runs are added up exactly, for any number of counts; see the module."""
    computed = []
    whole = exact_paths._whole_costs

    def counted(*given):
        costs, unit = whole(*given)
        return lambda begin, j: computed.extend(begin) or costs(begin, j), unit

    monkeypatch.setattr(exact_paths, "_whole_costs", counted)
    rng = np.random.default_rng(4)
    for n in (50, 100, 200):
        values = np.sort(np.floor(rng.pareto(1, n) * 20).astype(np.int64) + np.rint(rng.laplace(0, 10, n)))
        for model in (
            Clustering(values.astype(np.int64), 10.0),
            Segmentation(rng.integers(0, 1_000, min(n, 100)), 16),
        ):
            computed.clear()
            x, _ = fast.answer(model)
            assert x.sum() <= len(computed) <= 3 * x.sum()
