"""Every certificate on a machine that has NumPy and SciPy alone, and kernels in array operations."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import models
from models import (
    Chebyshev,
    FixedSum,
    Isotonic,
    Segmentation,
    Tree,
    chebyshev,
    instances,
    segments,
)
from models.arithmetic import distance, exact, places, run_costs
from models.certificate import FLOAT_TOLERANCE
from models.check import reader
from models.check.reader import NEVER
from models.witnesses import ordered_runs, sorted_runs
from solvers import fast
from solvers.fast import segment_paths
from tests.marks import quick
from tests.models.families import CONTRACTS

ALONE = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package not in {*sys.stdlib_module_names, "numpy", "scipy", "models"} and package[0] != "_":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from models import instances
from models.arithmetic import kernels
kernels.SMALL = -1
for path in sys.argv[1:]:
    model, answer, witness = instances.load_instance(path)
    proof = model.certificate(answer, witness)
    print(proof.optimal, float(proof.objective), float(proof.bound))
assert not {"numba", "pandas", "highspy", "ortools"} & set(sys.modules)
"""


@pytest.mark.parametrize("seeds", quick([range(1), range(1, 6)]), ids=str)
def test_numpy_and_scipy_are_enough(tmp_path, seeds):
    known = []
    for name in sorted({name.partition(",")[0] for name in CONTRACTS}):
        for seed in seeds:
            model = getattr(models, name).random(np.random.default_rng(seed), 40)
            try:
                x, witness = fast.answer(model)
            except fast.NoFastPath:
                continue
            rng, optimum = np.random.default_rng(seed), model.objective(x)
            for _ in range(4):
                path = instances.save(model, tmp_path / f"{len(known)}.npz", x, witness)
                known.append((path, model.certificate(x, witness), optimum))
                witness = {name: tampered(rng, part) for name, part in known[-1][1].witness.items()}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *(str(path) for path, *_ in known)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    refused = 0
    for line, (_, proof, optimum) in zip(done.stdout.splitlines(), known, strict=True):
        optimal, *costs = line.split()
        costs = [*map(float, costs)]
        assert optimal == str(proof.optimal)
        assert costs[1] <= float(optimum) + FLOAT_TOLERANCE * max(1, abs(float(optimum)))
        refused += not proof.optimal
        assert costs == pytest.approx([float(proof.objective), float(proof.bound)], rel=1e-9, abs=1e-6)
    assert refused > len(known) / 10  # prices that were changed prove less


def tampered(rng, part):
    """The numbers of a witness, a few of them changed."""
    numbers = np.array(part)
    if numbers.dtype.kind not in "if" or not numbers.size:
        return part
    for place in rng.integers(0, numbers.size, 3):
        numbers.flat[place] += rng.choice([-7, -1, 1, 7])
    return numbers


def test_a_numba_that_is_broken_is_not_absent(monkeypatch):
    from models.arithmetic import kernels

    def broken():
        raise ImportError("Numba needs an older NumPy")

    monkeypatch.setattr(kernels, "_numba", broken)
    with pytest.raises(ImportError, match="older NumPy"):
        kernels.kernel()(len).compiled()


