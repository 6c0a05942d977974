"""The properties of a released table: whole, non-negative, consistent counts, and the public total."""

from __future__ import annotations

import numpy as np

from hierdp.counts.layout import Layout, Regions, Settings
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Table


def holds(table: Table, settings: Settings, regions: Regions) -> dict[str, bool | None]:
    """For a manifest: whether each property holds; None if it does not apply."""
    return {name: None if why is None else not why for name, why in broken(table, settings, regions).items()}


def broken(table: Table, settings: Settings, regions: Regions) -> dict[str, str | None]:
    """For each property, where it is violated; empty if it holds, None if it does not apply."""
    rows, layout = laid_out(table), Layout.of(table, settings)
    values, found = rows.values(settings), rows.total(settings)
    public = settings.get("groups" if layout.sizes else "total")
    other = "" if found == public else f"the table's total is {found}, the manifest's {public}"
    fractional, negative = values != np.rint(values) if values.dtype.kind == "f" else None, values < 0
    return {
        "whole": "" if fractional is None else f"row {np.argmax(fractional) + 1} is not a whole number",
        "non_negative": f"row {np.argmax(negative) + 1} is negative" if negative.any() else "",
        "consistent": rows.wrong_sums(settings, regions),
        "total": None if public is None or found is None else other,
    }
