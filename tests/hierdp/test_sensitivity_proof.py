"""Every sensitivity is the exact maximum over all neighbours of all tables of a small universe.

The closed forms in the code are compared with an enumeration: every table of up to 4 rows over 3 regions with
3 groups or categories each, and all its neighbours (`universe.py`). Where enumeration ends, with more cells,
trips and levels, the maximum is that of an integer program, by two solvers (`largest_change.py`).
"""

from functools import partial

import numpy as np
import pytest
import universe
from largest_change import largest_change

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.clustering import clustering
from hierdp.mechanisms.count_of_counts.estimates import METHODS as COUNT_OF_COUNTS
from hierdp.mechanisms.group_size.post_processing import METHODS as GROUP_SIZE
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.range_query.matrix import STRATEGIES
from hierdp.mechanisms.tabulation.budget import person_unit
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.unit import PrivacyUnit, trips_of_a_person
from hierdp.privacy.budget import Allowed
from hierdp.tables import Flows
from hierdp.tables.binning import Histogram
from hierdp.tables.tabulated import CrossTable
from solvers import solve
from tests.marks import quick

ROUNDED = 1e-12
"""A Gaussian sensitivity is a square root, rounded up to a float."""


def same(largest, norm, claimed, query):
    """The largest change is the sensitivity; of the norm 2, both are compared as squares."""
    assert largest <= claimed**norm <= largest * (1 + ROUNDED), query


# --- enumeration -----------------------------------------------------------------------------------------


def prove(measure, neighbours, most):
    found = universe.exact_maxima(most, neighbours, measure)
    assert found
    for (_, query), (norm, largest, claimed) in found.items():
        same(largest, norm, claimed, query)


def by_boundaries(counts, noise):
    clustering(Histogram.of(np.array(counts)), 1.0, noise, "SF", clusters=2, largest=4)


def test_scores_of_boundaries_change_by_their_sensitivity_in_many_bins():
    """SF: 2F − 1 = 7 for counts of up to F = 4. With few bins, the mean of a cluster takes part of it."""
    largest = {}
    for bins in (3, 16):
        for at in range(bins):
            here, there = (np.where(np.arange(bins) == at, n, 0) for n in (3, 4))
            queried = [universe.measured(table, by_boundaries) for table in (here, there)]
            (_, _, away), *_ = universe.changes(*queried)
            assert queried[0][0][0].sensitivity == 7
            largest[bins] = max(largest.get(bins, 0), away)
    assert largest == {3: 4, 16: 7}


SLOW = "AHP-empirical", "AHP", "naive", "eigen-select", "p-identity", "from 1"
"""Their post-processing between two measurements, or their strategy, takes long."""


FEW = [case for case in universe.JOINED if not case.endswith("PHP")]
"""Scores of PHP change by their sensitivity only in tables of four rows."""


@pytest.mark.parametrize("case", quick(FEW, slow=lambda case: case.endswith(SLOW)))
def test_a_person_joins_any_table_of_few_rows(case):
    measure, rows = universe.JOINED[case]
    prove(measure, partial(universe.joined, changes=rows), 1 + rows)


