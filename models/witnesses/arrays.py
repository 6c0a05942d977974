"""Arrays and numbers taken out of a witness and checked."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import Number
from models.certificate import Witness

LARGEST = 1e290
"""Larger floats are refused: sums of them might not be finite."""

LARGEST_WHOLE = 2**61
"""Whole numbers of this size or more are refused: their differences might not fit 64 bits."""


def entry(witness: Witness | None, name: str) -> Any:
    """The entry of this name in a witness; None if it is missing, or there is no witness.

    Raises `ValueError` if the witness is not a mapping.
    """
    if witness is None:
        return None
    if not isinstance(witness, Mapping):
        raise ValueError(f"a witness must be a mapping of arrays by name, got a {type(witness).__name__}")
    return witness.get(name)


def whole_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Ints | None:
    """An array of whole numbers, or None if the witness has none of this name; -1 in `shape` is any length.

    Raises `ValueError` if it has another shape, or holds anything but whole numbers under `LARGEST_WHOLE`.
    """
    value = entry(witness, name)
    if value is None:
        return None
    array = _shaped(value, name, shape)
    kind = array.dtype.kind
    if kind == "O":
        wrong = not all(isinstance(v, int | np.integer) and abs(int(v)) < LARGEST_WHOLE for v in array.flat)
    elif kind == "f":
        wrong = not bool(np.all(np.abs(array) < LARGEST_WHOLE) and np.all(array == np.rint(array)))
    elif kind in "iub":
        wrong = bool(array.size) and not -LARGEST_WHOLE < int(array.min()) <= int(array.max()) < LARGEST_WHOLE
    else:
        wrong = True
    if wrong:
        raise ValueError(f"the witness's {name!r} must hold whole numbers under 2^61")
    return array.astype(np.int64)


def real_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Floats | None:
    """An array of floats, otherwise as `whole_array`; infinities and NaN are refused.

    Raises `ValueError` if it has another shape, or holds anything but numbers of up to `LARGEST`.
    """
    value = entry(witness, name)
    if value is None:
        return None
    array = _shaped(value, name, shape)
    try:
        real = array.astype(np.float64) if array.dtype.kind in "iubfO" else None
    except (TypeError, ValueError, OverflowError):
        real = None
    if real is None or not bool(np.all(np.abs(real) <= LARGEST)):
        raise ValueError(f"the witness's {name!r} must hold finite numbers of up to {LARGEST:g}")
    return real


def exact_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Array | None:
    """An array of Python ints and Fractions, otherwise as `whole_array`; a float becomes an exact fraction.

    Raises `ValueError` if it has another shape, or holds anything but finite numbers.
    """
    value = entry(witness, name)
    if value is None:
        return None
    array = _shaped(value, name, shape)
    if array.dtype.kind not in "iubfO":
        raise ValueError(f"the witness's {name!r} must hold numbers")
    exactly = np.empty(array.shape, object)
    for place, each in enumerate(array.ravel().tolist()):
        if not is_finite(each):
            raise ValueError(f"the witness's {name!r} must hold finite numbers of up to {LARGEST:g}")
        exactly.flat[place] = Fraction(each) if isinstance(each, float) else each
    return exactly


def number(witness: Witness | None, name: str) -> Number | None:
    """A finite `int`, `Fraction` or float; None if the witness has none of this name.

    Raises `ValueError` if it is anything else.
    """
    value = entry(witness, name)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    found: Number | None = value if is_finite(value) else None
    if found is not None or value is None:
        return found
    raise ValueError(f"the witness's {name!r} must be a finite number, got {value!r:.40}")


def is_finite(value: Any) -> bool:
    """Whether this is a number of up to `LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        return False
    return bool(-LARGEST <= value <= LARGEST)  # False for NaN


def _shaped(value: Any, name: str, shape: tuple[int, ...]) -> Array:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"the witness's {name!r} is not an array of numbers") from None
    fits = array.ndim == len(shape) and all(
        want in (-1, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"the witness's {name!r} has shape {array.shape}, expected {shape}")
    return array
