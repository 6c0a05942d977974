"""The protected change: whose rows they are, how many count, and what they change in counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.relations import TRIP
from hierdp.privacy.budget import GAUSSIAN, ONE_PERSON, ONE_ROW, PersonRows, bound_of, steps
from hierdp.privacy.loss import Loss
from hierdp.privacy.rounding import root_of
from hierdp.privacy.threshold import Changes
from hierdp.privacy.whom import Whom, whom_of
from hierdp.tables.persons import Persons


@dataclass(frozen=True, kw_only=True)
class PrivacyUnit:
    """The change of a table that a guarantee hides: one unit (a row, or a person with several) more, less, or
    another.

    Attributes
    ----------
    column : str, optional
        Names the person of each row. None: the unit is a row, or what the publisher states.
    rows : int
        The most rows (trips, or the largest amount) of a unit that count; if `replaced`, their number.
    bounded_row : bool
        Whether `rows` bounds the number in one row.
    counts : str, optional
        The column of numbers that are counted; by default each row counts as one.
    distinct : bool
        Whether all rows of a unit are in different finest places of the table. Places without a region also
        count as different, although they share the cells of the unknown region.
    replaced : bool
        Whether a unit is replaced by another (the total is public), rather than added or removed.
    by_row : bool
        Whether sensitivities are those of one row, and the loss of a unit follows by group privacy; otherwise
        they are those of the unit.
    relation : str, optional
        The neighbouring relation in words, if it is not one of trips.

    Raises
    ------
    InputError
        If the number of rows is not a whole number of at least 1.

    Examples
    --------
    >>> unit = PrivacyUnit(rows=3, replaced=True, by_row=False)
    >>> unit.squared_sensitivity(), unit.squared_sensitivity(places=2)
    (6, 10)
    """

    column: str | None = None
    rows: int = 1
    bounded_row: bool = False
    counts: str | None = None
    distinct: bool = True
    replaced: bool = False
    by_row: bool = True
    relation: str | None = None

    def __post_init__(self) -> None:
        rows = self.rows
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or not 1 <= rows < 2**31:
            raise InputError(f"trips per person is {rows!r}: it must be a whole number, 1 or more")
        object.__setattr__(self, "rows", int(rows))

    @classmethod
    def of(
        cls,
        *,
        person: str | None = None,
        rows_per_person: int | None = None,
        most_per_row: int | None = None,
        counts: str | None = None,
        trips: int = 1,
        **more: Any,
    ) -> Self:
        """That of a release with these options.

        - trips: the number of trips of a person that the publisher states, without a column of persons.

        Raises `InputError` if they contradict each other.
        """
        persons = _persons_of(person, rows_per_person, most_per_row, counts)
        if persons is None:
            return cls(rows=trips, counts=counts, **more)
        if not more.get("by_row", True):
            _refuse_public_total(persons, more.get("replaced", False))
            if trips != 1:
                option, instead = (
                    ("most_per_row", "it") if person is None else ("person", "`rows_per_person`")
                )
                raise InputError(f"`trips` cannot be given with `{option}`; give {instead} instead")
            if more.get("distinct", True) and person is None:
                raise InputError(
                    "`distinct` cannot be given with `most_per_row`: one row counts several times in a cell"
                )
        return cls(column=person, rows=persons.rows, bounded_row=person is None, counts=counts, **more)

    @property
    def enforced(self) -> Persons | None:
        """What bounds the rows while a table is read, with a fresh secret key; None if nothing does."""
        return Persons(self.column, self.rows) if self.column is not None or self.bounded_row else None

    # What it changes.

    def squared_sensitivity(self, places: int = 1) -> int:
        """Δ₂² of counts that each cover at most the given number of finest places.

        Boninsegna & Silvestri 2025 (§4.1) take 2m (or m, if nobody is replaced) at every level, or 2m² and m²
        if trips may repeat. But trips to different finest places may share a cell of a coarser level: two
        trips to two counties of a state change the state's count by two. They may also share a finest cell of
        an unknown region, which stands for all places without a region. Let a person change count v by k_v, Σ
        k_v = m. A count has room for at most n different trips, so 0 ≤ k_v ≤ n. Σ k_v² is convex, so its
        maximum is at a vertex: ⌊m/n⌋ counts change by n, and one by the rest. If one person replaces another,
        Σ (k_v − l_v)² ≤ Σ k_v² + Σ l_v², with equality if their trips share no count, so the bound doubles.
        For n ≥ m (any coarse enough node, and every unknown region) it is m² or 2m², as for trips that need
        not be different.
        """
        most = self._largest(places)
        full, rest = divmod(self._rows, most)
        one = full * most**2 + rest**2
        return 2 * one if self.replaced else one

    def changes(self, places: int = 1) -> Changes:
        """What one unit changes in counts that each cover at most the given number of finest places."""
        rows = 2 * self._rows if self.replaced else self._rows
        return Changes(rows, rows, self._largest(places), added=self._rows)

    def sensitivity(self, noise: str, places: int = 1) -> float:
        """Of counts that each cover so many finest places: in L1, or in L2 of Gaussian noise."""
        if noise == GAUSSIAN:
            return root_of(self.squared_sensitivity(places))
        return float(self.changes(places).in_all)

    def factor(self, *, zcdp: bool) -> int:
        """By what the loss of a measurement is multiplied for the unit: group privacy."""
        return steps(self.rows, zcdp=zcdp) if self.by_row and self.enforced is not None else 1

    @property
    def _rows(self) -> int:
        """Those that sensitivities are for."""
        return 1 if self.by_row else self.rows

    def _largest(self, places: int) -> int:
        return min(places, self._rows) if self.distinct else self._rows

    # What is said of it.

    @property
    def neighbours(self) -> str:
        """The neighbouring relation, in words."""
        if self.relation is not None:
            return self.relation
        if self._rows == 1:
            return TRIP if self.replaced else "one trip more or less; regions are public"
        trips = f"{self._rows} {'different ' if self.distinct else ''}trips"
        if self.replaced:
            return f"the {trips} of a person are replaced by as many others; regions and the total are public"
        return f"a person with up to {trips} joins or leaves; regions are public"

    @property
    def whom(self) -> Whom:
        """Whom it protects: words, and the key of accounts."""
        column, enforced = self.column, self.enforced is not None
        most = self.rows if self.bounded_row else None
        return whom_of(column, self.rows if column else None, most, self.counts, 1 if enforced else self.rows)

    def loss(self, epsilon: float | None, rho: float | None, delta: float = 0.0) -> Loss:
        """What a release charges to an account; one of ε and ρ is None."""
        return Loss.of(self.whom, epsilon, rho, delta, self.replaced)

    @property
    def ledger(self) -> dict[str, Any]:
        """Its part of a `Ledger`."""
        enforced = self.enforced is not None
        person = (
            PersonRows(self.column, self.rows, ONE_ROW if self.by_row else ONE_PERSON) if enforced else None
        )
        trips = 1 if enforced else self.rows
        return {"neighbours": self.neighbours, "person": person, "counts": self.counts, "trips": trips}

    @classmethod
    def stated(cls, budget: Mapping[str, Any], **more: Any) -> Self:
        """That of a manifest's budget."""
        bound = bound_of(budget) or {}
        column, rows = bound.get("column"), bound.get("rows", budget.get("trips", 1))
        about = {"column": column, "rows": rows, "bounded_row": bool(bound) and column is None}
        return cls(**{**about, "counts": budget.get("counts"), **more})


