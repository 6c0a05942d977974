"""Whether a table has the columns, levels and regions that a release of its mechanism has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.counts.layout import Layout, Regions
from hierdp.mechanisms.description import Mechanism

if TYPE_CHECKING:
    from pandas import DataFrame


def check_shape(
    table: DataFrame, manifest: Mapping[str, Any], regions: Regions, mechanism: Mechanism | None
) -> Iterator[CheckResult]:
    """Check the layout of a table over regions; one of bins must have no regions.

    A mechanism that is not hierdp's may release any other table.
    """
    settings, wrong = manifest["settings"], ""
    by_region = bool(Layout.of(table, settings).axes)
    if mechanism is None:
        if by_region or "range_query" in settings or {"cluster", "count"} <= set(table.columns):
            wrong = "this version knows no such mechanism"
    elif mechanism.checking is not None:
        wrong = mechanism.checking.shape(table, manifest, regions)
    if wrong:
        yield CheckResult("shape", FAILS, f"{manifest['mechanism']}: {wrong}")
    elif by_region:
        yield CheckResult("shape", HOLDS, "columns, levels and regions as they should be")
