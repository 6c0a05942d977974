"""hierdp export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import WARNING, console, with_labels, with_limit


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--to", required=True, type=click.Choice(["csv", "excel", "sdmx-csv"]), help="The format.")
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The file to create, outside RELEASE.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--finest",
    is_flag=True,
    help="Only the last level, with a column for each level of regions, as in the data.",
)
@click.option("--suppress-below", type=click.IntRange(min=1), metavar="NUMBER",
              help="Leave counts other than 0 and under this number blank, as many offices publish small "
                   "counts. They stay in RELEASE.")  # fmt: skip
@click.option("--agency", default="HIERDP", show_default=True, metavar="ID",
              help="With sdmx-csv: the id of who publishes.")  # fmt: skip
@click.option("--dataflow", metavar="ID", help="With sdmx-csv: the id of the table. Default: from its title.")
@click.option("--time-period", metavar="TEXT",
              help="With sdmx-csv: the period of the counts, such as 2024 or 2024-Q1. Default: the day of "
                   "the release.")  # fmt: skip
@with_labels
@with_limit
def export(release: Path, to: str, out: Path, overwrite: bool, finest: bool, suppress_below: int | None,
           labels: Path | None, limit: int | None, **given: Any) -> None:  # fmt: skip
    """Write the table of RELEASE for readers: CSV, Excel or SDMX-CSV, with names beside codes.

    \b
    hierdp export trips --to excel --out trips.xlsx --finest --labels counties.csv
    hierdp export trips --to sdmx-csv --out trips.csv --agency OFFICE --time-period 2024
    hierdp export homes --to csv --out homes.csv --suppress-below 5

    Excel files (pip install 'hierdp[excel]') and SDMX-CSV 2.0 also have the budget, the unit that is
    protected, the date and the fingerprint. Blanks by --suppress-below protect nobody further: some follow
    from sums.
    """
    from hierdp.publication.copy import copy_of
    from hierdp.publication.formats import write_copy

    copy = copy_of(release, labels, suppress_below, finest, limit)
    write_copy(copy, to, out, overwrite, **given)
    screen = console()
    if copy.manifest["warning"]:
        screen.print(str(copy.manifest["warning"]), style=WARNING)
    screen.print(f"{len(copy.table):,} rows written to {out}.")
    if "Suppression" in copy.about:
        screen.print(copy.about["Suppression"])
