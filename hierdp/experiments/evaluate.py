"""`hierdp.evaluate`: the errors of a release, for those who hold the true table."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.labels import named_cell
from hierdp.counts.size_table import Ends
from hierdp.errors import InputError, options_listed
from hierdp.execution import folder, progress, seal
from hierdp.experiments.notice import NOTICE, WHY, WORST
from hierdp.experiments.run import Covered, covered
from hierdp.mechanisms.registry import REPAIR, released_by
from hierdp.metrics.cells import errors_by_size, shares_by_size
from hierdp.metrics.level import Level
from hierdp.record import files, written
from hierdp.record.release import Release
from hierdp.tables.labels import codes_in, labels_for

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ("errors", "by_size", "worst")
"""The tables of an evaluation, and the names of their files."""

_OF_A_COUNT = 1.5e-5
"""Seconds to compare a released count with the true one; measured with 305,000 counts."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The errors of a release. NOT TO BE PUBLISHED: together with the release they give true counts.

    It has no true counts, only errors and how many cells have them.

    - release: the folder or the method of the release.
    - errors: one row for each level; see `hierdp.metrics.cells.cell_errors`.
    - by_size: one row for each level and size of the true count: 0, 1 to 9, 10 to 99, ….
    - worst: the cells of each level with the largest errors, released minus true, by name.
    - cautions: reasons to doubt that the true table is the one that was released.
    """

    release: str
    mechanism: str
    errors: DataFrame
    by_size: DataFrame
    worst: DataFrame
    cautions: Sequence[str] = ()

    def __repr__(self) -> str:
        """A summary in one line."""
        return f"Evaluation({self.mechanism}: {len(self.errors)} levels; {NOTICE})"

    def write(self, path: str | Path, overwrite: bool = False, inputs: Sequence[Path] = ()) -> Path:
        """Write ``report.html``, ``errors.json``, and each table as CSV, all marked NOT TO BE PUBLISHED.

        Raises `InputError` if the folder exists, its parent does not, or the folder is, contains or lies in a
        release.
        """
        from hierdp.experiments.report import evaluation_page

        check_outside(Path(path), inputs)
        with folder.appearing(Path(path), overwrite, inputs) as aside:
            tables = {name: getattr(self, name) for name in TABLES}
            text = evaluation_page(f"{self.release} ({self.mechanism})", self.cautions, **tables)
            (aside / "report.html").write_text(text, encoding="utf-8")
            for name, frame in tables.items():
                marked = frame.assign(notice=NOTICE)
                marked.to_csv(aside / f"{name}.csv", index=False)
            held = {name: json.loads(frame.to_json(orient="records")) for name, frame in tables.items()}
            about = {"notice": NOTICE, "why": WHY, "release": self.release, "mechanism": self.mechanism}
            text = json.dumps({**about, **held}, indent=1, ensure_ascii=False)
            (aside / "errors.json").write_text(text + "\n", encoding="utf-8")
            (aside / "NOT-TO-BE-PUBLISHED.txt").write_text(f"{NOTICE}. {WHY}\n", encoding="utf-8")
        return Path(path)


def check_outside(path: Path, inputs: Sequence[Path] = ()) -> None:
    """Refuse to write errors into a release, which is to be published, or over the files that are read.

    Raises `InputError` if a folder above the path, or the path itself, holds a release.
    """
    real = path.resolve()
    for one in (real, *real.parents):
        sealed = (one / files.MANIFEST).is_file() and (one / seal.SUMS).is_file()
        if sealed or any(one == other.resolve() for other in inputs):
            raise InputError(
                f"{one} is a release, which may be published, or a file that is read: choose a folder "
                "outside, because errors are not to be published"
            )


def evaluate(
    release: str | Path | Release, truth: Any, limit: int | None = None, labels: Any = None, **columns: Any
) -> Evaluation:
    """The errors of a release, for those who hold the true table. NOT TO BE PUBLISHED.

    The true table stays in this process. The result has errors, but no true counts; together with the release
    they give true counts, so it is for inside the house.

    Parameters
    ----------
    release : path or Release
        A folder made by `hierdp release` or `hierdp repair`, or a release in memory.
    truth : path, DataFrame, Arrow or Ibis table
        The true table, read as the release reads its own; see `hierdp.tables.read`. All rows count, also
        those that a bound on the rows of a person left out of the release.
    limit : int, optional
        Memory limit for reading the release, in bytes. Default: what its size justifies.
    labels : path, DataFrame, Arrow or Ibis table, optional
        Names of codes, for the worst cells; see `hierdp.tables.read_labels`. Those in the release's manifest
        are used anyway.
    **columns
        Columns of the true table that the manifest does not name: `group`, `groups` and `entities` for sizes
        of groups; `count` for counts (default: a row counts as one); `region`, the column of regions of the
        last level, or, for several axes, `axes`, a mapping of axis to column (default: named like the level);
        and `unknown` and `clip` as for the release.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If there is no release, or the true table has other columns, regions or categories than the release.
        Messages never quote a count.

    Examples
    --------
    >>> import pandas as pd
    >>> from hierdp import SimulatedNoise, release
    >>> trips = pd.DataFrame({"from": ["A", "A", "B"], "to": ["B", "C", "C"], "people": [50, 20, 9]})
    >>> made = release(trips, "top-down", axes={"from": ["from"], "to": ["to"]}, count="people", epsilon=1,
    ...                delta=1e-6, noise=SimulatedNoise(1), regions_from_data=True)
    >>> found = evaluate(made, trips, count="people")
    >>> found
    Evaluation(InfTDA: 3 levels; NOT TO BE PUBLISHED)
    >>> found.errors[["level", "cells", "max_error", "false_negatives"]].values.tolist()
    [['total', 1, 0, 0], ['to to', 2, 7, 0], ['from from × to to', 4, 16, 0]]
    """
    if isinstance(release, Release):
        about: dict[str, Any] = {"mechanism": release.mechanism, "settings": dict(release.settings)}
        table, regions, called = release.counts, release.regions, release.mechanism
        ends = release.ends
    else:
        read = written.read(Path(release), limit)
        about, table, regions, called = read.manifest, read.table, read.regions, str(release)
        ends = read.ends
    progress.announce(f"The comparison of {len(table):,} counts", len(table) * _OF_A_COUNT)
    found = _of(called, about, *_levels(about, table, regions, truth, columns, ends))
    names = labels_for(labels, about, codes_in(table, regions))
    cells = [named_cell(cell, names) for cell in found.worst["cell"]]
    return replace(found, worst=found.worst.assign(cell=cells))


OTHER_TOTAL = (
    "The true table has another total than the one that the release published exactly: is it the table that "
    "was released, read by the same columns?"
)


def _levels(
    about: Any, table: Any, regions: Any, truth: Any, columns: Any, ends: Ends | None
) -> tuple[Sequence[Level], Sequence[Covered | None]]:
    """The levels of a release beside the true counts; if it has intervals, which of these cover them."""
    mechanism = released_by(about["mechanism"])
    if mechanism is None:
        raise InputError(f"no mechanism of hierdp makes releases called {about['mechanism']!r}")
    how, settings = mechanism.compared, about["settings"]
    given = {name: value for name, value in columns.items() if value not in (None, False, (), {})}
    for name in given:
        if name not in how.columns:
            raise InputError(
                f"{mechanism.name} takes no `{name}` here; it takes {options_listed(how.columns)}"
            )
    data = how.read(truth, **how.options(truth, table, settings, regions, given))
    found = how.levels(data, table, settings, regions)
    if ends is None:
        return found, [None] * len(found)
    return found, covered(how, data, table, settings, regions, ends)


def _of(
    release: str, about: Mapping[str, Any], levels: Sequence[Level], covering: Sequence[Covered | None]
) -> Evaluation:
    """The tables of an evaluation."""
    import pandas as pd

    rows, sizes, worst = [], [], []
    pairs = list(zip(levels, covering, strict=True))
    for level, known in progress.steps(pairs, "levels compared", len(levels)):
        by_size = errors_by_size(level.true, level.released, level.cells)
        rows.append(level.errors() | ({} if known is None else {"covered": float(known[1].mean())}))
        shares = {} if known is None else shares_by_size(*known)
        for row in by_size:
            share = {"covered": shares.get(row["true_count"], math.nan)} if any(covering) else {}
            sizes.append({"level": level.name, **row, **share})
        worst += _worst(level)
    errors = pd.DataFrame(rows)
    listed_worst = pd.DataFrame(worst, columns=["level", "cell", "error"])
    other = _public_total(about["settings"]) not in (None, levels[0].true.sum().item())
    cautions = [OTHER_TOTAL] if other and released_by(about["mechanism"]) is not REPAIR else []
    return Evaluation(release, str(about["mechanism"]), errors, pd.DataFrame(sizes), listed_worst, cautions)


def _public_total(settings: Mapping[str, Any]) -> int | None:
    """The exact total, or number of groups, that a release published; None if it is noisy."""
    known: int | None = settings.get("total")
    if known is None and settings.get("groups_are", "public") == "public":
        known = settings.get("groups")
    return known


def _worst(level: Level) -> list[dict[str, Any]]:
    """The cells with the largest errors, but for those without an error."""
    error = np.asarray(level.released - level.true)
    away = np.abs(error)
    at = np.argsort(-away, kind="stable")[:WORST]
    at = at[away[at] > 0]
    named = zip(level.names(at), error[at].tolist(), strict=True)
    return [{"level": level.name, "cell": cell, "error": value} for cell, value in named]
