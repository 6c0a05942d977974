"""True counts beside a release: how a mechanism's table is read, and how its counts are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hierdp.errors import InputError, listed
from hierdp.mechanisms.option import keywords_of
from hierdp.metrics.level import Level
from hierdp.tables import read

Settings = Mapping[str, Any]

VALUES = "count", "lower", "upper", "standard_error"
"""Columns of a table that do not name a row."""


@dataclass(frozen=True)
class TruthReader:
    """How the releases of a mechanism are compared with the truth. A mechanism's module ``truth`` has one.

    - question: what the releases answer. Releases of mechanisms with one question can be compared with each
      other.
    - reading: the options that say how the table is read; `read` takes these.
    - read: ``read(source, **options)`` gives the true counts. All rows count, also those that a release with
      a bound on the rows of a person leaves out: its error is an error of the release.
    - columns: the options that a user of a written release gives, because its manifest does not have them.
    - options: ``options(source, table, settings, regions, columns)`` gives the options for `read` from a
      written release.
    - levels: ``levels(data, table, settings, regions)`` gives each level of the release beside the true
      counts.
    """

    question: str
    reading: tuple[str, ...]
    read: Callable[..., Any]
    columns: tuple[str, ...]
    options: Callable[[Any, Any, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
    levels: Callable[[Any, Any, Mapping[str, Any], Mapping[str, Any]], Sequence[Level]]


def reader_of(kind: Any) -> TruthReader:
    """That of a class of mechanisms whose table has a row for each of its true counts, in their order."""

    def read_counts(source: Any, **options: Any) -> Any:
        return kind.without_table(epsilon=1.0, **options).read(source)

    def options_of(_: Any, _table: Any, settings: Settings, *_more: Settings) -> dict[str, Any]:
        return {name: settings[name] for name in kind.SETTINGS if name in settings}

    def levels_of(data: Any, table: Any, *_: Settings) -> Sequence[Level]:
        true, released = np.ravel(data), table["count"].to_numpy()
        if true.shape != released.shape:
            raise InputError(
                f"{kind.NAME} does not say how its {len(released)} counts compare with true ones"
            )
        columns = [name for name in table.columns if name not in VALUES]
        rows = table[columns].astype(str).agg(", ".join, axis=1)
        return [Level("all", true, released, len(released), lambda places: list(rows.iloc[places]))]

    reading = tuple(name for name in keywords_of(kind) if name != "method")
    return TruthReader(f"the counts of {kind.NAME}", reading, read_counts, (), options_of, levels_of)


def region_column(source: Any, level: str, given: str | None, option: str = "`region`") -> str:
    """The column of the regions of the last level: as given, or of the level's name.

    Raises `InputError` if there is no such column; the message says how to name it.
    """
    there = list(read(source).columns)
    column = level if given is None else given
    if column not in there:
        what = f"no column {column!r} in the true table; its columns are {listed(there, most=30)}"
        raise InputError(f"{what}. Name the column of the regions of level {level!r} ({option})")
    return column
