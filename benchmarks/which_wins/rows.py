"""The measurements, one row per run and error; and their means with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, Any]

SETTING = ("kind", "figure", "data", "at", "epsilon", "level", "name", "depth", "metric")
"""What a row is about, besides its method and run. `at` is what a figure varies."""

COLUMNS = (*SETTING, "method", "run", "error")

LEVEL = 0.95
"""Of the intervals."""


USUAL = {"figure": "", "at": math.nan, "level": 0, "name": "", "depth": 1}
"""What a row has where nothing else is said."""


def row(**given: Any) -> Row:
    """One measurement, with a value for each of `COLUMNS`."""
    found = USUAL | given
    numbers = {name: float(found[name]) for name in ("at", "epsilon", "error")}
    return {name: (found | numbers)[name] for name in COLUMNS}


def means(rows: DataFrame) -> DataFrame:
    """The mean of every setting and method, with its 95 % t-interval over runs, and whether it wins.

    `best` marks the least mean of each setting; `tied` the methods whose interval overlaps the best one's.
    Runs of two methods may share noise; intervals that overlap are called ties all the same.
    """
    grouped = rows.groupby([*SETTING, "method"], sort=False, dropna=False).error
    found = grouped.agg(["mean", "std", "count"]).reset_index()
    spread = (
        t.ppf(0.5 + LEVEL / 2, np.maximum(found["count"] - 1, 1)) * found["std"] / np.sqrt(found["count"])
    )
    found["half"] = spread.where(found["count"] > 1, 0.0)
    at = found.groupby(list(SETTING), sort=False, dropna=False)["mean"].transform("idxmin").to_numpy()
    found["best"] = at == found.index
    found["least"] = found["mean"].to_numpy()[at]
    top = (found["mean"] + found["half"]).to_numpy()[at]
    found["tied"] = found["best"] | (found["mean"] - found["half"] <= top)
    return found
