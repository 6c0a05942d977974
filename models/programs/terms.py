"""The parts of a program: blocks of variables, rows, and terms of its objective; and all three together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.arithmetic.exact import Number

Kind = Literal["linear", "quadratic", "absolute", "table"]

INFINITY = float("inf")


@dataclass(frozen=True, eq=False)
class Block:
    """A named block of variables ``lower ≤ x ≤ upper``; the bounds broadcast to `shape`."""

    name: str
    shape: tuple[int, ...]
    lower: ArrayLike = 0.0
    upper: ArrayLike = INFINITY
    integer: bool = False

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(np.prod(self.shape))


@dataclass(frozen=True, eq=False)
class Rows:
    """A named block of constraints ``lower ≤ A v ≤ upper`` over all variables v of the program.

    `rounded`: whether the matrix, of floats, has entries that are not the model's own.
    """

    name: str
    matrix: scipy.sparse.csr_matrix
    lower: Array
    upper: Array
    rounded: bool = False


@dataclass(frozen=True, eq=False)
class Term:
    """A separable piece of the objective.

    For the variables at `index`: Σ weight·v (linear), Σ weight·(v − center)² (quadratic),
    Σ weight·|v − center| (absolute) or Σ ``tables[i][v_i − center_i]`` (table: costs at whole numbers, from
    the least value of each variable's domain on). `weight` and `center` broadcast to the length of `index`.
    """

    kind: Kind
    index: Ints
    weight: ArrayLike = 1
    center: ArrayLike = 0
    tables: Sequence[Array] = ()

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """``(weight, center)``, each as long as `index`."""
        weight, center = (
            np.broadcast_to(np.asarray(a), self.index.shape) for a in (self.weight, self.center)
        )
        return weight, center

    def value(self, variables: Array) -> Number:
        """The cost of these variables, exact for exact data."""
        weight, center = self.data
        at = variables[self.index]
        if self.kind == "linear":
            return exact.dot(weight, at)
        away = exact.difference(at, center)
        if self.kind == "table":
            return exact.total(np.array([t[int(k)] for t, k in zip(self.tables, away, strict=True)]))
        if self.kind == "quadratic":
            return exact.weighted_squares(weight, away)
        return exact.dot(weight, np.abs(away))


@dataclass(frozen=True, eq=False)
class Formulation:
    """A separable objective over blocks of variables and sparse rows; `Program` adds text and files.

    - blocks: the variables, in order; the first block is the model's own answer, the others are auxiliary.
    - rounded: whether costs are rounded. Prices of such a program prove nothing about the model, so
      `models.lagrangian_bound` gives no bound.
    """

    name: str
    blocks: Sequence[Block]
    rows: Sequence[Rows]
    objective: Sequence[Term]
    rounded: bool = False

    @property
    def exactly(self) -> bool:
        """Whether the program has the model's own numbers, none of them rounded."""
        return not (self.rounded or any(rows.rounded for rows in self.rows))

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each block of variables starts."""
        starts = np.cumsum([0, *(block.size for block in self.blocks)])
        return {block.name: int(start) for block, start in zip(self.blocks, starts[:-1], strict=True)}

    @property
    def size(self) -> int:
        """Number of variables."""
        return sum(block.size for block in self.blocks)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """``(lower, upper)`` of all variables; shape (size,) each."""

        def spread(side: str) -> Floats:
            return np.concatenate(
                [np.broadcast_to(np.asarray(getattr(b, side), float), b.shape).ravel() for b in self.blocks]
            )

        return spread("lower"), spread("upper")

    @cached_property
    def integer(self) -> Flags:
        """Which variables must be whole numbers; shape (size,)."""
        return np.repeat([b.integer for b in self.blocks], [b.size for b in self.blocks])

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """All rows, stacked; shape (number of rows, size)."""
        if not self.rows:
            return scipy.sparse.csr_matrix((0, self.size))
        return scipy.sparse.vstack([rows.matrix for rows in self.rows], format="csr")

    @cached_property
    def row_bounds(self) -> tuple[Floats, Floats]:
        """``(lower, upper)`` of all rows."""
        empty = [np.empty(0)]
        return (
            np.concatenate(empty + [np.asarray(r.lower, float) for r in self.rows]),
            np.concatenate(empty + [np.asarray(r.upper, float) for r in self.rows]),
        )

    def has(self, kind: Kind, integer: bool | None = None) -> bool:
        """Whether the objective has a term of this kind (on integer, or on continuous, variables)."""
        return any(
            term.kind == kind and (integer is None or bool(np.any(self.integer[term.index] == integer)))
            for term in self.objective
        )

    def take(self, variables: Array, block: str | None = None) -> Array:
        """The values of one block (the first by default), in its shape."""
        chosen = self.blocks[0] if block is None else next(b for b in self.blocks if b.name == block)
        start = self.offsets[chosen.name]
        return variables[start : start + chosen.size].reshape(chosen.shape)

    def value(self, variables: Array) -> Number:
        """The objective at a vector of all variables; exact for exact data."""
        return sum((term.value(variables) for term in self.objective), 0)

    def expanded(self) -> tuple[Floats, Floats, float]:
        """Linear and quadratic terms as ``Σ bend·v² + slope·v + constant``, in floats.

        Returns: bend, slope, arrays, shape (size,).
        """
        bend, slope, constant = np.zeros(self.size), np.zeros(self.size), 0.0
        for term in self.objective:
            weight, center = (np.asarray(part, float) for part in term.data)
            if term.kind == "linear":
                np.add.at(slope, term.index, weight)
            elif term.kind == "quadratic":
                np.add.at(bend, term.index, weight)
                np.add.at(slope, term.index, -2 * weight * center)
                constant += float(np.sum(weight * center**2))
        return bend, slope, constant

    def relaxed(self) -> Self:
        """The same program without integrality."""
        blocks = [replace(block, integer=False) for block in self.blocks]
        return replace(self, name=f"{self.name} (relaxed)", blocks=blocks)

    def variable_names(self) -> list[str]:
        """``x_3`` or ``x_3_0``: block and position, unique, and legal in every file format."""
        names: list[str] = []
        for block in self.blocks:
            places = np.indices(block.shape).reshape(len(block.shape), -1).T.tolist()
            names += [f"{block.name}_{'_'.join(map(str, place))}" for place in places]
        return names

    def row_names(self) -> list[str]:
        """``H3_consistency_12``: block and position."""
        return [
            f"{rows.name.replace(' ', '_')}_{i}" for rows in self.rows for i in range(rows.matrix.shape[0])
        ]

    def __repr__(self) -> str:
        count = int(self.integer.sum())
        return f"{self.name}: {self.size:,} variables ({count:,} integer), {self.matrix.shape[0]:,} rows"


def rows_of(
    name: str, shape: tuple[int, int], entries: tuple[ArrayLike, ArrayLike, ArrayLike], lower: Any, upper: Any
) -> Rows:
    """Rows from triplets (row, variable, coefficient); the bounds broadcast over the rows."""
    row, column, value = entries
    given = np.asarray(value)
    kind, places = given.dtype.kind, (np.asarray(row), np.asarray(column))
    rounded = kind == "O" or (kind in "iu" and exact.reach(given) > exact.FLOAT_WHOLE)
    matrix = scipy.sparse.csr_matrix((given.astype(float), places), shape=shape)
    count = (shape[0],)
    return Rows(name, matrix, np.broadcast_to(lower, count), np.broadcast_to(upper, count), rounded)
