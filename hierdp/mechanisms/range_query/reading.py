"""Read a written range-query release, to query it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hierdp.errors import InputError
from hierdp.mechanisms.range_query.answers import RangeAnswers
from hierdp.record import files, written
from hierdp.record.written import LIMIT

if TYPE_CHECKING:
    pass


def read_answers(path: str | Path, limit: int = LIMIT) -> RangeAnswers:
    """Read a written release from its ``released.parquet`` and ``manifest.json``, to query it.

    Parameters
    ----------
    path : path
    limit : int
        Limit on the memory for reading it, in bytes.

    Raises
    ------
    InputError
        If the folder is not a range-query release, or a file is broken or would need more memory.
    """
    from hierdp.mechanisms.range_query.table import answers_of

    folder = Path(path)
    written.names_in(folder)
    settings = written.read_manifest(folder, limit)["settings"]
    if "range_query" not in settings:
        raise InputError(f"{folder} is a release of another kind: only range-query releases answer ranges")
    table = written.read_table(folder / f"{files.TABLE}.parquet", limit)
    try:
        return answers_of(table, settings)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as broken:
        why = str(broken) if isinstance(broken, InputError) else type(broken).__name__
        raise written.Unreadable(
            f"{folder} is broken: its table does not agree with its manifest ({why}); see hierdp check"
        ) from None


def warning_of(path: str | Path) -> str | None:
    """The warning in the manifest of a release."""
    warning: str | None = written.read_manifest(Path(path)).get("warning")
    return warning
