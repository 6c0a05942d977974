"""Histograms that answer range queries: the mechanisms of Qardaji, Yang & Li 2013."""

from hierdp.mechanisms.range_query.mechanism import (
    RangeRelease,
    from_table,
    measure,
    post_process,
    range_query,
)
from hierdp.mechanisms.range_query.plan import METHODS, Method

__all__ = ["METHODS", "Method", "RangeRelease", "from_table", "measure", "post_process", "range_query"]
