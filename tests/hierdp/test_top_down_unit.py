"""Changes by one person: every sensitivity against all neighbours of a tiny table, at every level."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from doubles import Double, hierarchy, unrelated
from hypothesis import given
from hypothesis import strategies as st

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.mechanisms.top_down import METHODS, refinements, top_down
from hierdp.mechanisms.top_down.levels import Children, depths_of, finest_places, nodes_above, root
from hierdp.mechanisms.unit import ONE_TRIP, trips_of_a_person
from hierdp.privacy.noise import threshold
from hierdp.privacy.rounding import root_of
from hierdp.tables import Flows, flows
from tests.marks import quick

AXES = (hierarchy([[0, 0], [0, 0, 1]], "o"), hierarchy([[0, 0]], "d"))
CELLS = list(itertools.product(range(3), range(2)))
UNITS = [trips_of_a_person(*given) for given in itertools.product((1, 2, 3), (True, False), (True, False))]


def flows_of(trips):
    cells = Counter(trips)
    places = np.array(sorted(cells), dtype=np.int64).reshape(len(cells), 2)
    return Flows(AXES, ("o", "d"), places, np.array([cells[cell] for cell in sorted(cells)], dtype=np.int64))


def all_counts(trips):
    """The true counts of all possible nodes of each level, the root's first."""
    data = flows_of(trips)
    order = refinements(data, None)
    above, among, found = root(AXES, data.total), np.zeros(1, np.int64), [np.array([data.total])]
    for true, axis in zip(nodes_above(AXES, order, data.cells, data.counts), order, strict=True):
        children = Children(AXES[axis].tree, above, axis)
        among = true.among(children, among)
        counts = np.zeros(children.size, np.int64)
        counts[among] = true.level.counts
        above = children.level(np.arange(children.size), counts)
        found.append(counts)
    return found


def people(unit):
    """All possible trips of one person."""
    sizes = [unit.rows] if unit.replaced else range(unit.rows + 1)
    draw = itertools.combinations if unit.distinct else itertools.combinations_with_replacement
    return [trips for size in sizes for trips in draw(CELLS, size)]


def worst(unit):
    """The largest squared change of each level, over all neighbours."""
    counts = [all_counts(trips) for trips in people(unit)]
    pairs = itertools.combinations(counts, 2) if unit.replaced else ((one, all_counts(())) for one in counts)
    squares = [[int(((a - b) ** 2).sum()) for a, b in zip(*pair, strict=True)] for pair in pairs]
    return np.max(squares, axis=0).tolist()


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_sensitivity_of_every_neighbour_at_every_level(unit):
    depths, nobody = depths_of(AXES, [1, 0, 0]), flows_of([])
    assert [finest_places(nobody, d) for d in depths] == [6, 3, 2, 1]
    stated = [unit.squared_sensitivity(finest_places(nobody, d)) for d in depths[1:]]
    assert worst(unit) == [0 if unit.replaced else unit.rows**2, *stated]
    assert stated[-1] == unit.squared_sensitivity()


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_changes_of_every_neighbour(unit):
    counts = [all_counts(trips)[-1] for trips in people(unit)]
    nobody = all_counts(())[-1]
    pairs = itertools.combinations(counts, 2) if unit.replaced else ((one, nobody) for one in counts)
    away = [np.abs(a - b) for a, b in pairs]
    found = [max(int(f(d)) for d in away) for f in (np.count_nonzero, np.sum, np.max)]
    assert (*found, max(int(one.sum()) for one in counts)) == unit.changes(1)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_the_noise_is_drawn_for_it(unit, method):
    class Stable(Double):
        def draw(self, query, true):
            if query.threshold is None:
                return super().draw(query, true)
            changes, least = query.threshold
            assert (changes, query.loss) == (unit.changes(1), 1.0)
            assert least == threshold(changes, 1.0, 1e-6)
            return replace(super().draw(query, true), positions=np.arange(true.size))

        def spend(self, query):
            return replace(super().spend(query), delta=query.threshold and 1e-6)

    noise = Stable()
    release = top_down(flows_of(CELLS[:3]), 1.0, 1e-6, noise, method, unit)
    finest = root_of(unit.squared_sensitivity())
    expected = [root_of(unit.squared_sensitivity(n)) for n in (3, 2)] + [finest]
    if not unit.replaced:
        expected.insert(0, unit.rows)
    if method == "VanillaGauss":
        expected = [finest]
    if method == "SH":
        expected = [unit.changes(1).in_all]
    assert [spend.sensitivity for spend in noise.spends] == expected
    assert release.ledger.neighbours == unit.neighbours
    assert ("the total" in {spend.query for spend in noise.spends}) == (len(expected) == 4)
    assert ("total" in release.settings) == unit.replaced


def test_the_papers_sensitivities_hold_for_the_finest_counts_only():
    """2m for m distinct trips (§4.1) is too small if a node contains several finest cells."""
    for m in (1, 2, 5):
        squared = [
            trips_of_a_person(m, distinct, bounded).squared_sensitivity()
            for distinct in (1, 0)
            for bounded in (1, 0)
        ]
        assert squared == [2 * m, m, 2 * m**2, m**2]
    assert worst(trips_of_a_person(2))[1] == 8 > 2 * 2


# --- through the reader, with a region for unknown places ------------------------------------------------

