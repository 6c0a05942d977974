"""Kernels give the same results in Python and in machine code, and are compiled only if that saves time."""

import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from models.arithmetic import exact, kernels
from models.arithmetic.kernels import kernel


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


@kernel()
def _inner(a, i):
    return a[i] + 1, a[i] > 2


@kernel()
def _outer(pair, out):
    held, many = 0, 0
    for i in range(out.size):
        value, large = _inner(pair.a, i)
        held += value
        many += large
        out[i] = pair.b[i] / value
    return held, many, held > 5, out[0]


def run(made, monkeypatch, *, compiled):
    for one in (_inner, _outer):
        monkeypatch.setattr(one, "_always", compiled)
    out = np.zeros(4)
    return made(Pair(np.arange(4), np.linspace(0, 1, 4)), out), out.tolist()


def test_both_ways_give_the_same_values_and_types(monkeypatch):
    monkeypatch.setattr(_outer, "_compiled", None)
    plain, first = run(_outer, monkeypatch, compiled=False)
    assert not _outer.signatures
    machine, second = run(_outer, monkeypatch, compiled=True)
    assert _outer.signatures
    assert (plain, first) == (machine, second)
    assert [type(v) for v in plain] == [type(v) for v in machine] == [int, int, bool, float]


def test_integers_wrap_without_a_warning_as_in_machine_code():
    largest = np.full(2, 2**63 - 1)

    def add(a):
        return a[0] + a[1]

    assert kernel()(add)(largest) == -2


@pytest.mark.parametrize("size", [0, 10, 11, 50, 51])
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_a_large_array_is_left_to_machine_code(monkeypatch, size, loaded, linear):
    """A larger one of a kernel in linear time, as long as Numba is not loaded."""
    monkeypatch.setattr(kernels, "SMALL", 10)
    monkeypatch.setattr(kernels, "LINEAR_TIMES", 5)
    monkeypatch.setitem(kernels._waiting, "loaded", loaded)
    monkeypatch.setitem(kernels._waiting, "interpreting", 0.0)
    called = []
    made = kernel(linear=linear)(lambda _: 0)
    monkeypatch.setattr(made, "compiled", lambda: lambda *_: called.append(size))
    made(Pair(np.zeros(1), np.zeros(size)))
    assert bool(called) == (size > (50 if linear and not loaded else 10))


@pytest.mark.parametrize(
    ("size", "kind", "spent", "called"),
    [
        *((10, np.int64, 0.0, "loop"), (11, np.int64, 0.0, "arrays"), (50, np.int64, 0.0, "arrays")),
        *((51, np.int64, 0.0, "compiled"), (11, float, 0.0, "compiled"), (11, np.int64, 1.0, "compiled")),
    ],
)
def test_array_operations_take_the_place_of_compiling(monkeypatch, size, kind, spent, called):
    monkeypatch.setattr(kernels, "SMALL", 10)
    monkeypatch.setattr(kernels, "ARRAY_TIMES", 5)
    monkeypatch.setattr(kernels, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setitem(kernels._waiting, "loaded", True)
    made = kernel()(lambda _: "loop")
    assert made.instead(len)(range(3)) == 3
    made.instead(lambda _: "arrays")
    monkeypatch.setattr(made, "_spent", spent)
    monkeypatch.setattr(made, "compiled", lambda: lambda *_: "compiled")
    assert made(np.zeros(size, kind)) == called


def test_numba_is_loaded_once_python_has_run_kernels_for_as_long_as_that_takes(monkeypatch):
    monkeypatch.setattr(kernels, "LOADING_SECONDS", 0.3)
    monkeypatch.setitem(kernels._waiting, "loaded", False)
    monkeypatch.setitem(kernels._waiting, "interpreting", 0.0)
    clock, called = iter([0.0, 0.29, 1.0, 1.02]), []
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: next(clock))
    made = [kernel()(lambda number=number: number) for number in range(3)]
    for one in made:
        monkeypatch.setattr(one, "compiled", lambda: lambda: called.append(1))
    assert ([one() for one in made], called) == ([0, 1, None], [1])


def test_a_kernel_that_has_taken_long_is_compiled(monkeypatch):
    monkeypatch.setattr(kernels, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setitem(kernels._waiting, "loaded", True)
    clock, called = iter([0.0, 0.09, 1.0, 1.02]), []
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: next(clock))
    made = kernel()(lambda: 7)
    monkeypatch.setattr(made, "compiled", lambda: lambda: called.append(1))
    assert (made(), made(), made(), called) == (7, 7, None, [1])


@pytest.mark.slow
def test_an_argument_left_out_has_its_default_in_machine_code_of_any_type():
    def total(a, doubled=False):
        return 2 * a.sum() if doubled else a.sum()

    made = kernel()(total)
    assert made.compiled()(np.arange(3), True) == 6
    for values in (np.arange(3), np.arange(3) / 2, np.arange(6)[::2]):
        assert made(values) == values.sum()


def test_sums_that_machine_code_reorders_are_always_its_own(monkeypatch):
    called = []
    monkeypatch.setattr(kernels, "REORDERS", "reassoc")
    made = kernel(fastmath={"reassoc"})(lambda a: a.sum())
    monkeypatch.setattr(made, "compiled", lambda: lambda *_: called.append(1))
    made(np.zeros(1))
    assert called == [1]
    assert kernel(fastmath={"reassoc"}, approximate=True)(lambda a: a.sum())(np.ones(1)) == 1


def test_small_problems_are_run_by_python_whatever_ran_before(monkeypatch):
    """Machine code may reorder their sums: the result depends on their size alone."""
    monkeypatch.setattr(kernels, "SMALL", 5)
    made = kernel(fastmath={"reassoc"})(lambda _: "python")
    monkeypatch.setattr(made, "_compiled", lambda _: "machine code")
    assert [made.of_size(size)(0) for size in (5, 6)] == ["python", "machine code"]


def test_a_kernel_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(exact._dot)) is exact._dot


SMALL_RELEASE = """
import sys
import numpy as np
from models import Chebyshev, HierarchyQIP, Isotonic, Tree
from solvers import solve
for model in (Chebyshev([5, 3, -2], 4), Isotonic([3, 1, 4], integer=True),
              HierarchyQIP(Tree([[0, 0]]), noisy=[[7, -2], [3, 1], [5, -1]], total=6)):
    assert solve(model).certificate.optimal
assert "numba" not in sys.modules
"""


def test_small_models_need_no_compiler():
    done = subprocess.run([sys.executable, "-c", SMALL_RELEASE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
