"""Theorems 2 to 5 of docs/noise.md: decided words give the law; undecided ones take further words and end.

All streams of three words are enumerated, with words of 8 bits and the same code as for 64.
"""

import itertools
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from laws_of_noise import Exhausted, Scripted, Seeded, pmf

from hierdp.privacy.tables.laws import Digit, DiscreteGaussian, Quotient
from hierdp.privacy.tables.sampler import LEAST, MOST, Sampler, Table, add, decide, double_geometric
from tests.marks import quick

pytest.importorskip("flint")

BITS, DEPTH = 8, 3
STREAMS = 2 ** (BITS * DEPTH)
ROUNDING = 1e-12
"""Tolerance for the true laws, which are computed in floats."""


class Die:
    """A law whose F is known exactly, as a multiple of 1/6."""

    def __str__(self):
        return "Die"

    def edge(self, k, bits):
        return min(max(0, (2**bits * (k + 1)) // 6), 2**bits - 1)

    def edges(self, bits):
        return -1, [self.edge(k, bits) for k in range(-1, 6)]


class Remembered:
    """A law that computes each edge only once, because thousands of streams need the same edges."""

    def __init__(self, law):
        self.edge, self.edges = cache(law.edge), law.edges


def decided(table):
    """The number of streams of three words that decide each value, and the number that decide none.

    A stream continues only if its first words do not decide.
    """
    table, mass, left = replace(table, law=Remembered(table.law)), Counter(), [()]
    for depth in range(1, DEPTH + 1):
        still = []
        for start in left:
            for word in range(2**BITS):
                script = Scripted(*start, word)
                try:
                    values, exact = table.draw(1, script)
                except Exhausted:
                    still.append((*start, word))
                    continue
                assert not script.words, "a word was not looked at"
                mass[exact.get(0, int(values[0]))] += 2 ** (BITS * (DEPTH - depth))
        left = still
    return mass, len(left)


def true_mass(law, k):
    k = np.asarray(k)
    if isinstance(law, Die):
        return np.where((k >= 0) & (k < 6), 1 / 6, 0.0)
    if isinstance(law, DiscreteGaussian):
        return pmf("gaussian", float(law.scale), k)
    if isinstance(law, Digit):
        masses = np.exp(-law.unit * np.arange(law.base) / float(law.scale))
        return np.where((k >= 0) & (k < law.base), masses[k % law.base] / masses.sum(), 0.0)
    inside = law.of * k[:, None] + np.arange(law.of)
    return pmf("geometric", float(law.scale), inside).sum(axis=1)


LAWS = [
    Die(),
    DiscreteGaussian(Fraction(0.8)),
    Quotient(Fraction(0.7)),
    Quotient(Fraction(2.2), 3),
    Digit(Fraction(2.2), 1, 3),
    Digit(Fraction(2.2), 3, 3),
    Quotient(Fraction(2.6)),
    DiscreteGaussian(Fraction(4.1)),
    Digit(Fraction(80.0), 1, 40),
]


@cache
def enumerated(law, bits=BITS):
    return decided(Table.of(law, bits))


@pytest.mark.parametrize("law", quick(LAWS, every=2), ids=str)
def test_all_streams_of_three_words_reproduce_the_law(law):
    """No value is decided wrongly; at most two streams per value, one per edge, are undecided."""
    mass, undecided = enumerated(law)
    assert sum(mass.values()) + undecided == STREAMS
    k = np.arange(min(mass) - 60, max(mass) + 61)
    seen, true = np.array([mass[int(one)] for one in k]) / STREAMS, true_mass(law, k)
    assert true.sum() == pytest.approx(1, abs=1e-9)
    assert (seen <= true + ROUNDING).all()
    assert (true - seen <= 2 / STREAMS + ROUNDING).all()
    _, edges = law.edges(BITS * DEPTH)
    assert undecided <= len(set(edges))


def test_a_fair_die_is_fair_to_the_last_stream():
    mass, undecided = enumerated(LAWS[0])
    assert set(mass) == set(range(6))
    assert all(0 <= Fraction(1, 6) - Fraction(n, STREAMS) <= Fraction(2, STREAMS) for n in mass.values())
    assert undecided <= 7


def test_digits_together_reproduce_double_geometric_noise():
    """Scale 2.2 in base 3, two digits: parts are independent, so the masses of their values multiply."""
    scale = Fraction(2.2)
    sampler = double_geometric(scale, base=3, largest=Fraction(1, 2), bits=BITS)
    assert len(sampler.digits) == 2
    parts = [decided(table) for table in (sampler.top, *sampler.digits)]
    seen, lost = Counter(), sum(undecided for _, undecided in parts) / STREAMS
    for values in itertools.product(*(mass.items() for mass, _ in parts)):
        noise = sampler._together([value for value, _ in values])
        seen[noise] += np.prod([count / STREAMS for _, count in values])
    k = np.arange(-60, 61)
    true = pmf("geometric", float(scale), k)
    found = np.array([seen[int(one)] for one in k])
    assert (found <= true + ROUNDING).all()
    assert (true - found <= lost + ROUNDING).all()
    assert lost < 1e-4
    assert sum(seen.values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(6.0)), Quotient(Fraction(40.0))], ids=str)