def _persons_of(
    person: str | None, rows_per_person: int | None, most_per_row: int | None, counts: str | None
) -> Persons | None:
    """The column of persons and the bound on their rows, or the bound on one row; None without either.

    Raises `InputError` if one is given without the other, or `most_per_row` does not fit.
    """
    if (person is None) != (rows_per_person is None):
        given, other = ("rows_per_person", "person") if person is None else ("person", "rows_per_person")
        raise InputError(
            f"`{given}` needs `{other}`: give both the column of persons and the number of rows that count "
            "per person"
        )
    if most_per_row is not None:
        if person is not None:
            raise InputError(
                "`most_per_row` cannot be given with `person`: `rows_per_person` bounds what a person "
                "counts, all rows together"
            )
        if counts is None:
            raise InputError(
                "`most_per_row` bounds the number in a row, and each row counts as one: give the column of "
                "numbers (`count` or `entities`), or leave it out"
            )
        return Persons(None, most_per_row)
    return None if person is None or rows_per_person is None else Persons(person, rows_per_person)


def _refuse_public_total(persons: Persons, bounded: bool) -> None:
    """Refuse a total that is public, if a unit that joins or leaves changes it.

    Raises `InputError` if `bounded`.
    """
    if bounded:
        given, who = ("most_per_row", "row that") if persons.column is None else ("person", "person who")
        raise InputError(
            f"with `{given}`, the total must be noisy, because a {who} joins or leaves changes it; give "
            "`bounded=False`"
        )


def trips_of_a_person(trips: int = 1, distinct: bool = True, bounded: bool = True) -> PrivacyUnit:
    """One person with some trips: replaced by another (`bounded`), or joining or leaving."""
    return PrivacyUnit(rows=trips, distinct=distinct, replaced=bounded, by_row=False)


ONE_TRIP = trips_of_a_person()
"""One trip per person, replaced by another, as in the experiments of Boninsegna & Silvestri 2025."""
