"""Answers as arrays, by value: whole numbers of any type and size, Fractions, and floats over the reals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from models.arithmetic.arrays import Array
from models.arithmetic.rounding import reach

FEASIBILITY_TOLERANCE = 1e-6
"""Relative distance of an answer in floats from the feasible one that it stands for; exact answers get none.

A constraint that is broken by little may be worth much: in a chain of a million entries, falls of 1e-6 add
up. So a model judges the cost of a feasible answer beside the given one, as far as it can name one in one
pass, and this tolerance only says how near it must be.
"""


def tolerance_for(x: Array, *data: Array) -> float:
    """How far an answer in floats may be from a feasible one; 0 for exact answers.

    `FEASIBILITY_TOLERANCE` times the answer's largest entry; or, if that is less than 1, times the largest of
    the data, but at most 1.
    """
    if x.dtype.kind != "f":
        return 0
    largest = reach(x)
    if largest < 1:
        largest = max(largest, min(1.0, reach(*data)))
    return FEASIBILITY_TOLERANCE * largest


class Texts(Sequence[str]):
    """A text for each of many places, made when it is read: a proof that fails names the first of millions.

    - places: an array, of which each row or number is one place.
    - text: makes the text of one, given as a list of numbers, or a number.
    """

    def __init__(self, places: Array, text: Callable[[Any], str]) -> None:
        self._places, self._text = places, text

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        places = self._places[at].tolist()
        return [*map(self._text, places)] if isinstance(at, slice) else self._text(places)


def all_texts(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    """All texts of several parts, one after the other; none of them is made."""
    parts = [part for part in parts if part]
    if len(parts) < 2:
        return parts[0] if parts else []
    sizes = [len(part) for part in parts]
    part, first = np.repeat(np.arange(len(parts)), sizes), np.cumsum([0, *sizes])
    places = np.column_stack([part, np.arange(part.size) - first[part]])
    return Texts(places, lambda place: parts[place[0]][place[1]])


def too_far(x: Array, near: Array, slack: float) -> Sequence[str]:
    """Entries of an answer in floats that are farther from a feasible answer than `slack`, in words."""
    apart = near - x
    if apart.max(initial=0) <= slack and -apart.min(initial=0) <= slack:
        return []
    return Texts(
        np.argwhere(~(np.abs(apart) <= slack)),  # NaN is far
        lambda place: (
            f"all constraints together: x[{', '.join(map(str, place))}] = {x[tuple(place)]}, "
            f"and {near[tuple(place)]} in the feasible answer beside it"
        ),
    )


def fractional(x: Array) -> Iterator[str]:
    """The entries of an integer model's answer that are not whole numbers."""
    if x.dtype.kind == "f":
        wrong = np.argwhere(x != np.rint(x))
    elif x.dtype == object:
        wrong = np.argwhere(np.array([value != value // 1 for value in x.ravel().tolist()]).reshape(x.shape))
    else:
        return
    for place in wrong:
        yield f"integer: x[{', '.join(map(str, place))}] = {x[tuple(place)]}"
