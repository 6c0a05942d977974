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


def row(
    *,
    kind: str,
    data: str,
    epsilon: float,
    metric: str,
    method: str,
    run: int,
    error: float,
    figure: str = "",
    at: float = math.nan,
    level: int = 0,
    name: str = "",
    depth: int = 1,
) -> Row:
    """One measurement."""
    return {
        "kind": kind, "figure": figure, "data": data, "at": float(at), "epsilon": float(epsilon),
        "level": level, "name": name, "depth": depth, "metric": metric, "method": method, "run": run,
        "error": float(error),
    }  # fmt: skip


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