@pytest.mark.parametrize("case", universe.REPLACED)
def test_rows_are_replaced_in_any_table_of_two(case):
    measure, rows = universe.REPLACED[case]
    prove(measure, partial(universe.replaced, changes=rows), 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", universe.JOINED)
def test_a_person_joins_any_table_of_up_to_four(case):
    measure, rows = universe.JOINED[case]
    prove(measure, partial(universe.joined, changes=rows), 4 if not case.endswith(SLOW) else 3)


@pytest.mark.slow
@pytest.mark.parametrize("case", universe.REPLACED)
def test_rows_are_replaced_in_any_table_of_up_to_four(case):
    measure, rows = universe.REPLACED[case]
    prove(measure, partial(universe.replaced, changes=rows), 4)


def read_as_measured(name, table):
    """Check that a reader's release measures what the counts of the table give."""
    measure = (universe.JOINED | universe.REPLACED)[name][0]
    there = universe.measured(table, partial(universe.read, **universe.READ[name]))
    here = universe.measured(table, measure)
    assert not any(away for *_, away in universe.changes(here, there))


@pytest.mark.parametrize("name", quick(universe.READ, every=3))
def test_a_reader_gives_the_counts_of_a_table(name):
    read_as_measured(name, (("A", 0), ("A", 0), ("B", 2)))


@pytest.mark.slow
@pytest.mark.parametrize("name", universe.READ)
def test_readers_give_the_counts_of_every_table_of_up_to_two_rows(name):
    for table in universe.tables(2):
        read_as_measured(name, table)


def test_a_sensitivity_that_is_too_small_is_noticed(monkeypatch):
    """Also one that is too large: noise that nobody needs."""
    for factor in (1, 4):
        monkeypatch.setattr(PrivacyUnit, "squared_sensitivity", lambda _, factor=factor: factor)
        with pytest.raises(AssertionError):
            prove(universe.by_tabulation, universe.replaced, 2)
    for factor in (1, 2):
        monkeypatch.setattr(Allowed, "sensitivity", lambda *_, factor=factor: factor)
        for case in ("zCDP, group-size M_H^dp", "zCDP, count-of-counts naive"):
            with pytest.raises(AssertionError):
                prove(universe.JOINED[case][0], universe.joined, 1)


# --- the maximum as an integer program -------------------------------------------------------------------


def largest(queries, rows, replaced, norm, distinct=False):
    """The optimum by two solvers, which agree."""
    program = largest_change(queries, rows, replaced, norm, distinct)
    found = [solve(program, backend) for backend in ("cp-sat", "highs")]
    assert [one.status for one in found] == ["optimal"] * 2
    values = {-round(float(one.objective)) for one in found}
    assert len(values) == 1
    return values.pop()


def test_the_program_gives_what_enumeration_gives():
    """Also for queries that no mechanism has."""
    rng = np.random.default_rng(0)
    for rows, replaced, norm in ((2, False, 1), (1, True, 2)):
        queries = rng.integers(-2, 3, (3, 3))
        people = _people(3, rows)
        changes = [a - b for a in people for b in people if a.sum() == b.sum()] if replaced else people
        best = max(int((np.abs(queries @ change) ** norm).sum()) for change in changes)
        assert largest(queries, rows, replaced, norm) == best


def _people(kinds, rows):
    """The counts of each person with up to so many rows."""
    every = [(), *universe.joined((), rows, range(kinds))]
    return [np.bincount(np.array(table, dtype=int), minlength=kinds) for table in every]


def queries_of(measure, kinds):
    """Linear queries as matrices, from tables of a single row; by query, with norm and sensitivity."""
    units = np.eye(kinds, dtype=np.int64)
    nothing = universe.measured(0 * units[0], measure)
    columns = [universe.measured(unit, measure, len(nothing)) for unit in units]
    for at, (spend, norm, none) in enumerate(nothing):
        answers = np.stack([column[at][2] - none for column in columns], axis=1)
        yield spend.query, norm, spend.sensitivity, answers


def by_program(measure, kinds, rows, replaced, distinct=False):
    for query, norm, claimed, queries in queries_of(measure, kinds):
        same(largest(queries, rows, replaced, norm, distinct), norm, claimed, query)


def ranges(counts, noise, shape, **options):
    range_query(Histogram.of(counts.reshape(shape)), 1.0, noise, **options)


@pytest.mark.parametrize(
    ("shape", "options"),
    quick(
        [
            ((37,), {"method": "Wavelet"}),
            ((64,), {"method": "H_b", "branching": 4}),
            ((6, 7), {"method": "Wavelet"}),
            ((8, 8), {"method": "Quadtree"}),
        ]
    ),
    ids=str,
)
def test_range_queries_over_many_bins(shape, options):
    by_program(partial(ranges, shape=shape, **options), int(np.prod(shape)), 1, False)


@pytest.mark.parametrize("strategy", quick(STRATEGIES[::-1], first=1))
def test_a_strategy_over_many_bins(strategy):
    """By enumeration: a row is in one bin. (HiGHS does not solve the program with entries up to 2^20.)"""
    measure = partial(ranges, shape=(16,), method="matrix", strategy=strategy)
    for query, norm, claimed, queries in queries_of(measure, 16):
        assert norm == 1
        same(int(np.abs(queries).sum(axis=0).max()), norm, claimed, query)


STATES = Hierarchy.from_columns({"state": list("AABB"), "town": list("abcd")}, ["state", "town"])


def trips(counts, noise, unit):
    held = counts.reshape(4, 4)
    data = Flows((STATES, STATES), ("o", "d"), np.argwhere(held), held[held > 0])
    top_down(data, 1.0, 1e-6, noise, "VanillaGauss", unit)


@pytest.mark.parametrize(
    "options",
    quick([[], [3], [3, False, False], [3, True, False], [2, False, True]]),
    ids=str,
)
def test_trips_of_a_person_between_many_towns(options):
    unit = trips_of_a_person(*options)
    for query, norm, claimed, queries in queries_of(partial(trips, unit=unit), 16):
        found = largest(queries, unit.rows, unit.replaced, norm, unit.distinct)
        same(found, norm, claimed, query)


def persons(counts, noise, unit):
    attributes = {"sex": ["f", "m"], "age": ["0", "1", "2"], "group": ["g", "h"]}
    plan = plan_of({"attributes": attributes, "queries": ["total", "sex*age", "group", "detailed"]})
    held = counts.reshape(3, 12)
    places = universe.PLACES
    data = CrossTable(places, {name: tuple(values) for name, values in attributes.items()}, held)
    tabulate(data, plan, 1.0, 1e-6, noise, "GLS", unit)


@pytest.mark.parametrize(
    "unit", quick([person_unit(False, 3), person_unit(), person_unit(bounded=False)]), ids=str
)
def test_queries_of_several_attributes(unit):
    """A total that is public is measured with the noise of other queries, although it cannot change."""
    for query, norm, claimed, queries in queries_of(partial(persons, unit=unit), 36):
        found = largest(queries, unit.rows, unit.replaced, norm)
        if found or not unit.replaced:
            same(found, norm, claimed, query)


@pytest.mark.parametrize("method", [*GROUP_SIZE, *COUNT_OF_COUNTS])
def test_an_entity_joins_a_group_of_any_of_many_sizes(method):
    """The change of the groups by size is a step from one size to the next; Hg by its cumulative form.

    The L1 distance of two sorted lists is that of their cumulative counts (Vallender 1974).
    """
    steps = np.eye(60, dtype=np.int64)[1:] - np.eye(60, dtype=np.int64)[:-1]
    about = GROUP_SIZE.get(method) or COUNT_OF_COUNTS[method]
    cumulative = getattr(about, "cumulative", None) or getattr(about, "form", "H") in ("Hc", "Hg")
    queries = (np.cumsum(steps, axis=1) if cumulative else steps).T
    same(largest(queries, 1, False, 1), 1, about.sensitivity, method)
