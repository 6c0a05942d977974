"""Which cases of a test `make test` leaves out; and what a first run says more than others."""

import pytest

from hierdp.execution import progress


def quick(values, *, first=1, every=None, slow=None):
    """The first cases stay quick, or one in a given number; the others are marked slow.

    Parameters
    ----------
    values : iterable
        What `pytest.mark.parametrize` takes; a tuple holds an argument each.
    first : int
        How many cases stay quick.
    every : int, optional
        One of this many cases stays quick, instead of only the first.
    slow : callable, optional
        Whether a value is slow, in place of its position.
    """
    cases = []
    for place, value in enumerate(values):
        late = place % every > 0 if every else place >= first
        if slow is not None:
            late = slow(value)
        given = value if isinstance(value, tuple) else (value,)
        cases.append(pytest.param(*given, marks=pytest.mark.slow) if late else value)
    return cases


def but_for_compiling(output):
    """The output of a separate process, the same on a machine without compiled kernels."""
    return output.replace(f"{progress.COMPILING}\n", "")


def shares(number):
    """Run a test on every `number`-th of its cases, once from each start; only the first start stays quick.

    The test takes ``share``, the slice of its cases. The number has no factor in common with the length of an
    inner loop over the cases, so that each share has all values of each loop.
    """
    return pytest.mark.parametrize("share", quick(slice(start, None, number) for start in range(number)))
