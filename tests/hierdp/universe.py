"""All tables of a small universe, their neighbours, and what a release measures of each.

A table is a sorted tuple of kinds of rows. Answers to measurements do not depend on the table, as if noise
made up for every difference, so that later measurements of two tables are comparable.
"""

from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd

from hierdp import release
from hierdp.counts.axes import Names, Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.measurements.measuring import MeasureTruth
from hierdp.mechanisms.clustering import clustering
from hierdp.mechanisms.count_of_counts import count_of_counts
from hierdp.mechanisms.count_of_counts.estimates import METHODS as COUNT_OF_COUNTS
from hierdp.mechanisms.count_of_counts.private import private_size
from hierdp.mechanisms.group_size.mechanism import measure
from hierdp.mechanisms.group_size.post_processing import METHODS as GROUP_SIZE
from hierdp.mechanisms.range_query import range_query
from hierdp.mechanisms.range_query.matrix import STRATEGIES
from hierdp.mechanisms.tabulation.budget import ONE_PERSON, person_unit
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.plan import plan_of
from hierdp.mechanisms.top_down import top_down
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.budget import CHOICE, GAUSSIAN, GEOMETRIC, Allowed, Spend
from hierdp.privacy.noise import Drawn
from hierdp.tables import Flows, GroupSizes
from hierdp.tables.binning import Histogram
from hierdp.tables.tabulated import CrossTable

ONE_TRIP = trips_of_a_person()

REGIONS, GROUPS = "ABC", (0, 1, 2)
KINDS = list(product(REGIONS, GROUPS))
"""A region, and a group or category of it."""

PLACES = Hierarchy.flat("place", list(REGIONS))
HOMES = pd.DataFrame(KINDS, columns=["place", "kind"])

LARGEST = 3
"""The largest size of a group that is released by itself; in a table of four rows one may be larger."""


def tables(most, kinds=KINDS):
    """All tables with at least one row and up to `most`; a table without rows is refused."""
    return [table for n in range(1, most + 1) for table in combinations_with_replacement(kinds, n)]


def joined(table, changes=1, kinds=KINDS):
    """The tables with up to so many more rows."""
    for n in range(1, changes + 1):
        for more in combinations_with_replacement(kinds, n):
            yield tuple(sorted((*table, *more)))


def replaced(table, changes=1, kinds=KINDS):
    """The tables in which up to so many rows are replaced by others; each pair of tables in one order."""
    for places in {table[:i] + table[i + 1 :] for i in range(len(table))}:
        for kind in kinds:
            other = tuple(sorted((*places, kind)))
            if changes > 1:
                yield from replaced(other, changes - 1, kinds)
            if other > table:
                yield other


class Fixed:
    """Answers from a seed, whatever the counts are; keeps the counts. Raises `Enough` after the last one.

    `queried` holds a triple for each measurement: its record, its norm (1, or 2) and the true counts; for a
    choice the scores, one row for each array.
    """

    def __init__(self, last=None):
        self.queried, self._last, self._rng = [], last, np.random.default_rng(3)

    def _ask(self, *measurement):
        self.queried.append(measurement)
        if len(self.queried) == self._last:
            raise Enough

    def draw(self, query, true):
        """See `hierdp.privacy.noise.Noise.draw`."""
        sensitivity, loss = query.sensitivity, query.loss
        if query.noise == CHOICE:
            spend = Spend(query.name, "choice", sensitivity, 2 * sensitivity / loss, loss, None, False)
            sizes = [part.size for part in true]
            rows = [np.pad(part, (0, max(sizes) - part.size)) for part in true]
            self._ask(spend, 1, np.array(rows, dtype=np.int64))
            return Drawn(np.array([self._rng.integers(size) for size in sizes]), spend)
        if query.noise == GAUSSIAN:
            spend = Spend(
                query.name, "double", sensitivity, sensitivity / (2 * loss) ** 0.5, None, loss, False
            )
        else:
            spend = Spend(query.name, "double", sensitivity, sensitivity / loss, loss, None, False)
        self._ask(spend, 2 if query.noise == GAUSSIAN else 1, true.ravel().copy())
        return Drawn(self._rng.integers(1, 5, true.shape), spend)


def changes(one, other):
    """How far each measurement of two neighbours differs: its record, its norm, and the change.

    The change is the sum of absolute differences or, in the norm 2, of squared ones: a whole number. Of
    scores it is the largest one, added up over the arrays, although one person may change only one of them.
    """
    assert [spend for spend, *_ in one] == [spend for spend, *_ in other]
    for (spend, norm, a), (*_, b) in zip(one, other, strict=True):
        assert a.shape == b.shape, spend.query
        apart = np.abs(a - b) ** norm
        yield spend, norm, int(apart.sum() if apart.ndim == 1 else apart.max(axis=1).sum())


