"""The files of a release: their names, and how they are written."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy, is_named
from hierdp.counts.layout import REGIONS_FILE
from hierdp.counts.size_table import Part, Table, plain
from hierdp.errors import InputError
from hierdp.measurements.file import NAME

if TYPE_CHECKING:
    import pyarrow as pa
    from pandas import DataFrame, Series

TABLE, FINEST, REGIONS = "released", "finest", REGIONS_FILE
MANIFEST, PROOFS, REPORT = "manifest.json", "proofs.zip", "report.html"
MEASUREMENTS = NAME
FORMAT = 1
"""The format of a release's folder, which its manifest names. It changes whenever another version could not
read a release, or not check it in full."""

NOT_PRIVATE = "NOT-PRIVATE.txt"
"""A file beside the tables of a simulated run, for readers who see the files and not the manifest."""

LARGE = 20_000_000
"""Rows beyond which a table is written as CSV only on request."""

ALONE = "region"
"""Name of a release's only hierarchy in its list of regions."""


def write_parts(
    parts: Iterable[Part], into: Path, name: str, csv_safe: bool = False, as_csv: bool = True
) -> None:
    """Write a table as Parquet and, if `as_csv`, as CSV; only one of its parts is in memory at a time.

    With `csv_safe`, no spreadsheet runs a name as a formula.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with ExitStack() as opened:
        rows: pq.ParquetWriter | None = None
        texts = opened.enter_context((into / f"{name}.csv").open("wb")) if as_csv else None
        for at, part in enumerate(parts):
            columns = arrow_of(part)
            if rows is None:
                # The file is closed even if its last bytes do not fit on the disk.
                file = opened.enter_context((into / f"{name}.parquet").open("wb"))
                # The file's own schema has texts, also where dictionaries are written. Their least and their
                # greatest take longer to find than their codes to write.
                numbers = [one.name for one in columns.schema if not pa.types.is_dictionary(one.type)]
                whole = len(numbers) == len(columns.schema)
                writer = pq.ParquetWriter(
                    file, columns.schema, store_schema=whole, write_statistics=whole or numbers
                )
                rows = opened.enter_context(writer)
            rows.write_table(columns)
            if texts is not None:
                texts.writelines(csv_parts(part, csv_safe, at == 0))


def arrow_of(part: Part) -> pa.Table:
    """Rows as an Arrow table; a column of a DataFrame that has nothing but missing entries is text."""
    import pyarrow as pa

    if isinstance(part, pa.Table):
        return part
    schema = pa.Schema.from_pandas(part, preserve_index=False)
    for at, one in enumerate(schema):
        if pa.types.is_null(one.type):
            schema = schema.set(at, one.with_type(pa.string()))
    return pa.Table.from_pandas(part, schema, preserve_index=False)


def as_csv(table: Table, anyway: bool = False) -> bool:
    """Whether a table is written as CSV as well: if it is not large, or the publisher wishes it."""
    return anyway or len(table) <= LARGE


def is_csv_of(parts: Iterable[Part], path: Path, csv_safe: bool = False) -> bool:
    """Whether a CSV file has exactly the bytes of a table, which is read one part at a time."""
    with path.open("rb") as file:
        texts = (text for at, part in enumerate(parts) for text in csv_parts(part, csv_safe, at == 0))
        return all(file.read(len(text)) == text for text in texts) and not file.read(1)


_ROWS = 100_000
"""Number of rows that are converted to text at once."""


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of texts that a spreadsheet runs as a formula, and the apostrophe that prevents it."""


def csv_parts(part: Part, csv_safe: bool, head: bool = True) -> Iterator[bytes]:
    """A table as CSV, with a line of names if `head`.

    A field with a comma, a quote, a line feed or a carriage return is quoted.

    With `csv_safe`, names that begin like a formula are prefixed with an apostrophe, as OWASP recommends
    ("CSV injection"). So are names that begin with an apostrophe, so that names remain distinct.
    """
    import pandas as pd

    frame = part if isinstance(part, pd.DataFrame) else plain(part)
    if csv_safe:
        texts = {name: _marked(frame[name]) for name in _texts(frame)}
        heads = {name: f"'{name}" for name in frame if str(name).startswith(_FORMULA)}
        frame = frame.assign(**texts).rename(columns=heads)
    # Python's writer does not quote carriage returns unless it quotes all texts.
    returns = "\r" in "".join(map(str, frame)) or any(_has_returns(frame[name]) for name in _texts(frame))
    quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    if head:
        names: str = frame.iloc[:0].to_csv(None, index=False, quoting=quoting, lineterminator="\n")
        yield names.encode()
    for first in range(0, len(frame), _ROWS):
        some = frame.iloc[first : first + _ROWS]
        whole = None if returns else _unquoted(some)
        if whole is None:
            spelt = plain(some)
            text: str = spelt.to_csv(None, index=False, header=False, quoting=quoting, lineterminator="\n")
            whole = text.encode()
        yield whole


