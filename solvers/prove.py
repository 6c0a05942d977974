"""The best bound that we can prove for anybody's answer: search a witness, and have the model check it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models import Certificate, Model, Program
from models.certificate import judge
from solvers import fast
from solvers.prove_program import prove_program


def prove(model: Model | Program, x: Any) -> Certificate:
    """Certify an answer, whoever found it.

    A certificate alone reads its witness off the answer, and that can fail where the answer is not optimal or
    where its proof needs more numbers than it holds. Then the fast path finds an optimum, and the witness
    that proves this optimum bounds the given answer, too. Where there is no fast path, `fast.witness` may
    know a search for a witness.

    For a bare `Program`, HiGHS finds prices of its rows; `solvers.prove_program.prove_program` takes other
    backends, too.

    Parameters
    ----------
    model : Model or Program
    x : array, in the model's shape
        For a program, all its variables.

    Returns
    -------
    Certificate
        The better of the two: that of the answer alone, and that with the fast path's witness. The witness
        of either can be checked again by ``model.certificate(x, witness)``.

    Examples
    --------
    >>> from models import Isotonic
    >>> model = Isotonic([9, 0, 0, 0], integer=True)
    >>> prove(model, [4, 4, 4, 4]).gap == model.objective([4, 4, 4, 4]) - model.objective([2, 2, 2, 2])
    True
    """
    if isinstance(model, Program):
        return prove_program(model, x)
    own = model.certificate(x)
    if own.optimal or own.bound is None:
        return own
    found = fast.search(model, x)
    if found is not None:
        proof = model.certificate(x, found)
        if proof.bound is None or proof.bound <= own.bound:
            return own
        return proof if proof.optimal else replace(proof, reason=own.reason)
    try:
        best, witness = fast.answer(model)
        proof = own if best is None else model.certificate(best, witness)
    except fast.NoFastPath:
        witness = fast.witness(model, x)
        proof = own if witness is None else model.certificate(x, witness)
    if proof.bound is None or proof.bound <= own.bound:
        return own
    gap = max(own.objective - proof.bound, 0)  # floats may round to just below
    exactly = not isinstance(own.objective, float) and not isinstance(proof.bound, float)
    return judge(own.objective, gap, exactly, proof.witness, own.reason)
