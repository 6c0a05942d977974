"""How to split the privacy budget over the levels of a hierarchy (Qardaji, Yang & Li 2013, §3.5).

Shares are arrays of shape (h,), from the leaves to the children of the root. The root is not measured. The
noise of a level with share ε_i has the variance 2/ε_i².
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hierdp.analysis.queries import Queries
from hierdp.analysis.workload import height
from hierdp.privacy.budget import check_epsilon
from models import BudgetSplit
from models.arithmetic.arrays import Floats
from models.certificate import Certificate

ROUNDS = 10_000
"""`iterated` stops after this many rounds; a few hundred suffice in all known cases."""

SETTLED = 1e-13
"""`iterated` stops when a round reduces the mean variance by at most this fraction."""

NOTHING = 1e-9
"""A level whose fraction of the budget is below this value is not measured."""


@dataclass(frozen=True, eq=False)
class Split:
    """The shares of a budget, one per level.

    - shares, shape (h,): leaves first; 0 for a level that is not measured.
    - variance: mean variance over the workload.
    - certificate: certificate of the shares in the convex program min Σ a_i/ε_i² (`models.BudgetSplit`), over
      the levels that are measured, with the weights a_i that these shares imply. For H_b this is the whole
      problem. For H_b^c it proves the KKT conditions: moving a little budget from one level to another gains
      nothing.
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
    """Equal shares for all levels."""
    check_epsilon(epsilon)
    return np.full(levels, epsilon / levels)


def geometric(epsilon: float, levels: int, branching: int, dimensions: int = 1) -> Floats:
    """Each level gets its parents' share times the cube root of the number of children, ∛(b^d).

    Qardaji et al. describe the budget of Cormode et al. (2012) so for one dimension. In more dimensions it is
    not theirs (`quadtree`).

    >>> geometric(3, 2, 8).tolist()
    [2.0, 1.0]
    """
    check_epsilon(epsilon)
    share = float(branching**dimensions) ** (-np.arange(levels) / 3)
    return np.asarray(epsilon * share / math.fsum(share))


def quadtree(epsilon: float, levels: int, branching: int, dimensions: int) -> Floats:
    """Each level gets ∛(b^(d−1)) times its parents' share: ∛2 in a quadtree (Cormode et al. 2012, §4.2).

    A box with smooth faces needs some b^(d−1) times as many nodes of a level as of the level above it. In
    one dimension, ∛b, as Qardaji et al. apply it there.

    >>> quadtree(3, 2, 8, 2).tolist()
    [2.0, 1.0]
    """
    return geometric(epsilon, levels, branching, max(dimensions - 1, 1))


def closed_form(queries: Queries, branching: int, epsilon: float) -> Split:
    """The best split for H_b without constrained inference (H_{b,o}): ε_i ∝ a_i^⅓, with a_i the nodes used.

    A level gets no budget if no query uses any of its nodes, that is, if all its nodes are only children.
    """
    check_epsilon(epsilon)
    return _settled(2 * queries.nodes_used(branching), epsilon, 1)


def iterated(queries: Queries, branching: int, epsilon: float, start: ArrayLike | None = None) -> Split:
    """A locally optimal split for H_b^c, by the paper's iteration (H_{b,o}^c).

    The weights a_i of Eq. 5 depend on the shares. Each round computes the weights at the current shares and
    splits the budget by the closed form. No round increases the mean variance: it is a concave function of
    the levels' variances, homogeneous of degree one, so Σ a_i/ε_i² with the current weights is an upper bound
    that is tight at the current shares. (The paper observes that the iteration ends after a few rounds.)

    The result is a local optimum. A level with a small share contributes little information, so *any* level
    can have share 0 at a local optimum. In a deep tree the iteration drops many levels; a hierarchy with a
    larger branching factor remains.

    - start, shape (h,): initial shares (scaled to ε). Default: equal shares, as in the paper. A share of 0
      stays 0.

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
        measured = shares > 0
        variance = float(np.sum(weights[measured] / shares[measured] ** 2))
        if last - variance <= SETTLED * variance:
            break
        last = variance
        roots = np.cbrt(weights)
        shares = epsilon * roots / roots.sum()
        shares[shares < NOTHING * epsilon] = 0
    return _settled(weights, epsilon, rounds, shares)


def _settled(weights: Floats, epsilon: float, rounds: int, shares: Floats | None = None) -> Split:
    """The best split for these weights, or the given shares, with a certificate from the convex program."""
    from solvers import solve

    measured = weights > 0 if shares is None else shares > 0
    model = BudgetSplit(weights[measured], epsilon)
    found = solve(model).x if shares is None else np.asarray(shares)[measured]
    every = np.zeros(weights.size)
    every[measured] = found
    return Split(every, float(model.objective(found)), model.certificate(found), rounds)
