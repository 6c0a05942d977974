"""True counts beside a release: how a mechanism's table is read, and how its counts are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hierdp.errors import InputError, listed
from hierdp.metrics.level import Level
from hierdp.tables import read

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class TruthReader:
    """How the releases of a mechanism are compared with the truth. A mechanism's module ``truth`` has one.

    - question: what the releases answer. Releases of mechanisms with one question can be compared with each
      other.
    - reading: the keywords of ``from_table`` that say how the table is read; `read` takes these.
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
