"""The ρ that an (ε, δ) allows: against formulas with many digits, and the definition of δ."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hierdp.privacy.conversion import (
    CONVERSIONS,
    PAPERS,
    TIGHTER,
    divergence_of,
    papers_epsilon_of,
    papers_rho_of,
    rho_of,
)
from tests.marks import quick

EPSILON = st.floats(1e-12, 1e9)
DELTA = st.floats(5e-324, 0.999)
PAIRS = [(0.1, 1e-6), (1.0, 1e-8), (1.0, 0.01), (2.6, 1e-10), (10.0, 1e-8)]


def exact_papers_rho(epsilon, delta):
    """(√(ln(1/δ) + ε) − √ln(1/δ))², to 60 digits."""
    with localcontext() as digits:
        digits.prec = 90
        log = -Decimal(delta).ln()
        return ((log + Decimal(epsilon)).sqrt() - log.sqrt()) ** 2


def log_delta(rho, epsilon, u):
    """ln δ of ρ-zCDP at ε by the Rényi order 1 + u, as in Canonne, Kamath & Steinke."""
    alpha = 1 + u
    return u * (alpha * Decimal(rho) - Decimal(epsilon)) - u.ln() + alpha * (1 - 1 / alpha).ln()


def best_log_delta(rho, epsilon):
    """The minimum of `log_delta` over u; its derivative (2α − 1)ρ − ε + ln(1 − 1/α) grows with u."""
    low, high = Decimal(10) ** -60, Decimal(10) ** 60
    for _ in range(400):
        u = (low * high).sqrt()
        falls = (2 * u + 1) * Decimal(rho) - Decimal(epsilon) + (u / (1 + u)).ln() < 0
        low, high = (u, high) if falls else (low, u)
    return log_delta(rho, epsilon, low)


@given(EPSILON, DELTA)
@settings(deadline=None)
def test_the_papers_rho_is_the_formula(epsilon, delta):
    exact = exact_papers_rho(epsilon, delta)
    rho = papers_rho_of(epsilon, delta)
    assert Decimal(rho) <= exact  # so the ε that it gives is at most ε
    assert Decimal(math.nextafter(rho, math.inf)) >= exact * (1 - Decimal("1e-45"))


@given(EPSILON, DELTA)
@settings(deadline=None)
def test_the_papers_rho_and_epsilon_are_inverses(epsilon, delta):
    assert papers_epsilon_of(papers_rho_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-12)
    assert papers_rho_of(papers_epsilon_of(epsilon, delta), delta) == pytest.approx(epsilon, rel=1e-12)


@given(st.floats(1e-6, 1e6), st.floats(1e-300, 0.9))
@settings(deadline=None, max_examples=4)
def test_rho_is_the_largest_float_of_the_formula(epsilon, delta):
    """With the best order found in another way, to twice the digits, δ is nearly attained, not exceeded."""
    rho = rho_of(epsilon, delta)
    with localcontext() as digits:
        digits.prec = 150
        allowed = Decimal(delta).ln()
        assert best_log_delta(rho, epsilon) <= allowed
        assert best_log_delta(math.nextafter(rho, math.inf) * (1 + 1e-15), epsilon) > allowed


def test_rho_grows_with_both():
    for convert, known in ((rho_of, 0.0172053), (papers_rho_of, 0.0132154)):
        assert convert(1, 1e-8) < convert(2, 1e-8)
        assert convert(1, 1e-8) < convert(1, 1e-6)
        assert convert(1, 1e-8) == pytest.approx(known, abs=5e-8)


@given(EPSILON, DELTA)
@settings(deadline=None)
def test_tighter_conversion_is_never_worse(epsilon, delta):
    assert papers_rho_of(epsilon, delta) <= rho_of(epsilon, delta)


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1 - 1e-16])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1.0, 1e300, 1.7e308])
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_rho_of_extremes(epsilon, delta, conversion):
    rho = CONVERSIONS[conversion](epsilon, delta)
    assert math.isfinite(rho)
    assert rho >= 0


MOVED = 6
"""The count moves by this much per person; with noise of one or less, δ is far from the formula."""


def delta_of_discrete_gaussian(rho, epsilon):
    """The definition of δ, Σ max(0, P(k) − e^ε P(k − MOVED)), for noise that costs ρ."""
    with localcontext() as digits:
        digits.prec = 50
        rate, gain = Decimal(rho) / MOVED**2, Decimal(epsilon).exp()
        reach = math.ceil(MOVED * (math.sqrt(60 / rho) + epsilon / rho))
        half = [(-rate * k * k).exp() for k in range(reach + 1)]
        mass = [*reversed(half[1:]), *half]
        pairs = zip(mass[MOVED:], mass[:-MOVED], strict=True)
        return sum((max(Decimal(0), p - gain * q) for p, q in pairs)) / sum(mass)


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_a_discrete_gaussian_of_that_rho_keeps_the_promise(epsilon, delta):
    """The exact δ is also close to the formula's."""
    exact = delta_of_discrete_gaussian(rho_of(epsilon, delta), epsilon)
    assert exact <= Decimal(delta)
    assert exact >= Decimal(delta) / 20
    assert exact > 5 * delta_of_discrete_gaussian(papers_rho_of(epsilon, delta), epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), quick(PAIRS, slow=lambda pair: pair[0] < 1))
def test_levels_that_share_the_rho_keep_the_promise(epsilon, delta):
    """Three discrete Gaussians with a third of ρ each, by the distribution of their total loss."""
    part = rho_of(epsilon, delta) / 3
    reach = math.ceil(MOVED * (math.sqrt(45 / part) + epsilon / part))
    k = np.arange(-reach, reach + 1) / MOVED
    mass = np.exp(-part * k**2)
    mass /= mass.sum()
    # The loss ln P(k)/P(k − 1) = (1 − 2k)·part is linear in k, so losses add up like the k.
    three = np.convolve(np.convolve(mass, mass), mass)
    loss = part * (3 - 2 * np.arange(-3 * reach, 3 * reach + 1) / MOVED)
    exact = float(three[loss > epsilon] @ -np.expm1(epsilon - loss[loss > epsilon]))
    assert exact <= delta
    assert exact >= delta / 20


def test_the_names_of_the_conversions():
    assert {TIGHTER: rho_of, PAPERS: papers_rho_of} == CONVERSIONS
    assert Fraction(rho_of(1, 1e-8)) > Fraction(papers_rho_of(1, 1e-8))


def test_a_divergence_is_never_over_the_formula():
    """Not even the last of 60 digits is rounded up."""
    for epsilon, delta in PAIRS:
        for u in (Decimal(1) / 3, Decimal(7), Decimal("12.3"), Decimal(10**4) / 7, Decimal("1e-9")):
            with localcontext() as digits:
                digits.prec = 120
                terms = (1 + 1 / u).ln(), (1 + u).ln() / u, Decimal(delta).ln() / u
                formula = Decimal(epsilon) + sum(terms)
                scale = Decimal(epsilon) + sum(map(abs, terms))
                lacks = (formula - divergence_of(epsilon, delta, u)) / scale
            assert 0 < lacks < (Decimal("1e-48") if u > Decimal("1e-8") else Decimal("1e-17"))
