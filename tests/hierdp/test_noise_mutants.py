"""Deliberately broken samplers are caught, each by the test named for it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import test_noise_enclosures as enclosures
import test_noise_exactness as exactness
from laws_of_noise import Seeded

from hierdp.privacy.tables import laws, sampler
from hierdp.privacy.tables.laws import DiscreteGaussian, Quotient
from hierdp.privacy.tables.sampler import Table
from tests.marks import quick

pytest.importorskip("flint")
pytest.importorskip("mpmath")

LAW = DiscreteGaussian(Fraction(2.5))
WIDE = Quotient(Fraction(2.2), 3)


def edges_of(change):
    """Tables with changed edges."""
    made = Table.of

    def of(law, bits=64):
        table = made(law, bits)
        edges = table.edges.copy()
        change(edges)
        return replace(table, edges=edges)

    return of


def one_edge_more(edges):
    edges[edges.size // 2] += 1


def one_edge_less(edges):
    edges[edges.size // 2] -= 1


def short_table(self, bits):
    """Leave the outermost edges out of the table."""
    first, edges = WHOLE(self, bits)
    return first + 3, [0, *edges[4:-4], edges[-1]]


def cut_tail(law, word, source, near=0, bits=64):
    """Give the tails to the last values of the table."""
    if word in (0, 2**bits - 1):
        return near + 1 if word == 0 else near
    return ORIGINAL(law, word, source, near, bits)


def reused_word(law, word, source, near=0, bits=64):
    """Use a word on an edge again as its next word."""

    def again(into):
        source(into)
        into[:] = word

    return ORIGINAL(law, word, again, near, bits)


def edge_taken_at_once(law, word, source, near=0, bits=64):  # noqa: ARG001
    """Let a word on an edge decide for the value below, without further words."""
    return near


ORIGINAL, WHOLE = sampler.decide, Quotient.edges


def one_source_for_all(self, size, source):
    """Draw all parts of the noise from the same words."""
    parts = [table.draw(size, Seeded(size)) for table in (self.top, *self.digits)]
    source(np.zeros(size, dtype=np.uint64))
    return self._together([values for values, _ in parts]), {}


def fair_sign(self, power, bits):
    """Draw X < 0 with probability 1/2 instead of q/(1 + q), as if −0 were not rejected."""
    return (1 << bits) * laws._arb(-(power - 1) / self.scale).exp() / 2


def shifted_sign(self, parts):
    """Compute a negative number as ⌊X/N⌋ − L instead of + N − 1 − L."""
    top, *digits = parts
    low, unit = 0, 1
    for digit in digits:
        low, unit = low + unit * digit, unit * self.base
    return unit * top + low


def wrapped(sampler_, counts, source):
    noise, _ = sampler_.draw(counts.size, source)
    return counts + noise


def enclosure():
    enclosures.test_all_edges_enclose_the_distribution_function(WIDE, 64)


def beside():
    enclosures.test_a_word_beside_an_edge_decides_and_a_word_on_it_takes_one_more(LAW)


def enumeration():
    exactness.enumerated.cache_clear()
    exactness.test_all_streams_of_three_words_reproduce_the_law(exactness.LAWS[1])


def tails():
    exactness.test_no_tail_is_cut_off(LAW)


def parts():
    exactness.test_every_part_has_words_of_its_own()


def together():
    exactness.test_digits_together_reproduce_double_geometric_noise()


def ends():
    exactness.test_counts_at_the_ends_stay_there()


MUTANTS = {
    "an edge too high": (Table, "of", edges_of(one_edge_more), [beside, enumeration]),
    "an edge too low": (Table, "of", edges_of(one_edge_less), [beside, enumeration]),
    "every edge too low": (laws, "_mirrored", lambda tail, bits: (1 << bits) - 2 - tail, [enclosure]),
    "a tail cut off": (sampler, "decide", cut_tail, [tails]),
    "an edge taken at once": (sampler, "decide", edge_taken_at_once, [beside, enumeration]),
    "a word used twice": (sampler, "decide", reused_word, [beside]),
    "one word for all parts": (sampler.Sampler, "draw", one_source_for_all, [parts]),
    "a fair sign": (Quotient, "_tail", fair_sign, [enclosure, together]),
    "digits of the wrong side": (sampler.Sampler, "_together", shifted_sign, [together]),
    "a table that ends early": (Quotient, "edges", short_table, [enclosure]),
    "a sum that wraps around": (exactness, "add", wrapped, [ends]),
}


@pytest.mark.parametrize("mutant", quick(MUTANTS, every=3))
def test_a_broken_sampler_is_caught(mutant, monkeypatch):
    where, name, broken, tests = MUTANTS[mutant]
    sampler.double_geometric.cache_clear()
    monkeypatch.setattr(where, name, broken)
    try:
        for test in tests:
            with pytest.raises((AssertionError, ArithmeticError, exactness.Exhausted)):
                test()
    finally:
        sampler.double_geometric.cache_clear()
        exactness.enumerated.cache_clear()
