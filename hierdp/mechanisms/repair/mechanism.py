"""`hierdp.repair`: counts that somebody else has noised or estimated, made consistent and proved optimal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import as_names
from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.measurement import Measurements
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.mechanisms.repair.methods import Options, repaired
from hierdp.mechanisms.repair.reading import read_given
from hierdp.mechanisms.repair.table import AXIS, NAME, settings_of, table_of
from hierdp.privacy.budget import Ledger
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving
from hierdp.reports.solved import count_proved

_OF_A_REGION = 2e-5
"""Seconds to repair and write a region; measured with 305,000 regions, by each method."""


@dataclass(frozen=True, eq=False, repr=False)
class Repair(Release):
    """Repaired counts, with the solved and proved problems. It has no ledger: nothing was measured.

    It is written, and checked by `hierdp check`, like a release.
    """

    ledger: Ledger = field(init=False)

    def __repr__(self) -> str:
        proved, solved = count_proved(line.line for line in self.proved)
        steps = f"{proved:,} of {solved:,} steps proved optimal"
        return f"Repair({self.mechanism}: {len(self.table):,} rows, {steps})"

    @property
    def cautions(self) -> list[str]:
        """There are none: warnings are about noise and budgets."""
        return []

    @property
    def _measured(self) -> None:
        return None


def repair(
    source: Any,
    *,
    levels: Sequence[str],
    count: str = "count",
    standard_error: str | None = None,
    method: str = "hierarchy-qip",
    fixed: Sequence[str] = (),
    window: int | None = None,
    root: str = "all",
    root_level: str = "root",
    by: Sequence[str] = (),
) -> Repair:
    """Make counts consistent along a hierarchy that somebody else has noised or estimated.

    No noise is drawn and no privacy is claimed: the result protects whom the given counts protect.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table, or Measurements
        Noisy counts from elsewhere (`Measurements.from_frame`), whose standard errors are the weights. Or a
        table with one row for each region; see `hierdp.tables.read`. A row's level is the last of `levels`
        that is filled; a row without any is that of the root. Rows of inner regions may be missing.
    levels : sequence of str
        The columns of regions, from coarse to fine.
    count : str
        The column of counts, of either sign. "whole" and "least-absolute" need whole counts, the other
        methods take fractions; "chebyshev" rounds them to multiples of 2⁻²⁰, about a millionth.
    standard_error : str, optional
        A column of standard errors: counts weigh 1/standard error² (1/standard error with "chebyshev" and
        "least-absolute"). It may be empty on fixed levels. Default: all weigh the same.
    method : str
        The model: "least-squares" (`ConstrainedInference`: consistent, with standard errors if some are
        given), "non-negative" (`NonNegativeInference`), "whole" (the same in whole numbers),
        "hierarchy-qip" (`HierarchyQIP`: whole and non-negative, of a given total), "chebyshev"
        (`TreeChebyshev`: whole and non-negative, with the least largest change, in standard errors if some
        are given), or "least-absolute"
        (`TreeAbsolute`: whole and non-negative, with the least sum of absolute changes; weights
        1/standard error). "hierarchy-qip" and "chebyshev" take the total of least squares, rounded, if none
        is fixed.
    fixed : sequence of str
        Levels whose counts stay as given, such as the root's; for "hierarchy-qip", "chebyshev" and
        "least-absolute".
    window : int, optional
        Largest change of a given count below the root, or below the finest fixed level; for "hierarchy-qip".
    root, root_level : str
        Names of the region above all others, and of its level.
    by : sequence of str
        Columns that tell independent tables apart, such as dates or models. Each table has a region of the
        first level, whose name stands before those of its own regions.

    Returns
    -------
    Repair
        Its table has a row for each region, with the `given` count and the repaired `count`.

    Raises
    ------
    InputError
        If something in the input is wrong; the message names the region.
    NotSolved
        If the problem has no answer.

    Examples
    --------
    >>> import pandas as pd
    >>> noisy = pd.DataFrame({"state": [None, "A", "A", "B"], "county": [None, "A1", "A2", "B1"],
    ...                       "people": [10, 4, -1, 9]})
    >>> made = repair(noisy, levels=["state", "county"], count="people", fixed=["root"])
    >>> made
    Repair(repair: hierarchy-qip: 6 rows, 1 of 1 steps proved optimal)
    >>> made.table[["region", "count"]].values.tolist()
    [['all', 10], ['A', 3], ['B', 7], ['A1', 3], ['A2', 0], ['B1', 7]]
    """
    options = Options(method, as_names(fixed), window, bool(by))
    if isinstance(source, Measurements):
        if not source.from_elsewhere:
            raise InputError("these are measurements of a release: use hierdp.open(folder).repair(method)")
        known = [part.errors for part in source if part.errors is not None]
        standard_error = "standard_error" if any(np.isfinite(one).any() for one in known) else None
        count = "count"
    given = read_given(source, levels, count, standard_error, root, root_level, options.fixed, by)
    regions = given.hierarchy.tree.size
    progress.announce(f"The repair of {regions:,} regions", regions * _OF_A_REGION)
    steps = Steps()
    table, settings = released(given, options, steps)
    return Repair(NAME + method, table, steps.kept, settings, {AXIS: given.hierarchy})


def released(given: InputCounts, options: Options, solve: Solving) -> tuple[Any, dict[str, Any]]:
    """The table and the settings of a repair, from the given counts; `solve` solves the problems.

    Raises `InputError`, `NotSolved` (as `repaired`).
    """
    counts = repaired(given, options, solve)
    return table_of(given, counts, options), settings_of(given, options)
