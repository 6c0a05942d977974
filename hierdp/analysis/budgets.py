"""How to split the privacy budget over the levels of a hierarchy (Qardaji, Yang & Li 2013, §3.5).

Shares are arrays of shape (h,), from the leaves to the children of the root, which is not asked. A level of
share ε_i has noise of variance 2/ε_i².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.queries import Queries
from hierdp.analysis.shape import height
from hierdp.privacy.budget import check_epsilon
from models import BudgetSplit
from models.arithmetic.arrays import Floats
from models.certificate import Certificate

ROUNDS = 10_000
"""Rounds after which `iterated` gives up; some hundred are enough in all cases that we know."""

SETTLED = 1e-13
"""It ends where a round makes the mean variance less by no more than this, relatively."""

NOTHING = 1e-9
"""A share of the budget under which a level is left out."""


@dataclass(frozen=True, eq=False)
class Split:
    """A budget split over the levels.

    Attributes
    ----------
    shares : array, shape (h,)
        Leaves first; 0 for a level that is not asked.
    variance : float
        Mean variance of the workload.
    certificate : Certificate
        Of the shares in the convex program Σ a_i/ε_i² (`models.BudgetSplit`), over the levels that are
        asked, with the weights a_i that the shares themselves lead to. For H_b that is the problem; for
        H_b^c it says that no level would gain by a little budget from another: the KKT conditions.
    rounds : int
        Of the iteration.
    """

    shares: Floats
    variance: float
    certificate: Certificate
    rounds: int


def noise_variance(shares: ArrayLike) -> Floats:
    """2/ε_i², the variance of Laplace noise; infinite for a share of 0."""
    shares = np.asarray(shares, float)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(2 / shares**2)


def equal(epsilon: float, levels: int) -> Floats:
    """The same share for each level."""
    check_epsilon(epsilon)
    return np.full(levels, epsilon / levels)


def geometric(epsilon: float, levels: int, branching: int, dimensions: int = 1) -> Floats:
    """Each level has the cube root of the family's size times its parents' share: Cormode et al. 2012.

    Examples
    --------
    >>> geometric(3, 2, 8).tolist()
    [2.0, 1.0]
    """
    check_epsilon(epsilon)
    share = float(branching**dimensions) ** (-np.arange(levels) / 3)
    return np.asarray(epsilon * share / math.fsum(share))


def closed_form(queries: Queries, branching: int, epsilon: float) -> Split:
    """The best split for H_b without constrained inference: ε_i ∝ a_i^⅓, a_i the nodes used (H_{b,o}).

    Levels none of whose nodes is ever used (only children, all of them) get nothing.
    """
    check_epsilon(epsilon)
    return _settled(2 * queries.nodes_used(branching), epsilon, 1)


def iterated(queries: Queries, branching: int, epsilon: float, start: ArrayLike | None = None) -> Split:
    """A locally best split for H_b^c by the paper's iteration (H_{b,o}^c).

    The weights a_i of Eq. 5 depend on the shares; the iteration takes those of the present shares, splits
    by the closed form, and repeats. No round makes the mean variance more: it is a concave function of the
    levels' variances, homogeneous of degree one, so Σ a_i/ε_i² with the present weights lies above it and
    touches it at the present shares. (The paper observes that it ends after a few rounds.)

    What it ends at is a local optimum. A level of small share hardly adds to what is known, whatever it is
    asked, so *each* level may be left out at a local optimum; the iteration leaves out many levels of a
    deep tree, and what remains is a hierarchy of a larger branching factor.

    Parameters
    ----------
    queries : Queries
        See `hierdp.analysis.queries`.
    branching : int
    epsilon : float
    start : array, shape (h,), optional
        Shares to start from (scaled to ε). Default: equal ones, as in the paper. A level of share 0 stays so.

    Examples
    --------
    >>> from hierdp.analysis.queries import Regular
    >>> split = iterated(Regular.ranges(1024), 16, 1.0)
    >>> split.shares.round(3), round(split.variance, 2), split.certificate.optimal
    (array([0.416, 0.377, 0.207]), 157.49, True)
    """
    check_epsilon(epsilon)
    levels = height(queries.bins, branching)
    shares = np.ones(levels) if start is None else np.asarray(start, float)
    shares = epsilon * shares / shares.sum()
    last, rounds = math.inf, 0
    while rounds < ROUNDS:
        rounds += 1
        # a_i of Eq. 5 at these shares
        weights = 2 * queries.level_shares(branching, noise_variance(shares))
        asked = shares > 0
        variance = float(np.sum(weights[asked] / shares[asked] ** 2))
        if last - variance <= SETTLED * variance:
            break
        last = variance
        roots = np.cbrt(weights)
        shares = epsilon * roots / roots.sum()
        shares[shares < NOTHING * epsilon] = 0
    return _settled(weights, epsilon, rounds, shares)


def _settled(weights: Floats, epsilon: float, rounds: int, shares: Floats | None = None) -> Split:
    """The split for these weights (or the given one), judged by the convex program."""
    from solvers import solve

    asked = weights > 0 if shares is None else shares > 0
    model = BudgetSplit(weights[asked], epsilon)
    found = solve(model).x if shares is None else np.asarray(shares)[asked]
    every = np.zeros(weights.size)
    every[asked] = found
    return Split(every, float(model.objective(found)), model.certificate(found), rounds)
