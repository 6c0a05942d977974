"""Read a written release within a memory limit; the memory for a file is estimated before it is read.

The folder may come from an untrusted source: a file of a few kilobytes may unpack to gigabytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.layout import SIZES
from hierdp.counts.rows import with_ends
from hierdp.counts.size_table import ENDS, Ends, SizeTable, Table, aligned, fits, narrow, same_rows
from hierdp.errors import InputError, listed, near_by
from hierdp.execution import seal
from hierdp.measurements.file import MeasurementsFile
from hierdp.measurements.measurement import Measurements
from hierdp.record import files
from hierdp.versions import version_of
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame

LIMIT = 1_000_000_000
"""Default memory limit for reading a release, in bytes."""

MEMORY_PER_PARQUET_BYTE = 200
"""Bytes of memory that are justified by each byte of a release's Parquet files. Rows that hold noise take a
byte or more in them, and with their regions up to that much in memory."""

OF_A_TEXT_BYTE = 50
"""The same for its CSV files. With little noise, rows may take less than a byte in Parquet, but in CSV each
row and each region has its name: a region takes 12 bytes or more, and five cells in memory."""

LONGEST_LINE = 1 << 16
"""Bytes. A CSV file in which so many come without an end of line justifies nothing."""

NAMES = (
    *(f"{name}.{suffix}" for name in (files.TABLE, files.FINEST) for suffix in ("parquet", "csv")),
    *(
        files.MANIFEST,
        files.MEASUREMENTS,
        files.PROOFS,
        files.REGIONS,
        files.REPORT,
        files.NOT_PRIVATE,
        seal.SUMS,
        seal.SIGNATURE,
    ),
)

_JSON_ITEM = 100
"""Upper bound on the bytes of a parsed JSON value: an empty list takes 56, its reference 8."""

_CSV_CELL = 120
"""Bytes of a parsed text cell: an object, its reference, and the parser's copy."""

_ANSWER = 16
"""Bytes of an answer of a file of measurements: those of the query that is being asked, and of all."""

_COPIES = 3
"""Number of copies of a release's table that a check holds at once."""

_NARROW_CELL, _WIDE_CELL = 20, _COPIES * 8
"""Bytes of a cell of a `SizeTable` in a check: with counts of 32 bits (17 measured), or of 64."""

_MOST_COLUMNS = 1_000
_MOST_FOOTER = 10_000_000


class Unreadable(InputError):
    """A file of a release is broken, or does not belong to a release."""


class OtherFormat(InputError):
    """The release has a format that this version does not read."""

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        found, versions = repr(manifest["format"])[:40], manifest.get("versions")
        maker = versions.get("hierdp") if isinstance(versions, Mapping) else None
        made_by = f"hierdp {maker[:40]}" if isinstance(maker, str) else "another version"
        super().__init__(
            f"the release has the format {found}, made by {made_by}; hierdp {version_of('hierdp')} reads the "
            f"format {files.FORMAT}: use the version that made it"
        )


class TooLarge(InputError):
    """Reading a file would exceed the memory limit; the message says how to allow it."""

    def __init__(self, name: str, needed: float, limit: int) -> None:
        super().__init__(
            f"reading {name} may take {needed / 1e9:,.1f} GB of memory, more than the limit of "
            f"{limit / 1e9:,.1f} GB. If the release is that large, use --limit {needed / 1e9 + 0.1:.1f}"
        )


@dataclass(frozen=True, eq=False)
class ReleaseFolder:
    """The contents of a release's folder."""

    manifest: dict[str, Any]
    table: Any
    """A `SizeTable` if it has a row for each region and size, in order; otherwise a DataFrame.

    Without the intervals."""
    regions: dict[str, Hierarchy]
    measurements: Measurements | None = None
    """Read as they are needed; None in releases without the file."""
    ends: Ends | None = None
    """The intervals of the rows, if the release has some."""

    @property
    def with_ends(self) -> Table:
        """The table with the intervals, if there are some."""
        return with_ends(self.table, self.ends)


