"""The door: every number of a user enters here, by value.

Data, bounds, weights, tables, sparse matrices, answers and prices come as lists, as arrays of any type, or as
Python numbers. What leaves the door is an array of one of three kinds; no value was rounded or wrapped:

- int64;
- float64;
- Python integers and Fractions, as objects, where neither int64 nor float64 holds all values exactly, or
  where they were given so: a model over the reals with such data is computed exactly.

It is read-only, and data share no memory with what was given: nothing can change after the check. What has no
exact value (NaN, text, dates, durations, complex numbers, masked entries) is refused by name and place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy

from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.exact import FLOAT_WHOLE, Number, as_float, objects, reach

LARGEST = 10**300
"""Python integers and Fractions that are larger are refused: floats do not hold them."""

LARGEST_PRICE = 1e290
"""Larger prices are refused: sums of them might not be finite."""

LARGEST_WHOLE_PRICE = 2**61
"""Whole prices of this size or more are refused: their differences might not fit 64 bits."""

_INT64 = np.iinfo(np.int64)


def numbers(name: str, values: Any, shape: tuple[int, ...] | None = None, *, finite: bool = True) -> Array:
    """Numbers as a new read-only array of the same values.

    Parameters
    ----------
    name : str
        What the numbers are, for messages.
    values : array_like
        int, bool, float, Fraction, finite Decimal, or NumPy's integers and floats, in any mix.
    shape : tuple of int, optional
        The shape that they must have.
    finite : bool
        Whether infinities and NaN are refused. Otherwise they enter as floats.

    Returns
    -------
    array
        int64, float64, or Python integers and Fractions as objects.

    Raises
    ------
    ValueError
        If an entry is not such a number, or the shape is another one.

    Examples
    --------
    >>> numbers("noisy", [2**53 + 1, 0.5]).tolist()
    [9007199254740993, Fraction(1, 2)]
    >>> numbers("noisy", np.array([2**63], np.uint64)).tolist()
    [9223372036854775808]
    """
    array = _by_value(name, values, finite)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, not {array.shape}")
    array.flags.writeable = False
    return array


def kept(name: str, values: Any) -> Array:
    """As `numbers`; an array that came out of this door before is not copied."""
    if _is_frozen(values) and (values.dtype == np.int64 or np.isfinite(values.sum())):
        array: Array = values
        return array
    return numbers(name, values)


def _is_frozen(values: Any) -> bool:
    """Whether this is an array of int64 or floats to which nobody can write."""
    if type(values) is np.ndarray and values.dtype in (np.int64, np.float64):
        owner = values if values.base is None else values.base
        if type(owner) is np.ndarray and owner.base is None and not owner.flags.writeable:
            return not values.flags.writeable
    return False


def data(name: str, values: Any, ndim: int = 1) -> Array:
    """Data of a model: finite numbers with this many axes; Python numbers other than 0 within 1e±300."""
    array = numbers(name, values)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axis(es), got shape {array.shape}")
    if array.dtype == object:
        parts = [(abs(v.numerator), v.denominator) for v in array.flat]
        if not all(a <= LARGEST * b and b <= LARGEST * max(a, 1) for a, b in parts):
            raise ValueError(f"{name}: numbers other than 0 must be between 1e-300 and 1e300 in size")
    return array


def scalar(name: str, value: Any) -> Number:
    """One number, which may be infinite or NaN."""
    try:
        array = numbers(name, value, (), finite=False)
    except ValueError:
        array = None
    if array is None or isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be a number, got {value!r:.60}")
    number: Number = array.item()
    return number


def whole(name: str, values: Any, shape: tuple[int, ...]) -> Ints:
    """Whole numbers that int64 holds, such as indices and labels, of this shape."""
    array = numbers(name, values, shape)
    if array.dtype.kind == "f" and np.array_equal(array, np.rint(array)) and reach(array) <= FLOAT_WHOLE:
        array = array.astype(np.int64)
    if array.dtype != np.int64:
        raise ValueError(f"{name} must hold whole numbers under 2^63")
    return array


def in_floats(name: str, values: Any) -> Floats:
    """Data for a model in floats, which must hold them exactly."""
    array = numbers(name, values)
    floats = array.astype(np.float64)
    if array.dtype != np.float64 and any(a != b for a, b in zip(array.flat, floats.flat, strict=True)):
        raise ValueError(f"{name} has a number that floats do not hold exactly")
    floats.flags.writeable = False
    return floats


def total(name: str, value: Any) -> int:
    """A public total: a whole number from 0 to 2^62 − 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if value < 0:
        raise ValueError(f"{name} is {value}: no non-negative counts add up to it")
    if value >= 2**62:
        raise ValueError(f"{name} is {value}: beyond 62 bits")
    return int(value)


