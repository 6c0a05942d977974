"""Audit cases of the mechanisms of Fioretto & Van Hentenryck 2019."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from hierdp.mechanisms.group_size.mechanism import group_size
from hierdp.mechanisms.group_size.post_processing import METHODS
from hierdp.mechanisms.size_audit import read_cases
from hierdp.privacy.noise import Noise
from hierdp.record.case import DELTA, EPSILON, FIRST_OF_SIZE_1, LARGE, ZCDP, Case, regions
from hierdp.record.release import Release
from hierdp.tables import GroupSizes, group_sizes


def _group_sizes(*rows: list[int]) -> GroupSizes:
    places = regions(len(rows))
    return GroupSizes(places, np.asarray(places.tree.sum_up(np.array(rows))))


def _run(data: GroupSizes, noise: Noise, **options: Any) -> Release:
    return group_size(data, noise=noise, **options)


def _cases() -> Iterator[Case]:
    case = partial(Case, "group-size", by=("region", "size"))
    two = _group_sizes([9, 9], [9, 9]), _group_sizes([8, 10], [9, 9])
    few = _group_sizes([1, 1], [1, 0]), _group_sizes([0, 2], [1, 0])
    alone = _group_sizes([1, 0]), _group_sizes([0, 1])
    # In so large a table each noisy count is visible by itself; in a small one, the required sums hide it.
    held = [[9] * 8] * 8
    square = _group_sizes(*held), _group_sizes([8, 10, *held[0][2:]], *held[1:])
    # With so many empty sizes, the correction to the public number of groups hardly changes any of them.
    empty = _group_sizes([20, *[0] * 15]), _group_sizes([19, 1, *[0] * 14])
    joins = "an entity joins a group of A"
    for method, about in METHODS.items():
        run = partial(_run, method=method, epsilon=EPSILON if about.cumulative else LARGE)
        if about.cumulative:
            yield case(method, joins, two, run=run)
            yield case(method, "an entity joins the only group", alone, run=run)
        elif method == "M_dp^OP":  # one program for each of 200 cells, by default a constraint program
            yield case(method, f"{joins}; few groups", few, run=run)
            yield case(method, f"{joins}; backend fast", square, run=partial(run, backend="fast"))
        else:
            yield case(method, joins, square, run=run)
        if not about.cumulative:
            backend = "fast" if "backend" in about.takes else None
            run = partial(_run, method=method, epsilon=EPSILON, backend=backend)
            yield case(method, FIRST_OF_SIZE_1, empty, run=run)
    for method, tables in (("M_c^dp", alone), ("M_H^dp", square)):
        run = partial(_run, method=method, epsilon=ZCDP, delta=DELTA)
        yield case(method, f"{joins}; zCDP", tables, run=run)
    run = partial(_run, method="M_c^dp", epsilon=EPSILON, shares=(1, 3))
    yield case("M_c^dp", "an entity joins the only group; uneven shares", alone, run=run)


def _run_read(data: GroupSizes, size: int, **options: Any) -> Release:
    del size  # the table's
    return group_size(data, method="M_c^dp", **options)


CASES = (*_cases(), *read_cases("group-size", "M_c^dp", group_sizes, _run_read))