def names_in(folder: Path) -> list[str]:
    """The files of a release's folder.

    Raises `InputError` if there is no release at that path; `Unreadable` if it contains anything that is not
    a file, or too many files.
    """
    if folder.is_file():
        raise InputError(f"{folder} is a file; give the folder of a release")
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}{near_by(folder)}")
    if not (folder / files.MANIFEST).is_file():
        raise InputError(f"{folder} is not a release: it has no {files.MANIFEST}")
    found = list(islice(folder.iterdir(), 100))
    # Reading a pipe or a device may never end.
    strange = sorted(path.name for path in found if path.is_symlink() or not path.is_file())
    if strange:
        raise Unreadable(f"{listed(strange)}: a release contains regular files only")
    if len(found) > len(NAMES):
        raise Unreadable(f"{folder} contains more files than any release")
    return sorted(path.name for path in found)


def justified(folder: Path) -> int:
    """The memory that the size of a release justifies: what nobody can demand by a small file.

    Returns: in bytes; at least `LIMIT`. Holes of a file do not count.
    """
    try:
        paths = [folder / name for name in names_in(folder)]
    except InputError:
        return LIMIT  # whoever reads it reports that
    tables = MEMORY_PER_PARQUET_BYTE * sum(_bytes(path) for path in paths if path.suffix == ".parquet")
    texts = OF_A_TEXT_BYTE * sum(_bytes(path) for path in paths if path.suffix == ".csv" and _in_lines(path))
    return max(LIMIT, tables + texts)


def _bytes(path: Path) -> int:
    size = path.stat()
    return min(size.st_size, 512 * size.st_blocks)


def _in_lines(path: Path) -> bool:
    """Whether there is no line so long that it would be read at once."""
    with path.open("rb") as file:
        return all(b"\n" in part for part in iter(lambda: file.read(LONGEST_LINE), b""))


def limit_for(folder: str | Path, limit: int | None = None) -> int:
    """The memory limit for reading a release: what its size justifies, as far as this machine has it."""
    return min(justified(Path(folder)), _memory()) if limit is None else limit


def _memory() -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # ValueError: the limit is "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return memory


def read(folder: Path, limit: int | None = None, named: bool = False) -> ReleaseFolder:
    """Manifest, table and regions of a written release.

    With `named`, the texts of a table of regions are categories.

    Raises `InputError` if there is no release at that path; `OtherFormat` if it has another format;
    `TooLarge` if it may need more memory; `Unreadable` if a file is broken; the message names it.
    """
    names_in(folder)
    limit = limit_for(folder, limit)
    manifest = read_manifest(folder, limit)
    safe = bool(manifest.get("csv_safe"))
    path = folder / f"{files.TABLE}.parquet"
    regions = _read(folder / files.REGIONS, limit, lambda path, limit: _regions(path, limit, safe))
    found = _read(path, limit, lambda path, limit: _size_table(path, manifest, regions, limit))
    table, ends = found or (read_table(path, limit, named and bool(regions)), None)
    measurements = _read(folder / files.MEASUREMENTS, limit, _measurements)
    if found is None and "intervals" in manifest and set(ENDS) <= set(table.columns):
        table, ends = table.drop(columns=ENDS), Ends(*(table[name].to_numpy() for name in ENDS))
    return ReleaseFolder(manifest, table, regions, measurements, ends=ends)


def read_manifest(folder: Path, limit: int | None = None) -> dict[str, Any]:
    """The manifest only; see `read`.

    Raises `OtherFormat` if the release has a format that this version does not read.
    """
    manifest: dict[str, Any] = _read(folder / files.MANIFEST, limit_for(folder, limit), _manifest)
    return manifest


def read_table(path: Path, limit: int = LIMIT, named: bool = False) -> DataFrame:
    """One of a release's Parquet files; see `read`."""
    if not path.is_file():
        raise Unreadable(f"{path.name} is missing")
    table: DataFrame = _read(path, limit, _named_table if named else _table)
    return table


def _read(path: Path, limit: int, reader: Any) -> Any:
    if path.is_file() and path.stat().st_size > limit:
        raise TooLarge(path.name, path.stat().st_size, limit)
    try:
        return reader(path, limit)
    except (Unreadable, OtherFormat, TooLarge, MemoryError):
        raise
    except InputError as broken:  # such as two regions with the same name
        raise Unreadable(f"{path.name} is broken: {broken}") from None
    except Exception as broken:  # readers raise many types for broken files
        raise Unreadable(f"{path.name} is broken: {type(broken).__name__}") from None


# --- JSON ----------------------------------------------------------------------------------------------


