"""What every model offers: the contract between models, backends and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from models.certificate import Certificate
from models.exact import Number
from models.program import Program

FEASIBILITY_TOLERANCE = 1e-6
"""Relative amount by which an answer in floats may break a constraint; integer answers get none."""


class Model(Protocol):
    """A post-processing step as an optimization problem; a frozen dataclass of arrays."""

    def program(self) -> Program:
        """The model as a neutral program; its first block is the answer, in the model's own order."""

    def objective(self, x: Any) -> Number:
        """The objective at an answer, exact for integer data."""

    def violations(self, x: Any) -> list[str]:
        """Every constraint that the answer breaks, by name; empty for a feasible answer."""

    def certificate(self, x: Any) -> Certificate:
        """Proof that the answer is optimal, or a bound on how much it misses."""

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """An instance of about `size` variables, the ugly ones included."""


def answer_of(x: Any, shape: tuple[int, ...], integer: bool) -> NDArray[Any]:
    """An answer as an array of the model's shape; whole floats become int64 for an integer model.

    Raises
    ------
    ValueError
        If the shape is wrong, or an entry is not finite.
    """
    array = np.asarray(x)
    if array.shape != shape:
        raise ValueError(f"the answer has shape {array.shape}, the model {shape}")
    if array.dtype == object:
        return array
    if np.issubdtype(array.dtype, np.floating):
        if not np.isfinite(array).all():
            raise ValueError("the answer has entries that are not finite")
        return array.astype(np.int64) if integer and np.all(array == np.rint(array)) else array
    return array.astype(np.int64)


def tolerance_for(x: NDArray[Any], *others: NDArray[Any]) -> float:
    """How far from equal two floats of this size still count as equal; 0 for exact answers."""
    if not np.issubdtype(x.dtype, np.floating):
        return 0
    largest = max((float(np.max(np.abs(a))) for a in (x, *others) if a.size), default=0.0)
    return FEASIBILITY_TOLERANCE * max(1.0, largest)


def fractional(x: NDArray[Any]) -> Iterator[str]:
    """The entries of an integer model's answer that are not whole numbers."""
    if np.issubdtype(x.dtype, np.floating):
        for place in np.argwhere(x != np.rint(x)):
            yield f"integer: x[{', '.join(map(str, place))}] = {x[tuple(place)]}"
    elif x.dtype == object:
        for place, value in np.ndenumerate(x):
            if value != int(value):
                yield f"integer: x[{', '.join(map(str, place))}] = {value}"


def random_noisy(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Noisy counts of one of the kinds that break algorithms: ties, zeros, negatives, large, skewed."""
    kind = rng.integers(0, 6)
    if kind == 0:
        return rng.integers(-1, 3, size=shape)
    if kind == 1:
        return np.zeros(shape, dtype=np.int64)
    if kind == 2:
        return -rng.integers(1, 20, size=shape)
    if kind == 3:
        return rng.integers(-10, 1_000, size=shape)
    if kind == 4:
        return np.floor(rng.pareto(1, size=shape).clip(0, 1e5)).astype(np.int64) - 2
    return rng.integers(-5, 15, size=shape)
