"""The least error that any ε-DP method can have on bins that are drawn from known counts.

Let the counts of the bins be drawn independently from a known multiset (with replacement), and let tables be
neighbours if they differ by one person in one bin. Then no ε-DP method, whatever it measures, has a lower
expected error than this one: add double-geometric noise with all of ε to each bin, and release the mean of
its count given the noisy one (Bayes). It is a yardstick for methods that do not use the places of the bins,
such as those that sort them: their error is the same for every order of the bins. A histogram is not drawn
with replacement: it has each of its counts exactly once. A method could use that, but if there are many bins,
not by much. A method that uses places can be better, because neighbouring bins are often alike.

Proof. Fix the other bins. The output depends on one count h as that of an ε-DP channel: an event has
probabilities u_h with u_{h+1} ≤ f(u_h), f(u) = min(e^ε u, 1 − e^{−ε}(1 − u)), and u_{h−1} ≥ f⁻¹(u_h). The
error is a Bregman divergence (a square, or h ln(h/x) − h + x). So the best answer is the posterior mean m,
and its expected error is a constant less E φ(m), with φ convex. It suffices that for every t, E (m − t)⁺ is
largest for the geometric channel; it is the largest of Σ_h p_h (h − t) u_h over events. Let i be the last
count below t, and u_i = c. Then counts above i have at most u = f(f(… c)), and counts below i at least
f⁻¹(f⁻¹(… c)). Some event of the geometric channel has all these values: “the noisy count is at least y”, with
y or y + 1 by chance. (Its probabilities are a^{y−h}/(1+a) for h < y and 1 − a^{h−y+1}/(1+a) for h ≥ y, with
a = e^{−ε}; they and their mixtures satisfy u_{h+1} = f(u_h).) See also Ghosh, Roughgarden &
Sundararajan 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from hierdp.errors import InputError
from hierdp.privacy.budget import check_epsilon
from models.arithmetic.arrays import Floats

NEGLIGIBLE = 750.0
"""Noise of more than this number of scales has a probability that floats cannot hold."""

LEAST = 1e-250
"""Probabilities below this are taken as 0."""


@dataclass(frozen=True)
class LeastErrors:
    """The least expected errors of an ε-DP method on bins drawn from known counts.

    Attributes
    ----------
    mse : float
        Of squared errors by bin, in people².
    divergence : float
        Of Σ h ln(h/x) − h + x over the bins, by person, in nats.
    kld : float
        A lower bound on the Kullback–Leibler divergence, Σ p ln(p/q) with p and q divided by their sums,
        averaged over draws by their number of people. It is the divergence, less Var(h)/(n·E(h)²) for n bins,
        because the divergence of the distributions allows for a wrong total; at least 0.
    """

    mse: float
    divergence: float
    kld: float


def least_errors(counts: ArrayLike, epsilon: float) -> LeastErrors:
    """The least errors on bins with such counts.

    Computed exactly, up to floating-point rounding, by sums over all noisy counts between the least and the
    largest count; any noisy count beyond these tells the same as the nearest of the two.

    Parameters
    ----------
    counts : array of int, shape (n,)
        The counts of the bins, 0 or more; any order. Public: of another year or place, not those to be
        released.
    epsilon : float

    Raises
    ------
    InputError
        If there are no counts, or they are negative, not whole, or all 0; or ε is not a positive number.

    Notes
    -----
    Time is in proportion to the number of noisy counts, at most 1,502/ε for each gap between counts.

    Examples
    --------
    >>> least = least_errors([0] * 900 + [100] * 100, epsilon=0.05)
    >>> round(least.mse, 1), round(least.kld, 4)
    (192.2, 0.3704)
    """
    epsilon = check_epsilon(epsilon)
    given = np.asarray(counts)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size or int(given.min()) < 0:
        raise InputError("counts must be a list of whole numbers of at least 0, one for each bin")
    values, often = np.unique(given.astype(np.int64), return_counts=True)
    if not values[-1]:
        raise InputError("the counts are all 0; give some of at least 1")
    p, h = often / given.size, values.astype(np.float64)
    mean = float(p @ h)
    spread = float(p @ (h - mean) ** 2)
    below, above = _moments(values, p, epsilon), _moments(-values[::-1], p[::-1], epsilon)[::-1]
    squares, logs = [], []
    for j in range(values.size):  # the noisy counts from values[j] to the next one, exclusively
        gap = int(values[j + 1] - values[j]) if j + 1 < values.size else 1
        reach = math.ceil(NEGLIGIBLE / epsilon)
        steps = np.arange(min(gap, 2 * reach), dtype=np.float64)
        if gap > steps.size:
            steps[reach:] += gap - steps.size
        left = _moved(below[j], steps, epsilon)
        right = np.zeros((4, steps.size))
        if j + 1 < values.size:
            right = _moved(above[j + 1], gap - steps, epsilon)
            right[[1, 3]] *= -1  # from negative values
        mass, first, second, total = left + right
        weight = np.full(steps.size, math.tanh(epsilon / 2))  # (1 − a)/(1 + a)
        if j == 0:
            weight[0] = 1 / (1 + math.exp(-epsilon))  # this noisy count, or any below
        if j + 1 == values.size:
            weight[-1] = 1 / (1 + math.exp(-epsilon)) if values.size > 1 else 1.0
        held = np.where(mass > LEAST, mass, np.inf)  # smaller ones have too few digits, and no effect
        squares.append(weight * np.maximum(second - first * first / held, 0))
        logs.append(weight * xlogy(total, np.where(mass > LEAST, total / held, 1)))
    mse = float(np.concatenate(squares).sum())
    known = float(p @ xlogy(h, h))
    divergence = max(0.0, (known - float(np.concatenate(logs).sum())) / mean)
    return LeastErrors(mse, divergence, max(0.0, divergence - spread / (given.size * mean * mean)))


def _moments(values: np.ndarray[tuple[int], np.dtype[np.int64]], p: Floats, epsilon: float) -> Floats:
    """For each value y, the sums of p a^{y − h} times 1, h − y, (h − y)², and h over all values h ≤ y.

    Shape (values, 4).
    """
    found = np.empty((values.size, 4))
    sums = np.zeros((4, 1))
    for j in range(values.size):
        if j:
            sums = _moved(sums[:, 0], np.array([float(values[j] - values[j - 1])]), epsilon)
        sums[0] += p[j]
        sums[3] += p[j] * values[j]
        found[j] = sums[:, 0]
    return found


def _moved(sums: Floats, steps: Floats, epsilon: float) -> Floats:
    """The sums of `_moments` at y + steps, where no values lie between; shape (4, steps)."""
    shrunk = np.exp(-epsilon * steps)
    mass, first, second, total = sums
    return np.stack([
        shrunk * mass,
        shrunk * (first - steps * mass),
        shrunk * (second - 2 * steps * first + steps * steps * mass),
        shrunk * total,
    ])  # fmt: skip
