"""Which cases of a test `make test` leaves out."""

import pytest


def quick(values, *, first=1, slow=None):
    """The first cases stay quick; the others are marked slow.

    Parameters
    ----------
    values : iterable
        What `pytest.mark.parametrize` takes; a tuple holds an argument each.
    first : int
        How many cases stay quick.
    slow : callable, optional
        Whether a value is slow, in place of its position.
    """
    cases = []
    for place, value in enumerate(values):
        late = place >= first if slow is None else slow(value)
        given = value if isinstance(value, tuple) else (value,)
        cases.append(pytest.param(*given, marks=pytest.mark.slow) if late else value)
    return cases
