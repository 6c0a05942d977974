"""Forecasts in files, reconciled some dates at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hierdp.errors import InputError, unknown_name
from hierdp.execution import folder
from hierdp.forecasting.reconciler import Reconciler
from hierdp.forecasting.tables import numbers, summing_of
from hierdp.tables.sources import in_zones, quietly, read

VALUES = 1 << 22
"""Forecasts in memory at once, unless one date has more."""


class Proved(NamedTuple):
    """How many problems were proved optimal, of how many; and the largest gap, relative to the optimum."""

    proved: int
    problems: int
    gap: float


def reconcile_file(
    reconciler: Reconciler,
    forecasts: Path,
    hierarchy: Any,
    out: Path,
    past: Any = None,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
) -> Proved:
    """Reconcile every column of forecasts of a file, in memory for a few dates at a time.

    Parameters
    ----------
    reconciler : Reconciler
    forecasts : path of a CSV or Parquet file
        As in `Reconciler.reconcile`.
    hierarchy, past : path or table
        Its ``S_df`` and ``Y_df``.
    out : path
        The CSV or Parquet file to write, with rows by date and series. An old one is replaced.

    Raises
    ------
    InputError, NotSolved
        As `Reconciler.reconcile`; then nothing is written.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"{out}: the name must end in .csv or .parquet")
    summing = summing_of(hierarchy, id_col)
    proofs = []
    with folder.file_appearing(out) as aside, ExitStack() as stack:
        writer: Any = None
        schema = None
        for rows in _by_dates(read(forecasts, local=False), time_col, id_col):
            frame = in_zones(rows, forecasts).to_pandas()
            if forecasts.suffix.lower() == ".csv":
                frame = numbers(frame, id_col, time_col)
            made = reconciler.reconcile(frame, summing, Y_df=past, id_col=id_col, time_col=time_col)
            proofs += [(proof.optimal, _relative(proof)) for proof in reconciler.certificates]
            table = pa.Table.from_pandas(made, schema, preserve_index=False)
            if writer is None:
                schema = table.schema
                kind = pq.ParquetWriter if out.suffix == ".parquet" else pyarrow.csv.CSVWriter
                writer = stack.enter_context(kind(aside, schema))
            writer.write_table(table)
        if writer is None:
            raise InputError(f"{forecasts} has no rows")
    return Proved(sum(proved for proved, _ in proofs), len(proofs), max(gap for _, gap in proofs))


def _relative(proof: Any) -> float:
    return 0.0 if proof.optimal else float(proof.gap) / max(float(proof.objective), 1e-300)


def _by_dates(table: Any, time_col: str, id_col: str) -> Iterator[pa.Table]:
    """The rows in order of dates, sorted in a temporary file; each part has all rows of its dates."""
    for column in (id_col, time_col):
        if column not in table.columns:
            raise InputError(unknown_name(column, list(table.columns), "no column"))
    held = None
    with TemporaryDirectory() as aside:
        ordered = Path(aside, "ordered.parquet")
        quietly(lambda: table.order_by([time_col, id_col]).to_parquet(ordered))
        for batch in pq.ParquetFile(ordered).iter_batches():
            more = pa.Table.from_batches([batch])
            held = more if held is None else pa.concat_tables([held, more])
            if held.num_rows * held.num_columns > VALUES:
                last = pc.index(held[time_col], held[time_col][-1]).as_py()
                if last > 0:
                    yield held.slice(0, last)
                    held = held.slice(last)
        if held is not None and held.num_rows:
            yield held
