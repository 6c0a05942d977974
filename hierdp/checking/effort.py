"""Estimate how long a check will take, from the table's rows and the problems in the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Table
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.record.spool import Steps

LEAST_SECONDS, SECONDS_PER_GB = 600.0, 60.0
"""Seconds that a check may take, whatever the limit, and for each gigabyte of it."""

_OF_A_ROW, _OF_A_PROBLEM, _OF_A_VARIABLE = 1e-5, 2.5e-3, 2e-6
"""Seconds of processor time, rounded up; measured on releases with 10⁵ and 10⁶ regions, and on releases with
thousands of small problems."""

_OF_A_LARGE_ROW = 1e-6
"""The same for a `SizeTable`, with the proofs of all its steps: thrice what 417 million rows took."""


class TooLong(InputError):
    """The message says how long the check may take, and how to allow it."""


def refuse_or_announce(manifest: Mapping[str, Any], table: Table, limit: int) -> None:
    """Refuse a check that may take more than ten minutes, or a minute for each GB; announce a long one.

    - limit: the memory that is allowed, or that the size of the release justifies, in bytes.

    Raises `TooLong` if it may take longer.
    """
    rows = len(table)
    try:
        problems = len(manifest["solved"])
        sizes = [int(line["variables"]) for line in manifest["solved"]]
        variables, large = sum(sizes), laid_out(table).large
        kept = min(variables, Steps.MOST) if large else variables
        of_rows = rows * (_OF_A_LARGE_ROW if large else _OF_A_ROW)
        seconds = of_rows + problems * _OF_A_PROBLEM + kept * _OF_A_VARIABLE
    except (KeyError, TypeError, ValueError, OverflowError):
        return  # an edited manifest, which the checks will report
    allowed = max(LEAST_SECONDS, limit / 1e9 * SECONDS_PER_GB)
    if seconds > allowed:
        raise TooLong(
            f"the check may take {progress.duration(seconds)} ({rows:,} rows; {problems:,} problems of "
            f"{variables:,} variables), and {progress.duration(allowed)} are allowed for a release of this "
            f"size. If the release is that large, use --limit {seconds / SECONDS_PER_GB + 0.1:.1f}"
        )
    progress.announce(f"The check of {rows:,} rows and {problems:,} problems", seconds)
