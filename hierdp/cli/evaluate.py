"""hierdp evaluate."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import OVERWRITE, WARNING, columns, console, print_frame, with_labels, with_limit
from hierdp.cli.sources import TABLE, Input, files_read, from_tables

if TYPE_CHECKING:
    from hierdp.experiments.evaluate import Evaluation

SHOWN = 10
"""The worst cells that are printed, those of the last level."""


@click.command()
@click.argument("release", type=Input(path_type=Path))
@partial(from_tables, called="TRUTH")
@click.option("--group", multiple=True, metavar="COLUMN",
              help="For sizes of groups: the column that identifies a row's group. Repeat it for "
                   "several.")  # fmt: skip
@click.option("--groups", type=TABLE, metavar="TABLE", help="For sizes of groups: the table of all groups.")
@click.option(
    "--entities", metavar="COLUMN", help="For sizes of groups: the column with numbers of entities."
)
@click.option("--count", metavar="COLUMN", help="Column with counts. Default: each row counts as one.")
@click.option("--levels", "region", metavar="COLUMN",
              help="Column of the finest regions. Default: the name of the last level.")  # fmt: skip
@click.option("--axis", "axes", multiple=True, metavar="NAME=COLUMN",
              help="For several axes: the column of the finest regions of an axis. Default: the name of its "
                   "last level. Repeat it for each axis.")  # fmt: skip
@click.option("--unknown", metavar="NAME", help="As of the release: the region of rows without one.")
@click.option("--clip", is_flag=True,
              help="As of the release: count values outside the bins in the end bins.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path),
              help="Folder to create, for the report and its tables, outside RELEASE.")  # fmt: skip
@OVERWRITE
@with_labels
@with_limit
@click.pass_context
def evaluate(
    context: click.Context, /, release: Path, table: Any, axes: tuple[str, ...], out: Path | None,
    overwrite: bool, limit: int | None, **given: Any,
) -> None:  # fmt: skip
    """Show the errors of RELEASE, for those who hold the true table. NOT TO BE PUBLISHED.

    TRUTH is the true table, with the columns from which RELEASE was made. Together with RELEASE the errors
    give true counts, so they are for inside the house: no privacy budget covers them.

    \b
    hierdp evaluate trips commuting.parquet --count workers --out errors
    hierdp evaluate homes people.csv --group household
    hierdp evaluate places people.csv --axis origin=o_county --axis destination=d_county
    """
    from hierdp.execution import folder
    from hierdp.experiments.evaluate import check_outside
    from hierdp.experiments.evaluate import evaluate as evaluated
    from hierdp.experiments.notice import NOTICE

    inputs = files_read(context)
    if out is not None:  # before anything is read
        check_outside(out, inputs)
        folder.check(out, overwrite, inputs)
    given["group"] = list(given["group"]) or None
    found = evaluated(release, table, limit, axes=_axes(axes), **given)
    if out is not None:
        found.write(out, overwrite, inputs)
    print_evaluation(found)
    if out is not None:
        console().print(f"{NOTICE}: written to {out}/; open {out}/report.html.", style=WARNING)


def _axes(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not equals or not name or not column or name in found or len(columns(column)) > 1:
            raise click.UsageError(f"--axis {text}: give each axis once, as NAME=COLUMN")
        found[name] = column
    return found


def print_evaluation(found: Evaluation) -> None:
    """Print the errors, between two lines that say that they are not to be published."""
    from hierdp.experiments.notice import NOTICE, WHY
    from hierdp.experiments.report import parts

    screen = console()
    screen.print(f"{NOTICE}. {WHY}", style=WARNING)
    for caution in found.cautions:
        screen.print(f"Warning: {caution}", style=WARNING)
    for part in parts(found.errors):
        print_frame(screen, f"{part.title} ({NOTICE})", part.frame)
    last = found.errors["level"].iloc[-1]
    screen.print(f"The last level: {last}.")
    by_size, worst = (
        frame[frame["level"] == last].drop(columns="level") for frame in (found.by_size, found.worst)
    )
    print_frame(screen, f"By size of the true count ({NOTICE})", by_size)
    print_frame(screen, f"Released minus true, the worst cells ({NOTICE})", worst.head(SHOWN))
