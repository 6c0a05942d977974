"""The threshold of a stability histogram. It drops small counts, which hides cells of a single person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from hierdp.privacy.rounding import below, typed

DIGITS = 60
"""Decimal digits of a probability, before it is rounded up to a float."""

SLACK = Decimal(10) ** (10 - DIGITS)
"""Added to a probability, relative to its terms, to cover the rounding to `DIGITS` digits."""

TINY = Decimal("4.9e-324")
"""The smallest positive float."""

EXACT = "the smallest that hides what one person adds, by the noise's exact law"
"""The rule of releases, by its name in a manifest."""

PAPERS = "Boninsegna & Silvestri 2025"
"""The paper's rule, for its reproduction."""


class Changes(NamedTuple):
    """How much one person can change a table of counts."""

    cells: int
    """Number of counts that change."""
    in_all: int
    """Sum of all changes (L1 norm)."""
    largest: int
    """Largest change of one count."""
    added: int
    """Largest sum of the counts that only one of the two tables has: a person's rows in one table."""


@lru_cache(maxsize=256)
def miss_of(changes: Changes, scale: float, least: int) -> float:
    """The δ of a threshold, rounded up: the probability that it reveals a cell with rows of only one person.

    Take two neighbouring tables. One person's rows fill cells that only the first table has, with counts
    c₁, c₂, …: 1 ≤ cᵢ ≤ Δ_∞, Σ cᵢ ≤ m. Let p be the probability that any of their noisy counts reaches the
    threshold, and q the same for cells that only the second table has; both are at most δ. Let S be any set
    of outputs, S′ its outputs without any of these cells, and R the noisy counts of all other cells. Then

        P(first ∈ S) ≤ p + (1 − p) P(R(first) ∈ S′),    P(second ∈ S) ≥ (1 − q) P(R(second) ∈ S′).

    The noise on R costs its share of ε, so P(R(first) ∈ S′) ≤ e^ε P(R(second) ∈ S′). Hence
    P(first ∈ S) − e^ε P(second ∈ S) ≤ max(p, q) ≤ δ. No smaller δ holds for any ε: on a table of one person,
    S = "the output is not empty" has probability p, and probability 0 without that person.

    With P(X = k) ∝ a^|k|, a = exp(−1/scale), a count c reaches T > c with probability p(c) = a^(T−c)/(1 + a).
    −ln(1 − p(c)) is convex in c, so the worst case is either as many cells as possible of one row each, or as
    many as possible of Δ_∞ rows, with the rest in one cell or in cells of one row.

    Parameters
    ----------
    changes : Changes
    scale : float
        Scale of the double-geometric noise, P(X = k) ∝ exp(−|k|/scale).
    least : int
        The threshold: lower noisy counts are dropped.

    Returns
    -------
    float
        At least the probability: computed with 60 digits, raised by more than their rounding, and rounded up.
        1 if the threshold is not above Δ_∞.

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
    """The worst cells that one person may fill alone: their numbers and counts."""
    large, rest = divmod(changes.added, changes.largest)
    yield [(changes.added, 1)]
    yield [(large, changes.largest), (1, rest)] if rest else [(large, changes.largest)]
    yield [(large, changes.largest), (rest, 1)]


def _chance(cells: list[tuple[int, int]], scale: float, least: int) -> Decimal:
    """An upper bound on the probability that any of some cells is kept."""
    each = [(times, _tail(least - count, scale)) for times, count in cells]
    none = sum((times * (1 - p).ln() for times, p in each), Decimal(0)).exp()
    in_all = sum((times * p for times, p in each), Decimal(0))  # accurate even if `none` is nearly 1
    return min(in_all, 1 - none + SLACK)


def _tail(k: int, scale: float) -> Decimal:
    """An upper bound on P(X ≥ k), for k ≥ 1."""
    far, near = (-k / Decimal(scale)).exp(), (-1 / Decimal(scale)).exp()
    return far / (1 + near) * (1 + SLACK)


def smallest_threshold(changes: Changes, scale: float, delta: float) -> int:
    """The smallest threshold above Δ_∞ whose `miss_of` is at most δ.

    Examples
    --------
    >>> one = Changes(2, 2, 1, added=1)
    >>> smallest_threshold(one, 2.0, 1e-8), papers_threshold(one, 2.0, 1e-8)
    (37, 40)
    """
    most = typed(delta)
    under, found = changes.largest, max(papers_threshold(changes, scale, delta), changes.largest + 1)
    while miss_of(changes, scale, found) > most:  # only because of the rounding of floats
        under, found = found, 2 * found
    while found - under > 1:
        middle = (under + found) // 2
        if miss_of(changes, scale, middle) <= most:
            found = middle
        else:
            under = middle
    return found


def papers_threshold(changes: Changes, scale: float, delta: float) -> int:
    """⌈Δ_∞ + scale · ln(Δ₀/δ)⌉; for replacing one trip, the paper's 1 + 2 ln(2/δ)/ε, rounded up.

    A cell that only one of two neighbouring tables has counts at most Δ_∞. Its noise must exceed the rest,
    which has probability at most δ/Δ₀, and there are at most Δ₀ such cells.
    """
    return math.ceil(changes.largest + scale * (math.log(changes.cells) - math.log(delta)))


THRESHOLDS = {EXACT: smallest_threshold, PAPERS: papers_threshold}
"""The rules, by their names in a manifest."""
