"""How far a top-down release can be from the truth: the utility theorem of Boninsegna & Silvestri 2025.

The error of a released count is at most twice the largest noise among its siblings, plus the error of its
parent. So at level ℓ every error is at most 2·Σ_{i ≤ ℓ} (largest noise at level i). This includes nodes below
a region that was released as empty: their error is at most the region's. A discrete Gaussian exceeds t in
absolute value with probability at most 2·exp(−t²/2σ²) (Canonne et al. 2020, Corollary 9). The bounds here
differ in what the union bound is taken over.

They hold for every answer of least Chebyshev distance (InfTDA), provided that the total is public. The
baselines, which measure the finest counts alone, have the bounds of Proposition 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hierdp.errors import InputError


def error_bound(
    level: int, branching: int, levels: int, rho: float, beta: float, squared_sensitivity: int = 2
) -> float:
    """Theorem 4: 2ℓ·√(2σ² ln(2ℓ·b^ℓ·b/β)) with σ² = Δ₂²T/2ρ.

    Parameters
    ----------
    level : int
        ℓ, from 1 to `levels`; the bound is for all nodes of that level at once.
    branching : int
        b: the largest number of children of a node.
    levels : int
        T: number of levels below the root; ρ is split evenly over them.
    rho : float
        The zCDP budget; ``hierdp.privacy.conversion.rho_of(epsilon, delta)`` for (ε, δ).
    beta : float
        Probability with which the bound may fail.
    squared_sensitivity : int
        Δ₂² of a level's counts: 2 if neighbouring tables differ by replacing one trip.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> from hierdp.privacy.conversion import rho_of
    >>> [round(error_bound(level, 2, 16, rho_of(1, 1e-8), beta=0.05)) for level in (1, 8, 16)]
    [194, 2391, 5895]
    """
    if not 1 <= level <= levels or branching < 1:
        raise InputError(
            f"level must be in 1 … {levels}, got {level}; branching must be at least 1, got {branching}"
        )
    sigma = math.sqrt(squared_sensitivity * levels / (2 * _positive("rho", rho)))
    failures = math.log(2 * level / _chance(beta)) + (level + 1) * math.log(branching)
    return 2 * level * sigma * math.sqrt(2 * failures)


def error_bound_by_nodes(scales: Sequence[float], nodes: Sequence[int], beta: float) -> int:
    """The same bound with a union over the nodes that get noise and β/ℓ for each level, rounded down.

    2·Σ_i ⌊√(2σ_i² ln(2ℓ·n_i/β))⌋. It suits uneven trees and budgets. It is also tighter, since a level's
    noise counts once, not once for each node below. The number of nodes may be the number of all possible
    nodes, known in advance, or of those that a release measured, which is fixed before the level's noise is
    drawn.

    Parameters
    ----------
    scales : sequence of float
        σ of the noise of levels 1 … ℓ, as in the ledger of a release.
    nodes : sequence of int
        n_i: the number of nodes of each of these levels that get noise.
    beta : float
        Probability with which the bound may fail.

    Raises
    ------
    InputError
        If there is not one scale per level, or β is not between 0 and 1.

    Examples
    --------
    >>> error_bound_by_nodes([24.6, 24.6], [52, 2_704], beta=0.05)
    442
    """
    levels = len(nodes)
    if len(scales) != levels:
        raise InputError(f"{len(scales)} scales for {levels} levels; give one scale per level")
    share = _chance(beta) / max(1, levels)
    # A level without nodes has no noise. Noise is a whole number, so noise ≤ t implies noise ≤ ⌊t⌋.
    each = [s * math.sqrt(2 * math.log(2 * n / share)) for s, n in zip(scales, nodes, strict=True) if n]
    return 2 * sum(map(math.floor, each))


def gauss_error_bound(scale: float, below: int, nodes: int, beta: float) -> int:
    """Proposition 1, VanillaGauss: ⌊√(2·m·σ² ln(2n/β))⌋ for all n nodes of a level at once.

    A node's error is the sum of the noise of its m finest counts, which exceeds t in absolute value with
    probability at most 2·exp(−t²/2mσ²): the noise of each is as concentrated as a normal law (Canonne et al.
    2020). In the paper, level ℓ of a tree of T levels and b children has m = b^{T−ℓ} and n = b^ℓ.

    Parameters
    ----------
    scale : float
        σ of the discrete Gaussian noise of each finest count; √(Δ₂²/2ρ) for ρ-zCDP.
    below : int
        m: the largest number of finest counts, empty ones included, of a node of the level.
    nodes : int
        n: the number of nodes of the level.
    beta : float
        Probability with which the bound may fail.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> [gauss_error_bound(8.7, 2 ** (16 - level), 2**level, beta=0.05) for level in (0, 8, 16)]
    [6049, 598, 47]
    """
    _at_least_one(below=below, nodes=nodes)
    variance = below * _positive("scale", scale) ** 2
    return math.floor(math.sqrt(2 * variance * math.log(2 * nodes / _chance(beta))))


def stability_error_bound(scale: float, least: int, below: int, positive: int, beta: float) -> int:
    """Proposition 1, stability histogram: m·(k + t − 1), for all nodes of a level at once.

    With probability 1 − β, no noise exceeds k, the least whole number with n·2a^{k+1}/(1 + a) ≤ β, a =
    e^{−1/scale}: the double-geometric law in place of the paper's Laplace law. A count that is kept is then
    off by at most k, and one that is dropped was at most k + t − 1. Empty counts get no noise. In the paper,
    m = b^{T−ℓ} and n = b^T.

    Parameters
    ----------
    scale : float
        Scale of the double-geometric noise, P(X = j) ∝ exp(−|j|/scale): 2/ε if one trip is replaced.
    least : int
        The threshold t: lower noisy counts are dropped. The paper's is 1 + 2·ln(2/δ)/ε.
    below : int
        m: the largest number of positive finest counts of a node of the level, or a larger number.
    positive : int
        n: the number of positive finest counts in all, or a larger number.
    beta : float
        Probability with which the bound may fail.

    Raises
    ------
    InputError
        If a number is out of its range.

    Examples
    --------
    >>> [stability_error_bound(2, 40, 2 ** (16 - level), 2**16, beta=0.05) for level in (0, 8, 16)]
    [4390912, 17152, 67]
    """
    _at_least_one(least=least, below=below, positive=positive)
    a = math.exp(-1 / _positive("scale", scale))
    tail = 2 * positive / ((1 + a) * _chance(beta))
    largest = max(0, math.ceil(scale * math.log(tail)) - 1)
    return below * (largest + least - 1)


def _at_least_one(**numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, got {value}")


def _chance(beta: float) -> float:
    if not 0 < beta < 1:
        raise InputError(f"beta must lie between 0 and 1, got {beta}")
    return beta


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise InputError(f"{name} must be a positive finite number, got {value}")
    return value