def frame(table):
    """The table as a data frame; every row is a person's own."""
    rows = pd.DataFrame(table, columns=["place", "kind"])
    to = [REGIONS[kind] for kind in rows.kind]
    return rows.assign(
        to=to,
        sort=rows.kind.astype(str),
        region=[REGIONS.index(place) for place in rows.place],
        one=1,
        who=np.arange(len(rows)),
    )


class Enough(Exception):
    """All that is measured is known; post-processing may be left out."""


def measured(table, measure, last=None):
    """What is measured of a table; see `Fixed`.

    A release ends after so many measurements, if their number is given, to save its post-processing.
    """
    noise = Fixed(last)
    with suppress(Enough):
        measure(table, noise)
    return noise.queried


def read(table, noise, mechanism, **options):
    """A release of the table as rows."""
    release(frame(table), mechanism, epsilon=1.0, noise=noise, **options)


def exact_maxima(most, neighbours, measure):
    """The largest change of each measurement over all neighbours of all tables, with its sensitivity.

    Parameters
    ----------
    most : int
        The most rows of a table, also of its neighbours.
    neighbours : callable
        The neighbours of a table.
    measure : callable
        Makes a release of a table with a source of noise.

    Returns
    -------
    dict
        By position and query: the norm (1, or 2), its largest value (of the norm 2, its square), and the
        sensitivity in the code.
    """
    every = tables(most)
    last = len(measured(every[0], measure))
    queried = {table: measured(table, measure, last) for table in every}
    found = {}
    for table, here in queried.items():
        for other in neighbours(table):
            if other not in queried:
                continue
            for at, (spend, norm, away) in enumerate(changes(here, queried[other])):
                largest = max(away, found.get((at, spend.query), (0, 0, 0))[1])
                found[at, spend.query] = norm, largest, spend.sensitivity
    return found


def group_leaves(table, most=4):
    """How many of the nine groups have each size, by region; larger groups count in the last size."""
    sizes = Counter(table)
    leaves = np.zeros((len(REGIONS), most + 1), np.int64)
    for place, kind in KINDS:
        leaves[REGIONS.index(place), min(sizes[place, kind], most)] += 1
    return leaves


def cells(table):
    """The number of rows by region and group."""
    counts = np.zeros((3, 3), np.int64)
    for place, kind in table:
        counts[REGIONS.index(place), kind] += 1
    return counts


def flows(table):
    """The rows as trips from a region to another."""
    counts = cells(table)
    return Flows((PLACES, PLACES), ("place", "to"), np.argwhere(counts), counts[counts > 0])


def by_group_size(table, noise, method="M_c^dp", law=GEOMETRIC):
    data = GroupSizes(PLACES, np.asarray(PLACES.tree.sum_up(group_leaves(table, LARGEST))))
    measure(data, 1.0, noise, GROUP_SIZE[method], law)


def by_count_of_counts(table, noise, **options):
    runs = Runs.from_dense(group_leaves(table)).summed_up(PLACES.tree)
    count_of_counts(SizeRuns(PLACES, runs), 1.0, noise, max_size=LARGEST, **options)


def by_secret_groups(table, noise, **options):
    leaves = group_leaves(table)
    leaves[:, 0] = 0  # a group without rows does not exist
    runs = Runs.from_dense(leaves).summed_up(PLACES.tree)
    count_of_counts(SizeRuns(PLACES, runs), 1.0, noise, max_size=LARGEST, group_budget=0.3, **options)


def by_line(table, noise, mechanism=range_query, **options):
    axis = Names.of("place", PLACES)
    mechanism(Histogram(cells(table).sum(axis=1), (axis,)), 1.0, noise, **options)


def by_plane(table, noise, mechanism=range_query, **options):
    mechanism(Histogram.of(cells(table)), 1.0, noise, **options)


def by_flow(table, noise, unit=ONE_TRIP, method="InfTDA"):
    top_down(flows(table), 1.0, 1e-6, noise, method, unit)


def by_tabulation(table, noise, unit=ONE_PERSON, queries=("total", "detailed")):
    plan = plan_of({"attributes": {"sort": ["0", "1", "2"]}, "queries": list(queries)})
    data = CrossTable(PLACES, {"sort": ("0", "1", "2")}, cells(table))
    tabulate(data, plan, 1.0, 1e-6, noise, "GLS", unit)


