"""Audit cases of the mechanisms of Qardaji, Yang & Li 2013."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from hierdp.counts.axes import Names
from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.range_query.matrix import STRATEGIES
from hierdp.mechanisms.range_query.mechanism import range_query
from hierdp.mechanisms.range_query.plan import METHODS
from hierdp.privacy.noise import Noise
from hierdp.record.case import EPSILON, TWO_ROWS, Case, regions
from hierdp.record.release import Release
from hierdp.tables.binning import Histogram, histogram


def _towns(counts: list[int]) -> Histogram:
    return Histogram(np.array(counts), (Names.of("town", regions(2)),))


def _run(data: Histogram, noise: Noise, method: str, **more: Any) -> Release:
    return range_query(data, EPSILON, noise, method, **more)


def _cases() -> Iterator[Case]:
    change = "a person joins the first bin"
    line = Histogram.of([20, 20, 20, 20]), Histogram.of([21, 20, 20, 20])
    towns = _towns([20, 20]), _towns([21, 20])
    square = Histogram.of([[20, 20], [20, 20]]), Histogram.of([[21, 20], [20, 20]])
    no_line = Histogram.of([0, 0, 20, 20]), Histogram.of([1, 0, 20, 20])
    no_towns = _towns([0, 20]), _towns([1, 20])
    no_square = Histogram.of([[0, 20], [0, 20]]), Histogram.of([[1, 20], [0, 20]])
    case = partial(Case, "range-query")
    for method in METHODS:
        if method in ("Wavelet", "matrix"):
            continue
        tree, quad = method.startswith("H_tree"), method == "Quadtree"
        names = ("town_first",) if tree else ("bin1_first", "bin2_first") if quad else ("bin_first",)
        run = partial(_run, method=method)
        tables, empty = (towns, no_towns) if tree else (square, no_square) if quad else (line, no_line)
        yield case(method, change, tables, ("level", *names), run)
        yield case(method, f"{change}, which is empty", empty, ("level", *names), run)
    run = partial(_run, method="H_2^c", budget="optimized", repair="whole")
    yield case("H_2^c", f"{change}; budget optimized, whole counts", line, ("level", "bin_first"), run)
    run = partial(_run, method="Wavelet")
    yield case("Wavelet", change, line, ("bin_first",), run)
    yield case("Wavelet", f"{change}, which is empty", no_line, ("bin_first",), run)
    # Of two bins, the total has half the budget: half its noise is a loss of 3ε/2.
    pair = Histogram.of([20, 20]), Histogram.of([21, 20])
    yield case("Wavelet", f"{change} of two", pair, ("bin_first",), run, fewer=0.25)
    for name in STRATEGIES:
        run = partial(_run, method="matrix", strategy=name)
        yield case("matrix", f"{change}; strategy {name}", line, ("bin_first",), run)
        yield case("matrix", f"{change}, which is empty; strategy {name}", no_line, ("bin_first",), run)
    by = ("bin1_first", "bin2_first")
    yield case("Wavelet", f"{change} of a square", square, by, run)


# --- through the readers of tables ---------------------------------------------------------------------
# A table is read once per process and shared by all runs, because reading is not random.

Rows = tuple[tuple[Any, ...], ...]

TOWNS = Hierarchy.flat("town", ["A", "B"])
UNKNOWN = "elsewhere"


@cache
def _people(rows: Rows) -> Histogram:
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["town", "people"])
    return histogram(table, [("town", (TOWNS, "town"))], "people", UNKNOWN)


def _run_people(rows: Rows, noise: Noise, method: str) -> Release:
    return _run(_people(rows), noise, method)


@cache
def _visits(rows: Rows) -> Histogram:
    """To two towns, of persons with several visits."""
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["town", TWO_ROWS.column])
    return histogram(table, [("town", (TOWNS, "town"))], persons=TWO_ROWS)


def _run_visits(rows: Rows, noise: Noise, method: str) -> Release:
    persons = {"person": TWO_ROWS.column, "rows_per_person": TWO_ROWS.rows}
    return range_query(_visits(rows), EPSILON, noise, method, **persons)


def _read_cases() -> Iterator[Case]:
    """Places without a region, which are counted in the unknown one; persons with several rows."""
    people: tuple[Rows, Rows] = (("A", 20), ("B", 20)), (("A", 20), ("B", 20), ("x", 1))
    for method in ("Flat", "H_tree^c"):
        run = partial(_run_people, method=method)
        words = "a person joins the unknown region, which is empty"
        yield Case("range-query", method, words, people, ("level", "town_first"), run)
    others = tuple(("A", f"other {i}") for i in range(20))
    for method, town in (("Flat", "B"), ("H_tree^c", "A")):
        visits = others, others + ((town, "somebody"),) * 6
        change = f"a person with six visits to {town} joins; two count"
        run = partial(_run_visits, method=method)
        yield Case("range-query", method, change, visits, ("level", "town_first"), run)


CASES = (*_cases(), *_read_cases())
