"""Certificates: whether an answer is optimal, and a proved bound on how far it is from the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from models.arithmetic import exact
from models.arithmetic.exact import Number

Witness = Mapping[str, Any]
"""Arrays and numbers by name that prove a bound; each model's docstring says which ones."""

FLOAT_TOLERANCE = 1e-7
"""Relative gap up to which an answer in floats counts as optimal; integer answers get no tolerance."""


@dataclass(frozen=True)
class Certificate:
    """What is proved about one answer: that it is optimal, or a bound on its gap.

    Attributes
    ----------
    optimal : bool
        True only if the answer breaks no constraint and its gap is 0 (for answers in floats: at most
        `FLOAT_TOLERANCE` times the objective, or `FLOAT_TOLERANCE` itself if the objective is less than 1).
    objective : int, Fraction or float
        The answer's objective, exact for integer data.
    bound : int, Fraction, float or None
        A proved lower bound on the objective of every feasible answer. None: nothing was proved, because
        the answer is not feasible.
    gap : int, Fraction, float or None
        ``objective - bound``: the objective exceeds the optimum by at most this much.
    witness : mapping of arrays
        What proves the bound: prices, residual sums, least distances. ``model.certificate(x, witness)``
        checks it again.
    reason : str
        Why the answer is optimal, or why it is not proved to be.
    unproved : int or None
        For a model of several problems side by side, the first that is not proved; None if all are, or if the
        model does not report it.
    """

    optimal: bool
    objective: Number
    bound: Number | None
    gap: Number | None
    witness: Witness = field(default_factory=dict, repr=False)
    reason: str = ""
    unproved: int | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.optimal


def judge(objective: Number, gap: Number, exactly: bool, witness: Witness, reason: str) -> Certificate:
    """A certificate from a feasible answer's objective and its proved gap."""
    allowed = 0 if exactly else FLOAT_TOLERANCE * max(1.0, abs(float(objective)))
    # If the objective overflows, every gap would be within the tolerance.
    optimal = bool(gap <= allowed) and (exactly or math.isfinite(objective))
    why = "the prices prove it: no feasible answer is better" if optimal else reason
    return Certificate(optimal, objective, objective - gap, gap, witness, why)


def judge_squares(cost: Fraction, bound: Fraction, exactly: bool, witness: Witness) -> Certificate:
    """A certificate from cost and dual bound without rounding, shown as floats unless the numbers are exact.

    Sums of an answer in floats may be off by a tolerance, so that it costs a little less than the bound.
    """
    objective, gap = exact.counted(cost, exactly), cost - bound
    if not exactly:
        if gap < -FLOAT_TOLERANCE * max(1.0, objective):
            return infeasible(objective, [f"x: it costs {float(-gap):.6g} less than any that keeps all sums"])
        gap = max(gap, Fraction(0))
    proof = judge(objective, gap, exactly, witness, "the prices leave a gap")
    if exactly:
        return proof
    return replace(proof, bound=exact.float_below(cost - gap), gap=0.0 - exact.float_below(-gap))


def infeasible(objective: Number, violations: list[str]) -> Certificate:
    """The certificate of an answer that breaks constraints."""
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return Certificate(False, objective, None, None, {}, f"not feasible: {violations[0]}{more}")
