"""Change points of a signal: runs of at least some length, from chosen places, at the least squared error."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models import runs
from models.arithmetic import door, exact, rounding
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import Number
from models.certificate import FLOAT_TOLERANCE, Certificate, Witness, infeasible, judge, judge_exactly
from models.partition import FEW, Partition
from models.programs import paths
from models.synthetic import noise, random_noisy
from models.witnesses import near_runs
from models.witnesses.scaled import minus, over_one_unit, times

Column = Callable[[int], tuple[Ints, Array, Array]]
"""By an end j: begins of runs, and a whole number over another for each."""


@dataclass(frozen=True, eq=False)
class ChangePoints(Partition):
    """A partition of a signal into runs of least squared error, as of the package ruptures.

        minimize    Σ_C [ Σ_{v ∈ C} ‖v − C̄‖² + price ]          Killick, Fearnhead & Eckley 2012, Eq. 1
        subject to  the runs C cover each of the n values once
                    each has at least `min_size` values, and begins at a multiple of `jump`
                    (with `clusters`) there are k of them

    C̄ is the mean of C. An answer x marks the first value of each run. `Segmentation` is the same without
    `min_size` and `jump`, and faster.

    Parameters
    ----------
    values : array, shape (n,) or (n, features)
    clusters : int, optional
        The number k of runs, one more than the change points. By default it is free.
    price : number
        What each run costs, 0 or more: the penalty.
    min_size, jump : int
        At least 1.

    Raises
    ------
    ValueError
        If the values are empty or not finite, the price is negative or not finite, or the values cannot form
        that many runs of this size.

    Examples
    --------
    >>> model = ChangePoints([3, 3, 9, 1, 1, 1], price=5, min_size=2)
    >>> model.objective([1, 0, 0, 1, 0, 0]), model.violations([1, 0, 1, 1, 0, 0])
    (Fraction(34, 1), ['min_size: the run from value 2 has 1 values, fewer than 2'])
    >>> from solvers import prove
    >>> prove(model, [1, 0, 0, 1, 0, 0]).optimal
    True
    """

    values: ArrayLike
    clusters: int | None = None
    price: Number = 0
    min_size: int = 1
    jump: int = 1
    exact_up_to: ClassVar[int] = 99
    random_up_to: ClassVar[int] = 1_000  # time grows with the square

    def __post_init__(self) -> None:
        values = door.data("values", self.values, ndim=np.ndim(np.asarray(self.values, object)))
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(f"values must be a signal of one or more features, got shape {values.shape}")
        price = door.scalar("price", self.price)
        if not 0 <= price < 1e290:
            raise ValueError(f"price is {price}: it must be from 0 to 1e290")
        if float(np.abs(values).max()) > 1e140:
            raise ValueError("values beyond 1e140: floats may not hold their squares")
        for name in ("min_size", "jump"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
            object.__setattr__(self, name, int(size))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "price", price)
        object.__setattr__(self, "clusters", runs.checked_clusters(self.clusters, len(values)))
        if not self.reaches(self.clusters or 1, len(values)):
            raise ValueError(
                f"{len(values)} values do not make {self.clusters or 1} runs of at least {self.min_size} "
                f"values that begin at multiples of {self.jump}"
            )

    @property
    def data(self) -> tuple[Array, Number]:
        """``(values, price)``, the values of shape (n, features); the price is exact for exact values."""
        values = np.asarray(self.values)
        values = values.reshape(len(values), -1)
        return values, Fraction(self.price) if exact.is_exact(values) else float(self.price)

    @property
    def places(self) -> Ints:
        """Where runs may begin and end: the multiples of `jump`, and n."""
        n = len(np.asarray(self.values))
        return np.append(np.arange(0, n, self.jump), n)

    def reaches(self, count: int, place: int) -> bool:
        """Whether some `count` runs cover exactly the values before a place."""
        if count == 0 or place == 0:
            return count == place == 0
        each = -(-self.min_size // self.jump) * self.jump  # the least run before another one
        return place >= (count - 1) * each + self.min_size

    @property
    def allowed(self) -> Container[tuple[int, int]]:
        """The runs of at least `min_size` values between places."""
        places = self.places.tolist()
        return {(i, j) for i in places[:-1] for j in places if j - i >= self.min_size}

    def run_cost(self, first: int, end: int) -> Number:
        """Squared error and price of a run; a `Fraction` for exact values."""
        values, price = self.data
        return _run_cost(values[first:end]) + price

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows, if the number of runs is free: the potentials."""
        given = door.exact_array(witness, "potentials", (self.places.size,))
        assert given is not None
        most = max(given.tolist())
        here = exact.objects(
            [d if p == 0 or self.reaches(1, p) else most for d, p in zip(given, self.places, strict=True)],
            given.shape,
        )
        d = np.zeros(len(self.data[0]) + 1, object)
        d[self.places] = here
        return paths.path_prices(d)

    def objective(self, x: Any) -> Number:
        """Squared error and price of all runs; a `Fraction` for exact values (even if `price` is a float)."""
        values, price = self.data
        starts = runs.starts_of(x, len(values))
        costs = [_run_cost(values[i:j]) for i, j in _runs(starts, len(values))]
        return sum(costs, 0 * price) + price * starts.size

    def violations(self, x: Any) -> list[str]:
        """Wrong marks and numbers of runs, as of `Segmentation`; runs too short, or from another place."""
        n, found = self._size, super().violations(x)
        for i, j in _runs(runs.starts_of(x, n), n):
            if j - i < self.min_size:
                found.append(
                    f"min_size: the run from value {i} has {j - i} values, fewer than {self.min_size}"
                )
            if i % self.jump:
                found.append(f"jump: a run begins at value {i}, not a multiple of {self.jump}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Check potentials d of the `places`, shape (places,), or with `clusters` (k + 1, places).

        If d[j] − d[i] ≤ w(i, j) + price for all runs (i, j) that some partition has, every partition costs at
        least the last potential less the first: add up the inequalities of its runs. Likewise, if d[r, j] −
        d[r − 1, i] ≤ w(i, j), every partition into k runs costs at least d[k, n] − d[0, 0] and k prices. This
        is weak duality of the shortest path (Ahuja, Magnanti & Orlin 1993, §4.5). Any d may be given: for
        each end j (with `clusters`: each number r) the most by which it breaks an inequality is subtracted.

        All runs are compared, in whole numbers over one unit: nothing is rounded, floats are fractions. If
        the values are exact and that leaves next to no gap, the partitions that may cost less are compared,
        too; see `models.witnesses.near_runs`.

        Without a witness, the bound uses only that squares are ≥ 0; `solvers.prove` finds potentials.

        Parameters
        ----------
        x : array, shape (n,)
        witness : mapping, optional
            ``potentials``: floats, or int and `Fraction`. Those of places that no partition has are not used.
        """
        objective, broken = self.objective(x), self.violations(x)
        if broken:
            return infeasible(objective, broken)
        values, price = self.data[0], Fraction(self.price)
        layers = (self.places.size,) if self.clusters is None else (self.clusters + 1, self.places.size)
        d = door.exact_array(witness, "potentials", layers)
        bound, over = price * (self.clusters or 1), Fraction(0)
        proof: Witness = {}
        if d is not None:
            proof = {"potentials": door.entry(witness, "potentials")}
            over = self._excess(d)
            bound = max(bound, self._between(d) - over)
        reason = "another partition may cost less"
        if not exact.is_exact(values):
            starts = runs.starts_of(x, len(values))
            cost = sum((_exact_cost(values[i:j]) for i, j in _runs(starts, len(values))), Fraction(0))
            unit = rounding.unit_of(np.ones(1), values) + float(price)
            return judge_exactly(cost + price * starts.size, bound, False, proof, reason, min(1.0, unit))
        nearly = objective - bound <= Fraction(FLOAT_TOLERANCE) * max(1, objective)
        if d is not None and bound < objective and (nearly or self.places.size <= FEW):
            least = self._least(d, Fraction(objective) - self._between(d) + over)
            bound = bound if least is None else max(bound, min(Fraction(objective), least))
        return judge(objective, objective - bound, True, proof, reason)

    def _between(self, d: Array) -> Fraction:
        """The last potential less the first, and what the runs cost if their number is given."""
        return Fraction(d.flat[-1]) - Fraction(d.flat[0]) + (self.clusters or 0) * Fraction(self.price)

    def _excess(self, d: Array) -> Fraction:
        """By how much the potentials break the inequalities of any partition's runs, at most."""
        total = Fraction(0)
        for column in self._columns(d):
            each = [Fraction(0)]
            for j in range(1, self.places.size):
                _, beyond, unit = column(j)
                wrong = np.flatnonzero(beyond > 0).tolist()
                each.append(max((Fraction(int(beyond[k]), int(unit[k])) for k in wrong), default=Fraction(0)))
            total += sum(each, Fraction(0)) if self.clusters is None else max(each)
        return total

    def _least(self, d: Array, near: Fraction) -> Fraction | None:
        """The least cost of a partition, if it is near what the potentials prove."""
        columns, places = self._columns(d), self.places

        def slacks(here: near_runs.Place) -> tuple[list[near_runs.Place], Floats]:
            above = max(here[0] - 1, 0)
            i, beyond, unit = columns[above](int(np.searchsorted(places, here[1])))
            # Quotients of whole numbers are rounded to the nearest float, as `near` is.
            slack = [-a / b for a, b in zip(beyond.tolist(), unit.tolist(), strict=True)]
            return [(above, place) for place in places[i].tolist()], np.array(slack)

        last = self.clusters or 0, int(places[-1])
        begins = near_runs.near_runs(last, slacks, exact.as_float(near))
        if begins is None:
            return None
        costs = near_runs.run_costs(self.data[0], Fraction(self.price), Fraction(0), begins)
        return near_runs.shortest(begins, last, costs)

    def _columns(self, d: Array) -> list[Column]:
        """For each row of potentials above another, a function of an end j.

        It returns the begins i of the runs that some partition has, and by how much ``here[j] − above[i]``
        exceeds w(i, j) and the price, as whole numbers over others. With m values in the run, Q their sum of
        squares and S their sum, w = Q − ‖S‖²/m; all is multiplied by m, and by a common unit.
        """
        places, rows = self.places, np.atleast_2d(d)
        (values,), unit = over_one_unit(self.data[0])
        sums = np.zeros((len(values) + 1, values.shape[1]), object)
        sums[1:] = np.cumsum(values.astype(object), axis=0)
        squares = np.append(0, np.cumsum((values.astype(object) ** 2).sum(axis=1)))
        sums, squares = sums[places], squares[places]
        largest = max(exact.reach(squares), max(exact.reach(column) for column in sums.T) ** 2)
        if exact.fits(largest * values.size * 4):
            sums, squares = sums.astype(np.int64), squares.astype(np.int64)

        def column_of(above: Array, here: Array, before: int | None) -> Column:
            price = Fraction(self.price) if before is None else Fraction(0)
            (low, high, paid), own = over_one_unit(above, here, exact.objects([price], (1,)))
            low, high, paid = (times(part, unit**2) for part in (low, high, paid))  # over unit² · own
            reached = [p == 0 or self.reaches(1, p) if before is None else self.reaches(before, p)
                       for p in places.tolist()]  # fmt: skip
            beginning = np.flatnonzero(reached)

            def column(j: int) -> tuple[Ints, Array, Array]:
                i = beginning[places[j] - places[beginning] >= self.min_size]
                m, step = places[j] - places[i], minus(sums[j], sums[i])
                cost = minus(times(m, minus(squares[j], squares[i])), (step * step).sum(axis=1))
                beyond = minus(times(m, minus(minus(high[j], paid[0]), low[i])), times(cost, own))
                return i, beyond, times(m, unit**2 * own)

            return column

        if self.clusters is None:
            return [column_of(rows[0], rows[0], None)]
        return [column_of(rows[r], rows[r + 1], r) for r in range(self.clusters)]

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Counts of all kinds, of one or two features; runs of any least size, from any places."""
        n = max(size, 1)
        values: Array = random_noisy(rng, (n, 2) if rng.random() < 0.2 else (n,))
        if rng.random() < 0.3:
            values = values + rng.laplace(size=values.shape)
        min_size, jump = int(rng.integers(1, min(n, 6) + 1)), int(rng.integers(1, min(n, 6) + 1))
        price = float(rng.choice([0.0, 0.5, 4.0, 400.0]))
        most = 1 + (n - min_size) // (-(-min_size // jump) * jump)
        clusters = int(rng.integers(1, min(most, 6) + 1)) if rng.random() < 0.5 else None
        return cls(values, clusters, price, min_size, jump)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Steps of 40 equal counts, with noise; at most about 250 places."""
        steps = np.repeat(rng.integers(0, 1_000, size // 40 + 1), 40)[:size]
        steps += noise(rng, size)
        jump = max(1, size // 250)
        return cls(steps, **{"price": 4000.0, "min_size": jump, "jump": jump, **options})


def _runs(starts: Ints, n: int) -> Iterator[tuple[int, int]]:
    yield from zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True)


def _run_cost(values: Array) -> Number:
    """Σ ‖v − mean‖² of one run; a `Fraction` for exact values."""
    if exact.is_exact(values):
        return _exact_cost(values)
    away = values - values.mean(axis=0)
    return float((away * away).sum())


def _exact_cost(values: Array) -> Fraction:
    (whole,), unit = over_one_unit(values)
    away = exact.difference(whole, whole[:1])
    total = Fraction(exact.dot(away, away))
    for column in away.T:
        total -= Fraction(exact.total(column)) ** 2 / len(whole)
    return total / unit**2
