"""Rows as operators: ``A v`` and ``Aᵀ y`` in a few array operations, and the same matrix for solvers.

An operator links the variables of one block, in the block's shape, to rows in the operator's shape. Its
entries are whole numbers (but see `Sparse`), so that both products are exact on whole numbers of any size
(int64, or Python numbers as objects). What every operator has:

- rows, columns, tuples of int: the shapes of the rows and of the block.
- wide, tall, int: no row, and no column, has a larger sum of absolute entries.
- whole, bool: whether all entries are whole numbers.
- apply(v): ``A v``.
- transpose(y): ``Aᵀ y``.
- spread(m): ``|A| m``, what the rows change at most if each variable changes by at most m ≥ 0.
- entries(): ``(row, column, entry)`` of all entries other than 0, by flat positions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import reach
from models.tree import Tree, sums_of
from models.workload import Workload

EXACT_IN_FLOATS = 2**53
"""Sums of whole numbers up to this size are exact in floats."""


class Operator(ABC):
    """A sparse matrix of whole numbers that is applied without being stored."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    wide: int
    tall: int
    whole: bool = True
    positions: ClassVar[tuple[str, ...]] = ()
    """Fields that are arrays of positions."""

    def __post_init__(self) -> None:
        """Let positions enter by value: what changes in a given array changes no operator."""
        for name in self.positions:
            given = getattr(self, name)
            object.__setattr__(self, name, door.whole(name, given, np.shape(given)))

    @abstractmethod
    def apply(self, v: Array) -> Array:
        """``A v``, in the shape `rows`, for v in the shape `columns`."""

    @abstractmethod
    def transpose(self, y: Array) -> Array:
        """``Aᵀ y``, in the shape `columns`; it may be a read-only view."""

    @abstractmethod
    def spread(self, m: Array) -> Array:
        """``|A| m``."""

    @abstractmethod
    def entries(self) -> tuple[Ints, Ints, Array]:
        """``(row, column, entry)`` of each entry, by flat positions."""

    def named(self, place: tuple[int, ...]) -> str:
        """A row in words."""
        return "row " + ", ".join(map(str, place))

    @property
    def height(self) -> int:
        """Number of rows."""
        return math.prod(self.rows)

    def csr(self) -> scipy.sparse.csr_matrix:
        """The matrix, in floats, which hold its entries exactly."""
        row, column, entry = self.entries()
        shape = self.height, math.prod(self.columns)
        return scipy.sparse.csr_matrix((entry.astype(float), (row, column)), shape)


@dataclass(frozen=True, eq=False)
class Steps(Operator):
    """``v[i + 1] − v[i]``, within each of the chains that begin at `starts`."""

    size: int
    starts: Any = (0,)
    wide = tall = 2

    positions = ("starts",)

    @cached_property
    def _inner(self) -> Ints:
        inner: Ints = self.starts[1:]
        return inner

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.size,)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (max(0, self.size - 1 - self._inner.size),)

    def apply(self, v: Array) -> Array:
        return self._without(v[1:] - v[:-1])

    def transpose(self, y: Array) -> Array:
        if self._inner.size:
            y = np.insert(y, self._inner - 1 - np.arange(self._inner.size), 0)
        out = np.zeros(self.size, y.dtype)
        out[1:] = y
        out[:-1] -= y
        return out

    def spread(self, m: Array) -> Array:
        return self._without(m[1:] + m[:-1])

    def _without(self, steps: Array) -> Array:
        return np.delete(steps, self._inner - 1) if self._inner.size else steps

    @cached_property
    def _after(self) -> Ints:
        """The entry that each step leads to."""
        return np.setdiff1d(np.arange(1, self.size), self._inner)

    def named(self, place: tuple[int, ...]) -> str:
        return f"the step to entry {self._after[place[0]]}"

    def entries(self) -> tuple[Ints, Ints, Array]:
        after = self._after
        row, one = np.arange(after.size), np.ones(after.size, np.int64)
        return np.tile(row, 2), np.concatenate([after - 1, after]), np.concatenate([-one, one])


