"""The matrix mechanism: measure other linear queries than the bins, and derive all answers by least squares.

The measured queries, the strategy, are rows of whole numbers: a strategy from `hierdp.analysis` is scaled and
rounded *before* anything is measured. So its answers are whole, its L1 sensitivity is a whole number, the
largest sum of absolute values of a column, and double-geometric noise of that sensitivity is exact. Rounding
costs a little variance, and no privacy. One more row in a bin changes the answers by that bin's column.

With C = (AᵀA)⁻¹ and noise of variance v, the bins are C Aᵀ y, and a query q has the variance v · qᵀCq.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.analysis import matrix_mechanism
from hierdp.analysis.workload import RANGE
from hierdp.counts.axes import Axis
from hierdp.errors import InputError, listed
from hierdp.measurements.measuring import Measure
from hierdp.measurements.query import Query
from hierdp.mechanisms.range_query.answers import Summed
from hierdp.privacy.noise import double_geometric_variance
from hierdp.record.step import Solving
from models import StrategySDP
from models.arithmetic.arrays import Floats, Ints

QUERIES = "strategy queries"
"""The measurement, as named in the budget."""

STRATEGIES = ("p-identity", "eigen-select", "optimal")
"""Single bins and some more queries (McKenna et al. 2018); weighted eigenvectors of the workload (Li & Miklau
2012); a root of the semidefinite program's optimum, which is best for Gaussian noise (Li et al. 2010)."""

MOST_BINS = 256
"""The search for a strategy takes time, and a release memory, that grow like the cube and the square."""

UNIT = 2**20
"""Entries of a strategy are whole numbers up to this."""

STEPS = 1000
"""Iterations of the descent for p-identity."""

AT_ONCE = 1024
"""Queries whose variances are computed at once."""


def matrix(
    axes: Sequence[Axis],
    epsilon: float,
    measure: Measure,
    _: Solving,
    *,
    strategy: str = STRATEGIES[0],
    rows: Ints | None = None,
) -> tuple[Matrix, dict[str, Any]]:
    """Measure a strategy's queries; see `hierdp.mechanisms.range_query.hierarchical`.

    - strategy: one of `STRATEGIES`.
    - rows, int64 array, shape (queries, bins): the strategy in whole numbers, which is public. Default:
      `whole_strategy`.
    """
    shape = tuple(axis.bins for axis in axes)
    strategy_rows = whole_strategy(strategy, shape) if rows is None else rows

    def of(truth: Ints) -> Ints:
        return true_answers(strategy_rows, np.asarray(truth, np.int64))

    found = measure(Query(QUERIES, sensitivity(strategy_rows), epsilon, len(strategy_rows), of))
    measure.end()
    variance = double_geometric_variance(found.spend.scale)
    return Matrix.of(strategy_rows, found.answers, variance, shape), {"strategy": strategy}


def whole_strategy(name: str, shape: tuple[int, ...]) -> Ints:
    """The strategy for all ranges (boxes) over the bins, in whole numbers; shape (queries, bins).

    It depends on the number of bins only, not on the data.

    Raises `InputError` if there is no such strategy, or there are too many bins.
    """
    if name not in STRATEGIES:
        raise InputError(f"no strategy {name!r}; there are {listed(STRATEGIES)}")
    if math.prod(shape) > MOST_BINS:
        raise InputError(
            f"the method matrix takes at most {MOST_BINS} bins, got {math.prod(shape):,}; use fewer bins, or "
            "the method H_b^c"
        )
    return _whole(name, shape).copy()


@lru_cache(8)
def _whole(name: str, shape: tuple[int, ...]) -> Ints:
    gram: Floats = np.ones((1, 1))
    for n in shape:
        gram = np.asarray(np.kron(gram, RANGE.gram(n)))
    found = {"p-identity": _p_identity, "eigen-select": matrix_mechanism.eigen, "optimal": _optimal}[name](
        gram
    )
    whole = np.rint(found * (UNIT / np.abs(found).max())).astype(np.int64)
    return np.asarray(whole[np.abs(whole).sum(axis=1) > 0])


