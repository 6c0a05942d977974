"""Certificates: whether an answer is optimal, and a proved bound on how far it is from the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from models.arithmetic import exact
from models.arithmetic.exact import Number
from models.arithmetic.rounding import Rounding

Witness = Mapping[str, Any]
"""Arrays and numbers by name that prove a bound; each model's docstring says which ones."""

LEFT = "the witness leaves a gap"

PROVED = "the witness proves it: no feasible answer is better"

CONTRADICTION = "the bound exceeds the cost of a feasible answer: the certificate or its data are wrong"

FLOAT_TOLERANCE = 1e-7
"""Relative gap up to which an answer in floats counts as optimal; integer answers get no tolerance."""


@dataclass(frozen=True)
class Certificate:
    """What is proved about one answer: that it is optimal, or a bound on its gap.

    Attributes
    ----------
    optimal : bool
        True only if the answer breaks no constraint and its gap is 0 (for answers in floats: at most
        `FLOAT_TOLERANCE` times the objective, or times that of an answer that is wrong by as much as the data
        are large, but at most by 1; see `models.arithmetic.rounding`).
    objective : int, Fraction or float
        The answer's objective, exact for integer data. An answer in floats over the reals breaks constraints
        by a little; it stands for a feasible one beside it (see the model's `certificate`), whose objective
        this is, in the last digits another than ``model.objective(x)``.
    bound : int, Fraction, float or None
        A proved lower bound on the objective of every feasible answer. None: nothing was proved, because
        the answer is not feasible, or because of a `contradiction`.
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

    @property
    def contradiction(self) -> bool:
        """Whether the bound that the witness seems to prove exceeds the cost of this feasible answer.

        That is impossible: the certificate, or a number in it, is wrong. `gap` is then below 0.
        """
        return self.bound is None and self.gap is not None

    def __bool__(self) -> bool:
        return self.optimal


NO_ROUNDING = Rounding()


def judge(
    objective: Number,
    gap: Number,
    exactly: bool,
    witness: Witness,
    reason: str,
    rounding: Rounding = NO_ROUNDING,
) -> Certificate:
    """A certificate from a feasible answer's objective and its gap to the bound that a witness proves.

    No feasible answer costs less than a bound. So a gap below 0 shows a mistake in the certificate itself, or
    in its data: then nothing is proved, and `Certificate.contradiction` is True.
    """
    if exactly:
        if gap < 0:
            return Certificate(False, objective, None, gap, witness, CONTRADICTION)
        return Certificate(gap == 0, objective, objective - gap, gap, witness, PROVED if gap == 0 else reason)
    cost, gap = exact.as_float(objective), exact.as_float(gap)
    error = rounding.error if math.isfinite(cost) else math.inf
    allowed = FLOAT_TOLERANCE * max(rounding.unit, cost)
    if gap < -(allowed + error):
        return Certificate(False, objective, None, gap, witness, CONTRADICTION)
    gap = math.inf if math.isnan(gap) else max(gap, 0.0)
    optimal = gap + error <= allowed < math.inf
    bound = cost - gap if max(gap, error) < math.inf else -math.inf
    if error:
        bound = math.nextafter(bound - error, -math.inf)
        gap = cost - bound
    return Certificate(optimal, objective, bound, gap, witness, PROVED if optimal else reason)


def judge_exactly(
    cost: Number, bound: Number, exactly: bool, witness: Witness, reason: str, unit: float = 1.0
) -> Certificate:
    """A certificate from cost and bound without rounding, shown as floats unless the data are exact.

    Some constraints on an answer in floats may be broken by a tolerance. If it then costs less than the
    bound, it is called infeasible. `unit` is that of `models.arithmetic.rounding.Rounding`.
    """
    if bound == -math.inf:
        return Certificate(False, exact.as_objective(cost, exactly), bound, math.inf, witness, reason)
    objective, gap = exact.as_objective(cost, exactly), cost - bound
    if exactly:
        return judge(objective, gap, True, witness, reason)
    if gap < -FLOAT_TOLERANCE * max(unit, objective):
        return infeasible(objective, [f"x: it costs {float(-gap):.6g} less than any that keeps all sums"])
    gap = max(gap, 0)
    proof = judge(objective, exact.float_above(Fraction(gap)), False, witness, reason, Rounding(unit=unit))
    return replace(proof, bound=exact.float_below(Fraction(cost - gap)))


PRECISE = 1e-10
"""The relative error of a cost in floats up to which it is taken for the exact one."""


def judge_floats(
    found: tuple[float, float, float] | None, witness: Witness, unit: float
) -> Certificate | None:
    """The certificate from cost, gap and the cost's error in floats, if these prove the answer optimal.

    None if there are none, or if they do not: `judge_exactly` then tells by how much.
    """
    if found is None or not found[2] <= PRECISE * found[0]:
        return None
    cost, gap, error = found
    return judge(cost, gap, False, witness, LEFT, Rounding(error, unit)) or None


def infeasible(objective: Number, violations: Sequence[str]) -> Certificate:
    """The certificate of an answer that breaks constraints."""
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return Certificate(False, objective, None, None, {}, f"not feasible: {violations[0]}{more}")
