"""Audit cases of tables of several attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from hierdp.mechanisms.tabulation.budget import ONE_PERSON, person_unit
from hierdp.mechanisms.tabulation.mechanism import tabulate
from hierdp.mechanisms.tabulation.methods import METHODS
from hierdp.mechanisms.tabulation.plan import TabulationPlan, plan_of
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.noise import Noise
from hierdp.record.case import DELTA, TWO_ROWS, ZCDP, Case, regions
from hierdp.record.release import Release
from hierdp.tables.axes import Axis
from hierdp.tables.tabulated import CrossTable, cross_table

GROUPS = ("a", "b")
SHARES: dict[str, Any] = {"level_shares": {"root": "1/20", "region": "19/20"}}
"""The regions' tables are measured with nearly the whole budget, so that few runs show a change."""

CELLS = plan_of({"attributes": {"group": GROUPS}, "queries": ["detailed"], **SHARES})
SEVERAL = plan_of(
    {
        "attributes": {"group": GROUPS, "age": ["old", "young"]},
        "queries": ["total", "group", "detailed"],
        "query_shares": {"total": "1/20", "group": "1/20", "detailed": "9/10"},
        **SHARES,
    }
)
FIXED = plan_of(CELLS.as_dict(), invariants=["region:total"])

FEWER = {method: 1 if method == "GLS" else 2 for method in METHODS}
"""A run takes some 7 ms with GLS, and 30 with the others."""

Changes = Sequence[tuple[int, int, int]]
"""Regions and cells with the numbers of persons to add."""


def _table(plan: TabulationPlan, changes: Changes = (), usual: int = 20) -> CrossTable:
    """Four regions with the same number of persons in each cell, but for some changes."""
    held = np.full((4, 2 ** len(plan.attributes)), usual)
    for region, cell, more in changes:
        held[region, cell] += more
    categories = {name: tuple(one or ()) for name, one in plan.attributes.items()}
    return CrossTable(regions(4), categories, held)


def _run(
    data: CrossTable,
    noise: Noise,
    plan: TabulationPlan,
    method: str,
    unit: PrivacyUnit = ONE_PERSON,
    **more: Any,
) -> Release:  # fmt: skip
    return tabulate(data, plan, ZCDP, DELTA, noise, method, unit, **more)


def _cases() -> Iterator[Case]:
    """All changes with least squares over all regions, which is fast; three with the other methods."""
    joins, moves, regroups = person_unit(bounded=False), [(0, 0, -1), (1, 0, 1)], [(0, 0, -1), (0, 1, 1)]
    fixed = ("a person of A-a becomes one of A-b; A's total is an invariant", FIXED, regroups, ONE_PERSON)
    every = (
        ("a person of A is replaced by one of B", CELLS, moves, ONE_PERSON),
        ("a person of A's group a becomes one of group b", CELLS, regroups, ONE_PERSON),
        ("a person joins A", CELLS, [(0, 0, 1)], joins),
        ("a person joins A; three queries of two attributes", SEVERAL, [(0, 0, 1)], joins),
        fixed,
    )
    first = _table(CELLS, [(0, 0, 20)], usual=0), _table(CELLS, [(0, 0, 19), (1, 0, 1)], usual=0)
    for method, fewer in FEWER.items():
        for change, plan, changed, unit in every if method == "GLS" else (every[3], fixed):
            run = partial(_run, plan=plan, method=method, unit=unit)
            by = ("region", *plan.attributes)
            tables = _table(plan), _table(plan, changed)
            yield Case("tabulation", method, change, tables, by, run, fewer=fewer)
        words, run = "a person of A becomes the first one of B", partial(_run, plan=CELLS, method=method)
        yield Case("tabulation", method, words, first, ("region", "group"), run)


# --- through the reader of tables ------------------------------------------------------------------------
# A table is read once per process and shared by all runs, because reading is not random.

Rows = tuple[tuple[Any, ...], ...]


@cache
def _visits(rows: Rows) -> CrossTable:
    """Rows of persons with several of them, of which two count."""
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["region", "group", TWO_ROWS.column])
    places = Axis(regions(4), ("region",))
    return cross_table(table, axis=places, attributes={"group": GROUPS}, persons=TWO_ROWS)


def _run_visits(rows: Rows, noise: Noise, method: str) -> Release:
    unit = person_unit(bounded=False, rows=TWO_ROWS.rows)
    return _run(_visits(rows), noise, CELLS, method, unit, person=TWO_ROWS.column)


def _read_cases() -> Iterator[Case]:
    others = tuple(("B", "a", f"other {i}") for i in range(20))
    joins = others + (("A", "b", "somebody"),) * 6
    words = "a person with six rows A-b joins; two count"
    for method, fewer in FEWER.items():
        run = partial(_run_visits, method=method)
        yield Case("tabulation", method, words, (others, joins), ("region", "group"), run, fewer=fewer)


CASES = (*_cases(), *_read_cases())
"""What one person can change in a table, and the resulting sensitivities of its queries."""
