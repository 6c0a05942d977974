"""What one person can change in a table of trips, and the resulting sensitivities of its counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.relations import TRIP
from hierdp.privacy.threshold import Changes


@dataclass(frozen=True)
class Unit:
    """The unit of privacy: one person, with some trips.

    Attributes
    ----------
    trips : int
        m, the number of trips of each person if `bounded`, and otherwise the largest number.
    distinct : bool
        Whether all trips of one person are in different finest places of the table. Places without a region
        also count as different, although they share the cells of the unknown region.
    bounded : bool
        Whether neighbouring tables differ by replacing one person (the total is public) or by adding or
        removing one (the total is noisy).

    Raises
    ------
    InputError
        If the number of trips is not a whole number of at least 1.

    Examples
    --------
    >>> Unit().squared_sensitivity, Unit(3).squared_sensitivity, Unit(3, distinct=False).squared_sensitivity
    (2, 6, 18)
    >>> Unit(3).squared_sensitivity_over(places=2)
    10
    """

    trips: int = 1
    distinct: bool = True
    bounded: bool = True

    def __post_init__(self) -> None:
        trips = self.trips
        if isinstance(trips, bool) or not isinstance(trips, int | np.integer) or not 1 <= trips < 2**31:
            raise InputError(f"trips per person is {trips!r}: it must be a whole number, 1 or more")
        object.__setattr__(self, "trips", int(trips))

    @property
    def squared_sensitivity(self) -> int:
        """Δ₂² of counts of one place each: 2m bounded, m unbounded; 2m² and m² if trips may repeat (§4.1)."""
        return self.squared_sensitivity_over(1)

    def squared_sensitivity_over(self, places: int) -> int:
        """Δ₂² of counts that each cover at most the given number of finest places.

        The paper takes 2m (or m) at every level. But trips to different finest places may share a cell of a
        coarser level: two trips to two counties of a state change the state's count by two. They may also
        share a finest cell of an unknown region, which stands for all places without a region. Let a person
        change count v by k_v, Σ k_v = m. A count has room for at most n different trips, so 0 ≤ k_v ≤ n. Σ
        k_v² is convex, so its maximum is at a vertex: ⌊m/n⌋ counts change by n, and one by the rest. If one
        person replaces another, Σ (k_v − l_v)² ≤ Σ k_v² + Σ l_v², with equality if their trips share no
        count, so the bound doubles. For n ≥ m (any coarse enough node, and every unknown region) it is m² or
        2m², as for trips that need not be different.
        """
        most = self._largest(places)
        full, rest = divmod(self.trips, most)
        one = full * most**2 + rest**2
        return 2 * one if self.bounded else one

    def changes_over(self, places: int) -> Changes:
        """What one person changes in counts that each cover at most the given number of finest places."""
        trips = 2 * self.trips if self.bounded else self.trips
        return Changes(trips, trips, self._largest(places), added=self.trips)

    def _largest(self, places: int) -> int:
        return min(places, self.trips) if self.distinct else self.trips

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
"""One trip per person, replaced by another, as in the paper's experiments."""
