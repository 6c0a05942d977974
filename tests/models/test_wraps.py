"""No certificate, objective, program or bound of any model wraps around 64 bits, at any magnitude."""

import importlib
import os
import pkgutil
import traceback

import numpy as np
import pytest

import models
import models.tree
from hierdp.verification.matrix import kinds
from models.arithmetic.kernels import kernel
from tests.models import magnitudes
from tests.models.wraps import RoundedError, WrappedError, checking

for _module in pkgutil.walk_packages(models.__path__, "models."):
    importlib.import_module(_module.name)

UNDECIDED = {
    "models.arithmetic.distance:_integers": lambda result: not result[2],
    "models.segments:adds_up": lambda result: not result,
}
"""Kernels that compute first, and then report that 64 bits might not have been enough."""

ROUNDING = frozenset(
    {
        ("models.cumulative_qip", "CumulativeQIP._read"),  # any prices prove a bound
        ("models.programs.terms", "rows_of"),  # the rows say that they are rounded
        ("models.strategy_sdp", "StrategySDP._factor"),  # a model over the reals, in floats
        ("models.strategy_sdp", "StrategySDP._broken"),
        ("models.segmentation", "Segmentation.__post_init__"),  # data that floats do not hold are refused
        ("models.arithmetic.rounding", "reach.<locals>.<genexpr>"),  # a tolerance
    }
)
"""Functions that round whole numbers, and prove nothing with them."""

SEEDS = {
    "BudgetSplit": (1, 21),
    "Chebyshev": (2, 5, 29),
    "CostTable": (16, 25, 38),
    "CumulativeQIP": (6, 10, 21),
    "GroupMatching": (2, 8),
    "Isotonic": (2, 3),
    "JointTables": (2, 9),
    "Merging": (2, 27),
    "NonNegativeInference": (2, 37),
    "Segmentation": (2, 33),
    "SparsestChebyshev": (2, 20, 32),
    "StrategySDP": (23,),
    "TreeChebyshev": (2, 26, 35),
    "WassersteinDistance": (2, 11),
    "WorkloadRounding": (2, 28),
}
"""Seeds of the quick test, on which the model was wrong once; 1 and 2 for other models."""


