"""What the model and its certificates prove of the optimum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hierdp.verification.judge import KnownBounds
from solvers import Solution, prove


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
