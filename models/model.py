"""What every model offers: the contract between models, backends and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np

from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.programs.program import Program

FEASIBILITY_TOLERANCE = 1e-6
"""Relative amount by which an answer in floats may break a constraint; integer answers get none."""


class Model(Protocol):
    """A post-processing step as an optimization problem; a frozen dataclass of arrays.

    Optional, ``row_prices(witness) -> array``: the witness as prices of the rows of `program`, one for each.
    `models.lagrangian_bound` at these prices is at least the certificate's bound.

    What is special about a model, its class says, too; no other file needs to know the model's name:

    - ``typical(rng, size, **options) -> model``: an instance as hard as those of releases, of about `size`
      numbers, with the model's own options. Benchmarks measure it; default: `random`.
    - ``variants``, dict of dicts: by name, the options of each variant that benchmarks measure. Default: one
      variant, without options.
    - ``random_up_to``, int: size beyond which instances of `random` cost too much. Default: no limit.
    - ``relaxed() -> model or None``: the model over the reals, on which solvers over the reals are compared;
      None if this is it, or there is none.
    - ``answer_size``, int: how many numbers an answer holds. Default: at most as many as the data.
    - ``always_proved``, bool: whether the fast path proves every answer. Default: True.
    """

    def program(self) -> Program:
        """The model as a neutral program; its first block is the answer, in the model's own order."""

    def objective(self, x: Any) -> Number:
        """The objective at an answer, exact for integer data."""

    def violations(self, x: Any) -> list[str]:
        """Every constraint that the answer breaks, by name; empty for a feasible answer."""

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check a witness: proof that the answer is optimal, or a bound on how much it misses.

        It never searches. Without a witness it may read one off the answer, in one pass. The bound is at most
        the optimum for any witness: an unusable one proves nothing, or raises a ValueError.
        """

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """An instance for tests, of about `size` variables; edge cases (ties, zeros, extremes) are common."""


def answer_of(x: Any, shape: tuple[int, ...], integer: bool) -> Array:
    """An answer as an array of the model's shape, in int64, float64 or objects.

    Whole floats become int64 for an integer model, where 64 bits hold them. It may be the caller's own
    array: read it, never write to it.

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
    if not np.issubdtype(array.dtype, np.floating):
        return array.astype(np.int64, copy=False)
    array = array.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.isfinite(array.sum())  # then all are finite, and no array of flags is needed
    if not plain and not np.isfinite(array).all():
        raise ValueError("the answer has entries that are not finite")
    whole = integer and np.all(array == np.rint(array)) and np.abs(array).max(initial=0) < 2.0**63
    return array.astype(np.int64) if whole else array


def tolerance_for(x: Array, *others: Array) -> float:
    """How far from equal two floats of this size still count as equal; 0 for exact answers."""
    if not np.issubdtype(x.dtype, np.floating):
        return 0
    largest = max((max(float(a.max()), -float(a.min())) for a in (x, *others) if a.size), default=0.0)
    return FEASIBILITY_TOLERANCE * max(1.0, largest)


def fractional(x: Array) -> Iterator[str]:
    """The entries of an integer model's answer that are not whole numbers."""
    if np.issubdtype(x.dtype, np.floating):
        wrong = np.argwhere(x != np.rint(x))
    elif x.dtype == object:
        wrong = np.argwhere(np.vectorize(lambda value: value != int(value), otypes=[bool])(x))
    else:
        return
    for place in wrong:
        yield f"integer: x[{', '.join(map(str, place))}] = {x[tuple(place)]}"
