"""Row 15: sorted bins cut into clusters, at the least sum of approximation and Laplace error (AHP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import Certificate, infeasible, judge
from models.exact import Number
from models.model import answer_of, random_noisy
from models.program import Block, Program, Rows, Term

EXACT_UP_TO = 200
"""Number of values up to which whole (or `Fraction`) ones are clustered and judged in Fractions."""

PROGRAM_UP_TO = 400
"""Number of values up to which `program` states its n(n + 1)/2 variables."""

_ROUNDING = 1e-10
"""Relative gap that rounding may leave: potentials that prove so little do not settle it."""

_VECTORS: Any = {"cache": True, "error_model": "numpy"}
"""Division by zero is not looked for: loops over divisions run on vectors, and searches twice as fast."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """The optimal clustering of AHP: a partition of sorted bins into runs.

    ::

        minimize    Σ_C [ Σ_{H_j ∈ C} (H_j − C̄)² + 2/(|C|·ε₂²) ]       Zhang et al. 2014, Theorem 4.2
        subject to  the runs C cover each of the n sorted bins once

    C̄ is the mean of C. The first part is the approximation error (AE), the second the Laplace error (LE) of
    |C| bins that all get C̄ + Lap(1/ε₂)/|C|. An answer x marks the first bin of each run: x[i] is 1 there
    and 0 elsewhere, so ``x[0] == 1`` and ``cumsum(x) - 1`` numbers the runs.

    Parameters
    ----------
    values : array, shape (n,)
        The bins H in ascending order (in AHP the noisy ones, small ones set to 0).
    noise_scale : number
        The scale 1/ε₂ ≥ 0 of the Laplace noise that each run's *sum* will get: the LE of a run is
        2·noise_scale²/|C|.

    Raises
    ------
    ValueError
        If the values are empty, not ascending, not finite, or so far apart that squares pass 1e300; or
        if the scale is negative or not finite.

    Notes
    -----
    The cost w(i, j) of the run of bins i … j − 1 is Monge: w(i, j) + w(i′, j′) ≤ w(i, j′) + w(i′, j) for
    i < i′ < j < j′. Adding bin j to a run of length m adds m/(m + 1)·(H_j − C̄)² to its AE; dropping the
    run's smallest bin lowers m and raises C̄, so it adds less (H_j ≥ C̄). And the LE is convex in |C|.

    Examples
    --------
    >>> model = Clustering([1, 1, 3, 3, 4, 6, 7], noise_scale=2)        # Zhang et al., Example 3.1
    >>> model.objective([1, 0, 1, 0, 0, 1, 0])
    Fraction(71, 6)
    >>> model.certificate([1, 0, 1, 0, 0, 1, 0])
    Certificate(optimal=True, objective=Fraction(71, 6), bound=Fraction(71, 6), gap=Fraction(0, 1), ...)
    """

    values: ArrayLike
    noise_scale: Number

    def __post_init__(self) -> None:
        values = exact.as_data("values", self.values)
        if values.size == 0:
            raise ValueError("values is empty: there is nothing to cluster")
        falls = np.flatnonzero(values[1:] < values[:-1])
        if falls.size:
            i = int(falls[0])
            raise ValueError(
                f"values must be ascending: values[{i}] = {values[i]} > {values[i + 1]}: sort them"
            )
        scale: Any = self.noise_scale
        scale = scale.item() if isinstance(scale, np.generic) else scale
        if isinstance(scale, bool) or not isinstance(scale, int | float | Fraction):
            raise ValueError(f"noise_scale must be a number, got {scale!r}")
        if not 0 <= scale < 1e150:
            raise ValueError(f"noise_scale is {scale}: it must be from 0 to 1e150")
        spread = float(values[-1]) - float(values[0])
        if spread * spread * values.size >= 1e300:
            raise ValueError(f"values from {values[0]} to {values[-1]}: their squares pass 1e300")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "noise_scale", scale)

    @property
    def data(self) -> tuple[NDArray[Any], Number]:
        """``(values, noise_scale)``."""
        return np.asarray(self.values), self.noise_scale

    @property
    def in_fractions(self) -> bool:
        """Whether the model is small enough, and its values exact, for answers proved in Fractions."""
        values, _ = self.data
        return exact.is_exact(values) and values.size <= EXACT_UP_TO

    def program(self) -> Program:
        """The shortest path through the bins: ``run[k]`` is 1 if the k-th of all runs is chosen.

        Runs are numbered by their first bin, then by their length. A run begins where `x` marks a bin, and
        another ends just before it. The rows are those of a path, so the LP relaxation is whole already.

        Raises
        ------
        ValueError
            If there are more than `PROGRAM_UP_TO` values.
        """
        values, _ = self.data
        n = values.size
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
        marked = sp.csr_matrix((-np.ones(n), (marks, marks)), shape=shape)
        begins = marked + sp.csr_matrix((ones, (first, each)), shape=shape)
        # Row i is about what ends just before bin i; row 0 is given to the last bin instead.
        after = (last + 1) % n
        ends = sp.csr_matrix((ones, (after, each)), shape=shape) + marked
        cost = np.array(
            [float(self.run_cost(i, j + 1)) for i, j in zip(first.tolist(), last.tolist(), strict=True)]
        )
        zero = np.zeros(n)
        return Program(
            "Clustering",
            [
                Block("x", (n,), np.where(marks == 0, 1, 0), 1, True),
                Block("run", (first.size,), 0, 1, True),
            ],
            [
                Rows("begins", sp.csr_matrix(begins), zero, zero),
                Rows("ends", sp.csr_matrix(ends), zero, zero),
            ],
            [Term("linear", each, cost)],
        )

    def run_cost(self, first: int, end: int) -> Number:
        """Cost of the run of bins ``first … end − 1``; a `Fraction` for exact values."""
        values, scale = self.data
        run, count = values[first:end], int(end - first)
        if exact.is_exact(values):
            total, noise = exact.total(run), 2 * Fraction(scale) ** 2
            return Fraction(exact.dot(run, run)) + (noise - Fraction(total) ** 2) / count
        away = run - np.mean(run)
        return float(np.sum(away * away) + 2 * float(scale) ** 2 / count)

    def objective(self, x: Any) -> Number:
        """AE and LE of all runs; a `Fraction` for exact values (a float scale is one, too).

        The first bin begins a run whatever x[0], and so does any bin whose mark is not 0.
        """
        values, scale = self.data
        starts = self._starts(x)
        ends = np.append(starts[1:], values.size)
        if not exact.is_exact(values):
            return _cost(starts, ends, *self.in_floats())
        middle = values[values.size // 2]
        away = exact.difference(values, np.full_like(values, middle))
        totals = np.add.reduceat(exact.widened(away, values.size), starts)
        # Runs of one length together: few divisions.
        order = np.argsort(ends - starts, kind="stable")
        lengths, at = np.unique((ends - starts)[order], return_index=True)
        single = 2 * Fraction(scale) ** 2
        parts = zip(lengths.tolist(), np.split(totals[order], at[1:]), strict=True)
        return exact.dot(away, away) + sum(
            ((single * part.size - Fraction(exact.dot(part, part))) / length for length, part in parts),
            Fraction(0),
        )

    def violations(self, x: Any) -> list[str]:
        """A first bin that begins no run, and marks other than 0 and 1."""
        x = answer_of(x, np.shape(self.values), integer=True)
        found = [f"mark: x[{i}] = {x[i]}, neither 0 nor 1" for i in np.flatnonzero((x != 0) & (x != 1))]
        return found if x[0] != 0 else [f"first: x[0] = {x[0]}, but the first bin begins a run", *found]

    def certificate(self, x: Any) -> Certificate:
        """Potentials: the cost d[j] of the best partition of the first j bins, found from the data alone.

        If d[j] − d[i] ≤ w(i, j) for all i < j, every partition costs at least d[n] − d[0]. For exact values,
        up to `EXACT_UP_TO` of them, all pairs are checked in Fractions. Otherwise in floats, by divide and
        conquer in O(n log n), whatever d is: adding d[i] to row i keeps w Monge (see the notes), so the
        rows of the column minima of d[i] + w(i, j) never fall, and all other pairs are no better than
        these. What a d[j] exceeds its column's minimum by is taken off the bound, once for each j, as a
        partition reaches each j at most once. So the bound holds whatever d, up to the rounding of w: sums
        are kept to twice the precision of a float, and the answer is held to `judge`'s relative 1e-7.

        Floats are first tried with the d of partitions near x, in which the last run begins in the run of x
        before: if x is optimal, they are the least costs already, and found much sooner.
        """
        x = answer_of(x, np.shape(self.values), integer=True)
        broken = self.violations(x)
        if broken:
            return infeasible(self.objective(x), broken)
        reason = "another partition costs less"
        if self.in_fractions:
            objective, (potentials, _) = self.objective(x), self.potentials()
            return judge(objective, objective - potentials[-1], True, {"potentials": potentials}, reason)
        values, starts, data = np.asarray(self.values), self._starts(x), self.in_floats()
        ends = np.append(starts[1:], x.size)
        objective = self.objective(x) if exact.is_exact(values) else _cost(starts, ends, *data)
        potentials = _along(starts, *data)
        bound = float(potentials[-1]) - _excess(potentials, *data)
        if float(objective) - bound > _ROUNDING * float(objective):
            potentials, _ = self.potentials()
            bound = float(potentials[-1]) - _excess(potentials, *data)
        gap = max(0.0, float(objective) - bound)
        return judge(objective, gap, False, {"potentials": potentials}, reason)

    def potentials(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The dual optimum: least costs d[j] of the first j bins, and where their last runs begin.

        Both of shape (n + 1,); costs are Fractions where the model is `in_fractions`, else floats. Of
        equally good last runs it is the longest (in floats, as far as rounding lets ties be seen).

        In Fractions by trying all pairs. In floats, bin by bin: of two places where the last run may begin,
        the later one, once it is better, stays better (w is Monge), so the candidates queue up by the
        bin from which each is best; O(n log n).
        """
        if not self.in_fractions:
            return _potentials(*self.in_floats())  # type: ignore[no-any-return]
        values, scale = self.data
        sums = [Fraction(0)]
        squares = [Fraction(0)]
        for value in values.tolist():
            sums.append(sums[-1] + value)
            squares.append(squares[-1] + value * value)
        noise = 2 * Fraction(scale) ** 2
        best = [Fraction(0)]
        begins = [0]
        for j in range(1, values.size + 1):
            # Σ of squares up to j is common to all ways to get there.
            costs = [best[i] - squares[i] + (noise - (sums[j] - sums[i]) ** 2) / (j - i) for i in range(j)]
            best.append(min(costs) + squares[j])
            begins.append(costs.index(min(costs)))
        return np.array([*best, None], dtype=object)[:-1], np.array(begins)

    def _starts(self, x: Any) -> NDArray[np.int64]:
        x = answer_of(x, np.shape(self.values), integer=True)
        return np.union1d([0], np.flatnonzero(x)).astype(np.int64)

    def in_floats(self) -> tuple[float, tuple[NDArray[np.float64], ...]]:
        """The LE of a single bin, and the sums of values and squares that costs are made of.

        The values less their median: the costs are the same, and lose fewer digits.
        """
        values, scale = self.data
        away = exact.difference(values, np.full_like(values, values[values.size // 2])).astype(np.float64)
        return 2 * float(scale) ** 2, _sums(away)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Sorted counts of all kinds, many of them equal, with noise from none to far too much."""
        values = np.sort(random_noisy(rng, (max(size, 1),)))
        if rng.random() < 0.3:
            values = np.sort(values + rng.laplace(size=values.size))
        return cls(values, float(rng.choice([0.0, 0.1, 1.0, 10.0, 1e4])))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _product(a: float, b: float) -> Any:
    """``a·b`` as a float and what it lacks (Dekker)."""
    high = a * b
    t = 134217729.0 * a
    a1 = t - (t - a)
    a2 = a - a1
    t = 134217729.0 * b
    b1 = t - (t - b)
    b2 = b - b1
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(sums: Any, rest: Any, i: int, high: float, low: float) -> None:
    """Put ``sums[i] + (high, low)`` into ``sums[i + 1]``, to twice the precision (Knuth)."""
    total = sums[i] + high
    part = total - sums[i]
    lost = (sums[i] - (total - part)) + (high - part) + rest[i] + low
    sums[i + 1] = total + lost
    rest[i + 1] = lost - (sums[i + 1] - total)


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _sums(v: Any) -> Any:
    """Running sums of v and of its squares, each as a float and what it lacks; shape (n + 1,) each."""
    n = v.size
    p, p_rest, q, q_rest = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        _add(p, p_rest, i, v[i], 0.0)
        square, lacks = _product(v[i], v[i])
        _add(q, q_rest, i, square, lacks)
    return p, p_rest, q, q_rest


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _spread(p: float, p_rest: float, q: float, q_rest: float, to: Any, count: float) -> Any:
    """Σ (v − mean)² over `count` bins: Σ v² less (Σ v)²/count, to twice the precision of a float.

    From the running sums before the first bin and, as a tuple, after the last.
    """
    total = to[0] - p
    part = to[0] - total
    lacks = (to[0] - (total + part)) + (part - p) + (to[1] - p_rest)
    square, square_rest = _product(total, total)
    mean = square / count
    back, back_rest = _product(mean, count)
    mean_rest = ((square - back) - back_rest + square_rest + 2.0 * total * lacks) / count
    whole = to[2] - q
    part = to[2] - whole
    whole_rest = (to[2] - (whole + part)) + (part - q) + (to[3] - q_rest)
    return max(0.0, (whole - mean) + (whole_rest - mean_rest))


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _squares(sums: Any, i: int, j: int) -> Any:
    """Σ (v − mean)² over bins i … j − 1."""
    p, p_rest, q, q_rest = sums
    return _spread(p[i], p_rest[i], q[i], q_rest[i], (p[j], p_rest[j], q[j], q_rest[j]), float(j - i))


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _all_squares(sums: Any, starts: Any, ends: Any) -> Any:
    found = np.empty(starts.size)
    for k in range(starts.size):
        found[k] = _squares(sums, starts[k], ends[k])
    return found


def _cost(starts: NDArray[np.int64], ends: NDArray[np.int64], noise: float, sums: Any) -> float:
    """AE and LE of all runs in floats."""
    return math.fsum(_all_squares(sums, starts, ends)) + math.fsum(noise / (ends - starts))


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _through(d: Any, noise: float, sums: Any, i: int, j: int) -> Any:
    """Cost of the first j bins with a last run that begins at bin i."""
    return d[i] + (_squares(sums, i, j) + noise / (j - i))


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _potentials(noise: float, sums: Any) -> Any:
    """Least cost d[j] of the first j bins; from bin ``since[k]`` on, ``queue[k]`` begins the last run."""
    n = sums[0].size - 1
    d, begin = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    queue, since = np.zeros(n + 1, np.int64), np.ones(n + 1, np.int64)
    head = tail = 0
    for j in range(1, n + 1):
        while head < tail and since[head + 1] <= j:
            head += 1
        begin[j] = queue[head]
        d[j] = _through(d, noise, sums, begin[j], j)
        # Once bin j is a better place to begin than another, it stays so: better by the last bin, or never.
        if j == n or _through(d, noise, sums, j, n) >= _through(d, noise, sums, queue[tail], n):
            continue
        high = n
        while tail >= head:
            i, low = queue[tail], max(since[tail], j + 1)
            if _through(d, noise, sums, j, low) >= _through(d, noise, sums, i, low):
                break
            high = low
            tail -= 1
        if tail >= head:
            while high - low > 1:
                middle = (low + high) // 2
                if _through(d, noise, sums, j, middle) < _through(d, noise, sums, i, middle):
                    high = middle
                else:
                    low = middle
        tail += 1
        queue[tail], since[tail] = j, high
    return d, begin


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _column(d: Any, noise: float, sums: Any, low: int, j: int, costs: Any) -> None:
    """Put `_through` of bins low, low + 1, … to `costs`, as many as it holds: slices run on vectors."""
    rows = slice(low, low + costs.size)
    d, p, p_rest, q, q_rest = d[rows], sums[0][rows], sums[1][rows], sums[2][rows], sums[3][rows]
    to = (sums[0][j], sums[1][j], sums[2][j], sums[3][j])
    longest = float(j - low)
    for k in range(costs.size):
        count = longest - k
        costs[k] = d[k] + (_spread(p[k], p_rest[k], q[k], q_rest[k], to, count) + noise / count)


@numba.njit(cache=True, fastmath={"nnan", "nsz"})  # type: ignore[untyped-decorator]
def _first_least(costs: Any) -> int:
    """Where the least cost first stands."""
    least = np.inf
    for k in range(costs.size):
        least = min(least, costs[k])
    for k in range(costs.size):
        if costs[k] <= least:
            return k
    return 0


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _minima(
    d: Any, noise: float, sums: Any, first: int, last: int, low: int, high: int, costs: Any, least: Any
) -> None:
    """``least[j]`` = min over low ≤ i ≤ high, i < j of d[i] + w(i, j), for first ≤ j ≤ last.

    By divide and conquer over the columns j: the rows i of their minima never fall. `costs` is for scratch.
    """
    stack = [(first, last, low, high)]
    while len(stack) > 0:
        first, last, low, high = stack.pop()
        j = (first + last) // 2
        part = costs[: min(high, j - 1) + 1 - low]
        _column(d, noise, sums, low, j, part)
        at = _first_least(part)
        least[j] = part[at]
        at += low
        if first < j:
            stack.append((first, j - 1, low, at))
        if j < last:
            stack.append((j + 1, last, at, high))


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _excess(d: Any, noise: float, sums: Any) -> float:
    """Σ_j of what d[j] exceeds min_i d[i] + w(i, j) by."""
    n = d.size - 1
    least = np.zeros(n + 1)
    _minima(d, noise, sums, 1, n, 0, n - 1, np.empty(n), least)
    excess = 0.0
    for j in range(1, n + 1):
        excess += max(0.0, d[j] - least[j])
    return excess


@numba.njit(**_VECTORS)  # type: ignore[untyped-decorator]
def _along(starts: Any, noise: float, sums: Any) -> Any:
    """Least costs d[j] of the first j bins by ways that stop in each run, or at its ends, of those given."""
    n = sums[0].size - 1
    d, costs = np.zeros(n + 1), np.empty(n + 1)
    low = 0
    for k in range(starts.size):
        high = starts[k]
        last = starts[k + 1] if k + 1 < starts.size else n
        _minima(d, noise, sums, high + 1, last, low, high, costs, d)
        low = high
    return d
