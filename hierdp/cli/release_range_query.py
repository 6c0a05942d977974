"""hierdp release range-query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hierdp.cli.axes import axes_of, with_axes
from hierdp.cli.release import common, run


@click.command("range-query")
@common
@with_axes
@click.option("--method", metavar="NAME", help="H_b^c (default), H_b, H_2, H_2^c, Flat, Wavelet, Quadtree; "
              "H_tree or H_tree^c to ask the regions of --names. See `hierdp mechanisms`.")  # fmt: skip
@click.option("--branching", type=click.IntRange(min=2), metavar="NUMBER",
              help="Of H_b and H_b^c, along each dimension. Default: the best for so many bins.")  # fmt: skip
@click.option("--budget", metavar="NAME", help="Split of ε over the levels: equal (default for one "
              "dimension), geometric (for more) or optimized.")  # fmt: skip
@click.option(
    "--share",
    "shares",
    multiple=True,
    type=float,
    metavar="NUMBER",
    help="In place of --budget: the budget of a level in proportion; once a level, from the top.",
)
@click.option("--repair", metavar="NAME", help="Of consistent methods (^c and Quadtree): least squares "
              "(default), non-negative, or whole (and non-negative). Only least squares has standard "
              "errors.")  # fmt: skip
def range_query(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """A histogram that answers ranges, each with its standard error where that is known (ε-DP; H_b^c).

    TABLE is a Parquet or CSV file with a row a person, or with counts. One person more or less, in one bin,
    is protected. Which bins there are is public: choose them without looking at the data. Ask the release by
    `hierdp query`.

    \b
    Ages in years, and a question:
      hierdp release range-query people.csv --numbers age=0:120 --epsilon 1 --out ages
      hierdp query ages --range 18:65
    \b
    Check-ins by day and place, as a quadtree would ask them:
      hierdp release range-query checkins.parquet --numbers x=-180:180:256 --numbers y=-90:90:256 \\
          --method Quadtree --epsilon 0.5 --out places
    \b
    People by county, asked along the hierarchy of states and counties, in whole numbers:
      hierdp release range-query people.csv --names state,county --method "H_tree^c" --repair whole \\
          --epsilon 1 --out counties
    """

    def arguments() -> dict[str, Any]:
        if given["budget"] is not None and given["shares"]:
            raise click.UsageError("give --budget or --share, not both")
        asked = {name: given[name] for name in ("method", "branching", "repair")}
        return {**asked, "budget": given["shares"] or given["budget"], **axes_of(given)}

    run(table, "range-query", arguments, epsilon=epsilon, out=out, overwrite=overwrite, simulate=simulate)
