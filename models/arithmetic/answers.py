"""Answers as arrays, by value: whole numbers of any type and size, Fractions, and floats over the reals."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic import exact
from models.arithmetic.arrays import Array
from models.arithmetic.rounding import reach

FEASIBILITY_TOLERANCE = 1e-6
"""Relative distance of an answer in floats from the feasible one that it stands for; exact answers get none.

A constraint that is broken by little may be worth much: in a chain of a million entries, falls of 1e-6 add
up. So a model judges the cost of a feasible answer beside the given one, as far as it can name one in one
pass, and this tolerance only says how near it must be.
"""


def answer_of(x: Any, shape: tuple[int, ...], integer: bool) -> Array:
    """An answer as an array of the model's shape, without rounding any entry.

    Returns: int64 if all entries are whole and 64 bits hold them. Otherwise Python integers, as objects. For
    entries that are not whole: float64 if they are floats; otherwise Fractions and Python integers, as
    objects. An integer model's `violations` list such entries. The result may be the caller's own array: do
    not write to it.

    Raises `ValueError` if the shape is wrong, or an entry is not a finite real number. An object array for an
    integer model may hold integers and Fractions only.
    """
    array = _as_array(x)
    if array.shape != shape:
        raise ValueError(f"the answer has shape {array.shape}, the model {shape}")
    kind = array.dtype.kind
    if kind in "bui":
        return exact.signed(array)
    if kind == "O":
        return _of_objects(array, integer)
    held = array.astype(np.float64, copy=False) if kind == "f" else array
    if kind != "f" or (array.dtype.itemsize > 8 and not np.array_equal(held, array, equal_nan=True)):
        raise ValueError(f"the answer has dtype {array.dtype}; it must hold integers, float64 or Fractions")
    array = held
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.isfinite(array.sum())  # then all are finite, and no array of flags is needed
    if not plain and not (finite := np.isfinite(array)).all():
        place = _place(np.flatnonzero(~finite)[0], shape)
        raise ValueError(f"the answer is {array[place]} at {list(place)}: not finite")
    return _whole_floats(array) if integer else array


def _as_array(x: Any) -> Array:
    try:
        return np.asarray(x) if isinstance(x, np.ndarray) else exact.as_given(x)
    except (ValueError, TypeError, OverflowError):
        raise ValueError("the answer is not an array of numbers of one shape") from None


def _whole_floats(array: Array) -> Array:
    """Whole floats as integers of the same value; others unchanged."""
    if not np.all(array == np.rint(array)):
        return array
    if np.abs(array).max(initial=0) < 2.0**63:
        return array.astype(np.int64)
    return exact.objects(map(int, array.ravel().tolist()), array.shape)


def _of_objects(array: Array, integer: bool) -> Array:
    values = []
    for number, given in enumerate(array.ravel().tolist()):
        value: Any = given.item() if isinstance(given, np.generic) else given
        if isinstance(value, float) and not integer and abs(value) < float("inf"):
            value = Fraction(value)
        if not isinstance(value, int | Fraction) or not -exact.LARGEST <= value <= exact.LARGEST:
            place, kinds = _place(number, array.shape), "integers" if integer else "finite numbers"
            raise ValueError(
                f"the answer holds {value!r:.40} at {list(place)}; it must hold {kinds} up to 1e300"
            )
        values.append(value)
    if any(value.denominator != 1 for value in values):
        return exact.objects(values, array.shape)
    whole = [int(value) for value in values]
    if all(-(2**63) <= value < 2**63 for value in whole):
        return np.array(whole, np.int64).reshape(array.shape)
    return exact.objects(whole, array.shape)


def _place(number: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(axis) for axis in np.unravel_index(int(number), shape))


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


def too_far(x: Array, near: Array, slack: float) -> list[str]:
    """Entries of an answer in floats that are farther from a feasible answer than `slack`, in words."""
    apart = near - x
    if apart.max(initial=0) <= slack and -apart.min(initial=0) <= slack:
        return []
    return [
        f"all constraints together: x[{', '.join(map(str, place))}] = {x[tuple(place)]}, "
        f"and {near[tuple(place)]} in the feasible answer beside it"
        for place in np.argwhere(~(np.abs(apart) <= slack))  # NaN is far
    ]


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
