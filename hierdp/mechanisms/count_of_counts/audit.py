"""Audit cases of the methods of Kuo et al. 2018."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.mechanisms.count_of_counts.mechanism import count_of_counts
from hierdp.mechanisms.size_audit import read_cases
from hierdp.privacy.noise import Noise
from hierdp.record.case import DELTA, EPSILON, FIRST_OF_SIZE_1, LARGE, ZCDP, Case, regions
from hierdp.record.release import Release
from hierdp.tables.sizes import group_runs


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
    for method, tables in (("Hc", alone), ("Hg", alone), ("naive", two)):
        run = partial(_run, method=method, epsilon=ZCDP, delta=DELTA, max_size=1)
        yield case(method, "an entity joins a group of A; zCDP", tables, run=run)
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


def _run_read(data: SizeRuns, size: int, **options: Any) -> Release:
    return count_of_counts(data, max_size=size, **options)


CASES = (*_cases(), *read_cases("count-of-counts", "Hc", group_runs, _run_read))
