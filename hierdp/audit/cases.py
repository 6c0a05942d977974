"""What is audited: each released mechanism on two neighbouring tables, tiny ones, made up.

Where a mechanism protects several kinds of neighbours there is a case of each. Tables are small, so that a
run takes milliseconds, and most counts so far from 0 that repairs do not hide what noise should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pandas import NA

from hierdp.audit.events import Seen
from hierdp.axes import Names
from hierdp.binning import Histogram
from hierdp.hierarchy import Hierarchy
from hierdp.mechanisms import clustering, count_of_counts, group_size, range_query, top_down
from hierdp.mechanisms.group_size.repairs import METHODS as GROUP_SIZE
from hierdp.mechanisms.how import How
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.noise import Noise
from hierdp.record import Release
from hierdp.size_runs import Runs, SizeRuns
from hierdp.tables import Flows, GroupSizes

EPSILON = 2.0
UNDER_ZCDP, DELTA = 3.5, 0.01
"""ρ is about 1/2: with the δ of a real release, the ε that a ρ stands for is so far over what any event can
show that nothing would be audited."""

VALUES = ("groups", "count", "noisy", "cluster")
"""Columns of a release that come of its noise."""


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and two neighbouring tables.

    Attributes
    ----------
    mechanism : str
        By its name in `hierdp.mechanisms.FRONTS`.
    method : str
    change : str
        What the second table has that the first has not, in words.
    tables : tuple of two
    by : tuple of str
        Columns that tell one row of a release from another.
    run : callable
        From a table and noise to a release.
    fewer : int
        Where a run is slow: only one of so many is made.
    """

    mechanism: str
    method: str
    change: str
    tables: tuple[Any, Any]
    by: tuple[str, ...]
    run: Callable[[Any, Noise], Release]
    fewer: int = 1

    @property
    def name(self) -> str:
        """Mechanism and method."""
        return f"{self.mechanism} {self.method}"

    def release(self, side: int, noise: Noise) -> Release:
        """Run it on the first table (0) or on the second (1)."""
        return self.run(self.tables[side], noise)

    def seen(self, release: Release) -> Seen:
        """All numbers that are published, by name: of the table, and of the settings."""
        table = release.table
        rows = [" ".join(map(str, row)) for row in zip(*(table[c].tolist() for c in self.by), strict=True)]
        found = {
            f"{value}[{row}]": float(number)
            for value in VALUES
            if value in table
            for row, number in zip(rows, table[value].tolist(), strict=True)
            if number is not NA  # of a range query's root, which is not asked
        }
        settings = {k: float(v) for k, v in release.settings.items() if isinstance(v, int | float)}
        return {**found, **settings}


PLACES = Hierarchy.from_columns({"region": ["A", "B"]}, ["region"], root="all")


def _group_sizes(a: list[int], b: list[int]) -> GroupSizes:
    return GroupSizes(PLACES, np.asarray(PLACES.tree.sum_up(np.array([a, b]))))


def _size_runs(a: list[int], b: list[int]) -> SizeRuns:
    return SizeRuns(PLACES, Runs.from_dense([a, b]).summed_up(PLACES.tree))


def _flows(counts: list[list[int]]) -> Flows:
    held = np.array(counts)
    return Flows((PLACES, PLACES), ("from", "to"), np.argwhere(held), held[held > 0])


def _towns(counts: list[int]) -> Histogram:
    return Histogram(np.array(counts), (Names.of("town", PLACES),))


def _run_group_size(data: GroupSizes, noise: Noise, method: str, how: How) -> Release:
    return group_size.group_size(data, EPSILON, noise, method, how)


def _run_count_of_counts(data: SizeRuns, noise: Noise, method: str, **options: Any) -> Release:
    return count_of_counts.count_of_counts(data, EPSILON, noise, method, **options)


def _run_top_down(data: Flows, noise: Noise, method: str, unit: Unit) -> Release:
    epsilon = EPSILON if method == "SH" else UNDER_ZCDP
    return top_down.top_down(data, epsilon, DELTA, noise, method, unit)


def _run_range_query(data: Histogram, noise: Noise, method: str, **options: Any) -> Release:
    return range_query.range_query(data, EPSILON, noise, method, **options)


def _run_clustering(data: Histogram, noise: Noise, method: str, **options: Any) -> Release:
    return clustering.clustering(data, EPSILON, noise, method, **options)


def _group_size_cases() -> Iterator[Case]:
    by, change = ("region", "size"), "an entity joins a group of A"
    tables = _group_sizes([20, 40, 20], [20, 40, 20]), _group_sizes([20, 39, 21], [20, 40, 20])
    for method in GROUP_SIZE:
        slow = method == "M_dp^OP"  # a constraint program for each cell of each table
        few = _group_sizes([1, 1], [1, 0]), _group_sizes([0, 2], [1, 0])
        run = partial(_run_group_size, method=method, how=How())
        yield Case("group-size", method, change, few if slow else tables, by, run, 20 if slow else 1)


