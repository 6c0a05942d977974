"""Audit cases of the methods of Kuo et al. 2018."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from itertools import product
from typing import Any

from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.mechanisms.count_of_counts.mechanism import count_of_counts
from hierdp.mechanisms.persons import for_persons
from hierdp.privacy.noise import Noise
from hierdp.record.case import EPSILON, FIRST_OF_SIZE_1, LARGE, TWO_ROWS, Case, regions
from hierdp.record.release import Release
from hierdp.tables.runs import group_runs


def _size_runs(*rows: list[int]) -> SizeRuns:
    places = regions(len(rows))
    return SizeRuns(places, Runs.from_dense(rows).summed_up(places.tree))


def _run(data: SizeRuns, noise: Noise, method: str, epsilon: float, **more: Any) -> Release:
    return count_of_counts(data, epsilon, noise, method, **more)


def _cases() -> Iterator[Case]:
    case = partial(Case, "count-of-counts", by=("region", "size"))
    two = _size_runs([1, 0], [1, 0]), _size_runs([0, 1], [1, 0])
    alone = _size_runs([1, 0]), _size_runs([0, 1])
    for method in ("Hc", "Hc2", "Hg", "Hg1", "Hc x Hg", "bottom-up", "naive"):
        epsilon = LARGE if method == "naive" else EPSILON
        run = partial(_run, method=method, epsilon=epsilon, max_size=1)
        yield case(method, "an entity joins a group of A", two, run=run)
        if method not in ("Hc x Hg", "bottom-up"):
            yield case(method, "an entity joins the only group", alone, run=run)
    empty = _size_runs([20, *[0] * 15]), _size_runs([19, 1, *[0] * 14])
    run = partial(_run, method="naive", epsilon=EPSILON, max_size=15)
    yield case("naive", FIRST_OF_SIZE_1, empty, run=run)
    before = _size_runs([2, 1, 0])
    secret = "groups and largest size secret"
    changes = {
        f"an entity comes with a group of its own; {secret}": (_size_runs([2, 2, 0]), 2.7, 0.1),
        f"a group without entities comes; {secret}": (_size_runs([3, 1, 0]), 2.7, 0.1),
        f"an entity joins the largest group; {secret}": (_size_runs([2, 0, 1]), 0.1, 2.7),
    }
    for (change, (after, groups, size)), method in product(changes.items(), ("Hc", "Hg")):
        parts: dict[str, Any] = {"group_budget": groups, "size_budget": size}
        run = partial(_run, method=method, epsilon=LARGE, **parts)
        yield case(method, change, (before, after), run=run)


# --- through the readers of tables ---------------------------------------------------------------------
# A table is read once per process and shared by all runs, because reading is not random.

Rows = tuple[tuple[Any, ...], ...]

HOUSES = [f"h{i}" for i in range(8)]


@cache
def _homes(rows: Rows) -> SizeRuns:
    """People in homes, with a list of two homes."""
    import pandas as pd

    homes = pd.DataFrame({"home": ["h1", "h2"], "town": ["A", "A"]})
    people = pd.DataFrame(list(rows), columns=["home"])
    return group_runs(people, max_size=2, group=["home"], groups=homes, levels=["town"])


def _run_homes(rows: Rows, noise: Noise) -> Release:
    return count_of_counts(_homes(rows), EPSILON, noise, "Hc", max_size=2)


@cache
def _visits(rows: Rows) -> SizeRuns:
    """Visits to eight houses, of persons with several."""
    import pandas as pd

    houses = pd.DataFrame({"house": HOUSES, "town": "A"})
    visits = pd.DataFrame(list(rows), columns=["house", TWO_ROWS.column])
    return group_runs(visits, max_size=1, group=["house"], groups=houses, levels=["town"], persons=TWO_ROWS)


def _run_visits(rows: Rows, noise: Noise) -> Release:
    return for_persons(
        lambda of_row: count_of_counts(_visits(rows), of_row, noise, "Hc", max_size=1), EPSILON, TWO_ROWS
    )


def _read_cases() -> Iterator[Case]:
    joins = "an entity joins a group of the given ones that was empty"
    homes: tuple[Rows, Rows] = (("h1",),), (("h1",), ("h2",))
    yield Case("count-of-counts", "Hc", joins, homes, ("region", "size"), _run_homes)
    other: Rows = ((HOUSES[-1], "other"),)
    change = "a person visits six empty houses; two count"
    tables = other, other + tuple((house, "somebody") for house in HOUSES[:6])
    yield Case("count-of-counts", "Hc", change, tables, ("region", "size"), _run_visits)


CASES = (*_cases(), *_read_cases())