def test_a_table_decides_as_the_definition_does(law):
    """`decide` uses no table; both agree on random words, on edges and beside them."""
    table, source = Table.of(law), Seeded(5)
    words = np.zeros(100, dtype=np.uint64)
    source(words)
    some = table.edges[:: max(1, table.edges.size // 30)].tolist()
    beside = [edge + step for edge in some for step in (-1, 0, 1) if 0 <= edge + step < 2**64]
    for word in (*words.tolist(), *beside):
        more = [int(one) for one in np.random.default_rng(word).integers(0, 2**64, 4, dtype=np.uint64)]
        values, exact = table.draw(1, Scripted(word, *more))
        assert exact.get(0, int(values[0])) == decide(law, word, Scripted(*more))


# --- termination, and the tails ----------------------------------------------------------------------------


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(2.5)), Quotient(Fraction(2.5), 1)], ids=str)
@pytest.mark.parametrize("depth", [2, 3, 5])
def test_a_word_on_an_edge_goes_on_until_it_differs(law, depth):
    """The words are the digits of F(k) plus or minus one in the last place, which decides for k + 1 or k."""
    for k in (-3, 0, 4):
        digits = law.edge(k, 64 * depth)
        for more, value in ((1, k + 1), (-1, k)):
            number = digits + more
            words = [(number >> 64 * (depth - 1 - i)) % 2**64 for i in range(depth)]
            assert words[0] == law.edge(k, 64)
            script = Scripted(*words)
            assert Table.of(law).draw(1, script)[1] == {0: value}
            assert not script.words


@pytest.mark.parametrize("law", [DiscreteGaussian(Fraction(2.5)), Quotient(Fraction(2.5))], ids=str)
def test_no_tail_is_cut_off(law):
    """The first and the last word do not decide; repeated, they lead farther out, as the law requires."""
    table = Table.of(law)
    for low, side in ((0, -1), (2**64 - 1, 1)):
        reached = [0]
        for same in range(1, 8):
            script = Scripted(*[low] * same, 2**63)
            reached.append(side * table.draw(1, script)[1][0])
            assert not script.words
            bits = 64 * (same + 1)
            k, number = (
                side * reached[-1],
                sum(word << 64 * i for i, word in enumerate([2**63, *[low] * same])),
            )
            assert law.edge(k - 1, bits) < number < law.edge(k, bits)
        assert (np.diff(reached) > 0).all()
        with pytest.raises(Exhausted):
            table.draw(1, Scripted(*[low] * 9))


def test_second_words_are_needed_only_on_edges():
    """With words of 8 bits, one word of 256 for each distinct edge, and no others."""
    law = Quotient(Fraction(2.6))
    table = Table.of(law, BITS)
    alone = 0
    for word in range(256):
        try:
            table.draw(1, Scripted(word))
            alone += 1
        except Exhausted:
            assert word in table.edges
    assert alone == 256 - len(set(table.edges.tolist()))


# --- each word once, and the parts apart -------------------------------------------------------------------


def test_every_part_has_words_of_its_own():
    sampler = double_geometric(Fraction(1e12))
    source = Seeded(3)
    sampler.draw(1000, source)
    assert source.count == 1000 * (1 + len(sampler.digits)) == 4000
    source = Seeded(4)
    drawn = np.array([table.draw(20_000, source)[0] for table in (sampler.top, *sampler.digits)], dtype=float)
    apart = np.corrcoef(drawn)[np.triu_indices(4, 1)]
    assert (np.abs(apart) < 8 / np.sqrt(20_000)).all()