def _count_of_counts_cases() -> Iterator[Case]:
    before, joins = _size_runs([6, 6, 6], [6, 6, 6]), _size_runs([6, 5, 7], [6, 6, 6])
    case = partial(Case, "count-of-counts", by=("region", "size"))
    for method in ("Hc", "Hc2", "Hg", "Hg1", "Hc x Hg", "bottom-up", "naive"):
        run = partial(_run_count_of_counts, method=method, max_size=2)
        yield case(method, "an entity joins a group of A", (before, joins), run=run)
    few = _size_runs([2, 2, 2, 0], [2, 2, 2, 0])  # Hg draws a number a group, and K is up to 30 here
    changes = {
        "an entity comes with a group of its own": _size_runs([2, 3, 2, 0], [2, 2, 2, 0]),
        "a group without entities comes": _size_runs([3, 2, 2, 0], [2, 2, 2, 0]),
        "an entity joins a largest group": _size_runs([2, 2, 1, 1], [2, 2, 2, 0]),
    }
    for change, after in changes.items():
        for method in ("Hc", "Hg"):
            run = partial(_run_count_of_counts, method=method, group_budget=0.8, size_budget=0.4)
            yield case(method, f"{change}; groups and largest size secret", (few, after), run=run)


def _top_down_cases() -> Iterator[Case]:
    case = partial(Case, "top-down", by=("level", "from", "to"))
    full = _flows([[20, 20], [20, 20]])
    changes = [
        ("a trip A-A becomes one B-B", [[19, 20], [20, 21]], Unit()),
        ("a trip A-A is added", [[21, 20], [20, 20]], Unit(bounded=False)),
        ("trips A-A, A-B become B-A, B-B", [[19, 19], [21, 21]], Unit(2)),
        ("a person comes with two trips A-A", [[22, 20], [20, 20]], Unit(2, False, False)),
        ("a person comes with trips A-A, B-A", [[21, 20], [21, 20]], Unit(2, True, False)),
        ("two trips A-A become B-B", [[18, 20], [20, 22]], Unit(2, False, True)),
    ]
    for method in top_down.METHODS:
        for change, after, unit in changes:
            run = partial(_run_top_down, method=method, unit=unit)
            yield case(method, change, (full, _flows(after)), run=run)
    alone = _flows([[20, 1], [0, 20]]), _flows([[20, 0], [1, 20]])
    run = partial(_run_top_down, method="SH", unit=Unit())
    yield case("SH", "the only trip A-B becomes the only B-A", alone, run=run)


def _range_query_cases() -> Iterator[Case]:
    change = "a person joins the first bin"
    line = Histogram.of([20, 20, 20, 20]), Histogram.of([21, 20, 20, 20])
    towns = _towns([20, 20]), _towns([21, 20])
    square = Histogram.of([[20, 20], [20, 20]]), Histogram.of([[21, 20], [20, 20]])
    for method in range_query.METHODS:
        tree, quad = method.startswith("H_tree"), method == "Quadtree"
        names = ("town_first",) if tree else ("bin1_first", "bin2_first") if quad else ("bin_first",)
        by = names if method == "Wavelet" else ("level", *names)
        tables = towns if tree else square if quad else line
        yield Case("range-query", method, change, tables, by, partial(_run_range_query, method=method))
    by = ("level", "bin_first")
    run = partial(_run_range_query, method="H_2^c", budget="optimized", repair="whole")
    yield Case("range-query", "H_2^c", f"{change}; budget optimized, whole counts", line, by, run)
    by = ("bin1_first", "bin2_first")
    wavelet = partial(_run_range_query, method="Wavelet")
    yield Case("range-query", "Wavelet", f"{change} of a square", square, by, wavelet)


def _clustering_cases() -> Iterator[Case]:
    changes = {"a person joins the first bin": [7, 6, 1, 0], "a person joins the empty bin": [6, 6, 1, 1]}
    for method in clustering.METHODS:
        for change, after in changes.items():
            tables = Histogram.of([6, 6, 1, 0]), Histogram.of(after)
            options: dict[str, Any] = {"clusters": 2} if method == "SF" else {}
            run = partial(_run_clustering, method=method, **options)
            yield Case("clustering", method, change, tables, ("bin",), run)


CASES = (
    *_group_size_cases(),
    *_count_of_counts_cases(),
    *_top_down_cases(),
    *_range_query_cases(),
    *_clustering_cases(),
)
