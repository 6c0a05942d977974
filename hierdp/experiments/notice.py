"""What every page, file and line of an evaluation says."""

from __future__ import annotations

NOTICE = "NOT TO BE PUBLISHED"
"""On every page of the report, in every file, and on the console."""

WHY = (
    "These errors come from the true table. Together with the release they give true counts: whoever has "
    "both knows them. They are for inside the house, and no privacy budget covers them."
)

WORST = 20
"""Cells of each level that are listed."""
