"""Judge a solver's answer by what is known of the optimum: for `verify`, `bench` and the demo.

A solver is wrong only if a proof says so. A claim that is neither proved nor refuted counts neither for nor
against it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from models.arithmetic.exact import Number
from solvers import Solution, prove
from solvers.solution import Status

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

NEARLY = 0.95
"""A solver that ends after this fraction of its time limit, without a claim, counts as stopped by it."""

SAYS_NOTHING = ("unsupported", "size_limit", "numerical", "out_of_memory", "crashed", "error")
"""Statuses of solvers that make no claim about the model."""

FAILURES = ("numerical", "out_of_memory", "crashed", "error")
"""Statuses of solvers that failed on a model which they support."""

Verdict = Literal[
    "solved", "unsupported", "licence", "unproved", "bound", "stopped", "inaccurate", "failed", "wrong"
]
"""
- ``solved``: the claim is proved. The answer is feasible and optimal: exactly for whole answers (up to
  `resolution` if the costs are floats; or within the requested tolerance), within `ACCURACY` or the requested
  tolerance for floats; or the model is proved to be infeasible or unbounded, as claimed;
- ``unproved``: called optimal, infeasible or unbounded, and nothing known proves or refutes it;
- ``wrong``: refuted (`refuted`): by a proved bound, a feasible answer, or a proof that there is no optimum;
- ``inaccurate``: an answer that is not called optimal, or is infeasible beyond the tolerance; or called
  unbounded and proved infeasible;
- ``bound``: the relaxation over the reals was solved: a bound, not an answer;
- ``stopped``: by the time limit;
- ``licence``: refused by the solver's licence, which limits the size;
- ``unsupported``: the backend does not accept the problem;
- ``failed``: the backend's own error, crash or lack of memory.

