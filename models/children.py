"""What models of one parent's children share: the sums that constrain the children's histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.programs.terms import INFINITY, Rows
from models.workload import Workload


class OfChildren:
    """A model of the histograms of one parent's children, with bounds on sums of their cells.

    A dataclass that inherits from it has the fields below, and ``data``, whose first array has a row for each
    child.
    """

    workload: Workload
    parent: ArrayLike | None
    rules: Workload | None
    lower: ArrayLike | None
    upper: ArrayLike | None

    @property
    def data(self) -> tuple[Array, Array]:
        """The children's values, and the weights."""
        raise NotImplementedError

    @property
    def children(self) -> int:
        """Number of children."""
        return len(self.data[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of an answer: children by cells."""
        return self.children, self.workload.cells

    @property
    def answer_size(self) -> int:
        """How many numbers an answer holds: one for each child and cell."""
        return self.children * self.workload.cells

    @property
    def sides(self) -> tuple[Array, Array]:
        """``(lower, upper)`` of the rules, shape (children, rules.size) each."""
        if self.rules is None:
            return np.zeros((self.children, 0)), np.zeros((self.children, 0))
        return np.asarray(self.lower), np.asarray(self.upper)

    def rows(self, measured: Ints) -> list[Rows]:
        """The rows of a program: sums of the parent's cells, rules, and answers.

        - measured: the positions, among all children's answers, of those that have a variable after the
          histograms.
        """
        children, cells = self.shape
        others, size = measured.size, self.answer_size + measured.size
        found = []
        if self.parent is not None:
            columns = np.arange(self.answer_size).reshape(self.shape).T.ravel()
            sums, parent = _sums(columns, np.full(cells, children), size), np.asarray(self.parent)
            found.append(Rows("parent", sums, parent, parent))
        if self.rules is not None:
            sums = _sums(*self._cells_of(self.rules, np.arange(children * self.rules.size)), size)
            lower, upper = self.sides
            found.append(Rows("rules", sums, lower.ravel(), upper.ravel()))
        columns, counted = self._cells_of(self.workload, measured)
        ends = np.cumsum(counted)
        columns = np.insert(columns, ends, self.answer_size + np.arange(others))
        link = _sums(columns, counted + 1, size)
        link.data[ends + np.arange(others)] = -1
        return [*found, Rows("queries", link, *np.zeros((2, others)))]

    def _cells_of(self, sums: Workload, places: Ints) -> tuple[Ints, Ints]:
        """The cells of some sums, among those of all children; and the number of cells of each sum."""
        child = places // sums.size if sums.size else places
        answer = places - child * sums.size
        begin, counted = sums.matrix.indptr[answer], sums.counted[answer]
        first = np.cumsum(counted) - counted
        at = np.arange(counted.sum()) + np.repeat(begin - first, counted)
        return sums.matrix.indices[at] + np.repeat(child * self.workload.cells, counted), counted

    def all_variables(self, x: Array, measured: Ints) -> Array:
        """The histograms, then the measured answers, as in `rows`."""
        return np.concatenate([x.ravel(), self.workload.answers(x).ravel()[measured]])

    def split_prices(self, prices: Array, measured: Ints) -> dict[str, Array]:
        """Prices of `rows` by name: ``prices`` of the parent's cells, ``rules``, and ``answers``."""
        cells = 0 if self.parent is None else self.workload.cells
        rules = 0 if self.rules is None else self.rules.size
        parent, charge, slope = np.split(prices, [cells, cells + self.children * rules])
        answers = np.zeros(self.children * self.workload.size, prices.dtype)
        answers[measured] = slope
        return {
            "prices": parent if cells else np.zeros(self.workload.cells, np.int64),
            "rules": charge.reshape(self.children, rules),
            "answers": answers.reshape(self.children, self.workload.size),
        }

    def broken_sums(self, x: Array, slack: float) -> list[str]:
        """The parent's cells to which the children do not sum, and the rules that they break."""
        found = []
        x = exact.widened(x, max(self.shape))
        if self.parent is not None:
            sums, parent = exact.comparable(x.sum(axis=0), np.asarray(self.parent))
            if sums.dtype == object:  # differences of Python numbers and floats would be rounded
                parent = exact.fractions(parent)
            for j in np.flatnonzero(np.abs(sums - parent) > slack):
                found.append(f"parent: cell {j}: the children sum to {sums[j]}, not {parent[j]}")
        if self.rules is not None:
            held, (lower, upper) = self.rules.answers(x), self.sides
            (low, at), (high, _) = exact.comparable(lower, held), exact.comparable(upper, held)
            for c, i in np.argwhere((at < low - slack) | (at > high + slack)):
                which = f"rules: child {c}, {rule_name(self.rules, i)}"
                found.append(f"{which}: {held[c, i]}, not in {lower[c, i]} … {upper[c, i]}")
        return found


def for_each_child(name: str, values: Array, children: int, each: int) -> Array:
    """One row for each child, read-only; shape (each,) or (children, each) → (children, each).

    Raises `ValueError` if the values have another shape.
    """
    if values.shape not in ((each,), (1, each), (children, each)):
        raise ValueError(
            f"{name} has shape {values.shape}; it needs {each} entries, or {each} for each of the "
            f"{children} children"
        )
    found = np.array(np.broadcast_to(values, (children, each)))
    found.flags.writeable = False
    return found


def bounds_of(
    rules: Workload | None, workload: Workload, children: int, given: tuple[Any, Any], whole: bool = False
) -> tuple[Any, Any]:
    """``(lower, upper)`` of each child's sums, checked, and `whole` if so; infinite where none was given.

    - rules: the sums; None if there are none.
    - workload: the model's, over the same attributes.
    - given: lower and upper bounds, shape (), (rules.size,) or (children, rules.size).

    Raises `ValueError` if a bound has a wrong shape or is not a number, or if there are bounds without rules.
    """
    if rules is None:
        if any(side is not None for side in given):
            raise ValueError("lower and upper are bounds of rules; there are no rules")
        return None, None
    if rules.shape != workload.shape:
        raise ValueError(f"rules are over the shape {rules.shape}, not {workload.shape}")
    sides = []
    for name, side, missing in zip(("lower", "upper"), given, (-INFINITY, INFINITY), strict=True):
        side = exact.as_given(missing if side is None else side)
        if side.dtype != object:
            if side.dtype.kind not in "iuf" or np.isnan(side).any():
                raise ValueError(f"{name} must be numbers, or infinite where there is no bound")
            side = side.astype(float) if side.dtype.kind == "f" else side.astype(np.int64)
        if side.ndim == 0:
            side = np.broadcast_to(side, (rules.size,))
        sides.append(for_each_child(name, side, children, rules.size))
        if whole and np.any((sides[-1] != np.floor(sides[-1])) & np.isfinite(sides[-1].astype(float))):
            raise ValueError(f"{name} must be whole numbers, or infinite where there is no bound")
    return sides[0], sides[1]


def rule_name(rules: Workload, i: int) -> str:
    """The name of rule i: its query, and its place among that query's answers."""
    q = int(np.searchsorted(rules.start, i, "right")) - 1
    return f"query {q}, answer {i - rules.start[q]}"


def _sums(columns: Ints, counted: Ints, size: int) -> scipy.sparse.csr_matrix:
    """A 0/1 matrix by the columns of its ones, row by row, and the number of ones in each row."""
    starts = np.concatenate([[0], np.cumsum(counted)])
    return scipy.sparse.csr_matrix((np.ones(columns.size), columns, starts), shape=(counted.size, size))
