"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hierdp.mechanisms.range_query.mechanism import RangeRelease as RangeRelease
    from hierdp.mechanisms.range_query.mechanism import from_table as from_table
    from hierdp.mechanisms.range_query.mechanism import measure as measure
    from hierdp.mechanisms.range_query.mechanism import post_process as post_process
    from hierdp.mechanisms.range_query.mechanism import range_query as range_query
    from hierdp.mechanisms.range_query.plan import METHODS as METHODS
    from hierdp.mechanisms.range_query.plan import Method as Method

__all__ = ["METHODS", "Method", "RangeRelease", "from_table", "measure", "post_process", "range_query"]


def __getattr__(name: str) -> Any:
    """Load on first use: a release answers queries without what made it."""
    if name in __all__:
        part = "plan" if name in ("METHODS", "Method") else "mechanism"
        return getattr(importlib.import_module(f"{__name__}.{part}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
