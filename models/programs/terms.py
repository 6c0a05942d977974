"""The parts of a program: blocks of variables, rows, and terms of its objective; and all three together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Flags, Floats, Ints
from models.arithmetic.exact import Number
from models.programs.costs import Cost, Linear, Table
from models.programs.costs import Kind as Kind
from models.programs.operators import Operator

INFINITY = float("inf")

LATER = {"later": True}
"""Metadata of fields that files do not have if they are None."""


def _problems(name: str, part: Any) -> Ints | None:
    """The numbers of problems side by side, by value."""
    return None if part is None else door.whole(f"the problems of {name}", part, np.shape(part))


@dataclass(frozen=True, eq=False)
class Block:
    """A named block of variables ``lower ≤ x ≤ upper``; the bounds broadcast to `shape`.

    Like those of `Rows` and `Term`, its numbers enter by value (`models.arithmetic.door`): what changes in a
    given array afterwards does not change the program.

    - cost: what the variables cost, each by itself. None: nothing, or terms of the program say it.
    - part, int array, shape (size,): of problems side by side, the number of each variable's problem.
    - box: bounds that some optimal answer keeps, for solvers that need finite domains. They are no
      constraints: a feasible answer may lie outside.
    - names: of the variables, if they have names of their own.
    """

    name: str
    shape: tuple[int, ...]
    lower: ArrayLike = 0.0
    upper: ArrayLike = INFINITY
    integer: bool = False
    cost: Cost | None = field(default=None, metadata=LATER)
    part: Ints | None = field(default=None, metadata=LATER)
    box: tuple[Any, Any] | None = field(default=None, metadata=LATER)
    names: tuple[str, ...] | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            limits = door.sides(f"the {side} side of {self.name}", getattr(self, side))
            object.__setattr__(self, side, limits)
        object.__setattr__(self, "part", _problems(self.name, self.part))
        if self.names is not None and len(self.names) != self.size:
            raise ValueError(f"{self.name} has {len(self.names)} names for {self.size} variables")

    @property
    def size(self) -> int:
        """Number of variables."""
        return math.prod(self.shape)

    def chosen(self, at: Ints | slice) -> Block:
        """The variables at these flat positions."""
        shape = (len(range(self.size)[at]),) if isinstance(at, slice) else at.shape
        lower, upper = (_some(side, at, self.shape) for side in (self.lower, self.upper))
        cost = self.cost
        if isinstance(cost, Table):
            raise ValueError(f"{self.name}: tables of costs cannot be chosen from")
        if isinstance(cost, Linear):
            cost = Linear(_some(cost.price, at, self.shape))
        elif cost is not None:
            center, weight = (_some(part, at, self.shape) for part in cost.data)
            cost = type(cost)(center, weight)
        return Block(self.name, shape, lower, upper, self.integer, cost)

    def for_solvers(self) -> Block:
        """The same variables within their box; terms tell their costs."""
        lower, upper = (self.lower, self.upper) if self.box is None else self.box
        return Block(self.name, self.shape, lower, upper, self.integer, names=self.names)


def _some(numbers: ArrayLike, at: Ints | slice, shape: tuple[int, ...]) -> Array:
    array = np.asarray(numbers)
    return np.broadcast_to(array, shape).ravel()[at] if array.ndim else array


@dataclass(frozen=True, eq=False)
class Rows:
    """A named block of constraints ``lower ≤ A v ≤ upper``; the sides broadcast over the rows.

    - matrix: that over all variables of the program; or an operator for each block that has a part in the
      rows, by the block's name. Then a program makes the matrix if something asks for it.
    - rounded: whether the matrix, of floats, has entries that are not the model's own.
    - part, int array: of problems side by side, the number of each row's problem.
    - slack: the share of its numbers by which an answer in floats may break a row. Then what that is worth at
      the row's price is part of the gap. Without it, only rounding may break a row.
    """

    name: str
    matrix: Any
    lower: Any
    upper: Any
    rounded: bool = False
    part: Ints | None = field(default=None, metadata=LATER)
    slack: float | None = field(default=None, metadata=LATER)
    exactly: Array | None = field(default=None, metadata=LATER)
    names: tuple[str, ...] | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, Mapping):
            matrix, exactly = door.matrix(f"the matrix of {self.name}", self.matrix)
            object.__setattr__(self, "matrix", matrix)
            if exactly is not None:
                object.__setattr__(self, "exactly", exactly)
        if self.exactly is not None:
            self._check_entries(self.exactly)
        if self.names is not None and len(self.names) != self.count:
            raise ValueError(f"{self.name} has {len(self.names)} names for {self.count} rows")
        for side in ("lower", "upper"):
            limits = door.sides(f"the {side} side of {self.name}", getattr(self, side))
            object.__setattr__(
                self, side, np.broadcast_to(limits.ravel() if limits.ndim else limits, (self.count,))
            )
        object.__setattr__(self, "part", _problems(self.name, self.part))

    def _check_entries(self, exactly: Array) -> None:
        """The exact entries must be those whose nearest floats the matrix holds."""
        held = None if isinstance(self.matrix, Mapping) else self.matrix.data.tolist()
        if held is None or [*map(exact.as_float, exactly)] != held:
            raise ValueError(f"{self.name}: its exact entries are not those of its matrix")

    @property
    def operators(self) -> Mapping[str, Operator]:
        """The operator of each block; empty if the rows are a matrix."""
        return self.matrix if isinstance(self.matrix, Mapping) else {}

    @property
    def count(self) -> int:
        """Number of rows."""
        if isinstance(self.matrix, Mapping):
            return int(next(iter(self.matrix.values())).height)
        return int(self.matrix.shape[0])

    def over(self, blocks: Sequence[Block]) -> Rows:
        """The same rows as a matrix over the variables of these blocks."""
        if not isinstance(self.matrix, Mapping):
            return self
        none = scipy.sparse.csr_matrix
        parts = [
            self.matrix[block.name].csr() if block.name in self.matrix else none((self.count, block.size))
            for block in blocks
        ]
        return replace(self, matrix=scipy.sparse.hstack(parts, format="csr"))


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

    def __post_init__(self) -> None:
        index = door.numbers(f"the variables of a {self.kind} term", self.index)
        if index.dtype != np.int64 or (index < 0).any():
            raise ValueError(f"the variables of a {self.kind} term must be whole numbers of at least 0")
        tables = tuple(door.numbers(f"table {i}", table) for i, table in enumerate(self.tables))
        if not all(table.ndim == 1 for table in tables):
            raise ValueError("a table must be a row of finite costs")
        parts = {"index": index, "tables": tables}
        for part in ("weight", "center"):
            parts[part] = door.numbers(f"the {part} of a {self.kind} term", getattr(self, part))
        for part, value in parts.items():
            object.__setattr__(self, part, value)

    @classmethod
    def of_block(cls, cost: Cost, index: Ints) -> Self:
        """The cost of a block whose variables are at `index`."""
        if isinstance(cost, Table):
            return cls("table", index, 1, cost.least, cost.tables)  # type: ignore[arg-type]
        center, weight = (np.ravel(part) if np.ndim(part) else part for part in cost.data)
        if np.ndim(weight) and not np.all(weight):  # variables that cost nothing have no term
            kept = np.flatnonzero(weight)
            index, weight, center = index[kept], weight[kept], center[kept] if np.ndim(center) else center
        return cls(cost.kind, index, weight, center)

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """``(weight, center)``, each as long as `index`."""
        weight, center = (np.broadcast_to(part, self.index.shape) for part in (self.weight, self.center))
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


class _OnDemand(Sequence[Any]):
    """A list that is made when something is asked of it."""

    def __init__(self, make: Any) -> None:
        self._make = make

    @cached_property
    def _made(self) -> list[Any]:
        return list(self._make())

    def __getitem__(self, place: Any) -> Any:
        return self._made[place]

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self._made,)


def _terms_of(blocks: Sequence[Block]) -> Iterator[Term]:
    start = 0
    for block in blocks:
        if block.cost is not None:
            yield Term.of_block(block.cost, np.arange(start, start + block.size))
        start += block.size


@dataclass(frozen=True, eq=False)
class Formulation:
    """A separable objective over blocks of variables and sparse rows; `Program` adds text and files.

    - blocks: the variables, in order; the first block is the model's own answer, the others are auxiliary.
    - objective: the costs as terms, where the blocks do not tell their own.
    - structure: ``(blocks, rows)`` with costs and operators, if they were given so. In `blocks`, `rows` and
      `objective` the same program stands in terms and matrices, made when something asks for them.
    - rounded: whether costs are rounded. Prices of such a program prove nothing about the model, so
      `models.lagrangian_bound` gives no bound.
    """

    name: str
    blocks: Sequence[Block]
    rows: Sequence[Rows]
    objective: Sequence[Term] = ()
    rounded: bool = False
    structure: tuple[Sequence[Block], Sequence[Rows]] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        blocks, rows = self.blocks, self.rows
        with_costs = any(block.cost is not None for block in blocks)
        if with_costs and self.objective:
            raise ValueError(f"{self.name}: its costs are told by its blocks, and by terms as well")
        if not (with_costs or any(part.operators for part in rows)):
            return
        self._check_structure()
        object.__setattr__(self, "structure", (blocks, rows))
        object.__setattr__(self, "blocks", [block.for_solvers() for block in blocks])
        object.__setattr__(self, "rows", _OnDemand(lambda: [part.over(blocks) for part in rows]))
        if with_costs:
            object.__setattr__(self, "objective", _OnDemand(lambda: _terms_of(blocks)))

    def _check_structure(self) -> None:
        """Operators must fit their blocks and one another; problems side by side, all blocks and rows."""
        shapes = {block.name: block.shape for block in self.blocks}
        for part in self.rows:
            fits = all(operator.columns == shapes.get(name) for name, operator in part.operators.items())
            if not fits or len({operator.rows for operator in part.operators.values()}) != 1:
                raise ValueError(f"{self.name}: the operators of {part.name} do not fit their blocks")
        parts = [*((b.part, b.size) for b in self.blocks), *((r.part, r.count) for r in self.rows)]
        if any(of is not None for of, _ in parts) and any(
            of is None or of.shape != (size,) for of, size in parts
        ):
            raise ValueError(
                f"{self.name}: its problems side by side must be named for every variable and row"
            )

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
        """The variables' own names; otherwise ``x_3`` or ``x_3_0``: block and position, unique, and legal in
        every file format.
        """
        names: list[str] = []
        for block in self.blocks:
            if block.names is not None:
                names += block.names
                continue
            places = np.indices(block.shape).reshape(len(block.shape), -1).T.tolist()
            names += [f"{block.name}_{'_'.join(map(str, place))}" for place in places]
        return names

    def row_names(self) -> list[str]:
        """The rows' own names; otherwise ``H3_consistency_12``: block and position."""
        return [
            f"{rows.name.replace(' ', '_')}_{i}" if rows.names is None else rows.names[i]
            for rows in self.rows
            for i in range(rows.count)
        ]

    def __repr__(self) -> str:
        count = int(self.integer.sum())
        return f"{self.name}: {self.size:,} variables ({count:,} integer), {self.matrix.shape[0]:,} rows"


def rows_of(
    name: str, shape: tuple[int, int], entries: tuple[ArrayLike, ArrayLike, ArrayLike], lower: Any, upper: Any
) -> Rows:
    """Rows from triplets (row, variable, coefficient); the bounds broadcast over the rows."""
    row, column, value = entries
    given, places = np.asarray(value), (np.asarray(row), np.asarray(column))
    rounded = given.dtype == object
    matrix = scipy.sparse.csr_matrix((given.astype(float) if rounded else given, places), shape=shape)
    return Rows(name, matrix, lower, upper, rounded)
