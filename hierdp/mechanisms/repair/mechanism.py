"""`hierdp.repair`: counts that somebody else has noised or estimated, made consistent and proved optimal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from hierdp.counts.hierarchy import as_names
from hierdp.counts.layout import Regions
from hierdp.errors import InputError, listed
from hierdp.execution import progress
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.measuring import Differs, Measure
from hierdp.mechanisms.mechanism import Mechanism, release
from hierdp.mechanisms.option import Option, check_options, documented, keywords_of
from hierdp.mechanisms.repair.input_counts import InputCounts
from hierdp.mechanisms.repair.methods import METHODS, repaired
from hierdp.mechanisms.repair.reading import read_given
from hierdp.mechanisms.repair.table import AXIS, PREFIX, given_of, settings_of, shape_of, table_of
from hierdp.privacy.budget import Allowed
from hierdp.record.release import Release
from hierdp.record.step import Solving

_OF_A_REGION = 2e-5
"""Seconds to repair and write a region; measured with 305,000 regions, by each method."""


@documented
@dataclass(frozen=True, kw_only=True)
class Repair(Mechanism[InputCounts]):
    """Counts along a hierarchy that somebody else has noised or estimated, made consistent.

    No noise is drawn and no privacy is claimed: the result protects whom the given counts protect.
    """

    levels: Annotated[
        Sequence[str],
        Option(
            "The columns of regions, from coarse to fine: state,county. On rows of inner regions the finer "
            "ones are empty; on the root's row all are. Rows of inner regions may be missing.",
            "COLUMNS",
            form="columns",
        ),
    ]
    by: Annotated[
        Sequence[str] | None,
        Option(
            "Columns that tell independent tables apart, such as dates: each is repaired by itself. Each "
            "table has a region of the first level, whose name stands before those of its own regions.",
            "COLUMNS",
            form="columns",
        ),
    ] = None
    count: Annotated[
        str,
        Option(
            "The column of counts, of either sign. whole and least-absolute need whole counts, the other "
            "methods take fractions; chebyshev rounds them to multiples of 2⁻²⁰, about a millionth.",
            "COLUMN",
        ),
    ] = "count"
    standard_error: Annotated[
        str | float | None,
        Option(
            "A column of standard errors, or one number for all counts: counts weigh 1 / standard error², "
            "with chebyshev and least-absolute 1 / standard error. It may be empty on fixed levels. Default: "
            "all weigh the same.",
            "COLUMN",
            form="column or number",
        ),
    ] = None
    scale: Annotated[
        str | float | None,
        Option(
            "In place of `standard_error`: the scale of the noise, a column or a number. It needs `law`.",
            "COLUMN",
            form="column or number",
        ),
    ] = None
    law: Annotated[
        str | None,
        Option(
            "The law of the noise, or a column of laws: double-geometric or Laplace (P(x) ∝ exp(−|x| / "
            "scale)), discrete Gaussian or Gaussian (∝ exp(−x² / 2 scale²)).",
            "NAME",
        ),
    ] = None
    method: Annotated[
        str,
        Option(
            "least-squares: consistent; with standard errors if some are given. non-negative, whole: the "
            "nearest such counts. hierarchy-qip: whole and non-negative, of a given total. chebyshev: the "
            "same, with the least largest change, in standard errors. least-absolute: the same, with the "
            "least sum of absolute changes, robust against a few wrong counts.",
            "NAME",
        ),
    ] = "hierarchy-qip"
    fixed: Annotated[
        Sequence[str],
        Option(
            "A level whose counts stay as given, such as root. For hierarchy-qip and chebyshev, which take "
            "the total of least squares, rounded, without it, and for least-absolute.",
            "LEVEL",
        ),
    ] = ()
    window: Annotated[
        int | None,
        Option(
            "Largest change of a given count below the root, or below the finest fixed level, for "
            "hierarchy-qip.",
            "NUMBER",
            least=0,
        ),
    ] = None
    root: Annotated[str, Option("Name of the region above all others.", "NAME")] = "all"
    root_level: Annotated[str, Option("Name of its level.", "NAME")] = "root"

    MEASURES: ClassVar = False
    METHODS: ClassVar = METHODS
    shape = staticmethod(shape_of)

    def check_options(self) -> None:
        """See `Mechanism`."""
        for name, what in (("fixed", "fixed levels"), ("window", "window")):
            able = [method for method in METHODS if name in METHODS[method].takes]
            if (
                getattr(self, name) not in ((), [], None)
                and self.method in METHODS
                and self.method not in able
            ):
                raise InputError(f"{self.method} takes no {what}; use {listed(able)}, or leave `{name}` out")
        self.chosen  # noqa: B018
        if self.law is not None and self.scale is None:
            raise InputError("`law` says what `scale` means; give `scale` as well")

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **changes: Any) -> Self:
        """See `Mechanism`."""
        settings, method = manifest["settings"], str(manifest["mechanism"]).removeprefix(PREFIX)
        options = {"method": method, "fixed": tuple(settings["fixed"]), "window": settings["window"]}
        return cls.without_table(**{**options, **changes})

    def read(self, source: Any) -> InputCounts:
        """See `Mechanism`; `source` may be `Measurements` from elsewhere, which know their errors.

        Raises `InputError` if they are those of a release.
        """
        options: dict[str, Any] = {name: getattr(self, name) for name in ("standard_error", "scale", "law")}
        spread = {name: value for name, value in options.items() if value is not None}
        count, column, by = self.count, None, as_names(self.by or ())
        if isinstance(source, Measurements):
            if not source.from_elsewhere:
                raise InputError(
                    "these are measurements of a release: use hierdp.open(folder).repair(method)"
                )
            if spread:
                raise InputError(f"`{next(iter(spread))}` does not apply: measurements have their own errors")
        elif self.scale is not None or isinstance(self.standard_error, float | int):
            source = Measurements.from_frame(source, [*by, *as_names(self.levels)], self.count, **spread)
        else:
            column = self.standard_error
        if isinstance(source, Measurements):
            known = any(part.errors is not None and np.isfinite(part.errors).any() for part in source)
            count, column = "count", "standard_error" if known else None
        columns = self.root, self.root_level, as_names(self.fixed), by
        given = read_given(source, self.levels, count, column, *columns)
        regions = given.hierarchy.tree.size
        progress.announce(f"The repair of {regions:,} regions", regions * _OF_A_REGION)
        return given

    def facts(self, data: InputCounts) -> tuple[InputCounts, None]:
        """See `Mechanism`; nothing is measured."""
        return data, None

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> InputCounts:
        """See `Mechanism`; given counts are the only part of a repair that nothing can check."""
        given = given_of(table, regions[AXIS], bool(manifest["settings"].get("tables")))
        if not given.measured[given.hierarchy.tree.leaves].all():
            raise Differs("a region of the last level has no given count")
        return given

    def name_of(self, facts: InputCounts) -> str:
        """See `Mechanism`."""
        return PREFIX + self.method

    def regions_of(self, facts: InputCounts) -> Regions:
        """See `Mechanism`."""
        return {AXIS: facts.hierarchy}

    def run(
        self, facts: InputCounts, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[Any, dict[str, Any]]:
        """See `Mechanism`."""
        measure.end()
        fixed = as_names(self.fixed)
        counts = repaired(facts, self.method, fixed, self.window, solve)
        return table_of(facts, counts, self.method), settings_of(facts, self.method, fixed, self.window)


def repair(source: Any, **options: Any) -> Release:
    """Make counts consistent along a hierarchy that somebody else has noised or estimated.

    No noise is drawn and no privacy is claimed: the result protects whom the given counts protect.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table, or Measurements
        Noisy counts from elsewhere (`Measurements.from_frame`), whose standard errors are the weights. Or a
        table with one row for each region; see `hierdp.tables.read`. A row's level is the last of `levels`
        that is filled; a row without any is that of the root. Rows of inner regions may be missing.
    **options
        Those of `Repair`: `levels` is required.

    Returns
    -------
    Release
        Its table has a row for each region, with the `given` count and the repaired `count`. It has no
        budget: nothing was measured.

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
    Release(repair: hierarchy-qip: 6 rows, nothing measured, 1 of 1 steps proved optimal)
    >>> made.table[["region", "count"]].values.tolist()
    [['all', 10], ['A', 3], ['B', 7], ['A1', 3], ['A2', 0], ['B1', 7]]
    """
    check_options("repair", keywords_of(Repair), options)
    return release(Repair(**options), source)
