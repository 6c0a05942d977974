"""Errors of released counts by size and of sparse counts, for experiments on public data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hierdp.counts.size_runs import cumulative

if TYPE_CHECKING:
    from pandas import DataFrame

    from models import Tree


def l1(true: NDArray[Any], released: NDArray[Any]) -> int:
    """Σ |true − released|: the L1 error of Fioretto & Van Hentenryck 2019, §9."""
    return int(np.abs(true - released).sum())


def earth_movers(true: NDArray[Any], released: NDArray[Any]) -> int:
    """Number of entities to add or remove to turn one table of sizes into the other.

    Kuo et al. 2018, Lemma 1.
    """
    return l1(cumulative(true), cumulative(released))


def constraint_violations(tree: Tree, counts: NDArray[Any]) -> int:
    """Number of counts unequal to the sum of their children (Fioretto & Van Hentenryck 2019, Table 1)."""
    return int((tree.child_sums(counts) != counts[tree.internal]).sum()) if tree.internal.size else 0


def group_size_errors(
    tree: Tree, levels: Sequence[str], true: NDArray[Any], released: NDArray[Any]
) -> DataFrame:
    """L1 error and earth mover's distance of counts by size, per level; arrays of shape (nodes, sizes)."""
    import pandas as pd

    rows = []
    for number, name in enumerate(levels):
        nodes = tree.nodes_of(number)
        here = true[nodes], released[nodes]
        rows.append(
            {
                "level": number,
                "name": name,
                "regions": len(here[0]),
                "l1": l1(*here),
                "l1_per_region": l1(*here) / len(here[0]),
                "emd_per_region": earth_movers(*here) / len(here[0]),
            }
        )
    return pd.DataFrame(rows)


def joined_cells(true: DataFrame, released: DataFrame) -> DataFrame:
    """Join two tables of sparse counts: one row per cell of either, with the counts `true` and `released`.

    Both tables have the column ``level``, columns that identify the cell, and ``count``. A cell that is
    missing in a table has the count 0.
    """
    keys = [column for column in true.columns if column != "count"]
    left, right = (
        # Int64 stays integer if counts are missing
        table.rename(columns={"count": name}).astype({name: "Int64"})
        for name, table in (("true", true), ("released", released))
    )
    both = left.merge(right, how="outer", on=keys)
    return both.fillna({"true": 0, "released": 0}).astype({"true": "int64", "released": "int64"})


def top_down_errors(true: DataFrame, released: DataFrame) -> DataFrame:
    """Largest error, false discoveries and false negatives of sparse counts, per level.

    The tables have the form for `joined_cells`, with one row per non-zero cell. `false_discovery_rate` is the
    share of positive released cells whose true count is zero. `false_negatives` is the number of cells with a
    positive true count whose released count is missing or not positive (Boninsegna & Silvestri 2025, §5).
    """
    import pandas as pd

    cells = joined_cells(true, released)
    rows = []
    for level, here in cells.groupby("level"):
        before, after = here["true"], here["released"]
        away = (before - after).abs()
        positive = int((after > 0).sum())
        invented = int(((before == 0) & (after > 0)).sum())
        rows.append(
            {
                "level": level,
                "name": _deepest(here.iloc[0], list(here.columns)),
                "cells": positive,
                "max_error": int(away.max()),
                "l1": int(away.sum()),
                "false_discovery_rate": invented / max(1, positive),
                "false_negatives": int(((before > 0) & (after <= 0)).sum()),
            }
        )
    return pd.DataFrame(rows)


def largest_cells(cells: DataFrame, most: int) -> DataFrame:
    """The rows of `joined_cells` with the largest true counts, with their errors.

    Adds `error` (released minus true), `relative_error` and `released_rank` (1 for the largest released
    count).
    """
    found = cells.assign(released_rank=cells["released"].rank(ascending=False, method="min").astype("int64"))
    found = found.sort_values("true", ascending=False, kind="stable").head(most)
    error = found["released"] - found["true"]
    return found.assign(error=error, relative_error=error / found["true"].clip(lower=1)).reset_index(
        drop=True
    )


def _deepest(cell: Any, keys: Sequence[str]) -> str:
    """``origin zone × destination airport``, from a row of a top-down table."""
    axes = [key.removesuffix("_level") for key in keys if key.endswith("_level")]
    return " × ".join(f"{axis} {cell[f'{axis}_level']}" for axis in axes)
