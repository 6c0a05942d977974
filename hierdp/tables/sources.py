"""Read files and tables in memory as Ibis expressions, and run these.

DuckDB's error messages quote values, so they are replaced by messages without values.
"""

from __future__ import annotations

import csv
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from hierdp.errors import InputError, listed, near_by
from hierdp.tables.databases import Database, embedded

FILES = (".parquet", ".csv")

AGAIN_SECONDS = 0.1
"""Interval between interrupts of a query that does not end."""

_RENAME = "if fields are separated by commas, semicolons, tabs or bars, rename it to .csv"
_UNPACK = "unpack it first"
_EXPORT = "export the sheet as CSV in UTF-8"
_OTHERS = {
    **dict.fromkeys((".tsv", ".tab", ".txt", ".psv", ".dat"), _RENAME),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst"), _UNPACK),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _EXPORT),
}
"""What to do with files of other formats, by suffix."""

Table = Any  # ibis.Table; Ibis has no types


def read(source: Any, beside: Table | None = None, local: bool = True) -> Table:
    """A table as an Ibis expression; only its columns are read.

    Parameters
    ----------
    source : path, Database, pandas or Polars DataFrame, pyarrow.Table, pyspark DataFrame or ibis.Table
        Also a Polars LazyFrame, which is collected, and a DuckDB relation (``connection.table("people")`` or
        ``connection.sql("SELECT …")``), whose rows are fetched; a connection alone does not say which table.
        The name of a file ends in ``.parquet`` or ``.csv``. A CSV file is UTF-8 with a header; fields are
        separated by commas, semicolons, tabs or bars; all columns are text, so leading zeros are kept.
        Timestamps with a time zone are read as the clock of that zone shows them.
    beside : ibis.Table, optional
        A table that it will be joined with; the rows are moved to the engine of that table.
    local : bool
        False: timestamps with a time zone of a file stay in UTC; `rows_of` restores their zones.

    Raises
    ------
    InputError
        If the file does not exist or cannot be read, `source` is a connection instead of a table, or two
        columns have the same name.
    """
    import ibis

    if beside is None:
        return _read(source, None, local)
    connection = engine(beside)
    if not isinstance(source, ibis.Table | Database) and getattr(connection, "name", "") == "duckdb":
        return _read(source, connection, local)
    table = _read(source, None, local)
    return table if engine(table) is connection else ibis.memtable(run(table))


def _read(source: Any, connection: Any, local: bool) -> Table:
    import ibis

    if isinstance(source, ibis.Table):
        return source
    if isinstance(source, Database):
        return source.open()
    if hasattr(source, "sparkSession"):
        return _spark(source)
    connection = connection or embedded()
    name = ibis.util.gen_name("given")
    if not isinstance(source, str | PathLike):
        rows = _arrow(source)
        connection.con.register(name, rows)
        # A relation's zone is that of the connection, not the column's.
        zones = {} if type(source).__name__ == "DuckDBPyRelation" else _zones(rows.schema)
        return _local(connection, connection.table(name), zones)
    if "://" in fspath(source):  # a URL may contain a password
        raise InputError("a URL is not a table; give `--database URL|Database(url, table=…)`")
    path = Path(fspath(source))
    suffix = path.suffix.lower()
    if not path.is_file():
        hint = (
            "" if suffix in FILES else "; a table of a database needs `--database URL|Database(url, table)`"
        )
        raise InputError(f"no file {str(path)!r}{near_by(path)}{hint}")
    if suffix not in FILES:
        hint = _OTHERS.get(suffix, "a table of a DuckDB file needs `--database FILE|Database(file, table)`")
        raise InputError(
            f"cannot tell the format of {str(path)!r}: its name must end in .parquet or .csv; {hint}"
        )
    if suffix == ".csv":
        delimiter, header = _csv_header(path)
        columns = dict.fromkeys(header, "VARCHAR")
        # Nothing is left to detection, which could skip lines at the top as a preamble.
        options = {"delim": delimiter, "quote": '"', "escape": '"', "comment": "", "skip": 0}
        return quietly(
            lambda: connection.read_csv(_literal(path), table_name=name, columns=columns, **options), path
        )
    table = quietly(
        lambda: connection.read_parquet(_literal(path), table_name=name, hive_partitioning=False), path
    )
    return _local(connection, table, quietly(lambda: _file_zones(path), path)) if local else table


def rows_of(source: Any) -> Any:
    """The rows of what `read` takes as an Arrow table; timestamps keep their time zones, as far as known."""
    import ibis

    kept = (str, PathLike, ibis.Table, Database)
    if not isinstance(source, kept) and not hasattr(source, "sparkSession"):
        return _arrow(source)
    return in_zones(run(read(source, local=False)), source)


