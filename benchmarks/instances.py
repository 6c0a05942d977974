"""The instances of benchmarks: every model's typical instances by size, as made by the models.

``family.make(rng, n)`` has about n elements: numbers that are read, for most models the noisy counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from hierdp.bench.problems import census_cumulative
from hierdp.verification.matrix import kinds
from solvers.fast import PATHS

Make = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Family:
    """Instances of one kind, and how one of about n elements is made."""

    name: str
    make: Make


def families() -> list[Family]:
    """Each variant of each model with a fast path, and one of census-like data, which is harder."""
    found = []
    for name, kind in kinds().items():
        if name not in PATHS:
            continue
        make = getattr(kind, "typical", kind.random)
        for variant, options in getattr(kind, "variants", {"": {}}).items():
            found.append(Family(f"{name}, {variant}" if variant else name, partial(make, **options)))
    return [*found, Family("CumulativeQIP, census", census_cumulative)]


def inputs(model: Any) -> list[Any]:
    """The arrays of numbers in a model's data."""
    return [part for one in fields(model) for part in _arrays(getattr(model, one.name))]


def _arrays(given: Any) -> Iterator[Any]:
    if isinstance(given, np.ndarray):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:
            yield from _arrays(part)


def read(model: Any) -> float:
    """Read the input once, by summing all of it."""
    return float(sum(part.sum() for part in inputs(model)))


def elements(model: Any) -> int:
    """The number of entries of its first input, or of its answer if that is larger."""
    given = (sum(part.size for part in _arrays(getattr(model, one.name))) for one in fields(model))
    return int(getattr(model, "answer_size", next(filter(None, given))))
