"""What certificates are known to get wrong: tests expect these to fail, and fail when they pass."""

import pytest

<<<<<<< HEAD
KNOWN: dict[str, set[str]] = {"contract": {"Merging"}}


def expected(test, cases):
    """The cases of a test as parameters; those in `KNOWN` are marked as failures, strictly."""
    known = KNOWN.get(test, set())
    unknown = known - set(cases)
    assert not unknown, f"no such cases of {test!r}: {sorted(unknown)}"
    return [
        pytest.param(case, id=case, marks=pytest.mark.xfail(strict=True, reason="not converted yet"))
        if case in known
        else pytest.param(case, id=case)
        for case in cases
    ]
