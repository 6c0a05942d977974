"""Choose the cases of a test that `make test` leaves out; remove the extra output of a first run."""

import pytest

from hierdp.execution import progress


def quick(values, *, first=1, every=None, slow=None):
    """Keep the first cases quick, or one in a given number, and mark the others slow.

    Parameters
    ----------
    values : iterable
        Values for `pytest.mark.parametrize`; a tuple contains one value per argument.
    first : int
        The number of cases that stay quick.
    every : int, optional
        One in this many cases stays quick, instead of the first ones.
    slow : callable, optional
        Whether a value is slow, instead of by its position.
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
    """The output of a separate process without the message about compiling."""
    return output.replace(f"{progress.COMPILING}\n", "")


def shares(number):
    """Run a test on every `number`-th case, once for each start; only the first start stays quick.

    The test takes ``share``, the slice of its cases. The number and the length of an inner loop over the
    cases have no common factor, so that each share has all values of each loop.
    """
    return pytest.mark.parametrize("share", quick(slice(start, None, number) for start in range(number)))