def _unquoted(frame: DataFrame) -> bytes | None:
    """Rows of whole numbers and of texts that need no quotes, ten times as fast as pandas writes them.

    None for other rows.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow.csv import WriteOptions, write_csv

    kinds = [_distinct(frame[name]).dtype for name in frame]
    whole_or_text = all(kind == "int64" or isinstance(kind, pd.StringDtype) for kind in kinds)
    if not whole_or_text or len(frame.columns) < 2:  # pandas quotes an empty text that is a whole line
        return None
    out = pa.BufferOutputStream()
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        write_csv(table, out, WriteOptions(include_header=False, batch_size=_ROWS, quoting_style="none"))
    except pa.ArrowInvalid:  # a text with a comma, a quote or a line feed
        return None
    found: bytes = out.getvalue().to_pybytes()
    return found


def _texts(frame: DataFrame) -> list[str]:
    from pandas.api.types import is_numeric_dtype

    return [str(name) for name in frame if not is_numeric_dtype(frame[name].dtype)]


def _distinct(texts: Series[Any]) -> Series[Any]:
    """The categories of a column that has some; otherwise all of it."""
    import pandas as pd

    return pd.Series(texts.cat.categories) if is_named(texts) else texts


def _has_returns(texts: Series[Any]) -> bool:
    found = _distinct(texts).astype(str).str.contains("\r", regex=False).to_numpy(bool)
    if found.any() and is_named(texts):  # not every category has rows
        found = np.append(found, False)[texts.cat.codes]
    return bool(found.any())


def _marked(texts: Series[Any]) -> Series[Any]:
    if is_named(texts):
        return texts.cat.rename_categories(_marked(_distinct(texts)).tolist())
    marked: Series[Any] = texts.where(~texts.astype(str).str.startswith(_FORMULA), "'" + texts.astype(str))
    return marked


def write_regions(regions: Mapping[str, Hierarchy], into: Path, csv_safe: bool = False) -> None:
    """Write all regions, which are public, with their parents: one row each, by axis and level."""
    import pandas as pd

    if not regions:
        return
    frames = [hierarchy.frame().assign(axis=name) for name, hierarchy in regions.items()]
    columns = ["axis", "level", "level_name", "region", "parent"]
    with (into / REGIONS).open("wb") as file:
        file.writelines(csv_parts(pd.concat(frames)[columns], csv_safe))


def read_regions_of(path: Path, csv_safe: bool = False) -> dict[str, Hierarchy]:
    """Read the file that `write_regions` wrote.

    Raises `InputError` if it is not a list of regions.
    """
    import pandas as pd

    from models import Tree

    if not path.is_file():
        return {}
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    if list(frame.columns) != ["axis", "level", "level_name", "region", "parent"]:
        raise InputError(f"{path.name} is not a list of regions: it has other columns")
    if csv_safe:
        frame = frame.apply(lambda column: column.str.removeprefix("'"))
    found = {}
    for axis, rows in frame.groupby("axis", sort=False):
        levels = [part for _, part in rows.groupby(rows["level"].astype(int))]
        names = [part["region"].to_numpy(object) for part in levels]
        parents = []
        for above, part in zip(names, levels[1:], strict=False):
            parents.append(pd.Index(above).get_indexer(part["parent"].to_numpy(object)))
            if (parents[-1] < 0).any():
                raise InputError(f"{path.name}: a parent is not a region of the level above")
        level_names = tuple(str(part["level_name"].iloc[0]) for part in levels)
        tree = Tree([np.asarray(part, dtype=np.int64) for part in parents])
        found[str(axis)] = Hierarchy(level_names, tuple(names), tree)
    return found
