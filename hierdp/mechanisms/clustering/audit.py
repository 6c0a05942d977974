"""Audit cases of the methods that Zhang et al. 2014 compare."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from hierdp.mechanisms.clustering.mechanism import clustering
from hierdp.privacy.noise import Noise
from hierdp.record.case import EPSILON, LARGE, Case
from hierdp.record.release import Release
from hierdp.tables.binning import Histogram


def _run(data: Histogram, noise: Noise, method: str, epsilon: float, **more: Any) -> Release:
    return clustering(data, epsilon, noise, method, **more)


def _cases() -> Iterator[Case]:
    first, empty = "a person joins the first bin", "a person joins the empty bin"
    told: list[tuple[str, str, list[int], list[int], float, dict[str, Any]]] = [
        *((m, first, [2, 0], [3, 0], LARGE, {}) for m in ("AHP", "AHP-greedy")),
        ("AHP-empirical", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        *((m, empty, [2, 0], [2, 1], LARGE, {}) for m in ("AHP", "AHP-greedy", "AHP-empirical")),
        ("SF", empty, [20, 0, 0], [20, 1, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", empty, [20, 0], [20, 1], EPSILON, {"share": 0.1}),
        ("NF", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("NF", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
        ("SF", first, [20, 0, 0], [21, 0, 0], EPSILON, {"clusters": 2, "largest": 30, "share": 0.1}),
        ("PHP", first, [20, 0], [21, 0], EPSILON, {"share": 0.1}),
        ("GS", first, [1, 1], [2, 1], LARGE, {"width": 1}),
        ("GS", empty, [0, 0], [1, 0], LARGE, {"width": 1}),
        ("Laplace", first, [6, 6, 1, 0], [7, 6, 1, 0], EPSILON, {}),
        ("Laplace", empty, [6, 6, 1, 0], [6, 6, 1, 1], EPSILON, {}),
    ]
    for method, change, before, after, epsilon, options in told:
        tables = Histogram.of(before), Histogram.of(after)
        run = partial(_run, method=method, epsilon=epsilon, **options)
        told_of = "; ".join([change, *(f"{name} {value:g}" for name, value in options.items())])
        yield Case("clustering", method, told_of, tables, ("bin",), run)


CASES = tuple(_cases())
