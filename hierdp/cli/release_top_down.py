"""hierdp release top-down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import SECONDS, columns, number
from hierdp.cli.release import common, regions, run, with_regions
from hierdp.cli.sources import levels_of


@click.command("top-down")
@common
@with_regions
@click.option(
    "--delta",
    metavar="NUMBER",
    required=True,
    help="The δ of (ε, δ)-DP: far below 1 / number of people, such as 1e-8.",
)
@click.option("--axis", "axes", multiple=True, required=True, metavar="NAME=COLUMNS",
              help="An axis and its columns from coarse to fine, origin=o_state,o_county; with --regions or "
                   "--prefixes its one column of the finest region. Repeat it for each axis.")  # fmt: skip
@click.option("--count", metavar="COLUMN", help="Column with counts; else each row counts one.")
@click.option("--first", metavar="NAME", help="The axis refined first. Default: the last one.")
@click.option("--method", metavar="NAME", help="InfTDA (default), or what it is compared with: TDA_inf, "
              "TDA_L2, TDA, VanillaGauss, SH. See `hierdp mechanisms`.")  # fmt: skip
@click.option("--trips", type=click.IntRange(min=1), metavar="NUMBER",
              help="Trips of one person in TABLE, to protect them all; with --unbounded, at most so many. "
                   "Default: 1. Noise grows with it.")  # fmt: skip
@click.option("--distinct", is_flag=True, help="With --trips: one person's trips all go to different places "
              "of TABLE. Less noise, but not with --unknown, whose cells many places share. Say so only if "
              "it is so.")  # fmt: skip
@click.option("--unbounded", is_flag=True, help="Protect, too, whether a person is in TABLE at all: then the "
              "total is noisy, not public.")  # fmt: skip
@click.option("--share", "shares", multiple=True, type=float, metavar="NUMBER",
              help="Budget of a level in proportion; once a level, from the top (with --unbounded, the "
                   "total first). Default: even.")  # fmt: skip
@click.option("--backend", metavar="NAME", help="Solver of TDA_inf, TDA_L2 or TDA; see `hierdp solvers`.")
@click.option(
    "--time-limit",
    type=SECONDS,
    help="Seconds for each level, all its solves together; when it is over, nothing is released.",
)
def top_down(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """Counts along hierarchies, such as trips from origin to destination (InfTDA, (ε, δ)-DP).

    TABLE is a Parquet or CSV file with a row a trip, or with counts. One trip in place of another is
    protected; for a person with several, say --trips. The regions are public, and so is the total unless
    --unbounded.

    \b
    Commuters, both ends by state and county:
      hierdp release top-down commuting.parquet --axis origin=o_state,o_county \\
          --axis destination=d_state,d_county --count workers --epsilon 1 --delta 1e-8 --out released
    \b
    Taxi rides by zone and hour, up to 20 of a passenger, who may be in the table or not:
      hierdp release top-down rides.csv --axis pickup=borough,zone --axis time=daypart,hour \\
          --trips 20 --unbounded --epsilon 1 --delta 1e-8 --out released
    """

    def arguments() -> dict[str, Any]:
        asked = ("count", "unknown", "first", "method", "trips", "backend", "time_limit")
        return {
            **{name: given[name] for name in asked},
            "delta": number(given["delta"]),
            "axes": _axes(given),
            "distinct": given["distinct"],
            "bounded": not given["unbounded"],
            "shares": given["shares"] or None,
        }

    run(table, "top-down", arguments, epsilon=epsilon, out=out, overwrite=overwrite, simulate=simulate)


def _axes(given: dict[str, Any]) -> dict[str, Any]:
    """By name: the columns of each axis; with --regions, the hierarchy and its one column."""
    everywhere = regions(given, "all") if given["regions"] else None
    named: dict[str, Any] = {}
    for axis in given["axes"]:
        name, equals, text = axis.partition("=")
        if not equals or not name or name in named:
            raise click.UsageError(f"--axis {axis}: give each axis once, as NAME=COLUMN,COLUMN")
        listed = columns(text)
        if everywhere is not None and len(listed) != 1:
            raise click.UsageError(f"--axis {axis}: with --regions, name one column, of the finest region")
        named[name] = levels_of(given, listed) if everywhere is None else (everywhere, listed[0])
    return named
