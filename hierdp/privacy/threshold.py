"""The threshold of a stability histogram: counts under it are dropped, so that a lone person stays hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from hierdp.privacy.rounding import below

DIGITS = 60
"""Of a chance, before it is rounded up to a float."""

SLACK = Decimal(10) ** (10 - DIGITS)
"""Added to a chance, relative to its terms, for the rounding of `DIGITS` digits."""

TINY = Decimal("4.9e-324")
"""Rounded up, the smallest number over 0 that is a float."""

EXACT = "the smallest that hides what one person adds, by the noise's exact law"
"""The rule that releases use, as a manifest names it."""

PAPERS = "Boninsegna & Silvestri 2025"
"""The paper's rule, for its reproduction. Releases used it before, and their manifests name none."""


class Changes(NamedTuple):
    """How much one person can change a table of counts."""

    cells: int
    """Number of counts that change."""
    in_all: int
    """Sum of all changes (L1 norm)."""
    largest: int
    """Largest change of one count."""
    added: int
    """Sum of all counts that only one of the two tables has, at most: a person's rows in one table."""


def miss_of(changes: Changes, scale: float, least: int) -> float:
    """The δ of a threshold, rounded up: the chance that it reveals a cell that only one person fills.

    Take two neighbouring tables. One person's rows fill cells that only the first table has, with counts
    c₁, c₂, …: 1 ≤ cᵢ ≤ Δ_∞, Σ cᵢ ≤ m. Let p be the chance that any of their noisy counts reaches the
    threshold, and q the same of cells that only the second table has; both are at most δ. For any set of
    outputs S, with S′ those of its outputs that show none of these cells, and R the noisy counts of all
    other cells,

        P(first ∈ S) ≤ p + (1 − p) P(R(first) ∈ S′),    P(second ∈ S) ≥ (1 − q) P(R(second) ∈ S′).

    The noise on R costs its share of ε, so P(R(first) ∈ S′) ≤ e^ε P(R(second) ∈ S′). Hence
    P(first ∈ S) − e^ε P(second ∈ S) ≤ max(p, q) ≤ δ. No smaller δ is true for any ε: of a table that holds
    one person alone, S = "anything is shown" has the chance p, and 0 without that person.

    With P(X = k) ∝ a^|k|, a = exp(−1/scale), a count c reaches T > c with chance p(c) = a^(T−c)/(1 + a).
    −ln(1 − p(c)) is convex in c, so the worst cells are as many as possible of one row each, or as many as
    possible of Δ_∞ rows and the rest as one cell or as cells of one row.

    Parameters
    ----------
    changes : Changes
    scale : float
        Of double-geometric noise, P(X = k) ∝ exp(−|k|/scale).
    least : int
        Noisy counts under it are dropped.

    Returns
    -------
    float
        No less than the chance: computed with 60 digits, raised by more than their rounding, rounded up. 1
        where the threshold is not over Δ_∞.

    Examples
    --------
    >>> miss_of(Changes(2, 2, 1, added=1), scale=2.0, least=37)
    9.48004...e-09
    """
    if least <= changes.largest:
        return 1.0
    with localcontext() as context:
        context.prec = DIGITS
        chance = max(_chance(cells, scale, least) for cells in _worst(changes))
        return min(1.0, -below(-Fraction(max(chance, TINY))))


def _worst(changes: Changes) -> Iterator[list[tuple[int, int]]]:
    """Cells that one person may fill alone: how many, and the count of each."""
    large, rest = divmod(changes.added, changes.largest)
    yield [(changes.added, 1)]
    yield [(large, changes.largest), (1, rest)] if rest else [(large, changes.largest)]
    yield [(large, changes.largest), (rest, 1)]


def _chance(cells: list[tuple[int, int]], scale: float, least: int) -> Decimal:
    """That any of some cells is kept, or a little more."""
    each = [(times, _tail(least - count, scale)) for times, count in cells]
    none = sum((times * (1 - p).ln() for times, p in each), Decimal(0)).exp()
    in_all = sum((times * p for times, p in each), Decimal(0))  # to all digits where `none` is nearly 1
    return min(in_all, 1 - none + SLACK)


def _tail(k: int, scale: float) -> Decimal:
    """P(X ≥ k) for k ≥ 1, or a little more."""
    far, near = (-k / Decimal(scale)).exp(), (-1 / Decimal(scale)).exp()
    return far / (1 + near) * (1 + SLACK)


def smallest_threshold(changes: Changes, scale: float, delta: float) -> int:
    """The smallest threshold over Δ_∞ whose `miss_of` is at most δ.

    Examples
    --------
    >>> one = Changes(2, 2, 1, added=1)
    >>> smallest_threshold(one, 2.0, 1e-8), papers_threshold(one, 2.0, 1e-8)
    (37, 40)
    """
    under, found = changes.largest, max(papers_threshold(changes, scale, delta), changes.largest + 1)
    while miss_of(changes, scale, found) > delta:  # only by the rounding of floats
        under, found = found, 2 * found
    while found - under > 1:
        middle = (under + found) // 2
        if miss_of(changes, scale, middle) <= delta:
            found = middle
        else:
            under = middle
    return found


def papers_threshold(changes: Changes, scale: float, delta: float) -> int:
    """⌈Δ_∞ + scale · ln(Δ₀/δ)⌉; for one trip in place of another the paper's 1 + 2 ln(2/δ)/ε, rounded up.

    A cell that only one of two neighbours has holds Δ_∞ at most. Its noise must exceed the rest, which
    happens with probability δ/Δ₀ at most, and there are Δ₀ such cells at most.
    """
    return math.ceil(changes.largest + scale * (math.log(changes.cells) - math.log(delta)))


THRESHOLDS = {EXACT: smallest_threshold, PAPERS: papers_threshold}
"""By the name that a manifest has."""