def test_words_are_looked_at_in_order_and_once():
    table = Table.of(DiscreteGaussian(Fraction(2.5)))
    words = [int(2**64 * share) for share in (0.1, 0.9, 0.5, 0.2)]
    alone = [int(table.draw(1, Scripted(word))[0][0]) for word in words]
    assert table.draw(4, Scripted(*words))[0].tolist() == alone
    # An undecided word takes the next word of the stream, which no other draw gets.
    edge = int(table.edges[5])
    script = Scripted(edge, words[1], words[2], words[3])
    values, exact = table.draw(2, script)
    assert list(exact) == [0]
    assert script.words == [words[3]]
    assert values.tolist() == [0, alone[1]]


# --- the ends of int64 -------------------------------------------------------------------------------------


class Fixed(Sampler):
    """Known noise, some of it beyond 64 bits."""

    def __init__(self, noise):
        self.__dict__["noise"] = noise

    def draw(self, size, source):  # noqa: ARG002
        inside = [one if LEAST <= one <= MOST else 0 for one in self.noise]
        self.__dict__["given"] = np.array(inside, dtype=np.int64)
        return self.given, {i: one for i, one in enumerate(self.noise) if one != inside[i]}


ENDS = [LEAST, LEAST + 1, -5, -1, 0, 1, 7, MOST - 1, MOST]


@pytest.mark.parametrize("noise", [*ENDS, LEAST - 1, MOST + 1, MOST + 4, -(2**70), 2**70, 2**64, -(2**64)])
def test_sums_beyond_int64_are_cut_to_its_ends(noise):
    noisy = add(Fixed([noise] * len(ENDS)), np.array(ENDS), None)
    assert noisy.dtype == np.int64
    assert noisy.tolist() == [min(max(one + noise, LEAST), MOST) for one in ENDS]


def test_counts_at_the_ends_stay_there():
    """As in OpenDP, half of all noise is lost at the largest count, and nothing wraps around."""
    sampler, counts = double_geometric(Fraction(100)), np.repeat([LEAST, MOST], 1000)
    low, high = add(sampler, counts, Seeded(1)).reshape(2, 1000)
    assert low.min() == LEAST
    assert high.max() == MOST
    assert 400 < (low == LEAST).sum() < 600
    assert (low < LEAST + 2000).all()
    assert (high > MOST - 2000).all()


def test_large_noise_is_put_together_in_whole_numbers_of_any_size():
    sampler = double_geometric(Fraction(1e12))
    base = sampler.base
    for top in (2**80, -(2**80), 0, -1):
        for digits in itertools.product((0, 1, base - 1), repeat=3):
            low = sum(digit * base**i for i, digit in enumerate(digits))
            want = top * base**3 + (low if top >= 0 else base**3 - 1 - low)
            assert sampler._together([top, *digits]) == want


# --- data left in memory -----------------------------------------------------------------------------


def test_words_and_noise_are_wiped():
    table = Table.of(DiscreteGaussian(Fraction(2.5)))
    script = Scripted(2**63 + 5, int(table.edges[5]), 77, 99)
    table.draw(2, script)
    assert [one.size for one in script.filled] == [2, 1]
    assert not any(one.any() for one in script.filled)
    with pytest.raises(Exhausted):
        table.draw(1, script := Scripted(int(table.edges[5])))
    assert not any(one.any() for one in script.filled)
    fixed = Fixed([3, 4, 5])
    assert add(fixed, np.zeros(3, np.int64), None).tolist() == [3, 4, 5]
    assert not fixed.given.any()


def test_tables_cannot_be_written_to():
    sampler = double_geometric(Fraction(1000))
    for table in (sampler.top, *sampler.digits):
        for array in (table.edges, table.guide):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_noise_is_drawn_before_a_count_is_looked_at():
    """The sampler gets the number of draws, but no counts; equal words give equal noise for any counts."""
    sampler = double_geometric(Fraction(50))
    one = add(sampler, np.zeros(5000, np.int64), Seeded(6))
    other = add(sampler, np.arange(5000) * 10**9, Seeded(6))
    assert (other - one == np.arange(5000) * 10**9).all()
    counts, source = np.zeros(5000, np.int64), Seeded(6)

    def late(into):
        source(into)
        counts[:] = source.count  # whoever had read the counts would add others

    assert (add(sampler, counts, late) - one == source.count).all()
