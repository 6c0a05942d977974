"""Lower bounds on the privacy loss, from an event that is likelier on one table than on its neighbour.

If M is (ε, δ)-differentially private, then P(M(x) ∈ S) ≤ e^ε·P(M(x′) ∈ S) + δ for each event S, so ε ≥ ln((p
− δ)/q). If M is ρ-zCDP, the Rényi divergence of order α between the Bernoulli distributions with
probabilities p and q is at most ρα, for all α > 1. Both bounds increase with p and decrease with q. So a
lower bound on p and an upper bound on q, from independent runs, give a bound of the same confidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from models.arithmetic.arrays import Floats

ORDERS = 1 + np.geomspace(0.05, 50, 12)
"""Values of α. Each gives a lower bound on ρ, and so does the limit at α = 1."""


def at_least(hits: ArrayLike, runs: int, miss: float) -> Floats:
    """Clopper & Pearson's lower bound on a probability; it is too high with probability at most `miss`.

    Examples
    --------
    >>> at_least([0, 5, 10], 10, 0.025).round(4).tolist()
    [0.0, 0.1871, 0.6915]
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(k > 0, betaincinv(np.maximum(k, 1), runs - k + 1, miss), 0.0)


def at_most(hits: ArrayLike, runs: int, miss: float) -> Floats:
    """Clopper & Pearson's upper bound on a probability; it is too low with probability at most `miss`."""
    return 1 - at_least(runs - np.asarray(hits), runs, miss)


def least_epsilon(p: ArrayLike, q: ArrayLike, delta: float = 0.0) -> Floats:
    """The smallest ε ≥ 0 with p ≤ e^ε·q + δ.

    Examples
    --------
    >>> least_epsilon([0.5, 0.5, 0.1], [0.25, 0.5, 0.2]).round(4).tolist()
    [0.6931, 0.0, 0.0]
    """
    over, under = np.maximum(np.asarray(p) - delta, 0), np.asarray(q)
    with np.errstate(divide="ignore"):
        return np.where(over > under, np.log(over) - np.log(under), 0.0)


def least_rho(p: ArrayLike, q: ArrayLike) -> Floats:
    """A lower bound on ρ of every ρ-zCDP mechanism with these probabilities; 0 if p ≤ q.

    Examples
    --------
    >>> least_rho([0.8413447, 0.3], [0.1586553, 0.3]).round(2).tolist()  # of normal noise, ρ = 2
    [1.14, 0.0]
    """
    p, q = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(q, np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        yes, no = (np.log(p), np.log(q)), (np.log1p(-p), np.log1p(-q))
        divergences = [p * (yes[0] - yes[1]) + np.where(p < 1, (1 - p) * (no[0] - no[1]), 0.0)]
        for a in ORDERS.tolist():
            both = np.logaddexp(a * yes[0] + (1 - a) * yes[1], a * no[0] + (1 - a) * no[1])
            divergences.append(both / (a - 1) / a)
        best: Any = np.max(divergences, axis=0)
    return np.where(p > q, best, 0.0)