KNOWN = Hierarchy.from_columns({"state": ["S", "S"], "town": ["a", "b"]}, ["state", "town"])
TRIPS = list(itertools.product(["a", "x", "y"], ["p", None]))
"""Trips from a known place or one of two unknown ones, to a known or a missing place."""

WITH_UNKNOWN = [
    *(trips_of_a_person(), trips_of_a_person(2), trips_of_a_person(2, bounded=False)),
    trips_of_a_person(2, distinct=False),
]


@cache
def read_trips(trips):
    """A table with these trips and one of another person, read as for a release."""
    table = pd.DataFrame([("b", "p"), *trips], columns=["from", "to"], dtype=object)
    axes = {"from": (KNOWN, "from"), "to": (Hierarchy.flat("to", ["p"]), "to")}
    return flows(table, axes=axes, unknown="elsewhere")


def read_people(unit):
    """The tables for all possible trips of one person; first without the person, if that is a neighbour."""
    sizes = [unit.rows] if unit.replaced else range(unit.rows + 1)
    draw = itertools.combinations if unit.distinct else itertools.combinations_with_replacement
    return [read_trips(trips) for size in sizes for trips in draw(TRIPS, size)]


def neighbours_among(runs, unit):
    return itertools.combinations(runs, 2) if unit.replaced else ((one, runs[0]) for one in runs)


@pytest.mark.parametrize("unit", quick(WITH_UNKNOWN, every=4), ids=str)
@pytest.mark.parametrize("method", ["InfTDA", "VanillaGauss"])
def test_sensitivity_through_the_reader_with_an_unknown_region(method, unit):
    """Different trips to unknown places share a cell; checks all neighbours in all measurements."""
    runs = []
    for data in read_people(unit):
        runs.append(unrelated(3, 4))
        top_down(data, 1.0, 1e-6, runs[-1], method, unit)
    worst = 0
    for one, other in neighbours_among(runs, unit):
        for a, b, spend in zip(one.true, other.true, one.spends, strict=True):
            squared = int(((a - b) ** 2).sum())
            assert squared <= spend.sensitivity**2 * (1 + 1e-12)
            worst = max(worst, squared)
    assert worst == unit.rows**2 * (2 if unit.replaced else 1)


@pytest.mark.parametrize("unit", quick(WITH_UNKNOWN, every=2), ids=str)
def test_changes_through_the_reader_with_an_unknown_region(unit):
    """The changes given to the stability histogram: number of counts, sizes, and what one table adds."""

    class Stable(Double):
        def draw(self, query, true):
            claimed.add(query.threshold.changes)
            return replace(super().draw(query, true), positions=np.arange(true.size))

        def spend(self, query):
            return replace(super().spend(query), delta=1e-6)

    claimed, tables = set(), []
    for data in read_people(unit):
        top_down(data, 1.0, 1e-6, Stable(), "SH", unit)
        dense = np.zeros([axis.names[-1].size for axis in data.axes], np.int64)
        dense[tuple(data.cells.T)] = data.counts
        tables.append(dense)
    away = [np.abs(a - b) for a, b in neighbours_among(tables, unit)]
    found = [max(int(f(d)) for d in away) for f in (np.count_nonzero, np.sum, np.max)]
    only = max(int(one[other == 0].sum()) for one, other in neighbours_among(tables, unit))
    assert claimed == {(*found, only)}


def test_without_an_unknown_region_different_trips_need_less_noise():
    unit = trips_of_a_person(2)
    known, unknown = (flows(pd.DataFrame({"c": ["a"]}), axes={"c": ["c"]}, unknown=u) for u in (None, "z"))
    spends = [
        top_down(data, 1.0, 1e-6, Double(), "InfTDA", unit).ledger.spends[0] for data in (known, unknown)
    ]
    assert [round(spend.sensitivity**2) for spend in spends] == [4, 8]
    made = top_down(unknown, 1.0, 1e-6, Double(), "InfTDA", unit)
    assert made.settings["unknown"] == "z"


def test_in_words():
    words = [unit.neighbours for unit in UNITS]
    assert len(set(words)) == 10  # a single trip is always distinct
    assert ONE_TRIP.neighbours == "one trip is replaced by another; regions and the total are public"
    assert all(("total" in unit.neighbours) == unit.replaced for unit in UNITS)
    assert all((str(unit.rows) in unit.neighbours) == (unit.rows > 1) for unit in UNITS)


@given(st.integers(0, 2**62))
def test_roots_are_never_too_small(n):
    root = root_of(n)
    assert Fraction(root) ** 2 >= n
    assert root <= math.sqrt(n) * (1 + 2**-51)


@pytest.mark.parametrize("trips", [0, -1, 1.5, True, "2", 2**31])
def test_bad_trips(trips):
    with pytest.raises(InputError, match="it must be a whole number, 1 or more"):
        trips_of_a_person(trips)


def test_sensitivity_is_that_of_the_worst_way_to_share_trips_among_counts():
    for trips in range(1, 9):
        for places in range(1, 9):
            shares = {(): trips}  # remaining trips, by the shares so far in decreasing order
            worst = 0
            while shares:
                further = {}
                for so_far, left in shares.items():
                    worst = max(worst, sum(k * k for k in so_far)) if left == 0 else worst
                    for k in range(1, min(left, places, *so_far[-1:]) + 1):
                        further[(*so_far, k)] = left - k
                shares = further
            assert trips_of_a_person(trips, bounded=False).squared_sensitivity(places) == worst
            assert trips_of_a_person(trips).squared_sensitivity(places) == 2 * worst
