"""hierdp reconcile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import console
from hierdp.cli.engine import spread
from hierdp.cli.sources import with_public


@click.command()
@click.argument("forecasts", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("hierarchy", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--weights", default="ols", show_default=True, metavar="NAME",
              help="ols; wls_struct; wls_var and mint_shrink, with --past.")  # fmt: skip
@click.option("--past", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="Past values in column y, and their in-sample forecasts.")  # fmt: skip
@click.option("--any-sign", is_flag=True, help="Forecasts may be negative.")
@click.option("--whole", is_flag=True, help="Whole forecasts: sums hold exactly.")
@click.option("--fixed", multiple=True, metavar="SERIES",
              help="A series whose forecasts stay as they are. Repeat it for more.")  # fmt: skip
@click.option("--lower", type=float, metavar="NUMBER", help="Least forecast. Default: 0.")
@click.option("--upper", type=float, metavar="NUMBER", help="Largest forecast.")
@click.option("--loss", default="squared", show_default=True, metavar="NAME",
              help="squared, absolute or largest changes.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="CSV or Parquet file to write.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@with_public
@partial(spread, there="They need no files.")
def reconcile(
    forecasts: Path,
    hierarchy: Path,
    past: Path | None,
    any_sign: bool,
    out: Path,
    overwrite: bool,
    public: str | None,
    **options: Any,
) -> None:
    """Make forecasts add up: the nearest coherent ones, proved optimal. No noise, no privacy.

    FORECASTS is a CSV or Parquet file with columns unique_id and ds, and a column of numbers for each model
    or sample. HIERARCHY has the columns unique_id and parent, with a row for each parent of a series; or it
    is a summing matrix: unique_id, and a column of 0 and 1 for each series of the bottom. The file written
    has a reconciled column beside each given one, with rows by date and series. Only a few dates are in
    memory at once.

    \b
    hierdp reconcile forecasts.csv parents.csv --whole --out whole.csv
    hierdp reconcile forecasts.csv summing.csv --weights mint_shrink --past past.csv --out reconciled.parquet
    """
    from hierdp.errors import InputError
    from hierdp.forecasting import Reconciler, reconcile_file
    from hierdp.privacy.account import refuse_protected

    if out.exists() and not overwrite:
        raise InputError(f"{out} exists; give --overwrite to replace it")
    for table in (forecasts, hierarchy, past):
        refuse_protected(table, public)
    reconciler = Reconciler(nonnegative=not any_sign, **options)
    done = reconcile_file(reconciler, forecasts, hierarchy, out, past)
    screen = console()
    if done.proved == done.problems:
        screen.print(f"All forecasts are proved optimal. Written to {out}.")
    else:
        screen.print(
            f"{done.proved} of {done.problems} groups of dates are proved optimal. Written to {out}."
        )
        screen.print(f"The others cost at most {done.gap:.2%} more than an optimum.")