def sides(name: str, values: Any) -> Array:
    """Lower or upper limits: as `numbers`, but infinite where there is no limit."""
    limits: Array = values if _is_frozen(values) else numbers(name, values, finite=False)
    if limits.dtype == np.int64:
        return limits
    wrong = np.flatnonzero(limits != limits)
    if wrong.size:
        where = _at(name, np.unravel_index(wrong[0], limits.shape))
        raise ValueError(f"{where} is nan; {name} must be numbers, or infinite where there is no bound")
    return limits


def are_whole(limits: Array) -> bool:
    """Whether all finite ones are whole numbers."""
    if limits.dtype == object:
        return all(abs(value) == math.inf or value == value // 1 for value in limits.flat)
    return limits.dtype.kind != "f" or bool(np.all((limits == np.rint(limits)) | np.isinf(limits)))


class Entries(NamedTuple):
    """A sparse matrix of exact numbers of any kind: SciPy's hold no fractions.

    - row, column, value, array_like, shape (entries,): what is listed twice is added.
    - shape: ``(rows, columns)``.
    """

    row: Any
    column: Any
    value: Any
    shape: tuple[int, int]


def matrix(name: str, given: Any) -> tuple[scipy.sparse.csr_matrix, Array | None]:
    """A matrix as CSR, and its entries as Python numbers where a CSR does not hold them.

    - given: `Entries`, a sparse matrix, or an array with two axes. Entries that are given twice are added
      without wrapping.

    Returns: the CSR, with float64 entries if these hold all of them exactly, int64 if these do, otherwise the
    nearest floats; and None, or (in the last case) the entries in the order of its data.

    Raises `ValueError` if a place is outside the matrix.
    """
    if isinstance(given, Entries):
        place, shape = (np.asarray(given.row, np.int64), np.asarray(given.column, np.int64)), given.shape
        entries = numbers(name, given.value, place[0].shape)
    elif scipy.sparse.issparse(given):
        listed, shape = given.tocoo(), given.shape
        place = (listed.row.astype(np.int64), listed.col.astype(np.int64))
        entries = numbers(name, listed.data)
    else:
        dense = numbers(name, given)
        if dense.ndim != 2:
            raise ValueError(f"{name} must have 2 axes, got shape {dense.shape}")
        row, column = np.nonzero(dense)
        place, shape = (row, column), dense.shape
        entries = dense[place]
    for axis, most in zip(place, shape, strict=True):
        if axis.size and not 0 <= axis.min() <= axis.max() < most:
            raise ValueError(f"{name} has an entry outside its shape {shape}")
    if scipy.sparse.csr_matrix((np.ones(entries.size), place), shape).nnz < entries.size:
        cells, which = np.unique(place[0] * shape[1] + place[1], return_inverse=True)
        sums = np.zeros(cells.size, object)
        np.add.at(sums, which, objects(map(Fraction, entries.tolist()), entries.shape))
        entries, place = numbers(name, sums.tolist()), np.divmod(cells, shape[1])
    exactly = None
    if entries.dtype == object:
        order = np.lexsort(place[::-1])
        entries, place = entries[order], (place[0][order], place[1][order])
        nearest = np.array([*map(as_float, entries)], np.float64)
        exactly = None if all(a == b for a, b in zip(entries, nearest.tolist(), strict=True)) else entries
        entries = nearest
    if entries.dtype == np.int64 and reach(entries) <= FLOAT_WHOLE:
        entries = entries.astype(np.float64)
    result = scipy.sparse.csr_matrix((entries, place), shape)
    for part in (result.data, result.indices, result.indptr):
        part.flags.writeable = False
    return result, exactly


def sparse(name: str, given: Any) -> scipy.sparse.csr_matrix:
    """As `matrix`, for rows that only a CSR can hold.

    Raises `ValueError` if neither int64 nor float64 holds all entries, or a place is outside the matrix.
    """
    result, exactly = matrix(name, given)
    if exactly is not None:
        raise ValueError(f"{name} has an entry that neither int64 nor float64 holds exactly")
    return result


def answer(x: Any, shape: tuple[int, ...], integer: bool) -> Array:
    """An answer as an array of the model's shape, none of whose entries is rounded.

    Returns: int64 if all entries are whole and 64 bits hold them. Otherwise Python integers, as objects. For
    entries that are not whole: float64 if they are floats; otherwise Fractions and Python integers, as
    objects. An integer model's `violations` list such entries.

    Raises `ValueError` if the shape is wrong, or an entry is not a finite real number.
    """
    array = _by_value("the answer", x, True, borrowed=True)
    if array.shape != shape:
        raise ValueError(f"the answer has shape {array.shape}, the model {shape}")
    if array.dtype == object:
        if not all(-LARGEST <= value <= LARGEST for value in array.flat):
            raise ValueError("the answer must hold numbers up to 1e300")
        if all(type(value) is int and _INT64.min <= value <= _INT64.max for value in array.flat):
            array = array.astype(np.int64)
    elif integer and array.dtype.kind == "f":
        array = _whole_floats(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


# ---------------------------------------------------------------- parts of a witness

Witness = Mapping[str, Any]


def entry(witness: Witness | None, name: str) -> Any:
    """The entry of this name in a witness; None if it is missing, or there is no witness.

    Raises `ValueError` if the witness is not a mapping.
    """
    if witness is None:
        return None
    if not isinstance(witness, Mapping):
        raise ValueError(f"a witness must be a mapping of arrays by name, got a {type(witness).__name__}")
    return witness.get(name)


def exact_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Array | None:
    """An array of Python ints and Fractions, or None if the witness has none of this name.

    A float becomes a fraction; -1 in `shape` is any length.

    Raises `ValueError` if it has another shape, or holds anything but numbers of up to `LARGEST_PRICE`.
    """
    array = _of_witness(witness, name, shape)
    if array is None:
        return None
    if array.dtype.kind == "f":
        array = objects(map(Fraction, array.ravel().tolist()), array.shape)
    return array.astype(object)


def real_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Floats | None:
    """An array of floats, each the nearest to what the witness has; otherwise as `exact_array`."""
    array = _of_witness(witness, name, shape)
    return None if array is None else array.astype(np.float64)


def whole_array(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Ints | None:
    """An array of whole numbers below `LARGEST_WHOLE_PRICE`, as int64; otherwise as `exact_array`."""
    array = _of_witness(witness, name, shape)
    if array is None:
        return None
    most = LARGEST_WHOLE_PRICE
    if array.dtype == object:
        wrong = not all(isinstance(v, int) and abs(v) < most for v in array.flat)
    else:
        inside = not array.size or -most < array.min() <= array.max() < most
        wrong = not inside or (array.dtype.kind == "f" and not np.array_equal(array, np.rint(array)))
    if wrong:
        raise ValueError(f"the witness's {name!r} must hold whole numbers under 2^61")
    return array.astype(np.int64)


def prices(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Array | None:
    """Prices of rows, of this shape or flat, by value; otherwise as `exact_array`."""
    value = entry(witness, name)
    if value is None:
        return None
    flat = np.ndim(value) == 1 and len(shape) != 1
    array = _of_witness(witness, name, (math.prod(shape),) if flat else shape)
    return None if array is None else array.reshape(shape)


def number(witness: Witness | None, name: str) -> Number | None:
    """A finite int, Fraction or float; None if the witness has none of this name.

    Raises `ValueError` if it is anything else.
    """
    value = entry(witness, name)
    if value is None:
        return None
    array = _of_witness(witness, name, ())
    assert array is not None
    held: Number = array.item()
    return held


def _of_witness(witness: Witness | None, name: str, shape: tuple[int, ...]) -> Array | None:
    value = entry(witness, name)
    if value is None:
        return None
    array = _by_value(f"the witness's {name!r}", value, True, borrowed=True)
    if array.ndim != len(shape) or any(
        want not in (-1, size) for want, size in zip(shape, array.shape, strict=True)
    ):
        raise ValueError(f"the witness's {name!r} has shape {array.shape}, expected {shape}")
    if array.dtype == np.int64 or not array.size:
        return array
    if array.dtype == object:
        inside = all(-LARGEST_PRICE <= price <= LARGEST_PRICE for price in array.flat)
    else:
        inside = bool(array.min() >= -LARGEST_PRICE and array.max() <= LARGEST_PRICE)
    if not inside:
        raise ValueError(f"the witness's {name!r} must hold finite numbers of up to {LARGEST_PRICE:g}")
    return array


# ---------------------------------------------------------------- by value


def _by_value(name: str, values: Any, finite: bool, borrowed: bool = False) -> Array:
    """The array of `numbers`; if `borrowed`, it may be the caller's own."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError(f"{name} has masked entries: fill them, or leave them out")
        values = values.data
    if scipy.sparse.issparse(values):
        raise ValueError(f"{name} must be an array, not a sparse matrix: use its toarray()")
    if isinstance(values, np.ndarray | np.generic) or hasattr(values, "__array__"):
        array = np.asarray(values)
    else:
        array = _of_list(name, values)
    kind = array.dtype.kind
    if kind == "O" or (kind == "f" and array.dtype.itemsize > 8):
        return _of_objects(name, array, finite, exactly=array is values and kind == "O")
    if kind == "u" and array.dtype.itemsize == 8 and array.size and array.max() > _INT64.max:
        return objects(array.ravel().tolist(), array.shape)
    if kind in "biu":
        same = borrowed and array.dtype == np.int64 and type(array) is np.ndarray
        return array if same else np.array(array, np.int64, subok=False)
    if kind != "f":
        if array.size:
            raise ValueError(f"{name} must be numbers, got dtype {array.dtype}")
        return np.zeros(array.shape, np.int64)
    same = borrowed and array.dtype == np.float64 and type(array) is np.ndarray
    array = array if same else np.array(array, np.float64, subok=False)
    if not array.size:
        return np.zeros(array.shape, np.int64)
    if finite:
        with np.errstate(over="ignore", invalid="ignore"):
            plain = np.isfinite(array.sum())  # then all are finite, and no array of flags is needed
        if not plain and not (flags := np.isfinite(array)).all():
            place = np.unravel_index(np.flatnonzero(~flags.ravel())[0], array.shape)
            raise ValueError(f"{_at(name, place)} is {array[place]}: it must be finite")
    return array


def _of_list(name: str, values: Any) -> Array:
    """An array of the values of a list or a number, made by NumPy only where NumPy rounds none of them."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuOmMUSc":
            return array
        plain = np.array(values, dtype=object)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{name} is not an array of numbers of one shape") from None
    if plain.shape != array.shape or all(type(value) is float for value in plain.flat):
        return array
    return plain


def _of_objects(name: str, array: Array, finite: bool, exactly: bool) -> Array:
    """Python numbers as int64 or float64 if one holds all of them; if not, or if `exactly`, as objects."""
    held = [_number(name, array, k, value, finite) for k, value in enumerate(array.ravel())]
    kinds = set(map(type, held))
    if float in kinds:
        in_floats = all(type(v) is float or (type(v) is int and abs(v) <= FLOAT_WHOLE) for v in held)
        if in_floats and not exactly:
            return np.array(held, np.float64).reshape(array.shape)
        held = [Fraction(v) if type(v) is float and math.isfinite(v) else v for v in held]
        held = [v.numerator if type(v) is Fraction and v.denominator == 1 else v for v in held]
        kinds = set(map(type, held))
    if kinds <= {int} and not exactly and all(_INT64.min <= v <= _INT64.max for v in held):
        return np.array(held, np.int64).reshape(array.shape)
    return objects(held, array.shape)


def _number(name: str, array: Array, k: int, value: Any, finite: bool) -> Number:
    """The k-th entry as an int, a float or a Fraction of the same value."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.longdouble) and np.isfinite(value):
        value = float(value) if float(value) == value else Fraction(*value.as_integer_ratio())
    elif isinstance(value, np.integer | np.floating | np.bool_):
        value = value.item() if not isinstance(value, np.longdouble) else float(value)
    elif isinstance(value, Decimal):
        value = Fraction(value) if value.is_finite() else float(value)
    if isinstance(value, float):
        if finite and not math.isfinite(value):
            raise ValueError(f"{_at(name, np.unravel_index(k, array.shape))} is {value}: it must be finite")
        return float(value)
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else Fraction(value)
    if isinstance(value, int):
        return int(value)
    where = _at(name, np.unravel_index(k, array.shape))
    raise ValueError(f"{where} is {value!r:.40}, of type {type(value).__name__}: it must be a number")


def _whole_floats(array: Array) -> Array:
    """Whole floats as integers of the same value; others unchanged."""
    if not np.all(array == np.rint(array)):
        return array
    if np.abs(array).max(initial=0) < 2.0**63:
        return array.astype(np.int64)
    return objects(map(int, array.ravel().tolist()), array.shape)


def _at(name: str, place: tuple[Any, ...]) -> str:
    """``noisy[2, 0]``."""
    return f"{name}[{', '.join(map(str, place))}]" if len(place) else name
