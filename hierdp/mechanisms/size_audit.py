"""Audit cases of groups by size through the readers of tables, for group-size and count-of-counts.

A table is read once per process and shared by all runs, because reading is not random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from hierdp.privacy.noise import Noise
from hierdp.record.case import DELTA, EPSILON, TWO_ROWS, ZCDP, Case
from hierdp.record.release import Release

Rows = tuple[tuple[Any, ...], ...]
Run = Callable[..., Release]
"""Releases true counts, of groups up to a size, with noise for a budget, by keyword."""

HOUSES = [f"h{i}" for i in range(8)]


@cache
def _homes(rows: Rows, read: Callable[..., Any]) -> Any:
    """People in homes, with a list of two homes."""
    import pandas as pd

    homes = pd.DataFrame({"home": ["h1", "h2"], "town": ["A", "A"]})
    people = pd.DataFrame(list(rows), columns=["home"])
    return read(people, max_size=2, group=["home"], groups=homes, levels=["town"])


def _run_homes(rows: Rows, noise: Noise, read: Callable[..., Any], run: Run) -> Release:
    return run(_homes(rows, read), size=2, noise=noise, epsilon=EPSILON)


@cache
def _visits(rows: Rows, read: Callable[..., Any]) -> Any:
    """Visits to eight houses, of persons with several."""
    import pandas as pd

    houses = pd.DataFrame({"house": HOUSES, "town": "A"})
    visits = pd.DataFrame(list(rows), columns=["house", TWO_ROWS.column])
    return read(visits, max_size=1, group=["house"], groups=houses, levels=["town"], persons=TWO_ROWS)


def _run_visits(rows: Rows, noise: Noise, read: Callable[..., Any], run: Run, **budget: float) -> Release:
    persons: dict[str, Any] = {"person": TWO_ROWS.column, "rows_per_person": TWO_ROWS.rows}
    return run(_visits(rows, read), size=1, noise=noise, **persons, **budget)


def read_cases(mechanism: str, method: str, read: Callable[..., Any], run: Run) -> Iterator[Case]:
    """An entity joins an empty group of the list; and a person with more visits than count."""
    case = partial(Case, mechanism, method, by=("region", "size"))
    joins = "an entity joins a group of the given ones that was empty"
    homes: tuple[Rows, Rows] = (("h1",),), (("h1",), ("h2",))
    yield case(joins, homes, run=partial(_run_homes, read=read, run=run))
    other: Rows = ((HOUSES[-1], "other"),)
    change = "a person visits six empty houses; two count"
    tables = other, other + tuple((house, "somebody") for house in HOUSES[:6])
    visits = partial(_run_visits, read=read, run=run)
    yield case(change, tables, run=partial(visits, epsilon=EPSILON))
    yield case(f"{change}; zCDP", tables, run=partial(visits, epsilon=ZCDP, delta=DELTA))