From the best to the worst: if a problem is solved repeatedly, the worst verdict counts.
"""

SEVERITY: tuple[Verdict, ...] = get_args(Verdict)

WITHOUT_CLAIM: dict[Status, Verdict] = {
    "feasible": "inaccurate",
    "numerical": "inaccurate",
    "relaxed": "bound",
    "time_limit": "stopped",
    "size_limit": "licence",
    "unsupported": "unsupported",
    "out_of_memory": "failed",
    "crashed": "failed",
    "error": "failed",
}
"""The verdict for each status that makes no claim about the optimum, if nothing refutes its numbers."""


def broken(runs: Iterable[tuple[str, str]]) -> list[str]:
    """What shows that backends do not work here, in words; an empty list if nothing does.

    A single numerical failure is a result. A crash is not, nor are errors in every solve of a backend, nor is
    a run in which every solve fails.

    - runs: solves by exact backends.

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

    - low: a proved bound: no answer costs less.
    - high: the cost of the best feasible answer known.
    - optimal: whether a certificate proves that this is the optimum; of large data in floats, up to their
      rounding.
    - infeasible, unbounded: whether it is proved that there is no answer, or no optimum.
    """

    low: Number | None = None
    high: Number | None = None
    optimal: bool = False
    infeasible: bool = False
    unbounded: bool = False

    @property
    def proved(self) -> bool:
        """Whether the two meet, or it is proved that there is no optimum."""
        if self.optimal or self.infeasible or self.unbounded:
            return True
        return self.low is not None and self.high is not None and not exceeds(self.high, self.low)

    def including(self, found: Solution) -> KnownBounds:
        """The same with the cost of a feasible answer, unless a proof contradicts it."""
        cost = found.objective
        if found.status not in ("optimal", "feasible") or cost is None or cost != cost:
            return self
        if self.optimal or self.infeasible or self.unbounded:
            return self
        if self.low is not None and exceeds(self.low, cost):
            return self
        return self if self.high is not None and cost >= self.high else replace(self, high=cost)


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


def refuted(found: Solution, known: KnownBounds, tolerance: float | None = None) -> str:
    """Why a solver's answer is wrong, in words; empty if nothing known contradicts it.

    - tolerance: the tolerance requested from the solver: its answer and bound may be off by as much,
      relatively.
    """
    if found.status in SAYS_NOTHING:
        return ""
    claimed, cost = found.status == "optimal", found.objective
    if known.infeasible:
        # An answer in floats that is not called optimal may violate constraints.
        return "there is no answer" if claimed or isinstance(cost, int | Fraction) else ""
    if known.unbounded:
        return "there is no optimum" if claimed or found.status == "infeasible" else ""
    if found.status == "infeasible":
        return "there is an answer" if known.high is not None else ""
    if found.status == "unbounded":  # or infeasible: many solvers do not tell them apart
        answer = known.low is not None and known.high is not None
        return "there is an answer, and its cost is bounded" if answer else ""
    accuracy, exactly = max(ACCURACY, tolerance or 0.0), tolerance or 0.0
    # An answer in floats may violate constraints, and so cost less than every answer that does not.
    above = accuracy if known.proved or not isinstance(known.high, float) else max(accuracy, INACCURATE)
    if found.bound is not None and known.high is not None and exceeds(found.bound, known.high, above):
        return "its bound lies above a feasible answer"
    if cost is None:
        return ""
    if claimed and known.high is not None:
        # A bound in floats, or none, is the claim of a solver in floats. An exact bound has no last digits.
        unseen = 0.0 if isinstance(found.bound, int | Fraction) else resolution(cost, known.high)
        if exceeds(cost, known.high, above, max(exactly, unseen)):
            return "a feasible answer costs less"
    if known.low is not None and exceeds(known.low, cost, accuracy):
        inaccurate = isinstance(cost, float) and not claimed and not exceeds(known.low, cost, INACCURATE)
        return "" if inaccurate else "its answer costs less than a proved bound"
    return ""


def judge(
    found: Solution, known: KnownBounds, tolerance: float | None = None, time_limit: float | None = None
) -> Verdict:
    """Judge a solver's answer.

    - tolerance: the tolerance requested from the solver.
    - time_limit: the solver's time limit in seconds. An answer not called optimal when it is over counts as
      stopped.

    Examples
    --------
    >>> judge(Solution("highs", "1.16.0", "optimal", objective=62), KnownBounds(61, 62))
    'unproved'
    >>> judge(Solution("highs", "1.16.0", "optimal", objective=63), KnownBounds(61, 62))
    'wrong'
    """
    if refuted(found, known, tolerance):
        return "wrong"
    if found.status == "optimal":
        return "solved" if found.objective is not None and known.including(found).proved else "unproved"
    if found.status == "infeasible":
        return "solved" if known.infeasible else "unproved"
    if found.status == "unbounded":
        return "inaccurate" if known.infeasible else "solved" if known.unbounded else "unproved"
    if found.status == "feasible" and time_limit is not None and found.solve_seconds >= NEARLY * time_limit:
        return "stopped"
    return WITHOUT_CLAIM[found.status]


def known_bounds(model: Any, answers: Iterable[Solution]) -> tuple[KnownBounds, Solution | None]:
    """What is known of a model after proving some answers, and the best of these with its witness.

    Bounds are proved by the model's certificate: the fast path's own, or one that `solvers.prove` searches.
    No backend's claim is trusted. That there is no answer is known if the model says why.

    - answers: not read further than the first that is proved optimal.
    """
    known, best = KnownBounds(infeasible=bool(getattr(model, "why_infeasible", str)())), None
    for one in answers if not known.infeasible else ():
        if one.status not in ("optimal", "feasible") or one.x is None:
            continue
        proof, witness = one.certificate, one.witness
        if proof is None:
            proof = prove(model, one.x)
            witness = proof.witness
        if proof.bound is not None and (known.low is None or proof.bound > known.low):
            known = replace(known, low=proof.bound)
        if proof.optimal:
            return replace(known, high=proof.objective, optimal=True), replace(one, witness=witness)
        before, known = known, known.including(one)
        best = best if known is before else one
    return known, best