def _p_identity(gram: Floats) -> Floats:
    return matrix_mechanism.p_identity(gram, STEPS)


def _optimal(gram: Floats) -> Floats:
    """A root of the program's X = AᵀA: of two roots, the one with the smaller variance for Laplace noise."""
    from solvers import solve

    values, vectors = np.linalg.eigh(gram)
    found = np.asarray(solve(StrategySDP((vectors * np.sqrt(np.maximum(values, 0))).T)).x)
    values, vectors = np.linalg.eigh(found)
    roots = [(vectors * np.sqrt(values)) @ vectors.T, np.linalg.cholesky(found).T]
    return min(roots, key=lambda root: matrix_mechanism.mean_variance(root, gram, 1))


def sensitivity(strategy: Ints) -> int:
    """The L1 sensitivity of a strategy, exactly.

    >>> sensitivity(np.array([[2, 0], [1, -3], [0, 2]]))
    5
    """
    return max(sum(abs(int(entry)) for entry in column) for column in strategy.T)


def true_answers(strategy: Ints, counts: Ints) -> Ints:
    """The strategy's answers, in whole numbers.

    Raises `InputError` if they might not fit 62 bits.
    """
    largest = int(np.abs(strategy).max(initial=0))
    if largest * sum(abs(int(count)) for count in counts.ravel()) >= 2**62:
        raise InputError("the counts are too large for the method matrix; use the method H_b^c")
    return np.asarray(strategy @ counts.ravel())


@dataclass(frozen=True, eq=False)
class Matrix(Summed):
    """Bins from the noisy answers of a strategy, by least squares.

    - counts: of the bins' shape.
    - strategy, int64 array, shape (queries, bins)
    - variance: of the noise of each answer.
    """

    strategy: Ints = field(kw_only=True)

    @classmethod
    def of(cls, strategy: Ints, noisy: ArrayLike, variance: float, shape: tuple[int, ...]) -> Matrix:
        """The least-squares counts.

        Raises `InputError` if the strategy does not determine the bins.
        """
        scaled = strategy / UNIT
        if np.linalg.matrix_rank(scaled) < strategy.shape[1]:
            raise InputError("the strategy does not determine the bins; use another")
        counts: NDArray[Any] = np.linalg.lstsq(scaled, np.asarray(noisy, float) / UNIT, rcond=None)[0]
        return cls(counts.reshape(shape), variance, strategy=strategy)

    @cached_property
    def _covariance(self) -> Floats:
        scaled = self.strategy / UNIT
        return np.asarray(np.linalg.inv(scaled.T @ scaled) * (self.variance / UNIT**2))

    def variances(self, low: Ints, high: Ints) -> Floats:
        """See `hierdp.mechanisms.range_query.answers.AnswerSource`."""
        out = np.empty(len(low))
        places = np.stack(np.unravel_index(np.arange(self.counts.size), self.counts.shape))
        for start in range(0, len(low), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            begin, end = low[part, :, None], high[part, :, None]
            inside = ((places >= begin) & (places < end)).all(axis=1).astype(float)
            out[part] = np.einsum("qi,qi->q", inside @ self._covariance, inside)
        return out

    def bin_variances(self) -> Floats:
        """The variance of each bin, of the counts' shape."""
        return np.asarray(np.diag(self._covariance).reshape(self.counts.shape))


def strategy_in(saved: Sequence[Sequence[int]]) -> Ints:
    """A strategy from a manifest.

    Raises `InputError` if it is not a matrix of whole numbers up to `UNIT`.
    """
    rows = [list(row) for row in saved]
    entries = [entry for row in rows for entry in row]
    whole = all(type(entry) is int and abs(entry) <= UNIT for entry in entries)
    if not rows or not rows[0] or not whole or len({len(row) for row in rows}) != 1:
        raise InputError(f"the strategy is not a matrix of whole numbers from −{UNIT:,} to {UNIT:,}")
    return np.array(rows, np.int64)
