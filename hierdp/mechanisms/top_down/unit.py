"""What one person can change in a table of trips, and how far that moves its counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms import TRIP
from hierdp.noise import Changes


@dataclass(frozen=True)
class Unit:
    """The unit of privacy: one person, with some trips.

    Attributes
    ----------
    trips : int
        m, how many trips a person has: just so many where `bounded`, else at most.
    distinct : bool
        Whether one person's trips all lie in different finest cells.
    bounded : bool
        Neighbouring tables: one person in place of another (the total is public), or, if False, one person
        more or less (the total gets noise too).

    Raises
    ------
    InputError
        If the trips are not a whole number, 1 or more.

    Examples
    --------
    >>> Unit().squared_sensitivity, Unit(3).squared_sensitivity, Unit(3, distinct=False).squared_sensitivity
    (2, 6, 18)
    >>> Unit(3).squared_sensitivity_over(cells=2)
    10
    """

    trips: int = 1
    distinct: bool = True
    bounded: bool = True

    def __post_init__(self) -> None:
        """Check the trips."""
        trips = self.trips
        if isinstance(trips, bool) or not isinstance(trips, int | np.integer) or not 1 <= trips < 2**31:
            raise InputError(f"trips a person is {trips!r}: it must be a whole number, 1 or more")
        object.__setattr__(self, "trips", int(trips))

    @property
    def squared_sensitivity(self) -> int:
        """Δ₂² of the finest counts: 2m bounded, m unbounded; 2m², m² where trips may repeat (§4.1)."""
        return self.squared_sensitivity_over(1)

    def squared_sensitivity_over(self, cells: int) -> int:
        """Δ₂² of counts each of which sums up to so many finest cells.

        The paper takes 2m (or m) at every level. But trips that differ in the finest cells may lie in one
        cell of a coarser level: two trips to two counties of one state move the state's count by two. With
        room for n of a person's trips in one count, the worst is ⌊m/n⌋ counts of n trips and one of the
        rest; for two people, twice that, where their trips share no count.
        """
        most = min(cells, self.trips) if self.distinct else self.trips
        full, rest = divmod(self.trips, most)
        one = full * most**2 + rest**2
        return 2 * one if self.bounded else one

    @property
    def changes(self) -> Changes:
        """What one person changes in the finest counts."""
        trips = 2 * self.trips if self.bounded else self.trips
        return Changes(trips, trips, 1 if self.distinct else self.trips)

    @property
    def neighbours(self) -> str:
        """The neighbouring relation, in words."""
        if self.trips == 1:
            return TRIP if self.bounded else "one trip more or less; regions are public"
        trips = f"{self.trips} {'different ' if self.distinct else ''}trips"
        if self.bounded:
            return f"the {trips} of a person are replaced by as many others; regions and the total are public"
        return f"a person with up to {trips} joins or leaves; regions are public"


ONE_TRIP = Unit()
"""One trip a person, in place of another: the paper's experiments."""


def root_of(squared: int) -> float:
    """√n, rounded up where it is no float: a sensitivity must not be too small."""
    found = math.sqrt(squared)
    return found if Fraction(found) ** 2 >= squared else math.nextafter(found, math.inf)