@dataclass(frozen=True, eq=False)
class Sums(Operator):
    """The sum of each segment ``v[offsets[j]:offsets[j + 1]]``; of blocks of two axes, in each column."""

    offsets: Ints
    width: tuple[int, ...] = ()
    tall = 1

    positions = ("offsets",)

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.offsets[-1]), *self.width)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.offsets.size - 1, *self.width)

    @cached_property
    def wide(self) -> int:  # type: ignore[override]
        return int(np.diff(self.offsets).max(initial=0))

    def apply(self, v: Array) -> Array:
        if self.offsets.size == 2:
            return v.sum(axis=0, keepdims=True) if v.size else np.zeros(self.rows, v.dtype)
        full = np.flatnonzero(np.diff(self.offsets))
        out = np.zeros(self.rows, v.dtype)
        if full.size:
            out[full] = np.add.reduceat(v, self.offsets[full], axis=0)
        return out

    def transpose(self, y: Array) -> Array:
        if len(y) == 1:
            return np.broadcast_to(y, self.columns)
        return np.repeat(y, np.diff(self.offsets), axis=0)

    def spread(self, m: Array) -> Array:
        return self.apply(m)

    def named(self, place: tuple[int, ...]) -> str:
        segment = f"the sum of segment {place[0]}" if self.offsets.size > 2 else "the sum"
        return segment + (f", cell {place[1]}," if self.width else "")

    def entries(self) -> tuple[Ints, Ints, Array]:
        column = np.arange(math.prod(self.columns))
        segment = np.repeat(np.arange(self.offsets.size - 1), np.diff(self.offsets))
        each = np.arange(math.prod(self.width))
        row = (segment[:, None] * each.size + each).ravel()
        return row, column, np.ones(column.size, np.int64)


@dataclass(frozen=True, eq=False)
class Spread(Operator):
    """``sign · t[j]`` for each entry of segment j, ``offsets[j] … offsets[j + 1] − 1``: an epigraph."""

    offsets: Ints
    sign: int = 1
    wide = 1

    positions = ("offsets",)

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.offsets.size - 1,)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (int(self.offsets[-1]),)

    @cached_property
    def tall(self) -> int:  # type: ignore[override]
        return int(np.diff(self.offsets).max(initial=0))

    def apply(self, v: Array) -> Array:
        return self.sign * Sums(self.offsets).transpose(v)

    def transpose(self, y: Array) -> Array:
        return self.sign * Sums(self.offsets).apply(y)

    def spread(self, m: Array) -> Array:
        return Sums(self.offsets).transpose(m)

    def entries(self) -> tuple[Ints, Ints, Array]:
        column, row, one = Sums(self.offsets).entries()
        return row, column, self.sign * one


@dataclass(frozen=True, eq=False)
class Each(Operator):
    """The variables themselves, or these with a minus sign; a row for each."""

    shape: tuple[int, ...]
    sign: int = 1
    wide = tall = 1

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.shape

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.shape

    def apply(self, v: Array) -> Array:
        return v if self.sign == 1 else -v

    def transpose(self, y: Array) -> Array:
        return y if self.sign == 1 else -y

    def spread(self, m: Array) -> Array:
        return m

    def entries(self) -> tuple[Ints, Ints, Array]:
        each = np.arange(self.height)
        return each, each, np.full(each.size, self.sign)


@dataclass(frozen=True, eq=False)
class Children(Operator):
    """``v[node] − Σ v[children of node]`` for each inner node of a tree, in each column.

    The block has the shape (nodes, …); the rows, (inner nodes, …), in the order of `Tree.internal`.
    """

    tree: Tree
    columns: tuple[int, ...]
    tall = 2

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.tree.internal.size, *self.columns[1:])

    @cached_property
    def wide(self) -> int:  # type: ignore[override]
        return 1 + int(np.diff(self.tree.children[0]).max(initial=0))

    @cached_property
    def _home(self) -> Ints:
        """For each node below the root, the number of its parent's row."""
        own = np.zeros(self.tree.size, np.int64)
        own[self.tree.internal] = np.arange(self.tree.internal.size)
        return own[self.tree.parent[1:]]

    def _sums(self, v: Array) -> Array:
        tree = self.tree
        if tree.branching is not None and (tree.branching == tree.branching[0]).all():
            return sums_of(v[1:], int(tree.branching[0]))
        start, child = tree.children
        below = v[1:] if (child[1:] > child[:-1]).all() else v[child]
        sums: Array = np.add.reduceat(below, start[tree.internal], axis=0)
        return sums

    def apply(self, v: Array) -> Array:
        return v[self.tree.internal] - self._sums(v) if self.tree.internal.size else v[:0]

    def transpose(self, y: Array) -> Array:
        out = np.zeros(self.columns, y.dtype)
        np.negative(y[self._home], out=out[1:]) if y.size else None
        out[self.tree.internal] += y
        return out

    def spread(self, m: Array) -> Array:
        return m[self.tree.internal] + self._sums(m) if self.tree.internal.size else m[:0]

    def named(self, place: tuple[int, ...]) -> str:
        column = f", column {', '.join(map(str, place[1:]))}" if place[1:] else ""
        return f"node {self.tree.internal[place[0]]}{column}, less the sum of its children,"

    def entries(self) -> tuple[Ints, Ints, Array]:
        width = math.prod(self.columns[1:])
        node = np.concatenate([self.tree.internal, np.arange(1, self.tree.size)])
        family = np.concatenate([np.arange(self.tree.internal.size), self._home])
        sign = np.repeat([1, -1], [self.tree.internal.size, self.tree.size - 1])
        row, column = ((part[:, None] * width + np.arange(width)).ravel() for part in (family, node))
        return row, column, np.repeat(sign, width)


