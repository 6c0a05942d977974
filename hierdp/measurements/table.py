"""Noisy counts that somebody else made, from a table with a row for each, and back.

Wrong numbers are refused by row, without showing them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.hierarchy import as_names
from hierdp.errors import InputError, listed, unknown_name
from hierdp.measurements.rows import Measurement
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC, Spend
from hierdp.privacy.noise import deviation_of
from hierdp.tables.columns import column_of, text_of
from hierdp.tables.sources import read, run

if TYPE_CHECKING:
    from pandas import DataFrame

LAPLACE, NORMAL, UNKNOWN = "Laplace", "Gaussian", "unknown"
LAWS = GEOMETRIC, GAUSSIAN, LAPLACE, NORMAL, UNKNOWN

FILE = "the table of counts"
COLUMNS = "count", "standard_error", "noise", "scale"
"""The columns of a frame of such counts, after those of its keys."""


def of_frame(
    source: Any,
    keys: Sequence[str],
    count: str,
    standard_error: str | float | None = None,
    scale: str | float | None = None,
    law: str = UNKNOWN,
) -> tuple[Measurement, ...]:
    """One measurement for each set of filled keys, law and scale; see `Measurements.from_frame`."""
    import pandas as pd

    keys = as_names(keys)
    if not keys:
        raise InputError("no keys: name at least one column that says what a row counts")
    if reserved := [key for key in keys if key in COLUMNS and key != count]:
        raise InputError(f"a key cannot be called {reserved[0]!r}; rename the column")
    if scale is not None and standard_error is not None:
        raise InputError("give `scale` or `standard_error`, not both")
    table = read(source)
    chosen = {name: column_of(table, name, FILE) for name in keys}
    picked = {f"key{k}": text_of(column) for k, column in enumerate(chosen.values())}
    picked["count"] = column_of(table, count, FILE)
    spread = standard_error if scale is None else scale
    if isinstance(spread, str):
        picked["spread"] = column_of(table, spread, FILE)
    if law not in LAWS:
        if law not in table.columns:
            raise InputError(unknown_name(law, (*LAWS, *table.columns), "no law, and no column of laws,"))
        picked["law"] = column_of(table, law, FILE)
    rows = run(table.select(**picked))
    size = rows.num_rows
    if not size:
        raise InputError(f"{FILE} has no rows")
    texts = pd.DataFrame({
        name: rows[f"key{k}"].to_numpy(zero_copy_only=False) for k, name in enumerate(keys)
    }, dtype=object)  # fmt: skip

    def named(row: int) -> str:
        return named_key(dict(texts.iloc[row]))

    if (again := texts.duplicated().to_numpy()).any():
        row = int(np.argmax(again))
        first = int(np.argmax((texts.fillna("") == texts.iloc[row].fillna("")).all(axis=1)))
        raise InputError(f"{named(row)} has two rows, {first + 1} and {row + 1}: keep one of them")
    answers = numbers(rows["count"], count, named)
    spreads = np.full(size, np.nan)
    if isinstance(spread, str):
        spreads = numbers(rows["spread"], spread, named, np.ones(size, bool)).astype(float)
    elif spread is not None:
        spreads[:] = spread
    what = "standard error" if scale is None else "scale"
    if (wrong := ~(np.isnan(spreads) | ((spreads > 0) & (spreads < np.inf)))).any():
        row = int(np.argmax(wrong))
        raise InputError(f"row {row + 1}, {named(row)}: the {what} is not positive; correct or empty it")
    laws = np.full(size, law, object)
    if law not in LAWS:
        laws = rows["law"].fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
        if (wrong := ~np.isin(laws.astype(str), LAWS)).any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"row {row + 1}, {named(row)}: {laws[row]!r} is no law of noise; they are {listed(LAWS)}"
            )
    if scale is not None and (wrong := (laws == UNKNOWN) & ~np.isnan(spreads)).any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"row {row + 1}, {named(row)}: a scale means nothing without the law of the noise; name it "
            "(`law`), or give standard errors"
        )
    filled = texts.notna()
    groups = pd.DataFrame({"law": laws, "scale": spreads if scale is not None else np.nan})
    groups["margin"] = filled.to_numpy() @ (1 << np.arange(len(keys), dtype=object))
    found = []
    for (_, value, _), at in groups.groupby(["law", "scale", "margin"], sort=False, dropna=False):
        here = at.index.to_numpy()
        kept = [key for key in keys if filled[key].iloc[here[0]]]
        columns = {key: texts[key].to_numpy(object)[here] for key in kept}
        errors = spreads[here] if scale is None else None
        found.append(
            measurement_of(columns, answers[here], str(laws[here[0]]), float(str(value)), errors, here)
        )
    return tuple(found)


def measurement_of(
    keys: dict[str, NDArray[Any]],
    answers: NDArray[Any],
    law: str,
    scale: float,
    errors: NDArray[np.float64] | None,
    rows: NDArray[np.int64],
) -> Measurement:
    """A measurement from elsewhere, with errors given, or those of its law and scale."""
    spend = Spend(
        f"counts by {', '.join(keys)}" if keys else "the total", law, math.nan, scale, None, None, False
    )
    if errors is None:
        errors = np.full(answers.size, deviation(spend))
    return Measurement(spend, answers, rows, keys, errors)


def deviation(spend: Spend) -> float:
    """The standard deviation of noise of any of the laws; NaN if it is unknown."""
    if spend.noise in (UNKNOWN, NORMAL) or math.isnan(spend.scale):
        return spend.scale if spend.noise == NORMAL else math.nan
    if spend.noise == LAPLACE:
        return math.sqrt(2) * spend.scale
    return deviation_of(spend) or math.nan


def named_key(values: dict[str, Any]) -> str:
    """What a row counts, for messages: the last filled key.

    >>> named_key({"state": "A", "county": None}), named_key({"state": None})
    ("state 'A'", 'the total')
    """
    filled = [f"{key} {value!r}" for key, value in values.items() if value is not None and value == value]
    return filled[-1] if filled else "the total"


def frame_of(parts: Sequence[Measurement]) -> DataFrame:
    """One row for each count from elsewhere, in the order of the table that they came from."""
    import pandas as pd

    keys = dict.fromkeys(key for part in parts for key in part.keys or {})
    frames = []
    for part in parts:
        known = part.keys or {}
        nothing = np.full(part.answers.size, None, object)
        columns = {key: known.get(key, nothing) for key in keys}
        values = part.answers, part.errors, part.spend.noise, part.spend.scale
        index = None if part.positions is None else pd.Index(part.positions)
        frames.append(pd.DataFrame({**columns, **dict(zip(COLUMNS, values, strict=True))}, index))
    return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)


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
