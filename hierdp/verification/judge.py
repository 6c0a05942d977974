"""Judge a solver's answer by what is known of the optimum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from models.arithmetic.exact import Number
from solvers import Solution

ACCURACY = 1e-6
"""Relative agreement required of numbers in floats; exact numbers must be equal."""

INACCURATE = 1e-3
"""The same for answers in floats that are not called optimal: they may violate constraints."""

LAST_DIGITS = 2.0**-46
"""How much a claim of optimality may exceed the optimum, relatively, if the data are floats: a sum of 128
costs in floats may be off by as much, so no solver can tell the two apart."""

FLOATS = 2**20
"""Costs of data in floats are fractions whose denominators have a power of two beyond this one. Costs of
whole numbers and of other fractions have not, and are compared exactly."""

SAYS_NOTHING = ("unsupported", "size_limit", "numerical", "out_of_memory", "crashed", "error")
"""Statuses of solvers that make no claim about the model."""


FAILURES = ("numerical", "out_of_memory", "crashed", "error")
"""Statuses of solvers that failed on a model which they support."""


def broken(runs: Iterable[tuple[str, str]]) -> list[str]:
    """What shows that backends do not work here, in words; an empty list if nothing does.

    A single numerical failure is a result. A crash is not, nor are errors in every solve of a backend, nor is
    a run in which every solve fails.

    Parameters
    ----------
    runs : iterable of (backend, status)
        Solves by exact backends.

    Examples
    --------
    >>> broken([("osqp", "numerical"), ("highs", "optimal"), ("scip", "crashed"), ("scip", "optimal")])
    ['scip crashed in 1 of 2 solves']
    """
    by_backend: dict[str, list[str]] = {}
    for backend, status in runs:
        if status not in ("unsupported", "size_limit"):
            by_backend.setdefault(backend, []).append(status)
    found = []
    for backend, statuses in by_backend.items():
        crashes = statuses.count("crashed")
        if crashes:
            found.append(f"{backend} crashed in {crashes:,} of {len(statuses):,} solves")
        elif set(statuses) == {"error"}:
            found.append(f"{backend} ended with an error in every solve ({len(statuses):,})")
    every = [status for statuses in by_backend.values() for status in statuses]
    if every and not found and all(status in FAILURES for status in every):
        found.append(f"every solve by an exact backend failed ({len(every):,})")
    return found


@dataclass(frozen=True)
class KnownBounds:
    """What is known of a model's optimum.

    Attributes
    ----------
    low : number or None
        A proved bound: no answer costs less.
    high : number or None
        The cost of the best feasible answer known.
    infeasible : bool
        Whether it is proved that there is no answer.
    """

    low: Number | None
    high: Number | None
    infeasible: bool = False

    @property
    def proved(self) -> bool:
        """Whether the two meet, or it is proved that there is no answer."""
        if self.low is None or self.high is None:
            return self.infeasible
        return self.infeasible or not exceeds(self.high, self.low)


def exceeds(a: Number, b: Number, accuracy: float = ACCURACY, exactly: float = 0.0) -> bool:
    """Whether a > b: by more than a relative accuracy in floats, by more than `exactly` in exact numbers."""
    over, exact = excess(a, b)
    return not over <= (exactly if exact else accuracy)  # NaN exceeds every number


def resolution(cost: Number, optimum: Number) -> float:
    """The relative difference of two exact costs that solvers in floats cannot see: 0 or `LAST_DIGITS`."""
    if isinstance(cost, float) or isinstance(optimum, float):
        return 0.0  # not exact: `exceeds` has an accuracy for these
    below = (Fraction(number).denominator for number in (cost, optimum))
    return LAST_DIGITS if any(number & -number > FLOATS for number in below) else 0.0


def excess(a: Number, b: Number) -> tuple[float | Fraction, bool]:
    """(a − b) / max(1, |b|), and whether the result is exact."""
    if isinstance(a, int | Fraction) and isinstance(b, int | Fraction):
        return Fraction(a - b) / max(Fraction(1), abs(Fraction(b))), True
    return (float(a) - float(b)) / max(1.0, abs(float(b))), False


def refuted(found: Solution, truth: KnownBounds, accuracy: float = ACCURACY, exactly: float = 0.0) -> str:
    """Why a solver's answer is wrong, in words; empty if nothing known contradicts it.

    Parameters
    ----------
    found : Solution
    truth : KnownBounds
    accuracy, exactly : float
        Allowed relative gap to numbers in floats, and to exact numbers.
    """
    if found.status in SAYS_NOTHING:
        return ""
    if found.status == "infeasible":
        return "there is an answer" if truth.high is not None else ""
    if found.status == "unbounded":
        known = truth.infeasible or truth.low is not None or truth.high is not None
        return "the optimum is bounded, or there is no answer" if known else ""
    if truth.infeasible:
        return "there is no answer" if found.x is not None or found.objective is not None else ""
    claimed, cost = found.status == "optimal", found.objective
    if found.bound is not None and truth.high is not None and exceeds(found.bound, truth.high, accuracy):
        return "its bound lies above a feasible answer"
    if cost is None:
        return ""
    if claimed and truth.high is not None:
        # A bound in floats, or none, is the claim of a solver in floats. An exact bound has no last digits.
        unseen = 0.0 if isinstance(found.bound, int | Fraction) else resolution(cost, truth.high)
        if exceeds(cost, truth.high, accuracy, max(exactly, unseen)):
            return "a feasible answer costs less"
    if truth.low is not None and exceeds(truth.low, cost, accuracy):
        inaccurate = isinstance(cost, float) and not claimed and not exceeds(truth.low, cost, INACCURATE)
        return "" if inaccurate else "its answer costs less than a proved bound"
    return ""
