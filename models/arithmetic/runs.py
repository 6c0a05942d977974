"""Values in order, cut into runs: answers as marks of first bins, their program, and cuts of fixed number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.model import answer_of
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term, rows_of

PROGRAM_UP_TO = 400
"""Number of values up to which `path_program` states its n(n + 1)/2 variables."""


def checked_clusters(clusters: Any, values: int) -> int | None:
    """Check the number of runs that the values are to be cut into; None if it is free.

    Raises
    ------
    ValueError
        If it is not a whole number from 1 to the number of values.
    """
    if clusters is None:
        return None
    if isinstance(clusters, bool | np.bool_) or not isinstance(clusters, int | np.integer):
        raise ValueError(f"clusters must be a whole number, got {clusters!r}")
    if not 1 <= clusters <= values:
        raise ValueError(f"clusters is {clusters}: {values} values make 1 to {values} runs")
    return int(clusters)


def starts_of(x: Any, values: int) -> Ints:
    """Where runs begin: at the first bin for any mark, and at every other bin whose mark is not 0."""
    return np.union1d([0], np.flatnonzero(answer_of(x, (values,), integer=True))).astype(np.int64)


def marks_of(starts: Ints, values: int) -> Ints:
    """The answer whose runs begin there."""
    x = np.zeros(values, np.int64)
    x[starts] = 1
    return x


def broken(x: Any, values: int, clusters: int | None) -> list[str]:
    """Violations: marks other than 0 and 1, an unmarked first bin, a wrong number of runs."""
    x = answer_of(x, (values,), integer=True)
    found = [f"mark: x[{i}] = {x[i]}, neither 0 nor 1" for i in np.flatnonzero((x != 0) & (x != 1))]
    if x[0] == 0:
        found.insert(0, f"first: x[0] = {x[0]}, but the first bin begins a run")
    runs = starts_of(x, values).size
    if clusters is not None and runs != clusters:
        found.append(f"clusters: {runs} runs, not {clusters}")
    return found


def path_program(name: str, values: int, cost: Callable[[int, int], Number], clusters: int | None) -> Program:
    """The shortest path through the bins: ``run[k]`` is 1 if the k-th of all runs is chosen.

    Runs are numbered by their first bin, then by their length; ``cost(i, j)`` is that of bins i … j − 1. A
    run begins where `x` marks a bin, and another ends just before it. The rows are those of a path, so if the
    number of runs is free, the LP relaxation has whole optima.

    Raises
    ------
    ValueError
        If there are more than `PROGRAM_UP_TO` values.
    """
    n = values
    if n > PROGRAM_UP_TO:
        raise ValueError(
            f"{n} values have {n * (n + 1) // 2:,} runs; a program is stated up to {PROGRAM_UP_TO} "
            "values: use the fast path"
        )
    first, last = np.triu_indices(n)
    each = n + np.arange(first.size)
    marks = np.arange(n)
    ones = np.ones(first.size)
    shape = (n, n + first.size)
    marked = scipy.sparse.csr_matrix((-np.ones(n), (marks, marks)), shape=shape)
    begins = marked + scipy.sparse.csr_matrix((ones, (first, each)), shape=shape)
    # Row i is about what ends just before bin i; row 0 is given to the last bin instead.
    after = (last + 1) % n
    ends = scipy.sparse.csr_matrix((ones, (after, each)), shape=shape) + marked
    costs = [float(cost(i, j + 1)) for i, j in zip(first.tolist(), last.tolist(), strict=True)]
    zero = np.zeros(n)
    rows = [
        Rows("begins", scipy.sparse.csr_matrix(begins), zero, zero),
        Rows("ends", scipy.sparse.csr_matrix(ends), zero, zero),
    ]
    if clusters is not None:
        entries = (np.zeros(n, np.int64), marks, np.ones(n))
        rows.append(rows_of("clusters", (1, n + first.size), entries, clusters, clusters))
    blocks = [Block("x", (n,), np.where(marks == 0, 1, 0), 1, True), Block("run", (first.size,), 0, 1, True)]
    return Program(name, blocks, rows, [Term("linear", each, np.array(costs))])


def path_prices(potentials: ArrayLike) -> Array:
    """Potentials d[0 … n] as prices of the rows of `path_program`: −d where runs begin, d where they end."""
    d = np.ravel(np.asarray(potentials))
    return np.concatenate([-d[:-1], d[-1:], d[1:-1]])


def walk(begins: Ints) -> Ints:
    """The starts of the runs of the cut in which ``begins[j]`` starts the last run of the first j bins.

    If `begins` has one row for each number of runs, from 0 on, each step back goes one row up.
    """
    return np.asarray(_walk(np.atleast_2d(begins)))


@kernel()
def _walk(begins: Any) -> Any:
    row, end = begins.shape[0] - 1, begins.shape[1] - 1
    starts = np.empty(end, np.int64)
    k = end
    while end > 0:
        end = begins[row, end]
        row = max(row - 1, 0)
        k -= 1
        starts[k] = end
    return starts[k:]
