"""Convert between zero-concentrated differential privacy, ρ, and (ε, δ): two conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from hierdp.privacy.rounding import below

DIGITS = 60
"""Decimal digits of ρ, before it is rounded down to a float."""

SLACK = Decimal(10) ** (10 - DIGITS)
"""Subtracted, relative to the terms: `_log_of_1_plus` has an error of 10^(9 − DIGITS), other operations
less."""

TIGHTER = "Canonne, Kamath & Steinke 2020"
"""Used by releases."""

PAPERS = "Bun & Steinke 2016"
"""Used by Boninsegna & Silvestri 2025, and for their reproduction."""


@lru_cache(maxsize=256)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ such that ρ-zCDP gives (ε, δ)-DP, by Canonne, Kamath & Steinke 2020, Corollary 13.

    ρ-zCDP bounds the Rényi divergence of every order α > 1 by αρ, so that for every α (their Proposition 12)

        ε ≤ αρ + ln(1 − 1/α) + (ln(1/δ) − ln α)/(α − 1).

    Every α gives a valid ρ; the best is found by bisection. An inexact α lowers ρ, but is still private.

    Returns
    -------
    float
        At most the ρ of the α found: computed with 60 digits in decimal arithmetic, whose operations and
        logarithms are rounded correctly, less 10⁻⁵⁰ of its terms, and rounded down. It is the same on all
        machines.

    Examples
    --------
    >>> round(rho_of(1, 1e-8), 4), round(papers_rho_of(1, 1e-8), 4)
    (0.0172, 0.0132)
    """
    u = best_order(epsilon, delta)
    with localcontext() as context:
        context.prec = DIGITS
        return below(Fraction(max(Decimal(0), divergence_of(epsilon, delta, u)) / (1 + u)))


def divergence_of(epsilon: float, delta: float, u: Decimal) -> Decimal:
    """The largest Rényi divergence of order α = 1 + u that gives (ε, δ)-DP, rounded down; at most 0 if none.

    ε + ln(1 + 1/u) + ln(1 + u)/u − ln(1/δ)/u: Canonne, Kamath & Steinke 2020, Proposition 12.
    """
    with localcontext() as context:
        context.prec = DIGITS
        gained, back = _log_of_1_plus(1 / u), _log_of_1_plus(u) / u
        budget, lost = Decimal(epsilon), -Decimal(delta).ln() / u
        return budget + gained + back - lost - (budget + gained + back + lost) * SLACK


def _log_of_1_plus(x: Decimal) -> Decimal:
    """A lower bound on ln(1 + x), x > 0, up to rounding: 2x/(2 + x) if 1 + x would lose digits of x."""
    return (1 + x).ln() if x > Decimal("1e-8") else 2 * x / (2 + x)


@lru_cache(maxsize=256)
def best_order(epsilon: float, delta: float) -> Decimal:
    """u = α − 1 of the Rényi order α at which (ε, δ) allows the largest ρ.

    For a given ρ, δ is least where (2α − 1)ρ = ε − ln(1 − 1/α). With that ρ,

        ln δ = −u²ε/(2u + 1) − ln(1 + u) − ln(1 + 1/u) u²/(2u + 1),

    which falls as u grows; for u ≤ 1 it is at least −u²ε − 2u, for u ≥ 1 at most −uε/3 and −ln(1 + u).

    It is kept for the next call: a search takes milliseconds, and a release asks for the same one many times.
    """
    with localcontext() as context:
        context.prec = 30
        budget, log = Decimal(epsilon), -Decimal(delta).ln()
        low = min(log / 4, (log / (2 * budget)).sqrt())
        high = min(3 * log / budget + 1, log.exp())
        while high / low > Decimal("1.0000000000001"):
            u = (low * high).sqrt()
            part = u * u / (2 * u + 1)
            if part * (budget + (1 + 1 / u).ln()) + (1 + u).ln() < log:
                low = u
            else:
                high = u
        return low


def papers_rho_of(epsilon: float, delta: float) -> float:
    """A smaller ρ such that ρ-zCDP gives (ε, δ)-DP: (√(ln(1/δ) + ε) − √ln(1/δ))² (Bun & Steinke 2016).

    It is rounded down to a float. For reproductions of papers that use it.

    Examples
    --------
    >>> round(papers_rho_of(1, 1e-8), 6)
    0.013215
    """
    with localcontext() as context:
        context.prec = DIGITS
        log = -Decimal(delta).ln()
        # (√(a + ε) − √a)² without cancellation, less a margin larger than the rounding errors.
        rho = (Decimal(epsilon) / ((log + Decimal(epsilon)).sqrt() + log.sqrt())) ** 2
        return below(Fraction(rho * (1 - SLACK)))


def papers_epsilon_of(rho: float, delta: float) -> float:
    """The ε of ρ-zCDP at δ: ρ + 2√(ρ ln(1/δ)), the inverse of `papers_rho_of`."""
    return rho + 2 * math.sqrt(rho * -math.log(delta))


def epsilon_of(rho: float, delta: float) -> float:
    """An ε such that ρ-zCDP gives (ε, δ)-DP: the inverse of `rho_of`, rounded up.

    By bisection; every ε found satisfies ``rho_of(ε, delta) >= rho``.

    >>> round(epsilon_of(rho_of(1, 1e-8), 1e-8), 6)
    1.0
    """
    low, high = 0.0, papers_epsilon_of(rho, delta) * (1 + 1e-9)
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if rho_of(middle, delta) >= rho else (middle, high)
    return high


CONVERSIONS: dict[str, Callable[[float, float], float]] = {TIGHTER: rho_of, PAPERS: papers_rho_of}
"""By their names in a manifest."""
