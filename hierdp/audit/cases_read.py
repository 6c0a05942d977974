"""What is audited through the readers of tables: unknown places, groups and regions that are given.

A table is read once a process; all runs on it share what was read, as reading has no chance in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from hierdp.audit.case import Case
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms import count_of_counts, group_size, range_query, top_down
from hierdp.mechanisms.top_down.unit import Unit
from hierdp.privacy.noise import Noise
from hierdp.record.release import Release

EPSILON, ZCDP, DELTA = 2.0, 4.08, 0.01
"""As in `hierdp.audit.cases`."""

Rows = tuple[tuple[Any, ...], ...]

TOWNS = Hierarchy.flat("town", ["A", "B"])
UNKNOWN = "elsewhere"


def _frame(rows: Rows, *columns: str) -> Any:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns))


@cache
def _trips(rows: Rows) -> Any:
    from hierdp.tables import flows

    axes = {"from": (TOWNS, "from"), "to": (TOWNS, "to")}
    return flows(_frame(rows, "from", "to", "trips"), axes=axes, count="trips", unknown=UNKNOWN)


@cache
def _homes(rows: Rows, runs: bool) -> Any:
    """People in homes, two of which there are; as sizes of groups, or as runs of equal ones."""
    from hierdp.tables import group_sizes
    from hierdp.tables.runs import group_runs

    homes = _frame((("h1", "A"), ("h2", "A")), "home", "town")
    given: dict[str, Any] = {"group": ["home"], "groups": homes, "levels": ["town"]}
    table = _frame(rows, "home")
    return (group_runs if runs else group_sizes)(table, max_size=2, **given)


@cache
def _people(rows: Rows) -> Any:
    from hierdp.tables.binning import histogram

    return histogram(_frame(rows, "town", "people"), [("town", (TOWNS, "town"))], "people", UNKNOWN)


def _run_trips(rows: Rows, noise: Noise, method: str, unit: Unit) -> Release:
    epsilon = EPSILON if method == "SH" else ZCDP
    return top_down.top_down(_trips(rows), epsilon, DELTA, noise, method, unit)


def _run_sizes(rows: Rows, noise: Noise, method: str) -> Release:
    return group_size.group_size(_homes(rows, False), EPSILON, noise, method)


def _run_runs(rows: Rows, noise: Noise, method: str) -> Release:
    return count_of_counts.count_of_counts(_homes(rows, True), EPSILON, noise, method, max_size=2)


def _run_people(rows: Rows, noise: Noise, method: str) -> Release:
    return range_query.range_query(_people(rows), EPSILON, noise, method)


def read_cases() -> Iterator[Case]:
    """A case of each way that a reader puts rows where they were not."""
    usual = tuple((a, b, 20) for a in ("A", "B", "x") for b in ("A", "B", "x"))
    two = tuple((town, "A", 1) for town in ("x", "y"))  # which share the unknown region
    there = tuple((town, "B", 1) for town in ("x", "y"))
    trips = partial(Case, "top-down", by=("level", "from", "to"))
    for method in ("InfTDA", "VanillaGauss", "SH"):
        comes = partial(_run_trips, method=method, unit=Unit(2, True, False))
        goes = partial(_run_trips, method=method, unit=Unit(2))
        yield trips(
            method, "a person comes with two trips from unknown places", (usual, usual + two), run=comes
        )
        words = "two trips from unknown places to A become two to B"
        yield trips(method, words, (usual + two, usual + there), run=goes)
    joins = "an entity joins a group of the given ones that was empty"
    homes: tuple[Rows, Rows] = (("h1",),), (("h1",), ("h2",))
    sizes = "region", "size"
    yield Case("group-size", "M_c^dp", joins, homes, sizes, partial(_run_sizes, method="M_c^dp"))
    yield Case("count-of-counts", "Hc", joins, homes, sizes, partial(_run_runs, method="Hc"))
    people: tuple[Rows, Rows] = (("A", 20), ("B", 20)), (("A", 20), ("B", 20), ("x", 1))
    for method in ("Flat", "H_tree^c"):
        run = partial(_run_people, method=method)
        words = "a person joins the unknown region, which is empty"
        yield Case("range-query", method, words, people, ("level", "town_first"), run)
