"""Numbers in a column of an Arrow table; wrong ones are refused by row, without showing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError


def numbers(
    column: Any,
    name: str,
    named: Callable[[int], str],
    blanks: NDArray[np.bool_] | None = None,
    advice: str = "fill it, or leave out the row",
) -> NDArray[Any]:
    """A column as int64 if all entries are whole, else as float64; none may be infinite.

    Rows of `blanks` may be empty, and are then NaN; other rows may not. `named` names what a row counts, and
    `advice` says what to do about an empty entry.
    """
    import pandas as pd

    raw = column.to_pandas()
    if raw.dtype == bool or pd.api.types.is_datetime64_any_dtype(raw.dtype):
        raise InputError(f"column {name!r} contains {raw.dtype}, not numbers; choose another column")
    blank = raw.isna() | (raw.astype(str).str.strip() == "")
    missing = blank if blanks is None else blank & ~blanks
    if missing.any():
        at = int(np.argmax(missing))
        raise InputError(f"row {at + 1}, {named(at)}: column {name!r} is empty. {advice}")
    values = pd.to_numeric(raw, errors="coerce")
    wrong = ~np.isfinite(values.to_numpy(float, na_value=np.nan)) & ~blank.to_numpy()
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"row {at + 1}, {named(at)}: column {name!r} does not contain a finite number")
    found = values.to_numpy()
    if found.dtype.kind in "iu":
        if found.dtype == np.uint64 and found.max() > np.iinfo(np.int64).max:
            raise InputError(f"column {name!r} has numbers beyond 64 bits: count in larger units")
        return np.asarray(found, np.int64)
    real = np.asarray(found, np.float64)
    whole = bool((real == np.rint(real)).all() and np.abs(real).max() < 2**53)  # NaN is not
    return real.astype(np.int64) if whole else real