def in_zones(rows: Any, source: Any) -> Any:
    """An Arrow table, whose timestamps get the time zones of the Parquet file that they were read from."""
    import pyarrow as pa

    if not isinstance(source, str | PathLike) or Path(source).suffix.lower() != ".parquet":
        return rows
    for name, zone in _file_zones(Path(source)).items():
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, rows[name].cast(pa.timestamp(rows[name].type.unit, zone)))
    return rows


def _zones(schema: Any) -> dict[str, str]:
    """The time zones of the columns of timestamps that have one."""
    found = {field.name: getattr(field.type, "tz", None) for field in schema}
    return {name: zone for name, zone in found.items() if zone is not None}


def _file_zones(path: Path) -> dict[str, str]:
    """The time zones of a Parquet file's columns, as far as its writer has noted them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        noted = b"ARROW:schema" in (file.metadata.metadata or {})
        return _zones(file.schema_arrow) if noted else {}


def _local(connection: Any, table: Table, zones: Mapping[str, str]) -> Table:
    """The table with timestamps as the clocks of their zones show them."""
    import ibis

    if not zones:
        return table
    clocks = []
    for name, zone in zones.items():
        column, place, later = name.replace('"', '""'), zone.replace("'", ""), 0
        if place[0] in "+-":  # no version of DuckDB before 1.3 knows such a zone
            digits = place[1:].replace(":", "")
            later = (60 * int(digits[:2]) + int(digits[2:] or 0)) * (1 if place[0] == "+" else -1)
            place = "UTC"
        clocks.append(f"""timezone('{place}', "{column}") + INTERVAL {later} MINUTE AS "{column}\"""")
    view = ibis.util.gen_name("local")
    select = f'SELECT * REPLACE ({", ".join(clocks)}) FROM "{table.get_name()}"'
    quietly(lambda: connection.con.execute(f"CREATE TEMPORARY VIEW {view} AS {select}"))
    return connection.table(view)


def engine(table: Table) -> Any:
    """The engine that runs a table's expressions."""
    return table._find_backend(use_default=True)


def _spark(frame: Any) -> Table:
    import ibis

    name = ibis.util.gen_name("given")
    frame.createOrReplaceTempView(name)
    return ibis.pyspark.connect(frame.sparkSession).table(name)


def _literal(path: Path) -> str:
    """A path escaped so that DuckDB does not treat it as a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


_RECODE = 'save it as "CSV UTF-8", or recode it by iconv'


_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz",
           b"\x28\xb5\x2f\xfd": "zstd", b"PAR1": "Parquet: end its name in .parquet"}  # fmt: skip
"""Magic bytes of files whose name ends in .csv by mistake."""


def _line_ends(text: bytes) -> list[str]:
    plain = re.sub(rb'"[^"]*"', b"", text).removesuffix(b"\r")  # the next byte may be a line feed
    both = plain.count(b"\r\n")
    found = {"CR LF": both, "LF": plain.count(b"\n") - both, "CR": plain.count(b"\r") - both}
    return [name for name, times in found.items() if times]


def _csv_header(path: Path) -> tuple[str, list[str]]:
    """The delimiter of a CSV file, which is the one that splits the header most, and its column names."""
    try:
        with path.open("rb") as file:
            start = file.readline()
            file.seek(0)
            begin = file.read(1 << 20)
        packed = next((name for mark, name in _PACKED.items() if start.startswith(mark)), None)
        if packed:
            raise InputError(f"{str(path)!r} is compressed ({packed}): unpack it first")
        if len(ends := _line_ends(begin)) > 1:
            raise InputError(
                f"the lines of {str(path)!r} end in different ways ({listed(ends)}): make them alike, for "
                "example by dos2unix"
            )
        if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
            raise InputError(f"{str(path)!r} is UTF-16, not UTF-8: {_RECODE} -f UTF-16 -t UTF-8")
        first = start.decode("utf-8-sig")
        splits = {delimiter: next(csv.reader([first], delimiter=delimiter), []) for delimiter in ",;\t|"}
    except UnicodeDecodeError:
        raise InputError(
            f"the header of {str(path)!r} is not UTF-8: {_RECODE} -f LATIN1 -t UTF-8, if it is Latin 1"
        ) from None
    except (OSError, csv.Error) as error:
        raise InputError(f"cannot read the header of {str(path)!r}: {type(error).__name__}") from None
    delimiter, header = max(splits.items(), key=lambda split: len(split[1]))
    if not header:
        raise InputError(f"{str(path)!r} is empty: its first line must name the columns")
    _distinct(header)
    return delimiter, header


def _arrow(source: Any) -> Table:
    """A table in memory as Arrow; columns are converted one by one, so that errors name the column."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(source, pd.DataFrame):
        names, columns = (
            [str(name) for name in source.columns],
            [source.iloc[:, i] for i in range(source.shape[1])],
        )
        arrays = []
        for name, column in zip(names, columns, strict=True):
            try:
                arrays.append(pa.array(column, from_pandas=True))
                if column.dtype == object and getattr(arrays[-1].type, "tz", None):  # each has its own zone
                    clocks = [None if pd.isna(at) else at.replace(tzinfo=None) for at in column]
                    arrays[-1] = pa.array(clocks)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                arrays.append(None)
            if arrays[-1] is None:  # raised here, so that the cause, which may quote values, is dropped
                what = "incompatible types, or numbers beyond 64 bits"
                raise InputError(f"column {name!r} contains {what}; convert it to text")
        _distinct(names)
        return pa.table(arrays, names=names)
    _refuse_connection(source)
    kind = type(source).__name__
    if kind == "LazyFrame":
        source = quietly(source.collect)
    try:
        table = quietly(source.to_arrow_table) if kind == "DuckDBPyRelation" else pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        known = "a path, a DataFrame, an Arrow or Ibis table, a DuckDB relation, or Database(url, table)"
        raise InputError(f"cannot read a table from {kind}: give {known}") from None
    _distinct(table.column_names)
    return table


