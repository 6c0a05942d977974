"""The axes of a histogram: numbers and dates in equal bins, names in the order of a hierarchy.

The bins are public and given in advance, never taken from the data. The exception is names without a table of
regions: their bins are the names in the data. A bin of numbers includes its lower end, not its upper end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, unknown_name
from models.arithmetic.arrays import Ints

MOST_BINS = 2**27
"""The largest number of bins of a histogram: 1 GiB of counts."""


@dataclass(frozen=True)
class Numbers:
    """Equal bins of numbers from `low` to `high`, which is excluded.

    Parameters
    ----------
    name : str
        The column.
    low, high : int or float
    bins : int, optional
        Number of bins. Default: one for each whole number.

    Raises
    ------
    InputError
        If there are no such bins.

    Examples
    --------
    >>> ages = Numbers("age", 0, 100, 20)
    >>> ages.ends([0, 3], [1, 5])
    (array([ 0, 15]), array([ 5, 25]))
    >>> ages.position("25"), span(ages, "25", "60"), span(ages, "", "60")
    (5, (5, 12), (0, 12))
    """

    name: str
    low: float
    high: float
    bins: int = None  # type: ignore[assignment]  # always a number after __post_init__

    def __post_init__(self) -> None:
        _check_name(self.name)
        where = f"the bins of {self.name!r}"
        for field in ("low", "high", "bins"):
            value = getattr(self, field)
            if isinstance(value, np.generic):  # a manifest is JSON, which takes only Python's own numbers
                object.__setattr__(self, field, value := value.item())
            kinds = (int, float) if field != "bins" else (int, type(None))
            if isinstance(value, bool) or not isinstance(value, kinds):
                what = "a whole number" if field == "bins" else "a number"
                raise InputError(f"{where}: {field} must be {what}, got {value!r}")
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise InputError(f"{where} go from {self.low} to {self.high}; the end must exceed the start")
        if self.bins is None:
            if self.low % 1 or self.high % 1:
                raise InputError(f"{where}: give their number, because their ends are not whole numbers")
            object.__setattr__(self, "bins", int(self.high - self.low))
        if not 1 <= self.bins <= MOST_BINS:
            raise InputError(f"{where}: their number must be in 1 … {MOST_BINS:,}, got {self.bins:,}")

    def edges(self, at: ArrayLike) -> NDArray[Any]:
        """The lower ends of bins; integers if all edges are whole numbers."""
        edges = self.low + np.asarray(at) * ((self.high - self.low) / self.bins)
        return edges.astype(np.int64) if self.whole else edges

    @property
    def whole(self) -> bool:
        """Whether all edges are whole numbers."""
        return self.low % 1 == 0 and (self.high - self.low) % self.bins == 0

    def ends(self, first: ArrayLike, end: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lower and the upper end of runs of bins."""
        return self.edges(first), self.edges(end)

    def position(self, text: str) -> int:
        """The bin that begins at a number; for the upper end of the axis, the number of bins."""
        try:
            value = float(text)
        except ValueError:
            raise InputError(f"{self.name}: {text!r} is not a number") from None
        at = (value - self.low) / ((self.high - self.low) / self.bins)
        if not 0 <= at <= self.bins:
            raise InputError(f"{self.name}: {text} is not within {self.low:g} … {self.high:g}")
        if abs(at - round(at)) > 1e-9 * self.bins:
            low, high = self.edges([floor(at), floor(at) + 1])
            raise InputError(
                f"{self.name}: {text} is inside a bin, from {low} to {high}; ranges consist of whole bins"
            )
        return round(at)

    @property
    def labels(self) -> list[str]:
        """The label of each bin: its lower end."""
        return [str(edge) for edge in self.edges(np.arange(self.bins)).tolist()]

    def as_dict(self) -> dict[str, Any]:
        """For a manifest; `axis_of` reads it."""
        return {"kind": "numbers", "name": self.name, "low": self.low, "high": self.high, "bins": self.bins}


