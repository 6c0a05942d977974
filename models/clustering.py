"""Row 15: sorted bins cut into clusters, at the least sum of approximation and Laplace error (AHP)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import cuts, exact, exact_paths, monge, runs
from models.certificate import Certificate, Witness, infeasible, judge
from models.exact import Number
from models.model import random_noisy
from models.program import Program
from models.run_costs import Sums, cost_of, rounding, run_cost, sums_of

EXACT_UP_TO = 200
"""Number of values up to which whole (or `Fraction`) ones are clustered and judged exactly."""

_ROUNDING = 1e-10
"""Relative gap that rounding may leave: potentials that prove so little do not settle it."""


@dataclass(frozen=True, eq=False)
class Clustering:
    """The optimal clustering of AHP: a partition of sorted bins into runs.

        minimize    Σ_C [ Σ_{H_j ∈ C} (H_j − C̄)² + 2/(|C|·ε₂²) ]       Zhang et al. 2014, Theorem 4.2
        subject to  the runs C cover each of the n sorted bins once
                    (with `clusters`) there are k of them               Algorithm 2, OptimalCluster

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
    clusters : int, optional
        The number k of runs, 1 to n. By default it is free.

    Raises
    ------
    ValueError
        If the values are empty, not ascending, not finite, or so far apart that squares pass 1e300; if the
        scale is negative or not finite; or if so many runs cannot be had.

    Notes
    -----
    The cost w(i, j) of the run of bins i … j − 1 is Monge: w(i, j) + w(i′, j′) ≤ w(i, j′) + w(i′, j) for
    i < i′ < j < j′. Adding bin j to a run of length m adds m/(m + 1)·(H_j − C̄)² to its AE; dropping the
    run's smallest bin lowers m and raises C̄, so it adds less (H_j ≥ C̄). And the LE is convex in |C|.

    Therefore the least cost of k runs is convex in k, and a price for each run, paid on top of its cost,
    makes k runs the cheapest: one shortest path a price tried, instead of one a run.

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
    clusters: int | None = None

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
        object.__setattr__(self, "clusters", runs.checked_clusters(self.clusters, values.size))

    @property
    def data(self) -> tuple[NDArray[Any], Number]:
        """``(values, noise_scale)``."""
        return np.asarray(self.values), self.noise_scale

    @property
    def noise(self) -> Number:
        """The LE of a single bin, 2·noise_scale²; exact for exact values."""
        values, scale = self.data
        return 2 * Fraction(scale) ** 2 if exact.is_exact(values) else 2 * float(scale) ** 2

    @property
    def in_fractions(self) -> bool:
        """Whether the model is small enough, and its values exact, for answers proved in Fractions."""
        values, _ = self.data
        return exact.is_exact(values) and values.size <= EXACT_UP_TO

    def program(self) -> Program:
        """The shortest path through the bins; see `models.runs.path_program`.

        With `clusters`, its relaxation may mix cuts into more and fewer runs, of the same cost: the least
        cost is convex in the number of runs.

        Raises
        ------
        ValueError
            If there are more than `models.runs.PROGRAM_UP_TO` values.
        """
        return runs.path_program("Clustering", self.data[0].size, self.run_cost, self.clusters)

    def run_cost(self, first: int, end: int) -> Number:
        """Cost of the run of bins ``first … end − 1``; a `Fraction` for exact values."""
        return run_cost(self.data[0][first:end], self.noise)

    def row_prices(self, witness: Witness) -> NDArray[Any]:
        """The witness as prices of the program's rows, where the number of runs is free: the potentials."""
        return runs.path_prices(witness["potentials"])

    def objective(self, x: Any) -> Number:
        """AE and LE of all runs; a `Fraction` for exact values (a float scale is one, too).

        The first bin begins a run whatever x[0], and so does any bin whose mark is not 0.
        """
        values, _ = self.data
        return cost_of(values, runs.starts_of(x, values.size), self.noise)

    def violations(self, x: Any) -> list[str]:
        """A first bin that begins no run, marks other than 0 and 1, a wrong number of runs."""
        return runs.broken(x, self.data[0].size, self.clusters)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """Potentials: the cost d[j] of the best partition of the first j bins, found from the data alone.

        If d[j] − d[i] ≤ w(i, j) for all i < j, every partition costs at least d[n] − d[0]. For exact values,
        up to `EXACT_UP_TO` of them, that is exact for all pairs, and the bound is the least cost: see
        `models.exact_paths`. Otherwise in floats, by divide and conquer in O(n log n), whatever d is: adding
        d[i] to row i keeps w Monge (see the notes), so the rows of the column minima of d[i] + w(i, j) never
        fall, and all other pairs are no better than these. What a d[j] exceeds its column's minimum by is
        taken off the bound, once for each j, as a partition reaches each j at most once. So the bound holds
        whatever d. Sums are kept to twice the precision of a float, and what is left of rounding is taken off
        the bound, too.

        Floats are first tried with the d of partitions near x, in which the last run begins in the run of x
        before: if x is optimal, they are the least costs already, and found much sooner.

        With `clusters`, w is a run's cost and a price λ, whichever it be, and every partition into k runs
        costs at least d[n] − d[0] − k·λ. First tried is what one run more would save, near x.
        """
        broken = self.violations(x)
        objective = self.objective(x)
        if broken:
            return infeasible(objective, broken)
        if not self.in_fractions and self.clusters != self.data[0].size:
            proof = self._near(objective, runs.starts_of(x, self.data[0].size))
            if float(proof.gap or 0) <= _ROUNDING * max(1.0, float(objective)):
                return proof
        _, price, potentials = self.cut()
        return self._judged(objective, price, potentials)

    def _near(self, objective: Number, starts: NDArray[np.int64]) -> Certificate:
        """What potentials of partitions near this one prove, at the price of one run more near it."""
        noise, sums = float(self.noise), self.sums()
        price = 0.0
        if self.clusters is not None:
            price = float(objective) - monge.one_more(starts, noise, sums)
        return self._judged(objective, price, monge.along(starts, noise, price, sums))

    def _judged(
        self, objective: Number, price: Number | None, potentials: NDArray[Any] | None
    ) -> Certificate:
        """What potentials at a price prove of a partition that costs so much."""
        reason = "another partition costs less"
        if price is None or potentials is None:  # as many runs as values: there is no other
            return judge(objective, 0 * objective, self.in_fractions, {}, reason)
        witness = {"potentials": potentials, **({} if self.clusters is None else {"price": price})}
        paid = price * (self.clusters or 0)
        if self.in_fractions:
            return judge(objective, objective - (potentials[-1] - paid), True, witness, reason)
        sums = self.sums()
        over = monge.excess(potentials, float(self.noise), float(price), sums)
        bound = float(potentials[-1]) - over - float(paid) - rounding(self.data[0], sums)
        return judge(objective, max(0.0, float(objective) - bound), False, witness, reason)

    def potentials(self, price: Number = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Least costs d[j] of the first j bins, and where their last runs begin, at a price for each run.

        Both of shape (n + 1,). Of equally good last runs it is the longest (in floats, as far as rounding
        lets ties be seen). Where the model is `in_fractions`, see `models.exact_paths.least_costs`; else in
        floats, bin by bin: of two places where the last run may begin, the later one, once it is better,
        stays better (w is Monge), so the candidates queue up by the bin from which each is best;
        O(n log n).
        """
        if self.in_fractions:
            return exact_paths.least_costs(exact_paths.whole_sums(self.data[0]), self.noise, price)
        return monge.least_costs(float(self.noise), float(price), self.sums())  # type: ignore[no-any-return]

    def cut(self) -> tuple[NDArray[np.int64], Number | None, NDArray[Any] | None]:
        """Where the runs of an optimal partition begin, the price of a run, and the potentials at it.

        The price is 0 where the number of runs is free, and None where there are as many as values.
        """
        values, _ = self.data
        if self.clusters is None:
            potentials, begins = self.potentials()
            return runs.walk(begins), 0, potentials
        if self.clusters == values.size:
            return np.arange(values.size), None, None
        if self.in_fractions:
            wholes = exact_paths.whole_sums(values)
            pair, price, potentials = cuts.in_wholes(self.clusters, self.noise, wholes)
        else:
            pair, price, potentials = cuts.in_floats(self.clusters, float(self.noise), self.sums())
        return cuts.spliced(pair, self.clusters, values.size), price, potentials

    def sums(self) -> Sums:
        """The sums of values and squares that costs in floats are made of."""
        return sums_of(np.asarray(self.values))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Sorted counts of all kinds, noise from none to far too much, often a number of runs."""
        values = np.sort(random_noisy(rng, (max(size, 1),)))
        if rng.random() < 0.3:
            values = np.sort(values + rng.laplace(size=values.size))
        scale = float(rng.choice([0.0, 0.1, 1.0, 10.0, 1e4]))
        most = int(rng.choice([1, 2, 5, values.size])) if rng.random() < 0.4 else None
        clusters = None if most is None else int(rng.integers(1, min(most, values.size) + 1))
        return cls(values, scale, clusters)