@dataclass(frozen=True, eq=False)
class RootTotal(Operator):
    """The sum of the first row of a block of two axes: all counts of a tree's root."""

    columns: tuple[int, ...]
    rows = (1,)
    tall = 1

    @property
    def wide(self) -> int:  # type: ignore[override]
        return self.columns[1]

    def apply(self, v: Array) -> Array:
        root: Array = v[0].sum(keepdims=True)
        return root

    def transpose(self, y: Array) -> Array:
        out = np.zeros(self.columns, y.dtype)
        out[0] = y[0]
        return out

    def spread(self, m: Array) -> Array:
        return self.apply(m)

    def named(self, place: tuple[int, ...]) -> str:  # noqa: ARG002
        return "the sum of the root's counts"

    def entries(self) -> tuple[Ints, Ints, Array]:
        column = np.arange(self.wide)
        return np.zeros_like(column), column, np.ones_like(column)


@dataclass(frozen=True, eq=False)
class Rises(Operator):
    """``v[r, k + 1] − v[r, k]`` for some rows r of a block of two axes."""

    chosen: Ints
    columns: tuple[int, ...]
    wide = tall = 2

    positions = ("chosen",)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.chosen.size, max(0, self.columns[1] - 1))

    def apply(self, v: Array) -> Array:
        part: Array = v[self.chosen]
        return part[:, 1:] - part[:, :-1]

    def transpose(self, y: Array) -> Array:
        out = np.zeros(self.columns, y.dtype)
        part = np.zeros((self.chosen.size, self.columns[1]), y.dtype)
        part[:, 1:] = y
        part[:, :-1] -= y
        out[self.chosen] = part
        return out

    def spread(self, m: Array) -> Array:
        part = m[self.chosen]
        return part[:, 1:] + part[:, :-1]

    def named(self, place: tuple[int, ...]) -> str:
        return f"the step of row {self.chosen[place[0]]} to entry {place[1] + 1}"

    def entries(self) -> tuple[Ints, Ints, Array]:
        width = self.columns[1]
        before = (self.chosen[:, None] * width + np.arange(max(0, width - 1))).ravel()
        row, one = np.arange(before.size), np.ones(before.size, np.int64)
        return np.tile(row, 2), np.concatenate([before, before + 1]), np.concatenate([-one, one])


@dataclass(frozen=True, eq=False)
class Incidence(Operator):
    """What leaves each node of a network less what enters it; a variable for each arc, tail to head."""

    tail: Ints
    head: Ints
    nodes: int
    tall = 2

    positions = ("tail", "head")

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.tail.size,)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.nodes,)

    @cached_property
    def wide(self) -> int:  # type: ignore[override]
        return int(self.spread(np.ones(self.tail.size, np.int64)).max(initial=0))

    def apply(self, v: Array) -> Array:
        return self._at(self.tail, v) - self._at(self.head, v)

    def transpose(self, y: Array) -> Array:
        return y[self.tail] - y[self.head]

    def spread(self, m: Array) -> Array:
        return self._at(self.tail, m) + self._at(self.head, m)

    def _at(self, node: Ints, v: Array) -> Array:
        if v.dtype == np.int64 and reach(v) * v.size < EXACT_IN_FLOATS:
            return np.bincount(node, v, self.nodes).astype(np.int64)
        out = np.zeros(self.nodes, v.dtype)
        np.add.at(out, node, v)
        return out

    def named(self, place: tuple[int, ...]) -> str:
        return f"what leaves node {place[0]} less what enters it"

    def entries(self) -> tuple[Ints, Ints, Array]:
        arc = np.arange(self.tail.size)
        sign = np.repeat([1, -1], arc.size)
        return np.concatenate([self.tail, self.head]), np.tile(arc, 2), sign