JOINS, TWO = trips_of_a_person(bounded=False), trips_of_a_person(2, False, True)

JOINED = {
    **{f"group-size {m}": (partial(by_group_size, method=m), 1) for m in GROUP_SIZE},
    **{
        f"zCDP, group-size {m}": (partial(by_group_size, method=m, law=GAUSSIAN), 1)
        for m in ("M_c^dp", "M_H^dp")
    },
    **{
        f"{'zCDP, ' if more else ''}count-of-counts {m}": (partial(by_count_of_counts, method=m, **more), 1)
        for m in (*COUNT_OF_COUNTS, "bottom-up", "bottom-up Hg")
        for more in ({}, {"delta": 1e-6})
    },
    **{
        f"{'zCDP, ' if more else ''}count-of-counts, secret groups {m} from {least}": (
            partial(by_secret_groups, method=m, smallest=least, **more),
            1,
        )
        for m, least, more in (
            *(("Hc", 0, {}), ("Hc", 1, {}), ("Hg", 0, {}), ("Hg", 1, {})),
            *(("Hc", 0, {"delta": 1e-6}), ("Hg", 1, {"delta": 1e-6})),
        )
    },
    "count-of-counts, the largest size": (
        lambda table, noise: private_size(
            Allowed(1.0), MeasureTruth(Runs.from_dense(group_leaves(table)).summed_up(PLACES.tree), noise)
        ),
        1,
    ),
    **{f"range-query {m}": (partial(by_line, method=m), 1) for m in ("H_tree", "H_tree^c")},
    **{f"range-query {m}": (partial(by_plane, method=m), 1) for m in ("Flat", "H_b", "Quadtree", "Wavelet")},
    **{f"range-query matrix {s}": (partial(by_plane, method="matrix", strategy=s), 1) for s in STRATEGIES},
    **{
        f"clustering {m}": (partial(by_plane, mechanism=clustering, method=m), 1)
        for m in ("AHP", "AHP-empirical", "AHP-greedy", "AHP-by-place", "NF", "GS", "Laplace")
    },
    "clustering PHP": (partial(by_line, mechanism=clustering, method="PHP"), 1),
    "top-down, a trip": (partial(by_flow, unit=JOINS), 1),
    "top-down VanillaGauss, a trip": (partial(by_flow, unit=JOINS, method="VanillaGauss"), 1),
    "top-down, two trips": (partial(by_flow, unit=trips_of_a_person(2, False, False)), 2),
    "top-down VanillaGauss, two trips": (
        partial(by_flow, unit=trips_of_a_person(2, False, False), method="VanillaGauss"),
        2,
    ),
    "tabulation": (partial(by_tabulation, unit=person_unit(bounded=False)), 1),
    "tabulation, two rows": (partial(by_tabulation, unit=person_unit(False, 2)), 2),
}
"""A person joins: what is measured, and with how many rows at most."""

REPLACED = {
    "top-down": (by_flow, 1),
    "top-down VanillaGauss": (partial(by_flow, method="VanillaGauss"), 1),
    "top-down, two trips": (partial(by_flow, unit=TWO), 2),
    "tabulation": (by_tabulation, 1),
    "tabulation, the total is not queried": (partial(by_tabulation, queries=("detailed",)), 1),
}
"""Rows of a person are replaced, and how many at most."""

OF_GROUPS = {"group": ["place", "kind"], "levels": ["place"], "max_size": LARGEST, "groups": HOMES}
READ = {
    "group-size M_c^dp": {"mechanism": "group-size", **OF_GROUPS},
    "group-size M_H": {"mechanism": "group-size", **OF_GROUPS, "entities": "one", "method": "M_H"},
    "count-of-counts Hg": {"mechanism": "count-of-counts", **OF_GROUPS, "method": "Hg"},
    "range-query H_tree": {
        "mechanism": "range-query",
        "axes": [("place", (PLACES, "place"))],
        "method": "H_tree",
    },
    "clustering Laplace": {
        **{"mechanism": "clustering", "axes": [Numbers("region", 0, 3), Numbers("kind", 0, 3)]},
        **{"method": "Laplace", "count": "one"},
    },
    "top-down": {
        **{"mechanism": "top-down", "axes": {"place": (PLACES, "place"), "to": (PLACES, "to")}},
        "delta": 1e-6,
    },
    "tabulation": {
        **{"mechanism": "tabulation", "regions": PLACES, "region": "place", "delta": 1e-6},
        **{"attributes": {"sort": ["0", "1", "2"]}, "queries": ["total", "detailed"], "method": "GLS"},
    },
}
"""Each reader, with the options that give the measurements of that name above."""