EDGE, LARGE = 2**63 - 1, 2**62
PLANTED = {
    "sums": lambda xp: xp.array([LARGE]) + xp.array([LARGE]),
    "sums in place": lambda xp: _in_place(xp.array([LARGE])),
    "differences": lambda xp: xp.array([-LARGE]) - xp.array([LARGE + 1]),
    "products": lambda xp: xp.array([2**32]) * xp.array([2**31]),
    "products by a number": lambda xp: 4 * xp.array([LARGE]),
    "products of entries": lambda xp: xp.array([LARGE])[0] * 4,
    "a number minus an entry": lambda xp: -LARGE - xp.array([LARGE + 1])[0],
    "negatives": lambda xp: -xp.array([-EDGE - 1]),
    "absolute values": lambda xp: xp.abs(xp.array([-EDGE - 1])),
    "absolute values of entries": lambda xp: abs(xp.array([-EDGE - 1])[0]),
    "powers": lambda xp: xp.array([2**32]) ** 2,
    "shifts": lambda xp: xp.array([3]) << 62,
    "shifts of entries": lambda xp: xp.array([3])[0] << 62,
    "ufuncs called by name": lambda xp: xp.left_shift([3], 62),
    "reductions": lambda xp: xp.array([LARGE] * 4).sum(),
    "reductions by functions": lambda xp: xp.sum([LARGE] * 4),
    "products of all": lambda xp: xp.array([2**32, 2**32]).prod(),
    "sums of narrow integers": lambda xp: xp.array([100], xp.int8) + xp.array([100], xp.int8),
    "reduceat": lambda xp: xp.add.reduceat(xp.array([LARGE] * 4), [0, 2]),
    "at": lambda xp: xp.add.at(xp.array([LARGE]), [0], [LARGE]),
    "outer": lambda xp: xp.multiply.outer(xp.array([LARGE]), xp.array([4])),
    "cumsum": lambda xp: xp.cumsum([LARGE] * 4),
    "cumsum as a method": lambda xp: xp.array([LARGE] * 4).cumsum(),
    "diff": lambda xp: xp.diff([-LARGE, LARGE + 1]),
    "dot": lambda xp: xp.dot(xp.array([LARGE]), xp.array([4])),
    "dot as a method": lambda xp: xp.array([LARGE]).dot(xp.array([4])),
    "matmul": lambda xp: xp.array([[LARGE]]) @ xp.array([[4]]),
    "einsum": lambda xp: xp.einsum("i,i", xp.array([LARGE]), xp.array([4])),
    "casts of unsigned integers": lambda xp: xp.array([2**64 - 1], xp.uint64).astype(xp.int64),
    "casts to narrow integers": lambda xp: xp.asarray(xp.array([300]), xp.int8),
    "casts of large floats": lambda xp: xp.array([2.0**63]).astype(xp.int64),
    "casts of infinities": lambda xp: xp.array([xp.inf]).astype(xp.int64),
    "stores of unsigned integers": lambda xp: xp.zeros(1, xp.int64).__setitem__(0, xp.uint64(2**64 - 1)),
    "stores of fractions": lambda xp: xp.zeros(1, xp.int64).__setitem__(0, 0.5),
    "comparisons with floats": lambda xp: xp.array([2**53 + 1]) <= 2.0**53,
    "comparisons of entries": lambda xp: xp.array([2**53 + 1]) == xp.array([2.0**53]),
    "entries of NumPy in objects": lambda xp: xp.array([xp.int64(LARGE), None], object)[:1] * 4,
    "kernels' products": lambda xp: _product(xp.array([LARGE]), xp.array([4])),
    "kernels' sums": lambda xp: _sum(xp.array([LARGE] * 4)),
    "kernels' shifts": lambda xp: _shift(xp.array([3]), 62),
    "what kernels write": lambda xp: _double(xp.array([LARGE])),
}
ROUNDED = {
    "casts": lambda xp: xp.array([2**53 + 1]).astype(float),
    "division": lambda xp: xp.array([2**53 + 1]) / 2,
    "floats among whole numbers": lambda xp: xp.concatenate([xp.array([2**53 + 1]), xp.array([0.5])]),
    "products with floats": lambda xp: xp.array([2**53 + 1]) * 1.0,
    "entries": lambda xp: xp.array([2**53 + 1])[0] * 0.5,
    "entries as floats": lambda xp: float(xp.array([2**53 + 1])[0]),
    "stores": lambda xp: xp.zeros(1).__setitem__(0, xp.array([2**53 + 1])[0]),
    "choices": lambda xp: xp.where([True], xp.array([2**53 + 1]), 0.5),
    "lists": lambda xp: xp.array([2**53 + 1, 0.5]),
    "means": lambda xp: xp.array([2**53 + 1]).mean(),
    "unsigned beside signed integers": lambda xp: xp.array([2**53 + 1], xp.uint64) + xp.array([1]),
}


def _in_place(array):
    array += array


@kernel()
def _product(a, b):
    held = 0
    for i in range(a.size):
        held += a[i] * b[i]
    return held


@kernel()
def _sum(a):
    held = 0
    for i in range(a.size):
        held += a[i]
    return held


@kernel()
def _shift(a, by):
    return a[0] << by


@kernel()
def _double(a):
    for i in range(a.size):
        a[i] *= 2


@pytest.mark.parametrize("kind", PLANTED)
def test_every_kind_of_wrap_is_seen(kind):
    with checking() as xp, pytest.raises(WrappedError):
        PLANTED[kind](xp)