@dataclass(frozen=True)
class Dates:
    """Equal bins of whole days from the day `low` to the day `high`, which is excluded.

    Parameters
    ----------
    name : str
        The column.
    low, high : str
        ISO 8601 dates.
    bins : int, optional
        Number of bins. Default: one for each day.

    Raises
    ------
    InputError
        If there are no such bins.

    Examples
    --------
    >>> year = Dates("day", "2013-01-01", "2014-01-01")
    >>> year.bins, year.labels[31], year.position("2013-02-01")
    (365, '2013-02-01', 31)
    """

    name: str
    low: str
    high: str
    bins: int = None  # type: ignore[assignment]  # always a number after __post_init__

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "bins", self.days.bins)
        if not self.days.whole:
            raise InputError(
                f"the bins of {self.name!r}: the number of days from {self.low} to {self.high} is not a "
                f"multiple of {self.bins}"
            )

    @cached_property
    def days(self) -> Numbers:
        """The same bins, in days since 1970-01-01."""
        return Numbers(self.name, self._day(self.low), self._day(self.high), self.bins)

    def _day(self, text: str) -> int:
        try:
            return int(np.datetime64(text, "D").astype(np.int64))
        except (ValueError, TypeError):
            raise InputError(f"{self.name}: {text!r} is not a date; write it as 2013-12-31") from None

    def ends(self, first: ArrayLike, end: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """The first day of runs of bins, and the day after the last, as ISO dates."""
        begins, stops = (days.astype("datetime64[D]") for days in self.days.ends(first, end))
        return np.datetime_as_string(begins), np.datetime_as_string(stops)

    def position(self, text: str) -> int:
        """The bin that begins at a date; for the upper end of the axis, the number of bins."""
        return self.days.position(str(self._day(text)))

    @property
    def labels(self) -> list[str]:
        """The label of each bin: its first day."""
        return [str(text) for text in self.ends(np.arange(self.bins), np.arange(self.bins))[0]]

    def as_dict(self) -> dict[str, Any]:
        """For a manifest; `axis_of` reads it."""
        return {"kind": "dates", "name": self.name, "low": self.low, "high": self.high, "bins": self.bins}


@dataclass(frozen=True, eq=False)
class Names:
    """Bins that have names; a range of names includes both ends.

    Parameters
    ----------
    name : str
    names : array of str
        The names, in their order along the axis.
    hierarchy : Hierarchy, optional
        The hierarchy whose last level has these names. They are ordered so that each of its regions is a run.
    """

    name: str
    names: NDArray[np.object_]
    hierarchy: Hierarchy | None = None

    @classmethod
    def of(cls, name: str, hierarchy: Hierarchy) -> Names:
        """An axis of the regions of a hierarchy's last level."""
        return cls(name, hierarchy.names[-1][tree_order(hierarchy)[-1]], hierarchy)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return int(self.names.size)

    def ends(self, first: ArrayLike, end: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """The first and the last name of runs of bins."""
        return self.names[np.asarray(first)], self.names[np.asarray(end) - 1]

    def position(self, text: str) -> int:
        """The bin of a name."""
        at = np.flatnonzero(self.names == text)
        if not at.size:
            raise InputError(f"{self.name}: {unknown_name(text, self.names)}")
        return int(at[0])

    @property
    def labels(self) -> list[str]:
        """The names of the bins."""
        return [str(name) for name in self.names]

    def as_dict(self) -> dict[str, Any]:
        """For a manifest; the names themselves are in the released table."""
        return {"kind": "names", "name": self.name, "bins": self.bins}


Axis = Numbers | Dates | Names


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of an axis must be the name of its column, a text; got {name!r}")


def span(axis: Axis, low: str, high: str) -> tuple[int, int]:
    """The first bin of a range given as text, and the bin after its last; an empty end is the axis's end.

    Ranges of numbers and dates exclude their upper end; ranges of names include it.
    """
    first = axis.position(low) if low else 0
    end = axis.position(high) + isinstance(axis, Names) if high else axis.bins
    if end < first:
        raise InputError(f"{axis.name}: {high} comes before {low}")
    return first, end


def axis_of(saved: Mapping[str, Any], names: ArrayLike) -> Axis:
    """The axis that a manifest describes; `names` are the names of its bins, for an axis of names."""
    if saved["kind"] == "names":
        return Names(saved["name"], np.asarray(names, dtype=object))
    kind: Any = {"numbers": Numbers, "dates": Dates}[saved["kind"]]
    made: Axis = kind(saved["name"], saved["low"], saved["high"], saved["bins"])
    return made


def tree_order(hierarchy: Hierarchy) -> tuple[Ints, ...]:
    """For each level, its regions in an order in which every region is a run of leaves.

    >>> places = Hierarchy.from_columns({"z": ["E", "W", "E"], "a": ["J", "K", "L"]}, ["z", "a"])
    >>> [order.tolist() for order in tree_order(places)]
    [[0], [0, 1], [0, 2, 1]]
    """
    place = np.zeros(1, dtype=np.int64)  # the position of each region of a level in the new order
    orders = [place]
    for parent in hierarchy.tree.levels:
        orders.append(np.argsort(place[np.asarray(parent)], kind="stable"))
        place = np.argsort(orders[-1])
    return tuple(orders)