def _refuse_connection(source: Any) -> None:
    import duckdb
    import ibis

    if isinstance(source, duckdb.DuckDBPyConnection | ibis.BaseBackend):
        kind = "a DuckDB" if isinstance(source, duckdb.DuckDBPyConnection) else "an Ibis"
        raise InputError(
            f"{kind} connection is not a table; give connection.table('people'), or the rows of a query, "
            "connection.sql('SELECT …')"
        )
    if hasattr(source, "cursor"):  # of another database's library, by Python's DB API
        raise InputError(
            f"cannot read from a connection ({type(source).__module__}): give Database(url, table='people'), "
            "or a DataFrame of the rows"
        )


def _distinct(names: Sequence[str]) -> None:
    """Refuse duplicate names (DuckDB ignores case), an empty name, or a table without columns."""
    if not names:
        raise InputError("the table has no columns")
    seen: set[str] = set()
    for number, name in enumerate(names, start=1):
        if not name:
            raise InputError(f"column {number} has no name; give it one")
        if name.lower() in seen:
            raise InputError(f"two columns are called {name!r} (case is ignored); rename one")
        seen.add(name.lower())


def run(expression: Table) -> Any:
    """The rows of an expression, as an Arrow table."""
    connection = engine(expression)
    if getattr(connection, "name", "") != "duckdb":
        return quietly(expression.to_pyarrow)

    def rows() -> Any:
        # In a separate thread, because DuckDB may not check for Ctrl-C for minutes.
        found: Future[Any] = Future()
        query = threading.Thread(target=_fulfil, args=(found, expression.to_pyarrow))
        try:
            try:
                query.start()
            except RuntimeError:  # a thread takes memory, too
                raise MemoryError("no thread can be started") from None
            return found.result()
        except KeyboardInterrupt:
            while not (found.cancel() or found.done()):
                connection.con.interrupt()  # without effect until the query has begun
                wait([found], AGAIN_SECONDS)
            raise

    return quietly(rows)


def _fulfil(promise: Future[Any], action: Callable[[], Any]) -> None:
    """Run an action unless it was cancelled, and set its result or exception on the future."""
    if promise.set_running_or_notify_cancel():
        try:
            promise.set_result(action())
        except BaseException as failure:
            promise.set_exception(failure)


def quietly(action: Callable[[], Any], path: Path | None = None) -> Any:
    """Run a query; turn the engine's errors, which quote values, into messages without values."""
    import duckdb

    file = f"{str(path)!r}" if path else "the table"
    try:
        return action()
    except duckdb.OutOfMemoryException:
        problem: Exception = MemoryError("the table does not fit in memory")
    except duckdb.Error as error:
        line = re.search(r"CSV Error on Line: (\d+)", str(error))
        if line:
            problem = InputError(
                f"line {line[1]} of the CSV file cannot be read: it needs as many fields as the header has, "
                "quotes that close, and UTF-8"
            )
        else:
            problem = InputError(
                f"cannot read {file} ({type(error).__name__} of DuckDB); check that the file is complete"
            )
    except MemoryError:
        raise
    except Exception as error:  # of a database's library, or of Ibis, which cannot write all in every SQL
        library = type(error).__module__.partition(".")[0]
        if library == "builtins":
            raise
        problem = InputError(f"cannot read {file} ({type(error).__name__} of {library})")
    raise problem  # raised here, so that the engine's message is not kept as its cause