@pytest.mark.parametrize("seeds", quick([range(100), range(100, 2_000)]), ids=str)
def test_prices_are_read_in_array_operations_as_in_a_loop(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = Isotonic.random(rng, int(rng.integers(1, 200)))
        x = np.asarray(fast.answer(model)[0])
        (block,), _ = model._structure
        left, right, never = reader._slopes(block, x, 0.0, x.size)
        tight = np.append(x[1:] <= x[:-1], False)
        prices, others = np.zeros(x.size, left.dtype), np.zeros(x.size, left.dtype)
        reader._along.py_func(left, right, tight, never, prices)
        reader._along_in_arrays(left, right, tight, never, others)
        np.testing.assert_allclose(others, prices, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("size", [0, 1, 5, 1 << 14, (1 << 15) + 77])
@pytest.mark.parametrize("reach", [3, 2**23, 2**40, 2**62])
def test_sums_in_array_operations_are_exact(size, reach):
    rng = np.random.default_rng(size)
    a, b, w = (rng.integers(-reach, reach, size) for _ in range(3))
    assert exact.total(a) == sum(a.tolist())
    if reach <= 2**23:
        high, low = exact._dot_in_arrays(a, b)
        assert (high << 32) + low == sum(map(int.__mul__, a.tolist(), b.tolist()))
    for weights in (None, w):
        for p in (1, 2):
            high, low, fits = distance._integers_in_arrays(a, b, weights, p)
            cost = sum(
                c * abs(u - v) ** p
                for u, v, c in zip(
                    a.tolist(), b.tolist(), [1] * size if weights is None else w.tolist(), strict=True
                )
            )
            assert not fits or (high << 32) + low == cost
            assert fits or reach > 2**15
            floats = distance._floats_in_arrays(a, b, weights, p)
            assert floats == pytest.approx(distance._floats.py_func(a, b, weights, p), rel=1e-9, abs=1e-6)


def run(kernel, arrays, args):
    """The results of the loop and of array operations, and what both write to copies of the arguments."""
    found = []
    for function in (kernel.py_func, arrays):
        held = [part.copy() if isinstance(part, np.ndarray) else part for part in args]
        with np.errstate(all="ignore"):
            result = function(*held)
        found.append((result, [part for part in held if isinstance(part, np.ndarray)]))
    return found


@pytest.mark.parametrize("seeds", quick([range(200), range(200, 1_000)]), ids=str)
def test_prices_along_trees_are_read_in_array_operations_as_in_a_loop(seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        # The second of three families has no inner nodes; else of any shape.
        skips = Tree([[0, 0, 0], [0, 0, 1, 2], [0, 1, 3]])
        tree = skips if seed % 5 == 0 else Tree.random(rng, int(rng.integers(0, 5)), 4, ragged=True)
        shape = tree.size, int(rng.integers(1, 4))
        slope, width = rng.integers(-4, 5, shape), rng.integers(0, 3, shape)
        left = np.where(rng.random(shape) < 0.3, -NEVER, slope - width)
        right = np.where(rng.random(shape) < 0.2, NEVER, slope + width)
        own = np.full(tree.size, -1)
        own[tree.internal] = np.arange(tree.internal.size)
        home = np.concatenate([[tree.internal.size], own[tree.parent[1:]]])
        low, high, price = np.zeros((3, tree.internal.size + 1, shape[1]), np.int64)
        ends = 0, shape[1]
        args = left, right, own, home, NEVER, np.int64(0), low, high, *ends
        loop, arrays = run(reader._up, reader._up_in_arrays, args)
        for part, other in zip(loop[1], arrays[1], strict=True):
            np.testing.assert_array_equal(part, other)
        price[-1] = rng.integers(-9, 9)
        args = left, right, own, home, *loop[1][-2:], price, *ends
        loop, arrays = run(reader._down, reader._down_in_arrays, args)
        np.testing.assert_array_equal(arrays[1][-1], loop[1][-1])


@pytest.mark.parametrize("seeds", quick([range(30), range(30, 400)]), ids=str)
def test_potentials_are_compared_in_array_operations_as_in_a_loop(seeds, monkeypatch):
    """Any potentials, of values in any order: sums in other orders differ in their last digits."""
    monkeypatch.setattr(sorted_runs, "SHORT", 0)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = Segmentation.random(rng, int(rng.integers(2, 100)))
        sums, n = model.sums(), model.data[0].size
        starts = np.flatnonzero(np.append(True, rng.random(n - 1) < rng.choice([0.05, 0.3])))
        d = np.append(0.0, np.cumsum(rng.normal(rng.choice([0.0, 1.0, 30.0]), 10, n)))
        price = float(rng.choice([0.0, 3.0]))
        (over, _), (other, _) = run(
            ordered_runs._excess, ordered_runs._excess_in_arrays, (d, price, sums, starts)
        )
        assert over == pytest.approx(other, rel=1e-9, abs=1e-9)
        given = sums, n // 2, n, np.empty(n - n // 2)
        loop, arrays = run(run_costs.run_column, run_costs._run_column_in_arrays, given)
        np.testing.assert_array_equal(arrays[1], loop[1])
        falling, most = np.sort(rng.integers(0, 9, 20))[::-1].astype(float), float(rng.integers(-1, 11))
        assert places.first_below.py_func(falling, most) == places._first_below_in_arrays(falling, most)
        rising = falling[::-1].copy()
        assert places.end_below.py_func(rising, most) == places._end_below_in_arrays(rising, most)
        assert places.minimum_sum.py_func(rising, falling) == places._minimum_sum_in_arrays(rising, falling)

        sums = run_costs.sums_of(np.sort(model.data[0]))  # of ascending values, by divide and conquer
        first, low = int(rng.integers(1, n + 1)), 0
        last, high = int(rng.integers(first, n + 1)), int(rng.integers(0, n))
        given = d, 2.5, price, sums, first, last, low, high, np.empty(n), np.full(n + 1, -7.0)
        loop, arrays = run(sorted_runs.minima, sorted_runs._minima_in_arrays, given)
        np.testing.assert_array_equal(arrays[1][-1], loop[1][-1])


@pytest.mark.parametrize("seeds", quick([range(30), range(30, 300)]), ids=str)
def test_potentials_of_layers_are_compared_in_array_operations_as_in_fractions(seeds, monkeypatch):
    """Optimal, shifted, tied and hostile potentials of values of all sizes, across several pieces."""
    monkeypatch.setattr(ordered_runs, "_ENDS", 4)
    monkeypatch.setattr(ordered_runs, "PIECE", 8)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 20))
        values = rng.integers(-3, 4, n) * int(rng.choice([1, 1000, 2**53, 2**61])) + rng.integers(0, 3, n)
        if seed % 4 == 0:
            values = values * 10.0 ** rng.integers(-30, 40)
        k = int(rng.integers(1, n + 1))
        sums, exactly = Segmentation(values).sums(), list(map(Fraction, values.tolist()))
        best = segment_paths.layers(k, sums, False)
        d = np.where(np.isfinite(best), best, 0.0)
        if seed % 3:
            size = float(rng.choice([1e-12, 0.3, 2.0])) * (d.max() + float(seed % 2))
            d += rng.choice([-1, 0, 0, 1], d.shape) * size
        if seed % 5 == 0:
            d.flat[rng.integers(d.size)] = rng.choice([-1e290, 1e290])
        w = {}
        for a in range(n):
            for b in range(a + 1, n + 1):
                part = exactly[a:b]
                w[a, b] = sum(v * v for v in part) - sum(part) ** 2 / (b - a)
        cost = float(w[0, n])  # no cut costs more than one run
        lost = run_costs.sums_error(values, sums, cost)
        with monkeypatch.context() as patched:
            patched.setattr(ordered_runs, "_layers_excess", ordered_runs._layers_excess.py_func)
            loop = ordered_runs.most_over_layers(d, sums, cost, lost)
            patched.setattr(ordered_runs, "_layers_excess", ordered_runs._layers_excess_in_arrays)
            with np.errstate(all="ignore"):
                arrays = ordered_runs.most_over_layers(d, sums, cost, lost)
        assert arrays == pytest.approx(loop, rel=1e-9, abs=1e-9 * cost)
        least = [Fraction(0), *[np.inf] * n]  # the least cost of the runs up to each place
        for _ in range(k):
            least = [min((least[a] + w[a, b] for a in range(b)), default=np.inf) for b in range(n + 1)]
        assert Fraction(float(d[-1, -1])) - Fraction(float(d[0, 0])) - Fraction(arrays) <= least[n]


@pytest.mark.parametrize("n", [1, 2, 8, 65, 1_025])
def test_running_sums_and_rough_costs_are_within_their_bounds(n):
    """The bounds on which `sums_error` and the choice of the pairs that are compared closely rely."""
    rng = np.random.default_rng(n)
    for v in (rng.normal(1e6, 1, n), rng.integers(-(2**40), 2**40, n), 10.0 ** rng.integers(-20, 20, n)):
        v = v.astype(float)
        sums, parts = run_costs._sums_in_arrays(v), list(map(Fraction, v.tolist()))
        totals, squares = [Fraction(0)], [Fraction(0)]
        for part in parts:
            totals.append(totals[-1] + part)
            squares.append(squares[-1] + part * part)
        exactly = [(totals, sum(map(abs, parts))), (squares, squares[-1])]
        for (high, rest), (sum_of, size) in zip([sums[:2], sums[2:]], exactly, strict=True):
            assert (np.abs(rest) <= 2.0**-53 * np.abs(high)).all()
            for a, b, c in zip(high.tolist(), rest.tolist(), sum_of, strict=True):
                assert abs(Fraction(a) + Fraction(b) - c) <= n * Fraction(1, 2**104) * size
        i = rng.integers(0, n, 50)
        j = np.minimum(i + rng.integers(1, n + 1, 50), n)
        ends = [(sums[0][at], sums[2][at]) for at in (i, j)]
        for a, b, rough in zip(i.tolist(), j.tolist(), run_costs.rough_spreads(*ends, j - i), strict=True):
            cost = squares[b] - squares[a] - (totals[b] - totals[a]) ** 2 / (b - a)
            assert abs(Fraction(float(rough)) - cost) <= run_costs.rough_error(sums)


@pytest.mark.parametrize("seeds", quick([range(100), range(100, 1_000)]), ids=str)
def test_segments_in_array_operations_are_as_in_a_loop(seeds, monkeypatch):
    """Segments of any length, some of them empty, across several pieces; answers optimal and not."""
    monkeypatch.setattr(segments, "PIECE", 4)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        noisy, totals, offsets = Chebyshev.random(rng, int(rng.integers(1, 60))).data
        x = np.asarray(fast.answer(FixedSum(noisy, totals, 2, offsets))[0])
        if seed % 3 == 0:
            x = np.maximum(x + rng.integers(-1, 2, x.size), 0)
        distances = np.zeros(totals.size, np.int64)
        loop, arrays = run(segments.adds_up, segments._adds_up_in_arrays, (x, totals, offsets))
        assert loop[0] == arrays[0]
        given = x, noisy, offsets, distances
        loop, arrays = run(chebyshev._largest_changes, chebyshev._changes_in_arrays, given)
        np.testing.assert_array_equal(arrays[1][-1], loop[1][-1])
        if (np.add.reduceat(np.append(x, 0), offsets[:-1]) * (np.diff(offsets) > 0) == totals).all():
            own = loop[1][-1]
            given = noisy, totals, offsets, np.maximum(own + rng.integers(-1, 1, own.size), 0), own
            loop, arrays = run(chebyshev._ruled_out, chebyshev._ruled_out_in_arrays, given)
            np.testing.assert_array_equal(arrays[1][-1], loop[1][-1])
