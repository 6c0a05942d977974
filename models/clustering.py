"""Sorted bins in clusters with the least approximation and Laplace error (Zhang et al. 2014, Theorem 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models import runs
from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.arithmetic.run_costs import cost_of, run_cost, sums_error
from models.certificate import Certificate, Witness, infeasible, judge
from models.partition import Partition
from models.synthetic import noisy_counts, random_noisy
from models.witnesses import sorted_runs


@dataclass(frozen=True, eq=False)
class Clustering(Partition):
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
        scale is negative or not finite; or the values cannot form that many runs.

    Notes
    -----
    The cost w(i, j) of the run of bins i … j − 1 is Monge: w(i, j) + w(i′, j′) ≤ w(i, j′) + w(i′, j) for
    i < i′ < j < j′. Adding bin j to a run of length m adds m/(m + 1)·(H_j − C̄)² to its AE; dropping the
    run's smallest bin lowers m and raises C̄, so it adds less (H_j ≥ C̄). And the LE is convex in |C|.

    Therefore the least cost of k runs is convex in k, and for some price added to the cost of each run, k
    runs are the cheapest. So one shortest path per price tried suffices, instead of one per run.

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
    exact_up_to: ClassVar[int] = 200
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "into 16": {"noise_scale": 0.0, "clusters": 16}}

    def __post_init__(self) -> None:
        values = door.data("values", self.values)
        if values.size == 0:
            raise ValueError("values is empty: there is nothing to cluster")
        falls = np.flatnonzero(values[1:] < values[:-1])
        if falls.size:
            i = int(falls[0])
            raise ValueError(
                f"values must be ascending: values[{i}] = {values[i]} > {values[i + 1]}: sort them"
            )
        scale = door.scalar("noise_scale", self.noise_scale)
        if not 0 <= scale < 1e150:
            raise ValueError(f"noise_scale is {scale}: it must be from 0 to 1e150")
        spread = float(values[-1]) - float(values[0])
        if spread * spread * values.size >= 1e300:
            raise ValueError(f"values from {values[0]} to {values[-1]}: their squares pass 1e300")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "noise_scale", scale)
        object.__setattr__(self, "clusters", runs.checked_clusters(self.clusters, values.size))

    @property
    def data(self) -> tuple[Array, Number]:
        """``(values, noise_scale)``."""
        return np.asarray(self.values), self.noise_scale

    @property
    def noise(self) -> Number:
        """The LE of a single bin, 2·noise_scale²; exact for exact values."""
        values, scale = self.data
        return 2 * Fraction(scale) ** 2 if exact.is_exact(values) else 2 * float(scale) ** 2

    def run_cost(self, first: int, end: int) -> Number:
        """Cost of the run of bins ``first … end − 1``; a `Fraction` for exact values."""
        return run_cost(self.data[0][first:end], self.noise)

    def objective(self, x: Any) -> Number:
        """AE and LE of all runs; a `Fraction` for exact values (even if the scale is a float).

        The first bin begins a run whatever x[0] is, as does every bin whose mark is not 0.
        """
        values, _ = self.data
        return cost_of(values, runs.starts_of(x, values.size), self.noise)

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check potentials d, shape (n + 1,), and with `clusters` a price λ for each run.

        If d[j] − d[i] ≤ w(i, j) + λ for all i < j, a partition into k runs costs at least d[n] − d[0] − k·λ:
        add up the inequalities of its runs. That is weak duality of the shortest path (Ahuja, Magnanti &
        Orlin 1993, §4.5); by the Monge property some λ leaves no gap (Aggarwal, Schieber & Tokuyama 1994).
        Any d and λ may be given: the amount by which they violate the inequalities is subtracted.

        The worst pairs are found in floats, in O(n log n), and a bound on the rounding errors is subtracted,
        too. If the values are exact and that leaves next to no gap, all partitions that may cost less are
        compared exactly, as they are made of few runs; see `models.witnesses.near_runs`.

        Without a witness one is read off x: the least costs of partitions near x, each of whose runs begins
        at most one run of x earlier. With `clusters`, λ is what one more run would save, near x. If x is
        optimal, these are the least costs, up to rounding.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``potentials``, and with `clusters` ``price``: floats, or int and `Fraction`.
        """
        values, _ = self.data
        objective, broken = self.objective(x), self.violations(x)
        if broken:
            return infeasible(objective, broken)
        if self.clusters == values.size:  # there is no other partition
            return judge(objective, 0 * objective, exact.is_exact(values), {}, "")
        price = door.number(witness, "price") if self.clusters is not None else 0
        if door.entry(witness, "potentials") is None:
            price, potentials = self._near(objective, runs.starts_of(x, values.size))
            witness = {"potentials": potentials, "price": price}
        names = ["potentials"] if self.clusters is None else ["potentials", "price"]
        proof = {name: door.entry(witness, name) for name in names}
        d, paid = door.real_array(witness, "potentials", (values.size + 1,)), float(price or 0)
        assert d is not None
        noise, cost, sums = self.noise, float(objective), self.sums()
        most = float(self.clusters or sorted_runs.most_runs(cost, float(noise), values.size))
        over = sorted_runs.most_over(d, float(noise), paid, sums, cost, most, sums_error(values, sums, cost))
        held = float(d[-1]) - float(d[0]) - over - paid * (self.clusters or 0)

        def least() -> Fraction | None:
            near = cost - held + 4 * over
            return sorted_runs.exact_least(d, paid, sums, near, values, Fraction(noise), self.clusters)

        return self._judge(objective, held, 0, 0, proof, float(noise), least)

    def _near(self, objective: Number, starts: Ints) -> tuple[Number, Array]:
        """A price, and potentials at it, of partitions near this one.

        They are floats. For small exact models they are a little lower, and exact at this partition's ends,
        so that as prices of the program's rows they prove its cost.
        """
        noise, sums = float(self.noise), self.sums()
        price: Number = 0
        if self.clusters is not None:
            price = float(objective) - sorted_runs.one_more(starts, noise, sums)
        potentials: Array = sorted_runs.along(starts, noise, float(price), sums)
        if self.in_fractions:
            potentials = (potentials - 2.0**-40 * np.abs(potentials)).astype(object)
            held = Fraction(0)
            for first, end in zip(starts.tolist(), [*starts[1:].tolist(), potentials.size - 1], strict=True):
                held += Fraction(self.run_cost(first, end)) + Fraction(price)
                potentials[end] = held
        return price, potentials

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Sorted counts of all kinds, noise from none to very large, often with a given number of runs."""
        values = np.sort(random_noisy(rng, (max(size, 1),)))
        if rng.random() < 0.3:
            values = np.sort(values + rng.laplace(size=values.size))
        scale = float(rng.choice([0.0, 0.1, 1.0, 10.0, 1e4]))
        most = int(rng.choice([1, 2, 5, values.size])) if rng.random() < 0.4 else None
        clusters = None if most is None else int(rng.integers(1, min(most, values.size) + 1))
        return cls(values, scale, clusters)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Sorted noisy counts."""
        return cls(np.sort(noisy_counts(rng, size)), **{"noise_scale": 10.0, **options})