def parsed(text: bytes, name: str, limit: int) -> Any:
    """A parsed JSON text, if it fits the limit; duplicate keys and NaN are refused.

    Raises `TooLarge`, `Unreadable`.
    """
    if (needed := json_bytes(text)) > limit:
        raise TooLarge(name, needed, limit)
    try:
        return json.loads(text, parse_constant=_not_a_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as broken:
        said = str(broken) if isinstance(broken, _Refused) else "not JSON"
        raise Unreadable(f"{name} is broken: {said}") from None


def json_bytes(text: bytes) -> int:
    """An upper bound on the memory for parsing a JSON text, in bytes."""
    return 2 * len(text) + _JSON_ITEM * sum(text.count(mark) for mark in (b",", b"[", b"{"))


class _Refused(ValueError):
    pass


def _not_a_number(name: str) -> float:
    raise _Refused(f"it holds {name}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"it holds {twice[:40]!r} twice")
    return found


def _manifest(path: Path, limit: int) -> dict[str, Any]:
    manifest = parsed(path.read_bytes(), path.name, limit)
    entries = manifest if isinstance(manifest, dict) else {}
    stated = entries.get("format", files.FORMAT)
    if type(stated) is not int or stated != files.FORMAT:
        raise OtherFormat(entries)
    missing = [
        name for name in ("mechanism", "settings", "budget", "solved", "format") if name not in entries
    ]
    if missing:
        raise Unreadable(f"{path.name} is not the manifest of a release: it has no {missing[0]!r}")
    if not isinstance(manifest["settings"], dict) or not isinstance(manifest["solved"], list):
        raise Unreadable(f"{path.name} is not the manifest of a release: its parts have other types")
    found: dict[str, Any] = manifest
    return found


# --- tables --------------------------------------------------------------------------------------------


def _table(path: Path, limit: int) -> DataFrame:
    import pyarrow.parquet as pq

    about = _metadata(path, limit)
    _check_memory(path, about.num_rows, about.num_columns, limit, lambda: _longest_texts(path))
    # `pandas.read_parquet` would load pyarrow's data sets and file systems.
    frame: DataFrame = pq.ParquetFile(path, metadata=about).read().to_pandas()
    return frame


def _named_table(path: Path, limit: int) -> DataFrame:
    about = _metadata(path, limit)
    frame: DataFrame = _named(path, limit, about, about.num_rows).to_pandas()
    return frame


def _named(path: Path, limit: int, about: Any, rows: int, group: int | None = None) -> pa.Table:
    """All rows, or those of a row group, whose texts are dictionaries."""
    import pyarrow.parquet as pq

    columns = about.num_columns
    _check_memory(path, rows, columns, limit)
    names = [about.schema.column(at) for at in range(columns)]
    texts = [column.path for column in names if column.physical_type == "BYTE_ARRAY"]
    file = pq.ParquetFile(path, metadata=about, read_dictionary=texts)
    table = file.read() if group is None else file.read_row_group(group)
    _check_memory(path, rows, columns, limit, lambda: _longest(table, texts))  # texts are read once
    return table


def _check_memory(
    path: Path, rows: int, columns: int, limit: int, longest: Callable[[], int] = lambda: 0
) -> None:
    """Refuse to read so many rows if that may take more memory than the limit.

    - longest: gives the bytes of the longest texts of a row; asked if the rest fits.
    """
    if columns > _MOST_COLUMNS:
        raise Unreadable(f"{path.name} has {columns:,} columns: no release has that many")
    needed = _COPIES * 8 * rows * columns
    if needed <= limit:
        needed += _COPIES * rows * longest()
    if needed > limit:
        raise TooLarge(path.name, needed, limit)


def _measurements(path: Path, limit: int) -> Measurements | None:
    if not path.is_file():
        return None
    about = _metadata(path, limit)
    groups = [about.row_group(at) for at in range(about.num_row_groups)]
    columns = [group.column(at) for group in groups for at in range(about.num_columns)]
    texts = max((column.total_uncompressed_size for column in columns), default=0)
    if (needed := _ANSWER * about.num_rows + texts) > limit:
        raise TooLarge(path.name, needed, limit)
    return Measurements(MeasurementsFile(path))


def read_parts(path: Path, limit: int = LIMIT, named: bool = False) -> Iterator[pa.Table]:
    """The rows of one of a release's Parquet files, one row group at a time; raises as `read`.

    With `named`, texts are dictionaries.
    """
    about = _read(path, limit, _metadata)
    for group in range(about.num_row_groups):
        at = about, group, named
        yield _read(path, limit, lambda path, limit, at=at: _row_group(path, limit, *at))


def _row_group(path: Path, limit: int, about: Any, group: int, named: bool) -> pa.Table:
    import pyarrow.parquet as pq

    rows, columns = about.row_group(group).num_rows, about.num_columns
    if named:
        return _named(path, limit, about, rows, group)
    _check_memory(path, rows, columns, limit, lambda: _longest_texts(path, group))
    return pq.ParquetFile(path, metadata=about).read_row_group(group)


def _size_table(
    path: Path, manifest: Mapping[str, Any], regions: Mapping[str, Hierarchy], limit: int
) -> tuple[SizeTable, Ends | None] | None:
    """A table with a row for each region and size, in order, and its intervals; None if it is another one."""
    import numpy as np
    import pyarrow as pa

    most = manifest["settings"].get("max_size")
    if len(regions) != 1 or isinstance(most, bool) or not isinstance(most, int) or not 0 < most < 2**31:
        return None
    (hierarchy,) = regions.values()
    cells, claimed = hierarchy.size * (most + 1), ENDS if "intervals" in manifest else []
    if not path.exists() or _metadata(path, limit).num_rows != cells:
        return None
    kind = narrow(manifest["settings"].get("groups"))

    def within(cell: int) -> None:
        if (needed := cells * (cell + _WIDE_CELL * len(claimed))) > limit:
            raise TooLarge(path.name, needed, limit)

    within(_WIDE_CELL if kind is np.int64 else _NARROW_CELL)
    empty = SizeTable(hierarchy, np.broadcast_to(np.int64(0), (hierarchy.size, most + 1)))
    counts: Ints = np.empty(cells, kind)
    ends = {name: np.empty(cells, np.int64) for name in claimed}
    at, keys, values = 0, SIZES[:-1], [SIZES[-1], *ends]
    for rows, part in aligned(empty.parts(), read_parts(path, limit, named=True)):
        if part.column_names != [*keys, *values] or not same_rows(part.select(keys), rows.select(keys)):
            return None
        if any(part[name].type != pa.int64() or part[name].null_count for name in values):
            return None
        for name, each in ends.items():
            each[at : at + len(part)] = part[name].to_numpy()
        found = part["groups"].to_numpy()
        if not fits(found, counts.dtype):  # a wrong release, which the checks will report
            within(_WIDE_CELL)
            counts = counts.astype(np.int64)
        counts[at : at + len(part)] = found
        at += len(part)
    return SizeTable(hierarchy, counts.reshape(-1, most + 1)), Ends(*ends.values()) if ends else None


def _metadata(path: Path, limit: int) -> Any:
    import pyarrow.parquet as pq

    if (footer := _footer(path)) > _MOST_FOOTER:
        raise TooLarge(path.name, 400 * footer, limit)  # memory for parsing the metadata
    return pq.read_metadata(path)


def _footer(path: Path) -> int:
    """Bytes of the metadata, according to the last 8 bytes of the file.

    Raises `Unreadable` if the file does not end like a Parquet file, or claims more metadata than it has
    bytes.
    """
    with path.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(0, length - 8))
        end = file.read()
    size = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or size > length:
        raise Unreadable(f"{path.name} is broken: it is not a Parquet file")
    return size


def _longest_texts(path: Path, group: int | None = None) -> int:
    """Bytes of the longest value of each text column, added up; distinct values are read once."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    names = [field.name for field in file.schema_arrow if not _is_number(field.type)]
    if not names:
        return 0
    file = pq.ParquetFile(path, read_dictionary=names)
    return _longest(file.read(columns=names) if group is None else file.read_row_group(group, names), names)


def _longest(table: Any, names: Sequence[str]) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 0
    for name in names:
        texts = table.column(name)
        if not pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_encode()
        parts = [pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0 for chunk in texts.chunks]
        longest += max(parts, default=0)
    return longest


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _regions(path: Path, limit: int, csv_safe: bool) -> dict[str, Hierarchy]:
    if not path.is_file():
        return {}
    needed = 2 * path.stat().st_size + _CSV_CELL * sum(_cells(path))
    if needed > limit:
        raise TooLarge(path.name, needed, limit)
    return files.read_regions_of(path, csv_safe)


def _cells(path: Path) -> Iterator[int]:
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            yield part.count(b",") + part.count(b"\n") + part.count(b"\r")
