"""Values in their own order, cut into runs at the least squared error: the v-optimal histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models import runs
from models.arithmetic import door, exact
from models.arithmetic.arrays import Array
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import cost_of, run_cost, sums_error
from models.certificate import Certificate, Witness, infeasible
from models.partition import Partition
from models.synthetic import noise, random_noisy
from models.witnesses import ordered_runs


@dataclass(frozen=True, eq=False)
class Segmentation(Partition):
    """A partition of values, in their given order, into runs of least squared error.

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
        SSE + 4k/ε² − 2n/ε²: its partition, over all k at once, is the optimum at a price of 4/ε².

    Raises
    ------
    ValueError
        If the values are empty, not finite, or so far apart that squares pass 1e300; if the price is
        negative or not finite; or the values cannot form that many runs.

    Notes
    -----
    If values are not sorted, the costs are not Monge, and the least cost of k runs is not convex in k: there
    may be no price at which k runs are the cheapest. With a free number, the fast path takes O(n²) at worst
    and often O(n), as it drops places where no optimal run begins. With a given number it takes
    O(n² + n·k·p), where p is the number of places that two binary searches leave: n at worst, and far fewer
    if the best runs are short. The certificate takes about twice as long.

    Examples
    --------
    >>> model = Segmentation([3, 3, 9, 1, 1], clusters=3)
    >>> model.certificate([1, 0, 1, 1, 0])
    Certificate(optimal=True, objective=Fraction(0, 1), bound=Fraction(0, 1), gap=Fraction(0, 1), ...)
    """

    values: ArrayLike
    clusters: int | None = None
    price: Number = 0
    random_up_to: ClassVar[int] = 10_000  # time grows with the square
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "into 16": {"clusters": 16}}

    def __post_init__(self) -> None:
        values = door.data("values", self.values)
        if values.size == 0:
            raise ValueError("values is empty: there is nothing to cut")
        price = door.scalar("price", self.price)
        if not 0 <= price < 1e300:
            raise ValueError(f"price is {price}: it must be from 0 to 1e300")
        spread = float(values.max()) - float(values.min())
        if spread * spread * values.size >= 1e300:
            raise ValueError(f"values from {values.min()} to {values.max()}: their squares pass 1e300")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "price", price)
        object.__setattr__(self, "clusters", runs.checked_clusters(self.clusters, values.size))

    @property
    def data(self) -> tuple[Array, Number]:
        """``(values, price)``; the price is exact for exact values."""
        values = np.asarray(self.values)
        return values, Fraction(self.price) if exact.is_exact(values) else float(self.price)

    def run_cost(self, first: int, end: int) -> Number:
        """Squared error and price of a run; a `Fraction` for exact values."""
        values, price = self.data
        return run_cost(values[first:end], 0) + price

    def objective(self, x: Any) -> Number:
        """Squared error and price of all runs; a `Fraction` for exact values (even if `price` is a float)."""
        values, price = self.data
        starts = runs.starts_of(x, values.size)
        return cost_of(values, starts, 0) + price * starts.size

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check potentials d, shape (n + 1,), or with `clusters` (k + 1, n + 1).

        If d[j] − d[i] ≤ w(i, j) + price for all i < j, every partition costs at least d[n] − d[0]: add up the
        inequalities of its runs. Likewise, if d[r, j] − d[r − 1, i] ≤ w(i, j), every partition into k runs
        costs at least d[k, n] − d[0, 0] and k prices. This is weak duality of the shortest path (Ahuja,
        Magnanti & Orlin 1993, §4.5), through values, or through values and numbers of runs. Any d may be
        given: the amount by which it violates the inequalities is subtracted. Entries [r, j] with j < r, and
        [0, j] with j > 0, are not read.

        The worst runs are found in floats, and a bound on the rounding errors is subtracted, too; see
        `models.witnesses.ordered_runs`. If the values are exact and that leaves next to no gap, all
        partitions that may cost less are compared exactly, as they are made of few runs; see
        `models.witnesses.near_runs`.

        Without a witness, the bound uses only that squares are ≥ 0; `solvers.prove` finds potentials.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``potentials``: floats, or int and `Fraction`.
        """
        objective, broken = self.objective(x), self.violations(x)
        if broken:
            return infeasible(objective, broken)
        values, price = self.data
        sure: Number = price * (self.clusters or 1)
        layers = (values.size + 1,) if self.clusters is None else (self.clusters + 1, values.size + 1)
        d, paid = door.real_array(witness, "potentials", layers), price * (self.clusters or 0)
        if d is None:
            return self._judge(objective, -math.inf, 0, sure, {}, float(price), lambda: None)
        cost, sums = float(objective - paid), self.sums()
        lost = sums_error(values, sums, cost)
        if self.clusters is None:
            over = ordered_runs.most_over(d, float(price), sums, runs.starts_of(x, values.size), cost, lost)
            bound = float(d[-1] - d[0]) - over
        else:
            d = ordered_runs.capped(d, cost)
            over = ordered_runs.most_over_layers(d, sums, cost, lost)
            bound = float(d[-1, -1] - d[0, 0]) - over

        def least() -> Fraction | None:
            each = Fraction(price) if self.clusters is None else Fraction(0)
            best = ordered_runs.exact_least(d, each, sums, cost - bound + 4 * over, values)
            return None if best is None else best + Fraction(paid)

        proof = {"potentials": door.entry(witness, "potentials")}
        return self._judge(objective, bound, paid, sure, proof, float(price), least)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Counts of all kinds, often in steps; prices from 0 to very large; often a given number of runs."""
        values: Array = random_noisy(rng, (max(size, 1),))
        if rng.random() < 0.5:
            values = values + np.repeat(rng.integers(0, 500, values.size), rng.integers(1, 9))[: values.size]
        if rng.random() < 0.3:
            values = values + rng.laplace(size=values.size)
        price = float(rng.choice([0.0, 0.5, 4.0, 400.0, 1e6]))
        most = int(rng.choice([1, 2, 5, 30])) if rng.random() < 0.5 else None
        clusters = None if most is None else int(rng.integers(1, min(most, values.size) + 1))
        return cls(values, clusters, price)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Steps of 16 equal counts, with noise."""
        steps = np.repeat(rng.integers(0, 1_000, size // 16 + 1), 16)[:size]
        steps += noise(rng, size)
        return cls(steps, **(options or {"price": 400.0}))
