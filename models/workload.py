"""Queries on a histogram over several attributes: marginals, and sums over coarser categories."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Flags, Ints
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries on a histogram over a product of attributes, each a set of sums of disjoint cells.

    A histogram has a cell for each combination of categories, in C order: the last attribute varies fastest.
    A query recodes each attribute into coarser categories and counts their combinations: its matrix is a
    Kronecker product of 0/1 aggregations, one for each attribute. In a marginal, each attribute either keeps
    its categories or is summed out.

    Parameters
    ----------
    shape : tuple of int
        Number of categories of each attribute.
    queries : sequence of sequences of int arrays
        ``queries[q][a][i]`` is the coarse category, 0, 1, …, to which query q assigns category i of
        attribute a. See `marginals` for a shorter form.

    Raises
    ------
    ValueError
        If a shape does not fit, or a coarse category is empty.

    Examples
    --------
    Two ages by three regions: the total, the ages, and every cell.

    >>> workload = Workload.marginals((2, 3), [(), (0,), (0, 1)])
    >>> workload.answers(np.array([1, 2, 3, 4, 5, 6]))
    array([21,  6, 15,  1,  2,  3,  4,  5,  6])
    >>> workload.spread(np.array([100, 10, 20, 0, 0, 0, 0, 0, 0]))
    array([110, 110, 110, 120, 120, 120])

    The regions in two groups:

    >>> Workload.marginals((2, 3), [{1: [0, 0, 1]}]).answers(np.array([1, 2, 3, 4, 5, 6]))
    array([12,  9])
    """

    shape: tuple[int, ...]
    queries: Sequence[Sequence[ArrayLike]]

    def __post_init__(self) -> None:
        shape = tuple(int(n) for n in self.shape)
        if min(shape, default=1) < 1:
            raise ValueError(f"every attribute has at least one category, got the shape {shape}")
        checked = []
        for q, query in enumerate(self.queries):
            if len(query) != len(shape):
                raise ValueError(f"query {q} recodes {len(query)} attributes; there are {len(shape)}")
            recodes = [np.array(recode) for recode in query]
            for a, recode in enumerate(recodes):
                if recode.shape != (shape[a],) or recode.dtype.kind not in "iu":
                    raise ValueError(
                        f"query {q}, attribute {a}: a recode holds a whole number for each of the "
                        f"{shape[a]} categories, got shape {recode.shape} of {recode.dtype}"
                    )
                if not np.array_equal(np.unique(recode), np.arange(recode.max() + 1)):
                    raise ValueError(
                        f"query {q}, attribute {a}: the coarse categories are 0, 1, … without a gap, "
                        f"got {np.unique(recode).tolist()}"
                    )
            recodes = [recode.astype(np.int64) for recode in recodes]
            for recode in recodes:
                recode.flags.writeable = False
            checked.append(tuple(recodes))
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "queries", tuple(checked))

    @classmethod
    def marginals(
        cls, shape: Sequence[int], kept: Iterable[Collection[int] | Mapping[int, ArrayLike | None]]
    ) -> Self:
        """Queries by the attributes that they keep; all others are summed out.

        Parameters
        ----------
        shape : sequence of int
        kept : iterable of collections of int, or of mappings
            The positions of the attributes; ``()`` is the total. A mapping gives a recode for each attribute;
            None keeps its categories.
        """
        queries = []
        for q, attributes in enumerate(kept):
            wrong = [a for a in attributes if not 0 <= a < len(shape)]
            if wrong:
                raise ValueError(f"query {q} keeps attribute {wrong[0]}; there are {len(shape)}")
            recodes: list[Any] = [np.zeros(n, np.int64) for n in shape]
            for a in attributes:
                recode = attributes[a] if isinstance(attributes, Mapping) else None
                recodes[a] = np.arange(shape[a]) if recode is None else recode
            queries.append(recodes)
        return cls(tuple(shape), queries)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        alike = self.shape == other.shape and len(self.queries) == len(other.queries)
        return alike and all(
            np.array_equal(ours, theirs)
            for one, two in zip(self.queries, other.queries, strict=True)
            for ours, theirs in zip(one, two, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.shape, len(self.queries)))

    @property
    def cells(self) -> int:
        """Number of cells of a histogram."""
        return math.prod(self.shape)

    @cached_property
    def sizes(self) -> Ints:
        """Number of answers of each query; shape (queries,)."""
        sizes = [math.prod(int(np.max(recode)) + 1 for recode in query) for query in self.queries]
        return np.array(sizes, dtype=np.int64)

    @cached_property
    def start(self) -> Ints:
        """First answer of each query, then the number of answers; shape (queries + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of answers of all queries."""
        return int(self.start[-1])

    @cached_property
    def row(self) -> Ints:
        """The answer to which each query adds each cell; shape (queries, cells)."""
        found = np.empty((len(self.queries), self.cells), np.int64)
        for q, query in enumerate(self.queries):
            place = np.zeros((1,), np.int64)
            for recode in query:
                place = (place[:, None] * (np.max(recode) + 1) + np.asarray(recode)).ravel()
            found[q] = place + self.start[q]
        return found

    @cached_property
    def matrix(self) -> scipy.sparse.csr_matrix:
        """All queries as one 0/1 matrix; shape (size, cells)."""
        rows = self.row.ravel()
        columns = np.tile(np.arange(self.cells), len(self.queries))
        return scipy.sparse.csr_matrix((np.ones(rows.size), (rows, columns)), shape=(self.size, self.cells))

    @cached_property
    def summed(self) -> Flags:
        """Whether each query sums an attribute out; shape (queries, attributes)."""
        flags = [[not np.any(recode) for recode in query] for query in self.queries]
        return np.array(flags, dtype=np.bool_).reshape(len(self.queries), len(self.shape))

    @cached_property
    def detailed(self) -> Flags:
        """Whether each query counts every cell alone; shape (queries,)."""
        return np.asarray(self.sizes == self.cells)

    @cached_property
    def counted(self) -> Ints:
        """Number of cells in each answer; shape (size,)."""
        return np.bincount(self.row.ravel(), minlength=self.size)

    @cached_property
    def is_marginal(self) -> bool:
        """Whether every query either keeps each attribute unchanged or sums it out."""
        return all(
            not np.any(recode) or np.array_equal(recode, np.arange(len(recode)))
            for query in self.queries
            for recode in map(np.asarray, query)
        )

    @cached_property
    def _matrices(self) -> tuple[tuple[scipy.sparse.csr_matrix, Any], tuple[scipy.sparse.csr_matrix, Any]]:
        """`matrix` and its transpose; and both in whole numbers, for exact sums of them."""
        whole = self.matrix.astype(np.int64)
        return (self.matrix, self.matrix.T), (whole, whole.T)

    def answers(self, x: Array) -> Array:
        """The answers to all queries on histograms; exact for whole numbers and objects.

        Parameters
        ----------
        x : array, shape (..., cells)

        Returns
        -------
        array, shape (..., size)
        """
        x = exact.widened(x, self.cells)
        if x.dtype == object:
            found = np.zeros((*x.shape[:-1], self.size), object)
            for cell, rows in enumerate(self.row.T):
                found[..., rows] += x[..., cell, None]
            return found
        return _applied(self._matrices[x.dtype.kind != "f"][0], x)

    def spread(self, y: Array) -> Array:
        """The transpose of `answers`: in each cell, the sum of the entries of all answers that count it.

        Parameters
        ----------
        y : array, shape (..., size)

        Returns
        -------
        array, shape (..., cells)
        """
        y = exact.widened(y, len(self.queries))
        if y.dtype == object:
            held = np.zeros((*y.shape[:-1], self.cells), object)
            for row in self.row:
                held += y[..., row]
            return held
        return _applied(self._matrices[y.dtype.kind != "f"][1], y)

    def named(self, answer: int) -> str:
        """An answer's query, and its place among that query's answers."""
        q = int(np.searchsorted(self.start, answer, "right")) - 1
        return f"query {q}, answer {answer - self.start[q]}"

    def by_answer(self, by_query: Array) -> Array:
        """Each query's number, repeated for each of its answers; shape (..., queries) → (..., size)."""
        return np.repeat(by_query, self.sizes, axis=-1)

    @classmethod
    def random(cls, rng: np.random.Generator, cells: int) -> Self:
        """Marginals over up to three attributes with at most `cells` cells, the detailed one among them."""
        shape: list[int] = []
        while cells > 1 and len(shape) < 3:
            shape.append(int(rng.integers(1, min(cells, 8) + 1)))
            cells //= shape[-1]
        if not shape:
            shape = [1]
        every = range(len(shape))
        kept = [tuple(a for a in every if rng.random() < 0.5) for _ in range(rng.integers(0, 4))]
        kept.insert(int(rng.integers(0, len(kept) + 1)), tuple(every))
        return cls.marginals(shape, kept)

    def __repr__(self) -> str:
        return f"Workload(shape {self.shape}, {len(self.queries)} queries, {self.size:,} answers)"