@pytest.mark.parametrize("kind", ROUNDED)
def test_every_kind_of_rounding_is_seen(kind):
    with checking() as xp:
        ROUNDED[kind](xp)
    with checking(exact=True) as xp, pytest.raises(RoundedError):
        ROUNDED[kind](xp)


@pytest.mark.parametrize("near", [1, 2**20, 2**30])
def test_what_fits_is_computed_as_numpy_does(near):
    def results(xp, total, pairs):
        a, b = xp.array([near, -near, 3]), xp.array([5, 7, -near])
        yield from (a + b, a - b, a * b, a // b, a % b, -a, abs(b), a << 2, a >> 1, a == b, a < 2.5, a / b)
        yield from (a.sum(), xp.cumsum(a), xp.diff(b), a @ b, xp.add.reduceat(a, [0, 1]), a.astype(float))
        yield from (
            xp.where(a > b, a, b),
            xp.unique(a),
            xp.sort(b),
            xp.concatenate([a, b]),
            a.max(),
            b.argmin(),
        )
        yield from (xp.bincount([1, 1, 2]), xp.searchsorted(xp.sort(a), b), xp.maximum(a, b), a.clip(0, 4))
        yield from (
            a[0] * 3,
            2 - a[1],
            a[0] // 2,
            -a[0],
            a[0] ** 2,
            a[0] < b[0],
            divmod(a[0], 7),
            total(a),
            pairs(a, b),
        )

    plain = list(results(np, _sum.py_func, _product.py_func))
    with checking(exact=True) as xp:
        found = list(results(xp, _sum, _product))
    for one, two in zip(plain, found, strict=True):
        assert np.array_equal(one, two), (one, two)
        assert np.asarray(one).dtype == np.asarray(two).dtype


def test_a_kernel_that_decides_nothing_is_not_compared():
    name = f"{__name__}:_sum"
    with checking(undecided={name: lambda result: result == 0}) as xp:
        assert _sum(xp.array([LARGE] * 4)) == 0
        with pytest.raises(WrappedError, match="_sum"):
            _sum(xp.array([LARGE] * 4 + [1]))


def test_nothing_stays_after_the_check():
    before = models.tree.np
    with checking() as xp:
        assert models.tree.np is xp
    assert models.tree.np is before is np
    assert _sum(np.array([1, 2])) == 3


def faults(name, seeds, most=None):
    """By place, what goes wrong in the instances of these seeds: the message, and the shortest call."""
    seen = {}
    for seed in seeds:
        for call, text, exact in magnitudes.attempts(kinds()[name], seed, most):
            with checking(exact=exact, allowed=ROUNDING, undecided=UNDECIDED):
                try:
                    call()
                    continue
                except (ValueError, NotImplementedError):
                    continue
                except (WrappedError, RoundedError) as wrong:
                    place, said = f"{type(wrong).__name__} {str(wrong).split(' ')[0]}", str(wrong)
                except Exception as wrong:  # whatever it is, it is reported
                    frame = traceback.extract_tb(wrong.__traceback__)[-1]
                    place, said = f"{type(wrong).__name__} {frame.name}:{frame.lineno}", repr(wrong)
            shown = text()
            if place not in seen or len(shown) < len(seen[place][1]):
                seen[place] = said, shown, seed
    return seen


def shown(seen):
    """The faults as lines of text."""
    return "\n".join(
        f"{place}: {said:.300}\n    {text:.900}  # seed {seed}" for place, (said, text, seed) in seen.items()
    )


@pytest.mark.parametrize("name", sorted(kinds()))
def test_no_model_wraps_at_any_magnitude(name):
    seen = faults(name, SEEDS.get(name, (1, 2)), most=2)
    assert not seen, shown(seen)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(kinds()))
def test_no_model_wraps_on_many_instances(name):
    seen = faults(name, range(3, int(os.environ.get("HIERDP_CASES", "20"))))
    assert not seen, shown(seen)
