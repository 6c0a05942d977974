"""hierdp release group-size."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import SECONDS
from hierdp.cli.release import common, one_hierarchy, run, with_regions
from hierdp.cli.sources import with_groups


@click.command("group-size")
@common
@partial(with_regions, groups=True)
@click.option(
    "--levels", metavar="COLUMNS", help="The table's columns of regions, coarse to fine: state,county."
)
@click.option("--region", metavar="COLUMN", help="With --regions or --prefixes: the table's column of the "
              "finest region.")  # fmt: skip
@with_groups
@click.option("--group", multiple=True, required=True, metavar="COLUMN",
              help="Column that names a row's group (household, taxi). Repeat it if several do.")  # fmt: skip
@click.option(
    "--entities", metavar="COLUMN", help="Column with numbers of entities; else each row is one entity."
)
@click.option("--max-size", type=int, required=True,
              help="Larger groups count as of this size. Choose it without looking at the data.")  # fmt: skip
@click.option("--root", default="all", show_default=True, help="Name of the region above all others.")
@click.option("--method", metavar="NAME", help="The mechanism, by its paper's name; default M_c^dp. See "
              "`hierdp mechanisms`.")  # fmt: skip
@click.option("--backend", metavar="NAME", help="Solver of the methods that leave it open. Default: highs "
              "(M_H, M_c), cp-sat (M_dp^OP), fast (M_c^r; M_H^r, with --window clarabel). See `hierdp "
              "solvers`.")  # fmt: skip
@click.option(
    "--time-limit",
    type=SECONDS,
    help="Seconds for the whole step, all its solves together; when it is over, nothing is released.",
)
@click.option("--window", type=click.IntRange(min=0), help="Truncate domains to noisy count ± this many; "
              "default: none are.")  # fmt: skip
def group_size(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """How many groups have each size, in every region (ε-DP; M_c^dp unless --method says otherwise).

    TABLE is a Parquet or CSV file, or a table of --database, with a row an entity (a person, a trip), or
    with numbers of entities. One entity more or less in a group is protected. Which groups and regions there
    are is public: without --groups, a group with a row in TABLE is told to exist. In the result, the last
    size means "this size or more".

    \b
    Households by size, the regions in the table's own columns:
      hierdp release group-size people.csv --levels state,county --group household \\
          --max-size 20 --epsilon 1 --out released
    \b
    Taxis by trips, with a table of all zones:
      hierdp release group-size trips.parquet --regions zones.csv --region-levels borough,zone \\
          --region pickup_zone --group taxi --group pickup_zone --max-size 1000 --epsilon 0.5 --out released
    \b
    People in a database, with tables of all households, empty ones too, and of all counties by their codes:
      hierdp release group-size people --database postgresql://ann@db.example/census \\
          --groups households --group household_id --region fips --regions counties --region-codes fips \\
          --prefixes state=2,county=5 --max-size 20 --epsilon 1 --out released
    """

    def arguments() -> dict[str, Any]:
        asked = ("group", "entities", "max_size", "unknown", "method", "backend", "time_limit", "window")
        return {**{name: given[name] for name in asked}, **one_hierarchy(given)}

    run(table, "group-size", arguments, epsilon=epsilon, out=out, overwrite=overwrite, simulate=simulate)
