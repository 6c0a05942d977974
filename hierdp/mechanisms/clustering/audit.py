"""Audit cases of the methods that Zhang et al. 2014 compare."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from hierdp.counts.axes import Numbers
from hierdp.mechanisms.clustering.ahp_rules import RULES
from hierdp.mechanisms.clustering.mechanism import clustering
from hierdp.privacy.noise import Noise
from hierdp.record.case import EPSILON, LARGE, TWO_ROWS, Case
from hierdp.record.release import Release
from hierdp.tables.binning import Histogram, histogram


def _run(data: Histogram, noise: Noise, method: str, epsilon: float, **more: Any) -> Release:
    return clustering(data, epsilon, noise, method, **more)


def _cases() -> Iterator[Case]:
    first, empty = "a person joins the first bin", "a person joins the empty bin"
    rows: list[tuple[str, str, list[int], list[int], float, dict[str, Any]]] = [
        *((m, first, [2, 0], [3, 0], LARGE, {}) for m in ("AHP", "AHP-greedy", "AHP-by-place")),
        ("AHP-empirical", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        *((m, empty, [2, 0], [2, 1], LARGE, {}) for m in RULES),
        ("SF", empty, [20, 0, 0], [20, 1, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", empty, [20, 0], [20, 1], EPSILON, {"share": 0.1}),
        ("NF", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("NF", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
        ("SF", first, [20, 0, 0], [21, 0, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        ("PrivTree", first, [6, 0], [7, 0], LARGE, {"share": 0.1}),
        ("PrivTree", empty, [6, 0], [6, 1], EPSILON, {"share": 0.9}),
        ("DAWA", first, [6, 6, 1, 0], [7, 6, 1, 0], LARGE, {"share": 0.5}),
        ("DAWA", empty, [6, 6, 0, 0], [6, 6, 0, 1], EPSILON, {}),
        ("GS", first, [1, 1], [2, 1], LARGE, {"width": 1}),
        ("GS", empty, [0, 0], [1, 0], LARGE, {"width": 1}),
        ("Laplace", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("Laplace", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
        ("PHP", f"{first}; without noise, the clusters change", [2, 1], [3, 1], EPSILON, {}),
        (
            *("SF", "a person joins the second bin; without noise, the clusters change"),
            *([2, 1, 0], [2, 2, 0], EPSILON, {"clusters": 2, "largest": 30}),
        ),
    ]
    for method, change, before, after, epsilon, options in rows:
        tables = Histogram.of(before), Histogram.of(after)
        run = partial(_run, method=method, epsilon=epsilon, **options)
        words = "; ".join([change, *(f"{name} {value:g}" for name, value in options.items())])
        yield Case("clustering", method, words, tables, ("bin",), run)


# --- through the reader of tables ----------------------------------------------------------------------
# A table is read once a process; all runs on it share what was read, as reading has no chance in it.

Rows = tuple[tuple[Any, ...], ...]


@cache
def _visits(rows: Rows) -> Histogram:
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["day", TWO_ROWS.column])
    return histogram(table, [Numbers("day", 0, 2)], persons=TWO_ROWS)


def _run_visits(rows: Rows, noise: Noise, method: str, epsilon: float) -> Release:
    return clustering(
        _visits(rows), epsilon, noise, method, person=TWO_ROWS.column, rows_per_person=TWO_ROWS.rows
    )


def _read_cases() -> Iterator[Case]:
    others = tuple((0, f"other {i}") for i in range(20))
    for method, day, epsilon in (("Laplace", "first", EPSILON), ("AHP", "empty", LARGE)):
        joins = others + tuple((0 if day == "first" else 1, "somebody") for _ in range(6))
        change = f"a person with six visits joins the {day} bin; two count"
        run = partial(_run_visits, method=method, epsilon=epsilon)
        yield Case("clustering", method, change, (others, joins), ("day",), run)


CASES = (*_cases(), *_read_cases())
