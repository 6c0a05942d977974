"""How fast paths and certificates compare with reading and sorting their input, medians over runs.

Each variant of each model is measured on the largest of its typical instances that the fast path solves in a
second (10⁷ elements at most). A row gives the milliseconds of the fast path and of the certificate of its
answer, both in units of summing all input once and of sorting it, measured in the same run, in turns; and
whether the certificate takes no longer than the fast path. The benchmark `peers` compares with other
programs.

Every turn starts from a model without cached results. A model's checks of its data, and a tree's properties
of its shape, are not timed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from benchmarks.instances import Family, elements, families, inputs, read
from benchmarks.measuring import compiled, interleaved
from hierdp.bench.problems import fresh
from solvers import fast

ENOUGH = 1.0
"""Seconds of a fast path beyond which ten times as many elements are not tried."""


def largest(family: Family, most: int) -> Any:
    """The family's largest instance, in powers of ten, that the fast path solves within `ENOUGH` seconds."""
    for small in (20, 2_000):  # kernels
        fast.answer(family.make(np.random.default_rng(0), small))
    size, model = 100, None
    while model is None or size <= most:
        larger = family.make(np.random.default_rng(size), size)
        started = time.perf_counter()
        fast.answer(larger)
        seconds = time.perf_counter() - started
        if model is None or seconds <= ENOUGH:
            model = larger
        if 10 * seconds > ENOUGH:
            break
        size *= 10
    return model


def measure(family: Family, runs: int, most: int) -> dict[str, Any]:
    """One row of the table."""
    model = largest(family, most)
    x, witness = fast.answer(model)
    solve, prove, reading, sorting = interleaved(
        runs,
        lambda: fast.answer(fresh(model)),
        lambda: fresh(model).certificate(x, witness),
        lambda: read(model),
        lambda: [np.sort(part, axis=None) for part in inputs(model)],
    )
    row = {"model": family.name, "elements": elements(model), "fast path, ms": 1e3 * solve,
           "certificate, ms": 1e3 * prove}  # fmt: skip
    for name, unit in (("reading", reading), ("sorting", sorting)):
        row |= {f"fast path, × {name}": solve / unit, f"certificate, × {name}": prove / unit}
    return {**row, "certificate, × fast path": prove / solve}


def run(
    *,
    runs: int = 5,
    only: Annotated[str, "models with this in their name"] = "",
    most: Annotated[int, "elements"] = 10_000_000,
) -> Iterator[dict[str, Any]]:
    compiled()
    for family in families():
        if only.lower() in family.name.lower():
            yield measure(family, runs, most)
            gc.collect()
