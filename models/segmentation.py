"""Values in their own order, cut into runs at the least squared error: the v-optimal histogram."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import exact, exact_paths, runs, segment_paths
from models.certificate import Certificate, Witness, infeasible, judge
from models.exact import Number
from models.model import random_noisy
from models.program import Program
from models.run_costs import Sums, cost_of, rounding, run_cost, sums_of

EXACT_UP_TO = 100
"""Number of values up to which whole (or `Fraction`) ones are cut and judged exactly."""


@dataclass(frozen=True, eq=False)
class Segmentation:
    """A partition of values, in the order they come in, into runs of least squared error.

        minimize    Σ_C [ Σ_{v ∈ C} (v − C̄)² + price ]         Xu et al. 2012; Jagadish et al. 1998
        subject to  the runs C cover each of the n values once
                    (with `clusters`) there are k of them

    C̄ is the mean of C. An answer x marks the first value of each run, as that of `Clustering` does.

    Parameters
    ----------
    values : array, shape (n,)
    clusters : int, optional
        The number k of runs, 1 to n. By default it is free.
    price : number
        What each run costs, 0 or more. NoiseFirst estimates the error of k runs of noisy counts as
        SSE + 4k/ε² − 2n/ε²: its cut, over all k at once, is the one at a price of 4/ε².

    Raises
    ------
    ValueError
        If the values are empty, not finite, or so far apart that squares pass 1e300; if the price is
        negative or not finite; or if so many runs cannot be had.

    Notes
    -----
    Without an order the costs are not Monge, and the least cost of k runs is not convex in k: no price need
    give k of them. A free number takes O(n²) at worst and often O(n), as places where no run should begin
    are forgotten. A given one takes O(n² + n·k·p), where p is the number of places that two binary searches
    leave: n at worst, and far fewer where the best runs are short. The certificate costs about twice that.

    Examples
    --------
    >>> model = Segmentation([3, 3, 9, 1, 1], clusters=3)
    >>> model.certificate([1, 0, 1, 1, 0])
    Certificate(optimal=True, objective=Fraction(0, 1), bound=Fraction(0, 1), gap=Fraction(0, 1), ...)
    """

    values: ArrayLike
    clusters: int | None = None
    price: Number = 0

    def __post_init__(self) -> None:
        values = exact.as_data("values", self.values)
        if values.size == 0:
            raise ValueError("values is empty: there is nothing to cut")
        price: Any = self.price
        price = price.item() if isinstance(price, np.generic) else price
        if isinstance(price, bool) or not isinstance(price, int | float | Fraction):
            raise ValueError(f"price must be a number, got {price!r}")
        if not 0 <= price < 1e300:
            raise ValueError(f"price is {price}: it must be from 0 to 1e300")
        spread = float(values.max()) - float(values.min())
        if spread * spread * values.size >= 1e300:
            raise ValueError(f"values from {values.min()} to {values.max()}: their squares pass 1e300")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "price", price)
        object.__setattr__(self, "clusters", runs.checked_clusters(self.clusters, values.size))

    @property
    def data(self) -> tuple[NDArray[Any], Number]:
        """``(values, price)``; the price is exact for exact values."""
        values = np.asarray(self.values)
        return values, Fraction(self.price) if exact.is_exact(values) else float(self.price)

    @property
    def in_fractions(self) -> bool:
        """Whether the model is small enough, and its values exact, for answers proved in Fractions."""
        values, _ = self.data
        return exact.is_exact(values) and values.size <= EXACT_UP_TO

    def program(self) -> Program:
        """The shortest path through the values; see `models.runs.path_program`.

        Raises
        ------
        ValueError
            If there are more than `models.runs.PROGRAM_UP_TO` values.
        """
        values, price = self.data

        def cost(first: int, end: int) -> Number:
            return run_cost(values[first:end], 0) + price

        return runs.path_program("Segmentation", values.size, cost, self.clusters)

    def row_prices(self, witness: Witness) -> NDArray[Any]:
        """The witness as prices of the program's rows, where the number of runs is free: the potentials."""
        return runs.path_prices(witness["potentials"])

    def objective(self, x: Any) -> Number:
        """Squared error and price of all runs; a `Fraction` for exact values (a float price is one, too)."""
        values, price = self.data
        starts = runs.starts_of(x, values.size)
        return cost_of(values, starts, 0) + price * starts.size

    def violations(self, x: Any) -> list[str]:
        """A first value that begins no run, marks other than 0 and 1, a wrong number of runs."""
        return runs.broken(x, self.data[0].size, self.clusters)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Potentials: least costs of the first j values, with `clusters` in each number r of runs.

        If d[j] − d[i] ≤ w(i, j) + price for all i < j, all partitions cost at least d[n] − d[0]; likewise
        d[r, j] − d[r − 1, i] ≤ w(i, j). For exact values, up to `EXACT_UP_TO` of them, that is exact for all
        pairs, and the bound is the least cost: see `models.exact_paths`. Otherwise in floats, whatever d is,
        and all it is over by, and what rounding might hide, is taken off the bound; see
        `models.segment_paths.priced_excess` and `models.segment_paths.layers_excess`.
        """
        broken = self.violations(x)
        objective = self.objective(x)
        if broken:
            return infeasible(objective, broken)
        reason = "another partition costs less"
        potentials: Any = self.cut()[1]
        values, price = self.data
        witness = {"potentials": potentials}
        if self.in_fractions:
            bound = potentials.flat[-1] + price * (self.clusters or 0)
            return judge(objective, objective - bound, True, witness, reason)
        sums = self.sums()
        over = rounding(values, sums)
        if self.clusters is None:
            over += segment_paths.priced_excess(
                potentials, float(price), sums, runs.starts_of(x, values.size)
            )
            bound = potentials[-1] - over
        else:
            over += segment_paths.layers_excess(potentials, sums)
            bound = potentials[-1, -1] - over + float(price) * self.clusters
        return judge(objective, max(0.0, float(objective) - float(bound)), False, witness, reason)

    def cut(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Where the runs of an optimal partition begin, and the potentials that prove it.

        The potentials have shape (n + 1,), or with `clusters` (k + 1, n + 1), the price not included (inf
        where there is no such cut): floats, or where the model is `in_fractions` those of
        `models.exact_paths.least_costs`.
        """
        values, price = self.data
        if self.in_fractions:
            paid, layers = (price, 0) if self.clusters is None else (0, self.clusters)
            least, begins = exact_paths.least_costs(exact_paths.whole_sums(values), 0, paid, layers)
            return runs.walk(begins), least
        sums = self.sums()
        if self.clusters is None:
            least, begins = segment_paths.priced(float(price), sums)
            return runs.walk(begins), least
        potentials = segment_paths.layers(self.clusters, sums)
        return segment_paths.layered_starts(potentials, sums), potentials

    def sums(self) -> Sums:
        """The sums of values and squares that costs in floats are made of."""
        return sums_of(np.asarray(self.values))

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Counts of all kinds, often in steps, at prices from none to far too much, often with a number."""
        values: NDArray[Any] = random_noisy(rng, (max(size, 1),))
        if rng.random() < 0.5:
            values = values + np.repeat(rng.integers(0, 500, values.size), rng.integers(1, 9))[: values.size]
        if rng.random() < 0.3:
            values = values + rng.laplace(size=values.size)
        price = float(rng.choice([0.0, 0.5, 4.0, 400.0, 1e6]))
        most = int(rng.choice([1, 2, 5, 30])) if rng.random() < 0.5 else None
        clusters = None if most is None else int(rng.integers(1, min(most, values.size) + 1))
        return cls(values, clusters, price)
