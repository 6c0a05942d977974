"""Every certificate on a machine that has NumPy and SciPy alone, and kernels in array operations."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import models
from models import Isotonic, instances
from models.arithmetic import distance, exact
from models.witnesses import isotonic_prices
from solvers import fast
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
    model, answer, witness, _ = instances.load_instance(path)
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
            path = instances.save(model, tmp_path / f"{len(known)}.npz", x, witness)
            known.append((path, model.certificate(x, witness)))
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *(str(path) for path, _ in known)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for line, (_, proof) in zip(done.stdout.splitlines(), known, strict=True):
        optimal, *costs = line.split()
        assert optimal == str(proof.optimal)
        assert [*map(float, costs)] == pytest.approx(
            [float(proof.objective), float(proof.bound)], rel=1e-9, abs=1e-6
        )


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
        if seed % 3 == 0:
            x = np.sort(x + rng.integers(-2, 3, x.size))
        y, p, w = model._terms
        at_low = model.lower is not None and bool(x[0] <= model.lower)
        at_high = model.upper is not None and bool(x[-1] >= model.upper)
        kind = np.result_type(*(part for part in (x, y, w) if part is not None))
        free = isotonic_prices.FREE if kind == np.int64 else np.inf
        given = x, y, w, p, model.integer, 0, at_low, at_high, free
        prices, others = np.empty(x.size + 1, kind), np.empty(x.size + 1, kind)
        broke = isotonic_prices.scan_prices.py_func(*given, prices)
        assert isotonic_prices._scan_in_arrays(*given, others) == broke or kind != np.int64
        if broke < 0:
            np.testing.assert_allclose(others, prices, rtol=1e-9, atol=1e-6)
        box = tuple(map(float, model.box))
        given = x, y, w, p, model.integer, *box, np.maximum(prices, 0).astype(float)
        assert isotonic_prices._gap_in_arrays(*given) == pytest.approx(
            isotonic_prices._gap.py_func(*given), rel=1e-9, abs=1e-6
        )


@pytest.mark.parametrize("size", [0, 1, 5, 1 << 14, (1 << 15) + 77])
@pytest.mark.parametrize("reach", [3, 2**23, 2**40, 2**62])
def test_sums_in_array_operations_are_exact(size, reach):
    rng = np.random.default_rng(size)
    a, b, w = (rng.integers(-reach, reach, size) for _ in range(3))
    high, low = exact._total_in_arrays(a)
    assert (high << 32) + low == sum(a.tolist())
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


def test_array_operations_read_no_negative_prices():
    """Of an answer that is not optimal; negative prices would prove a false bound."""
    x, prices = np.ones(2), np.empty(3)
    given = x, np.full(2, -0.5), np.full(2, 3.0), 2, False, 0.0, False, True, np.inf
    assert isotonic_prices._scan_in_arrays(*given, prices) == 0
    assert prices.min() >= 0