@dataclass(frozen=True, eq=False)
class Answers(Operator):
    """A workload's answers on each of some histograms, the block's rows; or some of these answers.

    - at: the flat positions of the answers that have a row. Default: all, as an array (histograms, answers).
    - each: what a histogram belongs to, for messages.
    """

    workload: Workload
    histograms: int
    at: Any = None
    each: str = "histogram"

    def __post_init__(self) -> None:
        if self.at is not None:
            object.__setattr__(self, "at", door.whole("at", self.at, np.shape(self.at)))

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.histograms, self.workload.cells)

    @property
    def _all(self) -> tuple[int, ...]:
        return (self.histograms, self.workload.size)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._all if self.at is None else self.at.shape

    @cached_property
    def wide(self) -> int:  # type: ignore[override]
        counted = self.workload.counted
        return int((counted if self.at is None else counted[self.at % len(counted)]).max(initial=0))

    @property
    def tall(self) -> int:  # type: ignore[override]
        return len(self.workload.queries)

    def apply(self, v: Array) -> Array:
        answers = self.workload.answers(v)
        return answers if self.at is None else answers.ravel()[self.at]

    def transpose(self, y: Array) -> Array:
        if self.at is not None:
            paid = np.zeros(self._all, y.dtype)
            paid.ravel()[self.at] = y
            y = paid
        return self.workload.spread(y)

    def spread(self, m: Array) -> Array:
        return self.apply(m)

    def named(self, place: tuple[int, ...]) -> str:
        owner, answer = place if self.at is None else divmod(int(self.at[place]), self.workload.size)
        return f"{self.each} {owner}, {self.workload.named(answer)},"

    def entries(self) -> tuple[Ints, Ints, Array]:
        (histograms, size), cells = self._all, self.workload.cells
        owner = np.arange(histograms)[:, None, None]
        row = (owner * size + self.workload.row).ravel()
        column = np.broadcast_to(owner * cells + np.arange(cells), (histograms, self.tall, cells)).ravel()
        if self.at is not None:
            place = np.full(histograms * size, -1)
            place[self.at] = np.arange(self.at.size)
            row = place[row]
            row, column = row[row >= 0], column[row >= 0]
        return row, column, np.ones_like(row)


@dataclass(frozen=True, eq=False)
class Sparse(Operator):
    """A matrix of numbers that int64 or floats hold, for rows without another operator.

    If they are not all whole, the products are exact for Python numbers, and rounded for floats.

    - text, numbers: a row in words, and the number in it; default: the row's own.
    """

    matrix: Any
    text: str = "row {}"
    numbers: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", door.sparse("the matrix of rows", self.matrix))

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.matrix.shape[1],)

    @property
    def rows(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.matrix.shape[0],)

    @cached_property
    def whole(self) -> bool:  # type: ignore[override]
        data = self.matrix.data
        return bool((data == np.rint(data)).all() and (np.abs(data) < 2.0**62).all())

    @cached_property
    def _listed(self) -> tuple[Ints, Ints, Array]:
        listed = self.matrix.tocoo()
        entry = listed.data.astype(np.int64) if self.whole else exact.fractions(listed.data)
        return listed.row.astype(np.int64), listed.col.astype(np.int64), entry

    @cached_property
    def _matrices(self) -> dict[tuple[bool, bool], Any]:
        """The matrix in floats or in int64, by entries or by their absolute values; and their transposes."""
        kinds = {True: self.matrix.astype(float)} | (
            {False: self.matrix.astype(np.int64)} if self.whole else {}
        )
        signed = {(kind, False): matrix for kind, matrix in kinds.items()}
        return signed | {(kind, True): abs(matrix) for kind, matrix in kinds.items()}

    def _largest(self, axis: int) -> int:
        """The largest sum of absolute entries; of entries that are not whole, no less than their number + 2.

        So it also bounds how often a product is rounded.
        """
        sums = np.asarray(abs(self.matrix.astype(float)).sum(axis=1 - axis)).ravel()
        largest = math.ceil(float(sums.max(initial=0.0)) * (1 + 1e-9))
        if self.whole:
            return int(sums.max(initial=0)) if largest < EXACT_IN_FLOATS else largest
        return max(largest, 2 + int(np.bincount(self._listed[axis]).max(initial=0)))

    @cached_property
    def wide(self) -> int:  # type: ignore[override]
        return self._largest(0)

    @cached_property
    def tall(self) -> int:  # type: ignore[override]
        return self._largest(1)

    def named(self, place: tuple[int, ...]) -> str:
        return self.text.format(place[0] if self.numbers is None else self.numbers[place[0]])

    def _times(self, at: int, values: Array, absolute: bool = False) -> Array:
        if values.dtype.kind == "f" or (self.whole and values.dtype == np.int64):
            matrix = self._matrices[values.dtype.kind == "f", absolute]
            return np.asarray((matrix.T if at else matrix) @ values)
        out = np.zeros(self.matrix.shape[at], object)
        entry = np.abs(self._listed[2]) if absolute else self._listed[2]
        np.add.at(out, self._listed[at], entry.astype(object) * values[self._listed[1 - at]])
        return out

    def apply(self, v: Array) -> Array:
        return self._times(0, v)

    def transpose(self, y: Array) -> Array:
        return self._times(1, y)

    def spread(self, m: Array) -> Array:
        return self._times(0, m, True)

    def entries(self) -> tuple[Ints, Ints, Array]:
        return self._listed

    def csr(self) -> scipy.sparse.csr_matrix:
        return self.matrix
