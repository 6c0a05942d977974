"""Each method's expected variance over a workload, without data; the best branching factor and budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hierdp.analysis import matrix_mechanism
from hierdp.analysis.budgets import closed_form, equal, geometric, iterated, noise_variance, quadtree
from hierdp.analysis.explicit_workload import ExplicitWorkload
from hierdp.analysis.grids import feasible
from hierdp.analysis.queries import Queries
from hierdp.analysis.workload import height
from hierdp.errors import InputError
from hierdp.execution import progress
from models.arithmetic.arrays import Floats

MOST_BRANCHING = 1024
"""The largest branching factor tried, as in the paper; the flat method has no such limit."""

FEW = 32
"""How many of the best branching factors by either rule get an optimized budget; an eighth if slow."""


@dataclass(frozen=True, eq=False)
class Row:
    """A method with its best parameters.

    Attributes
    ----------
    method : str
        Name, as in the paper.
    variance : float
        Mean variance of the workload's answers; NaN if it is not defined.
    branching, levels : int, optional
    budget : str
        How ε is split: "equal", "geometric", "quadtree" or "optimized".
    shares : array, shape (levels,), optional
        ε of each level, leaves first; 0 for a level that should not be measured.
    note : str
    """

    method: str
    variance: float
    branching: int | None = None
    levels: int | None = None
    budget: str = ""
    shares: Floats | None = None
    note: str = ""


Budget = Callable[[Queries, int, float], Floats]


def equal_split(queries: Queries, branching: int, epsilon: float) -> Floats:
    """ε/h for each level."""
    return equal(epsilon, height(queries.bins, branching))


def geometric_split(queries: Queries, branching: int, epsilon: float) -> Floats:
    """Geometric shares."""
    return geometric(epsilon, height(queries.bins, branching), branching, queries.dimensions)


def quadtree_split(queries: Queries, branching: int, epsilon: float) -> Floats:
    """Shares as in a quadtree."""
    return quadtree(epsilon, height(queries.bins, branching), branching, queries.dimensions)


def branchings(queries: Queries) -> list[int]:
    """Branching factors to try: 2 … min(n, `MOST_BRANCHING`), a sample above 16 for listed queries."""
    tried = range(2, min(queries.bins, MOST_BRANCHING) + 1)
    if isinstance(queries, ExplicitWorkload):
        return sorted({b for b in tried if b <= 16} | {round(16 * 1.2**k) for k in range(24)} & set(tried))
    return [b for b in tried if feasible(queries.bins, b, queries.dimensions)]


def plain_variance(queries: Queries, branching: int, shares: Floats) -> float:
    """Mean variance of H_b without constrained inference."""
    used, noise = queries.nodes_used(branching), noise_variance(shares)
    return float(np.sum(used[used > 0] * noise[used > 0]))


def consistent_variance(queries: Queries, branching: int, shares: Floats) -> float:
    """Mean variance of H_b^c."""
    return queries.consistent(branching, noise_variance(shares))


def analyse(queries: Queries, epsilon: float, tried: Sequence[int] | None = None) -> list[Row]:
    """One row per method.

    Parameters
    ----------
    queries : Queries
    epsilon : float
    tried : sequence of int, optional
        Branching factors. Default: `branchings`.

    Raises
    ------
    InputError
        If ε is not positive and finite, or a branching factor is below 2.

    Examples
    --------
    >>> from hierdp.analysis.queries import Regular
    >>> best = min(analyse(Regular.ranges(2**11), 1.0), key=lambda row: row.variance)
    >>> best.method, best.branching, best.levels, round(best.variance, 1)
    ('H_b,o^c', 14, 3, 200.0)
    """
    tried = branchings(queries) if tried is None else list(tried)
    rows = [Row("F", 2 / epsilon**2 * queries.cells(), None, 1, "equal", np.array([float(epsilon)]), "flat")]
    if tried:
        rows += [*_plain(queries, epsilon, tried), *_consistent(queries, epsilon, tried)]
    rows.append(Row("W_H", queries.wavelet(epsilon), 2, note="Haar wavelet (Privelet)"))
    rows.append(Row("SF", float("nan"), note="not defined without data: it merges bins by their counts"))
    return rows


def _plain(queries: Queries, epsilon: float, tried: Sequence[int]) -> Iterable[Row]:
    def row(name: str, b: int, shares: Floats, how: str, note: str) -> Row:
        return Row(name, plain_variance(queries, b, shares), b, shares.size, how, shares, note)

    def at(b: int) -> float:
        return plain_variance(queries, b, equal_split(queries, b, epsilon))

    binary = "binary hierarchy" + (", no inference" if queries.dimensions == 1 else " along each dimension")
    if 2 in tried:
        yield row("H_2", 2, equal_split(queries, 2, epsilon), "equal", binary)
    best = min(tried, key=at)
    yield row("H_b", best, equal_split(queries, best, epsilon), "equal", "best b, no inference")
    splits = {b: closed_form(queries, b, epsilon) for b in tried}
    best = min(tried, key=lambda b: splits[b].variance)
    split = splits[best]
    note = f"best b, no inference{_unmeasured(split.shares)}"
    yield Row("H_b,o", split.variance, best, split.shares.size, "optimized", split.shares, note)


def _consistent(queries: Queries, epsilon: float, tried: Sequence[int]) -> Iterable[Row]:
    def row(name: str, b: int, split: Budget, how: str, note: str) -> Row:
        shares = split(queries, b, epsilon)
        return Row(name, consistent_variance(queries, b, shares), b, shares.size, how, shares, note)

    def best_by(split: Budget) -> list[int]:
        return sorted(tried, key=lambda b: consistent_variance(queries, b, split(queries, b, epsilon)))

    if 2 in tried:
        yield row("H_2^c", 2, equal_split, "equal", "binary hierarchy, constrained inference")
        yield row("Quad = H_2,g^c", 2, quadtree_split, "quadtree", "budget of Cormode et al. 2012")
    by_equal, by_geometric = best_by(equal_split), best_by(geometric_split)
    yield row("H_b^c", by_equal[0], equal_split, "equal", "best b, constrained inference: the paper's advice")
    yield row("H_b,g^c", by_geometric[0], geometric_split, "geometric", "best b")
    few = FEW if queries.dimensions == 1 and not isinstance(queries, ExplicitWorkload) else FEW // 8
    splits = {b: iterated(queries, b, epsilon) for b in {*by_equal[:few], *by_geometric[:few]}}
    best = min(splits, key=lambda b: splits[b].variance)
    found = splits[best]
    note = f"best b{_unmeasured(found.shares)}"
    yield Row("H_b,o^c", found.variance, best, found.shares.size, "optimized", found.shares, note)


def _unmeasured(shares: Floats) -> str:
    left = int(np.sum(shares == 0))
    return f"; {left} of {shares.size} levels should not be measured" if left else ""


def scaled(rows: Iterable[Row], epsilon: float) -> list[Row]:
    """The rows of another ε, from those for ε = 1: variances are proportional to 1/ε², shares to ε."""
    return [
        replace(
            row,
            variance=row.variance / epsilon**2,
            shares=None if row.shares is None else row.shares * epsilon,
        )
        for row in rows
    ]


_OF_256_BINS = 12.0
"""Seconds of the matrix mechanism with 300 steps; they grow with the number of bins to the power of 2.5."""


def matrix_rows(queries: Queries, epsilon: float, steps: int = 1000) -> list[Row]:
    """The matrix mechanism's rows, for few bins.

    Raises `InputError` if there are several dimensions, too many bins, or bins that occur in exactly the same
    queries.
    """
    if queries.dimensions > 1:
        raise InputError("the matrix mechanism is compared in one dimension only; leave out --matrix")
    if queries.bins > matrix_mechanism.MOST_BINS:
        raise InputError(
            f"the matrix mechanism takes at most {matrix_mechanism.MOST_BINS} bins, got {queries.bins}"
        )
    gram, count = queries.gram()
    mm = matrix_mechanism
    strategies: dict[str, tuple[Callable[[], Floats], str]] = {
        "MM, eigen-select": (lambda: mm.eigen(gram), "eigenvectors, weighted for Laplace noise"),
        "MM, low-rank": (lambda: mm.low_rank(gram, steps), "a local optimum, from an SVD"),
        "MM, p-identity": (lambda: mm.p_identity(gram, steps), "single bins and a few more; local optimum"),
    }
    what = f"The matrix mechanism on {queries.bins} bins"
    progress.announce(what, steps / 300 * _OF_256_BINS * (queries.bins / 256) ** 2.5)
    shown = progress.steps(strategies.items(), "strategies", len(strategies))
    rows = [
        Row(name, mm.mean_variance(strategy(), gram, count, epsilon), note=note)
        for name, (strategy, note) in shown
    ]
    least, _ = mm.lower_bound(gram, count, epsilon)
    note = "proved: no strategy with Laplace noise is better"
    return [*rows, Row("MM, lower bound (SDP)", least, note=note)]


def _by(variance: Callable[[Queries, int, Floats], float], split: Budget) -> Callable[[Queries, int], float]:
    return lambda queries, branching: variance(queries, branching, split(queries, branching, 1.0))


plain_equal = _by(plain_variance, equal_split)
consistent_equal, consistent_geometric, consistent_quadtree = (
    _by(consistent_variance, split) for split in (equal_split, geometric_split, quadtree_split)
)
"""Mean variances of H_b and H_b^c by workload and b, ε = 1."""


def flat_is_best(
    most: int, at: Callable[[int], Queries], hierarchy: Callable[[Queries, int], float] = consistent_equal
) -> int:
    """The largest n such that no hierarchy beats the flat method on 1 … n bins; b is from `branchings`.

    - at: maps n to the workload over n bins per dimension.
    - hierarchy: maps the workload and b to a mean variance for ε = 1. Default: H_b^c with equal budgets.
    """
    for n in range(1, most + 1):
        queries = at(n)
        flat = 2 * queries.cells() * (1 - 1e-12)
        if any(hierarchy(queries, b) < flat for b in branchings(queries) if b < n):  # b = n is flat itself
            return n - 1
    return most
