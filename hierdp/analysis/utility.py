"""How far a top-down release can be from the truth: the utility theorem of Boninsegna & Silvestri 2025.

A released count is off by at most twice the largest noise among its siblings, and what its parent is off: so
at level ℓ no count is further off than 2·Σ_{i ≤ ℓ} (largest noise at level i). Nodes under a region that was
released as empty are no exception: none of them is further off than that region. A discrete Gaussian is
beyond t with a probability of at most 2·exp(−t²/2σ²) (Canonne et al. 2020, Corollary 9); the bounds here
differ in what they take the union over.

They hold for answers of least Chebyshev distance (InfTDA), whichever of them, when the total is public.
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
        b: how many children a node has, at most.
    levels : int
        T: levels below the root, among which ρ is spent evenly.
    rho : float
        The zCDP budget; ``hierdp.privacy.conversion.rho_of(epsilon, delta)`` for (ε, δ).
    beta : float
        Probability with which the bound may fail.
    squared_sensitivity : int
        Δ₂² of a level's counts: 2 where one trip is replaced by another.

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
        raise InputError(f"level {level} of {levels}, {branching} children: levels are 1 … {levels}, b ≥ 1")
    sigma = math.sqrt(squared_sensitivity * levels / (2 * _positive("rho", rho)))
    failures = math.log(2 * level / _chance(beta)) + (level + 1) * math.log(branching)
    return 2 * level * sigma * math.sqrt(2 * failures)


def error_bound_by_nodes(scales: Sequence[float], nodes: Sequence[int], beta: float) -> int:
    """The same with a union over the nodes that get noise, a level's share of β for each level, in integers.

    2·Σ_i ⌊√(2σ_i² ln(2ℓ·n_i/β))⌋: of use for uneven trees and budgets, and tighter, since a level's noise
    counts once and not once for each node below. The number of nodes may be that of all possible ones, known
    in advance; or of those that a release measured, which is settled before the level's noise is drawn.

    Parameters
    ----------
    scales : sequence of float
        σ of the noise of levels 1 … ℓ: of a release, those in its ledger.
    nodes : sequence of int
        n_i: how many nodes of each of these levels get noise.
    beta : float
        Probability with which the bound may fail.

    Raises
    ------
    InputError
        If there is not one scale a level, or β is not between 0 and 1.

    Examples
    --------
    >>> error_bound_by_nodes([24.6, 24.6], [52, 2_704], beta=0.05)
    442
    """
    levels = len(nodes)
    if len(scales) != levels:
        raise InputError(f"{len(scales)} scales for {levels} levels: give one a level")
    share = _chance(beta) / max(1, levels)
    # A level without nodes has no noise; noise is whole, so no more than ⌊t⌋ where it is no more than t.
    each = [s * math.sqrt(2 * math.log(2 * n / share)) for s, n in zip(scales, nodes, strict=True) if n]
    return 2 * sum(map(math.floor, each))


def _chance(beta: float) -> float:
    if not 0 < beta < 1:
        raise InputError(f"beta is {beta}: it must lie between 0 and 1")
    return beta


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise InputError(f"{name} is {value}: it must be a positive finite number")
    return value
