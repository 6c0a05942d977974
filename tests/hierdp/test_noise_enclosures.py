"""Theorem 1 of docs/noise.md: the edges of the tables enclose the distribution functions.

They are compared with mpmath's interval arithmetic, which uses other formulas than hierdp.
"""

from fractions import Fraction

import pytest
from laws_of_noise import Scripted, digit, gaussian, geometric

from hierdp.privacy.tables.laws import Digit, DiscreteGaussian, Quotient
from hierdp.privacy.tables.sampler import Table
from tests.marks import quick

pytest.importorskip("flint")
pytest.importorskip("mpmath")

SCALES = [0.3, 1.0, 7.1]
LAWS = [
    Quotient(Fraction(2.5)),
    DiscreteGaussian(Fraction(2.5)),
    Quotient(Fraction(3.3), 3),
    Digit(Fraction(3.3), 3, 5),
    *(Quotient(Fraction(scale)) for scale in (0.02, *SCALES, 17.3)),
    *(Quotient(Fraction(scale), of) for scale, of in [(40.7, 16), (1e6, 4096**2), (1e12, 4096**3)]),
    *(DiscreteGaussian(Fraction(scale)) for scale in (0.05, *SCALES, 17.3)),
    *(Digit(Fraction(scale), *rest) for scale, *rest in [(40.7, 1, 16), (1e12, 4096, 8)]),
]
"""Each scale is the exact value of a float; some have many digits."""


def other(law, ks):
    """F at consecutive numbers, by mpmath."""
    if isinstance(law, DiscreteGaussian):
        return gaussian(law.scale, ks)
    if isinstance(law, Digit):
        return [digit(law.scale, law.unit, law.base, k) for k in ks]
    return [geometric(law.scale, law.of * (k + 1) - 1) for k in ks]  # ⌊X/N⌋ ≤ k if and only if X < N(k + 1)


def encloses(edge, f, bits):
    return f * 2**bits >= edge and f * 2**bits <= edge + 1


@pytest.mark.parametrize("law", quick(LAWS, first=4), ids=str)
@pytest.mark.parametrize("bits", [8, 64])
def test_all_edges_enclose_the_distribution_function(law, bits):
    first, edges = law.edges(bits)
    ks = range(first, first + len(edges))
    assert edges[0] == 0
    assert edges[-1] == 2**bits - 1
    for k, edge, f in zip(ks, edges, other(law, ks), strict=True):
        assert encloses(edge, f, bits), k
    # No edge is missing: the next edges outwards have no digits.
    assert law.edge(first - 1, bits) == 0
    assert law.edge(first + len(edges), bits) == 2**bits - 1


@pytest.mark.parametrize("law", quick(LAWS, first=4), ids=str)
def test_an_edge_alone_is_that_of_the_table_and_goes_on_in_more_words(law):
    first, edges = law.edges(64)
    ks = range(first, first + len(edges), max(1, len(edges) // 40))
    fs = other(law, range(first, first + len(edges)))
    for k in ks:
        assert law.edge(k, 64) == edges[k - first]
        for bits in (1, 40, 128, 192):
            assert encloses(law.edge(k, bits), fs[k - first], bits), (k, bits)


def test_far_tails_have_digits_too():
    for law, far in ((DiscreteGaussian(Fraction(2.5)), 200), (Quotient(Fraction(2.5)), 4000)):
        for k in (-far, far):
            bits = 8192
            tail = law.edge(k, bits) if k < 0 else 2**bits - 1 - law.edge(k, bits)
            assert 0 < tail < 2 ** (bits - 2000)


@pytest.mark.parametrize("law", quick(LAWS, first=4), ids=str)
def test_a_word_beside_an_edge_decides_and_a_word_on_it_takes_one_more(law):
    """For every edge E: the words E − 1, E and E + 1, with E followed by words on both sides of F(k)."""
    table = Table.of(law)
    first, edges = table.first, table.edges.tolist()
    inner = range(1, len(edges) - 1)
    fs = other(law, range(first, first + len(edges)))
    for j in inner:
        k = first + j
        for word in (edges[j] - 1, edges[j] + 1):
            if word in edges:
                continue
            values, exact = table.draw(1, Scripted(word))
            assert not exact
            value = int(values[0]) - first
            assert fs[value] * 2**64 >= word + 1
            assert fs[value - 1] * 2**64 <= word
        on = law.edge(k, 128)
        for number in (on - 1, on + 1):
            if number >> 64 != edges[j]:
                continue
            value = table.draw(1, Scripted(edges[j], number % 2**64))[1].get(0)
            assert value is not None  # the first word alone does not decide
            assert fs[value - first] * 2**128 >= number + 1
            assert fs[value - 1 - first] * 2**128 <= number


def test_precision_grows_for_wide_enclosures(monkeypatch):
    from hierdp.privacy.tables import laws

    law = DiscreteGaussian(Fraction(2.5))
    plain = law.edges(64)
    monkeypatch.setattr(laws, "GUARDS", (-60, -40, 0, 64))
    assert law.edges(64) == plain
    monkeypatch.setattr(laws, "GUARDS", (-60, -40))
    with pytest.raises(ArithmeticError, match="too close"):
        law.edges(64)


def test_the_precision_of_others_is_left_alone():
    import flint

    before = flint.ctx.prec
    Table.of(Quotient(Fraction(3)))
    assert flint.ctx.prec == before
