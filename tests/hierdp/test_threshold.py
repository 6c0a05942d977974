"""The threshold of the stability histogram: the smallest that is private, by sums over all outputs."""

import itertools
import math
from decimal import Decimal, getcontext, localcontext
from functools import cache

import numpy as np
import pytest

from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.noise import threshold
from hierdp.privacy.threshold import (
    EXACT,
    PAPERS,
    THRESHOLDS,
    Changes,
    miss_of,
    papers_threshold,
    smallest_threshold,
)

UNITS = [
    trips_of_a_person(trips, distinct, bounded)
    for trips in (1, 2, 3, 5)
    for distinct in (True, False)
    for bounded in (True, False)
]


def parts(total, largest):
    """All ways to write a number as a sum of positive numbers up to `largest`."""
    if not total:
        yield ()
    for first in range(min(total, largest), 0, -1):
        yield from ((first, *rest) for rest in parts(total - first, first))


@cache
def reached(k, scale):
    """P(X ≥ k) for discrete Laplace noise X, summed to 60 digits."""
    with localcontext() as context:
        context.prec = 70
        a = (-1 / Decimal(scale)).exp()
        term, found = (1 - a) / (1 + a) * a**k, Decimal(0)
        while term > Decimal(10) ** -65:
            found, term = found + term, term * a
        return found


def shown(cells, scale, least):
    """The probability that any of one person's counts reaches the threshold."""
    with localcontext() as context:
        context.prec = 70
        return 1 - math.prod(1 - reached(least - count, scale) for count in cells)


def worst(changes, scale, least):
    return max(shown(cells, scale, least) for cells in parts(changes.added, changes.largest))


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-8, 1e-20])
@pytest.mark.parametrize("scale", [0.05, 0.7, 2.0, 6.5])
@pytest.mark.parametrize("options", [(), (3,), (3, False, False), (5, False)], ids=str)
def test_the_smallest_threshold_that_hides_what_one_person_adds(options, scale, delta):
    """Summed by the noise's law, over all ways in which one person can fill cells alone."""
    changes = trips_of_a_person(*options).changes(1)
    least = smallest_threshold(changes, scale, delta)
    assert worst(changes, scale, least) <= Decimal(delta)
    assert least == changes.largest + 1 or worst(changes, scale, least - 1) > Decimal(delta)


@pytest.mark.parametrize("places", [1, 2, 3, 4])
@pytest.mark.parametrize("trips", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [0.3, 1.4, 6.0])
def test_the_miss_of_a_threshold_is_its_worst_chance(places, trips, scale):
    """It is never below that probability."""
    changes = trips_of_a_person(trips).changes(places)
    for least in (changes.largest + 1, changes.largest + 2, changes.largest + 30):
        exact, miss = worst(changes, scale, least), Decimal(miss_of(changes, scale, least))
        assert exact <= miss <= exact * (1 + Decimal("3e-16"))


def laws(count, scale, least, reach):
    """The probabilities of a cell's outputs: nothing, and each count from the threshold on."""
    if not count:
        return np.eye(1, reach + 1)[0]
    a = math.exp(-1 / scale)
    kept = (1 - a) / (1 + a) * a ** np.abs(np.arange(least, least + reach) - count)
    return np.array([1 - kept.sum(), *kept])


def hockey_stick(one, other, epsilon, scale, least, reach):
    """The maximum of P(one ∈ S) − e^ε P(other ∈ S) over all sets S of outputs: the smallest valid δ."""
    p, q = np.ones(1), np.ones(1)
    for here, there in zip(one, other, strict=True):
        if here != there:  # the other cells have equal laws
            p = np.multiply.outer(p, laws(here, scale, least, reach)).ravel()
            q = np.multiply.outer(q, laws(there, scale, least, reach)).ravel()
            p, q = p[p > 0], q[p > 0]
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


def neighbours(unit, cells, others):
    """All pairs of tables of a few cells that differ by one person."""
    sizes = [unit.rows] if unit.replaced else range(unit.rows + 1)
    people = [
        np.bincount(filled, minlength=cells)
        for size in sizes
        for filled in itertools.combinations_with_replacement(range(cells), size)
        if not unit.distinct or len(set(filled)) == size
    ]
    if unit.replaced:
        return [(others + a, others + b) for a, b in itertools.permutations(people, 2)]
    pairs = [(others + a, others) for a in people]
    return pairs + [pair[::-1] for pair in pairs]


@pytest.mark.parametrize("delta", [0.2, 0.01])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.rows <= 2], ids=str)
def test_the_delta_of_all_neighbours_by_its_definition(unit, epsilon, delta):
    """For whole tables, δ is at most the threshold's, and equal to it for the worst ones."""
    changes, cells = unit.changes(1), 2 * unit.rows
    scale = changes.in_all / epsilon
    least = threshold(changes, epsilon, delta)
    reach = int(7 * scale) + 6
    claim, found = miss_of(changes, scale, least), []
    for others in itertools.product((0, 1, least), repeat=cells):
        if not any(others) or cells == 2:
            pairs = neighbours(unit, cells, np.array(others))
            found += [hockey_stick(*pair, epsilon, scale, least, reach) for pair in pairs]
    cut = 2 * cells * math.exp(-(reach - 2 * unit.rows) / scale)  # the mass beyond the reach
    assert claim - cut <= max(found) <= claim + 1e-12


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_it_is_never_over_the_papers(unit, epsilon, delta):
    changes = unit.changes(1)
    assert threshold(changes, epsilon, delta) <= threshold(changes, epsilon, delta, PAPERS)


def test_how_much_lower():
    """The numbers of docs/privacy.md, for one trip replaced by another, ε = 1 and δ = 1e-8."""
    one = trips_of_a_person().changes(1)
    assert (threshold(one, 1.0, 1e-8, EXACT), threshold(one, 1.0, 1e-8, PAPERS)) == (37, 40)


def test_the_papers_threshold():
    for epsilon, delta in ((0.1, 1e-8), (1.0, 1e-8), (10.0, 1e-3)):
        papers = math.ceil(1 + 2 * math.log(2 / delta) / epsilon)
        assert threshold(Changes(2, 2, 1, 1), epsilon, delta, PAPERS) == papers
    assert {EXACT: smallest_threshold, PAPERS: papers_threshold} == THRESHOLDS


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.5, 0.999])
@pytest.mark.parametrize("scale", [1e-9, 1e12])
@pytest.mark.parametrize("rows", [1, 2**31 - 1])
def test_extremes(rows, scale, delta):
    changes = trips_of_a_person(rows, distinct=False).changes(1)
    least = smallest_threshold(changes, scale, delta)
    assert least > changes.largest
    assert 0 < miss_of(changes, scale, least) <= delta
    assert least == changes.largest + 1 or miss_of(changes, scale, least - 1) > delta
    assert miss_of(changes, scale, changes.largest) == 1.0


def test_the_digits_of_others_do_not_change_it():
    here = getcontext().prec
    getcontext().prec = 3
    try:
        assert miss_of.__wrapped__(Changes(2, 2, 1, 1), 2.0, 37) == miss_of_at(28)
    finally:
        getcontext().prec = here


def miss_of_at(digits):
    with localcontext() as context:
        context.prec = digits
        return miss_of.__wrapped__(Changes(2, 2, 1, 1), 2.0, 37)