ROWS = 1 << 11
"""Histograms that are added up at a time, so that the processor's cache holds them."""


def _applied(matrix: scipy.sparse.csr_matrix, x: Array) -> Array:
    """The product of a matrix and each of some vectors; shape (..., columns) → (..., rows)."""
    vectors = x.reshape(math.prod(x.shape[:-1]), matrix.shape[1])
    if len(vectors) <= ROWS:
        return np.ascontiguousarray((matrix @ vectors.T).T).reshape(*x.shape[:-1], matrix.shape[0])
    found = np.empty((len(vectors), matrix.shape[0]), np.result_type(matrix, x))
    for first in range(0, len(vectors), ROWS):
        part = slice(first, first + ROWS)
        found[part] = (matrix @ vectors[part].T).T
    return found.reshape(*x.shape[:-1], matrix.shape[0])


def answers_of_nodes(tree: Tree, workload: Workload, noisy: Any, weights: Any) -> tuple[Array, Array]:
    """Noisy answers of every node, and the weight of each query on each level, checked."""
    noisy, weights = door.data("noisy", noisy, 2), door.data("weights", weights, 2)
    levels, queries = tree.depth + 1, len(workload.queries)
    if noisy.shape != (tree.size, workload.size):
        raise ValueError(
            f"noisy has shape {noisy.shape}; it needs {tree.size} nodes by {workload.size} answers"
        )
    if weights.shape != (levels, queries):
        raise ValueError(
            f"weights have shape {weights.shape}; they need {levels} levels by {queries} queries"
        )
    for level, q in np.argwhere(weights < 0)[:1]:
        raise ValueError(f"weights[{level}, {q}] is {weights[level, q]}: weights are at least 0")
    return noisy, weights
