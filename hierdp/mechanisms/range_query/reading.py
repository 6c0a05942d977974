"""Read a written histogram, to query it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.counts.axes import axis_of
from hierdp.errors import InputError
from hierdp.mechanisms.range_query.answers import RangeAnswers, Summed
from hierdp.record import files, written

if TYPE_CHECKING:
    from pandas import DataFrame


def read_answers(path: str | Path, limit: int | None = None) -> RangeAnswers:
    """Read a written histogram (range-query, clustering) from its table and manifest, to query it.

    Parameters
    ----------
    path : path
    limit : int, optional
        Limit on the memory for reading it, in bytes. Default: what its size justifies.

    Raises
    ------
    InputError
        If the folder is not a histogram, or a file is broken or would need more memory.
    """
    folder = Path(path)
    written.names_in(folder)
    limit = written.limit_for(folder, limit)
    settings = written.read_manifest(folder, limit)["settings"]
    if "range_query" not in settings and not isinstance(settings.get("axes"), list):
        raise InputError(
            f"{folder} is a release of another kind: only range-query releases and clustering answer ranges; "
            "ask for sums of regions and categories by --where"
        )
    table = written.read_table(folder / f"{files.TABLE}.parquet", limit)
    try:
        return answers_in(table, settings)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as broken:
        why = str(broken) if isinstance(broken, InputError) else type(broken).__name__
        raise written.Unreadable(
            f"{folder} is broken: its table does not agree with its manifest ({why}); see hierdp check"
        ) from None


def answers_in(table: DataFrame, settings: Mapping[str, Any]) -> RangeAnswers:
    """The source of answers of a histogram (range-query, clustering), from its table and settings."""
    from hierdp.mechanisms.range_query.table import answers_of

    return answers_of(table, settings) if "range_query" in settings else _of_clusters(table, settings)


def _of_clusters(table: DataFrame, settings: Mapping[str, Any]) -> RangeAnswers:
    """Sums of the bins of a histogram by clusters; their standard errors are known without clusters."""
    axes = tuple(axis_of(saved, table[saved["name"]].unique()) for saved in settings["axes"])
    error = float(table["standard_error"].iloc[0]) if "standard_error" in table else math.nan
    counts = table["count"].to_numpy().reshape([axis.bins for axis in axes])
    return RangeAnswers(axes, Summed(counts, error**2))
