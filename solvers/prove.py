"""The best provable bound for any answer: search for a witness, and let the model check it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from models import Certificate, Model, Program
from models.arithmetic.rounding import Rounding
from models.certificate import judge
from solvers import fast


def prove(model: Model | Program, x: Any) -> Certificate:
    """Certify any answer, by whatever means it was found.

    The certificate alone reads its witness off the answer. That may prove too little: if the answer is not
    optimal, or if a proof needs more numbers than the answer holds. If a gap remains, `solvers.fast.search`
    looks for a witness, or the fast path finds an optimum, whose witness bounds every answer.

    For a bare `Program`, HiGHS finds prices of its rows; `solvers.prove_program.prove_program` takes other
    backends, too. So it does for a model that no fast path takes, if the model reads its witness from such
    prices (``from_row_prices`` of `models.Model`).

    Parameters
    ----------
    model : Model or Program
    x : array, in the model's shape
        For a program, all its variables.

    Returns
    -------
    Certificate
        The better of two: the certificate of the answer alone, and that with the witness found. The witness
        of either can be checked again by ``model.certificate(x, witness)``.

    Examples
    --------
    >>> from models import Isotonic
    >>> model = Isotonic([9, 0, 0, 0], integer=True)
    >>> prove(model, [4, 4, 4, 4]).gap == model.objective([4, 4, 4, 4]) - model.objective([2, 2, 2, 2])
    True
    """
    if isinstance(model, Program):
        from solvers.prove_program import prove_program

        return prove_program(model, x)
    own = model.certificate(x)
    if own.bound is None or own.gap == 0:
        return own
    found = fast.search(model, x)
    if found is not None:
        return _better(own, model.certificate(x, found))
    try:
        best, witness = fast.answer(model)
    except fast.NoFastPath:
        return _priced(model, x, own)
    proof = own if best is None else model.certificate(best, witness)
    if proof.bound is None or proof.bound <= own.bound:
        return own
    again = model.certificate(x, proof.witness)
    if again.optimal:
        return again
    # Only the model knows how large its data are: here the tolerance is relative to the cost alone.
    exactly = not isinstance(own.objective, float) and not isinstance(proof.bound, float)
    rounding = Rounding(unit=0.0)
    return judge(own.objective, own.objective - proof.bound, exactly, proof.witness, own.reason, rounding)


def _better(own: Certificate, proof: Certificate) -> Certificate:
    """The one of two certificates of an answer whose bound is better."""
    if proof.bound is None or own.bound is None or proof.bound <= own.bound:
        return own
    return proof if proof.optimal else replace(proof, reason=own.reason)


def _priced(model: Any, x: Any, own: Certificate) -> Certificate:
    """The best certificate by a backend's prices of the program's rows, if the model can read them."""
    if not hasattr(model, "from_row_prices"):
        return own
    from solvers.prove_program import likely_prices

    for prices in likely_prices(model.program()):
        own = _better(own, model.certificate(x, model.from_row_prices(x, prices)))
        if own.gap == 0 or own.optimal:
            break
    return own
