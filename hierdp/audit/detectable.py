"""The smallest privacy loss that an audit could have found, with so many runs."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, ndtr

from hierdp.audit.bound import at_least, at_most
from hierdp.audit.events import Claim

LOSSES = np.geomspace(1, 100, 400)
"""Losses to try, as multiples of the claim."""


def detectable(claim: Claim, runs: int, miss: float) -> float:
    """The smallest loss for which the bound exceeds the claim, if hits are as often as expected.

    One event reveals the whole loss: with probabilities eˡ/(1 + eˡ) and 1/(1 + eˡ), as of one count with
    double-geometric noise; under zCDP with those of one count with normal noise, Φ(±√(2ρ)/2). No event of a
    mechanism with that loss is better for this bound, up to discretization and δ.

    Parameters
    ----------
    claim : Claim
    runs : int
        The number of runs of each table that bound the loss.
    miss : float
        The probability with which the bound may be wrong.

    Returns
    -------
    float
        In the unit of the claim, ρ under zCDP and else ε; infinite if no loss up to 100 times the claim would
        have been found.

    Examples
    --------
    >>> round(detectable(Claim(2.0, 0.0), 500, 1e-5), 2), detectable(Claim(2.0, 0.0), 50, 1e-5)
    (2.8, inf)
    """
    claimed = claim.epsilon if claim.rho is None else claim.rho
    losses = claimed * LOSSES
    p = expit(losses) if claim.rho is None else ndtr(np.sqrt(2 * losses) / 2)
    hits = np.rint(p * runs)
    low, high = at_least(hits, runs, miss / 2), at_most(runs - hits, runs, miss / 2)
    found = np.flatnonzero(claim.loss(low, high) > claimed)
    return float(losses[found[0]]) if found.size else math.inf
