"""The program of cutting values into runs: a shortest path through the bins."""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np
import scipy
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.programs.program import Program
from models.programs.terms import Block, Rows, Term, rows_of

PROGRAM_UP_TO = 400
"""Number of values up to which `path_program` states its n(n + 1)/2 variables."""


def path_program(
    name: str,
    values: int,
    cost: Callable[[int, int], Number],
    clusters: int | None,
    rounded: bool,
    allowed: Container[tuple[int, int]] | None = None,
) -> Program:
    """The shortest path through the bins: ``run[k]`` is 1 if the k-th of all runs is chosen.

    Runs are numbered by their first bin, then by their length; ``cost(i, j)`` is the cost of bins i … j − 1.
    A run begins where `x` marks a bin, and another ends just before it. The rows are those of a path, so if
    the number of runs is free, the LP relaxation has whole optima. If only some runs (i, j) are `allowed`,
    the variables of the others are 0.

    Raises `ValueError` if there are more than `PROGRAM_UP_TO` values.
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
    # Row i is for runs that end just before bin i; row 0, for runs that end with the last bin.
    after = (last + 1) % n
    ends = scipy.sparse.csr_matrix((ones, (after, each)), shape=shape) + marked
    pairs = [(i, j + 1) for i, j in zip(first.tolist(), last.tolist(), strict=True)]
    costs = [cost(i, j) for i, j in pairs]
    most = 1 if allowed is None else np.array([pair in allowed for pair in pairs], np.int64)
    zero = np.zeros(n)
    rows = [
        Rows("begins", scipy.sparse.csr_matrix(begins), zero, zero),
        Rows("ends", scipy.sparse.csr_matrix(ends), zero, zero),
    ]
    if clusters is not None:
        entries = (np.zeros(n, np.int64), marks, np.ones(n))
        rows.append(rows_of("clusters", (1, n + first.size), entries, clusters, clusters))
    blocks = [
        Block("x", (n,), np.where(marks == 0, 1, 0), 1, True),
        Block("run", (first.size,), 0, most, True),
    ]
    return Program(name, blocks, rows, [Term("linear", each, np.array(costs))], rounded)


def path_answer(starts: Ints, values: int) -> Array:
    """All variables of `path_program`, given where runs begin: the marks, then 1 for each chosen run."""
    first, last = np.triu_indices(values)
    marks, chosen = np.zeros(values, np.int64), np.zeros(first.size, np.int64)
    marks[starts] = 1
    ends = np.append(starts[1:], values) - 1
    chosen[np.searchsorted(first * values + last, starts * values + ends)] = 1
    return np.concatenate([marks, chosen])


def path_prices(potentials: ArrayLike) -> Array:
    """Potentials d[0 … n] as prices of the rows of `path_program`: −d where runs begin, d where they end."""
    d = np.ravel(np.asarray(potentials))
    return np.concatenate([exact.negated(d[:-1]), d[-1:], d[1:-1]])
