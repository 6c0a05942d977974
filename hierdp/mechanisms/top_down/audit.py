"""Audit cases of the mechanisms of Boninsegna & Silvestri 2025."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.mechanisms.top_down.post_processing import METHODS
from hierdp.mechanisms.unit import PrivacyUnit, trips_of_a_person
from hierdp.privacy.noise import Noise
from hierdp.record.case import DELTA, EPSILON, TWO_ROWS, ZCDP, Case, regions
from hierdp.record.release import Release
from hierdp.tables import Flows, flows


def _flows(changes: Sequence[tuple[int, int, int]] = (), usual: int = 20) -> Flows:
    """Flows from four regions to two, with some cells changed by the given numbers of trips."""
    held = np.full((4, 2), usual)
    for origin, destination, more in changes:
        held[origin, destination] += more
    return Flows((regions(4), regions(2)), ("from", "to"), np.argwhere(held), held[held > 0])


def _run(data: Flows, noise: Noise, method: str, unit: PrivacyUnit) -> Release:
    return top_down(data, EPSILON if method == "SH" else ZCDP, DELTA, noise, method, unit)


def _cases() -> Iterator[Case]:
    case = partial(Case, "top-down", by=("level", "from", "to"))
    changes = [
        ("a trip A-A becomes one B-B", [(0, 0, -1), (1, 1, 1)], trips_of_a_person()),
        ("a trip A-A is added", [(0, 0, 1)], trips_of_a_person(bounded=False)),
        (
            "trips A-A, B-A become C-B, D-B",
            [(0, 0, -1), (1, 0, -1), (2, 1, 1), (3, 1, 1)],
            trips_of_a_person(2),
        ),
        ("a person comes with two trips A-A", [(0, 0, 2)], trips_of_a_person(2, False, False)),
        ("a person comes with trips A-A, B-A", [(0, 0, 1), (1, 0, 1)], trips_of_a_person(2, True, False)),
        ("two trips A-A become B-B", [(0, 0, -2), (1, 1, 2)], trips_of_a_person(2, False, True)),
    ]
    for method, (change, moves, unit) in product(METHODS, changes):
        run = partial(_run, method=method, unit=unit)
        yield case(method, change, (_flows(), _flows(moves)), run=run)
    alone = _flows([(0, 1, 1)], usual=0), _flows([(1, 0, 1)], usual=0)
    run = partial(_run, method="SH", unit=trips_of_a_person())
    yield case("SH", "the only trip A-B becomes the only B-A", alone, run=run)
    # Among eight counts, the correction to the public total hardly changes one that is 0.
    first = Flows((regions(8),), ("to",), np.array([[0]]), np.array([20]))
    both = Flows((regions(8),), ("to",), np.array([[0], [1]]), np.array([19, 1]))
    for method in METHODS:
        if method != "SH":  # it takes no zeros, because its threshold hides which counts are present
            run = partial(_run, method=method, unit=trips_of_a_person())
            change = "a trip to A becomes the first one to B"
            yield case(method, change, (first, both), by=("level", "to"), run=run)


# --- through the readers of tables ---------------------------------------------------------------------
# A table is read once per process and shared by all runs, because reading is not random.

Rows = tuple[tuple[Any, ...], ...]

TOWNS = Hierarchy.flat("town", ["A", "B"])
UNKNOWN = "elsewhere"


@cache
def _trips(rows: Rows) -> Flows:
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["from", "to", "trips"])
    axes = {"from": (TOWNS, "from"), "to": (TOWNS, "to")}
    return flows(table, axes=axes, count="trips", unknown=UNKNOWN)


def _run_trips(rows: Rows, noise: Noise, method: str, unit: PrivacyUnit) -> Release:
    return _run(_trips(rows), noise, method, unit)


@cache
def _visits(rows: Rows, distinct: bool) -> Flows:
    """From two towns to two, of persons with several trips."""
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=["from", "to", TWO_ROWS.column])
    axes = {"from": (TOWNS, "from"), "to": (TOWNS, "to")}
    return flows(table, axes=axes, persons=TWO_ROWS, distinct=distinct)


def _run_visits(rows: Rows, noise: Noise, method: str, distinct: bool) -> Release:
    unit = PrivacyUnit(column=TWO_ROWS.column, rows=TWO_ROWS.rows, distinct=distinct, by_row=False)
    return _run(_visits(rows, distinct), noise, method, unit)


def _read_cases() -> Iterator[Case]:
    """Places without a region, which are counted in the unknown one; persons with several rows."""
    usual = tuple((a, b, 20) for a in ("A", "B", "x") for b in ("A", "B", "x"))
    two = tuple((town, "A", 1) for town in ("x", "y"))  # which share the unknown region
    there = tuple((town, "B", 1) for town in ("x", "y"))
    trips = partial(Case, "top-down", by=("level", "from", "to"))
    for method in ("InfTDA", "VanillaGauss", "SH"):
        comes = partial(_run_trips, method=method, unit=trips_of_a_person(2, True, False))
        goes = partial(_run_trips, method=method, unit=trips_of_a_person(2))
        yield trips(
            method, "a person comes with two trips from unknown places", (usual, usual + two), run=comes
        )
        words = "two trips from unknown places to A become two to B"
        yield trips(method, words, (usual + two, usual + there), run=goes)
    others = tuple(("A", "B", f"other {i}") for i in range(20))
    for method in ("InfTDA", "VanillaGauss", "SH"):
        for distinct in (False, True):
            joins = others + (("A", "B", "somebody"),) * 6 + (("B", "B", "somebody"),) * distinct
            words = "a person with six trips A-B joins; two count"
            words += "; also one B-B; different cells" if distinct else ""
            run = partial(_run_visits, method=method, distinct=distinct)
            yield trips(method, words, (others, joins), run=run)


CASES = (*_cases(), *_read_cases())
