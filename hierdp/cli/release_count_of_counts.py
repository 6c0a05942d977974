"""hierdp release count-of-counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from hierdp.cli.release import common, one_hierarchy, run, with_regions
from hierdp.cli.sources import with_groups

PART = click.FloatRange(min=0, min_open=True)


@click.command("count-of-counts")
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
@click.option("--root", default="all", show_default=True, help="Name of the region above all others.")
@click.option("--method", metavar="NAMES",
              help="What is measured: Hc (default; best where sizes are dense), Hg (better where few large "
                   "sizes occur; draws noise for every group), Hc2, Hg1, naive; or one a level, the root's "
                   'first: "Hg x Hc x Hc". "bottom-up": the finest level alone.')  # fmt: skip
@click.option("--merge", type=click.Choice(["weighted", "plain", "at once"]),
              help="How two levels' estimates of a group's size become one: by inverse variance (default), "
                   "or by their average. On three levels also all at once: nearest to all estimates, often "
                   "better above the finest level.")  # fmt: skip
@click.option("--max-size", type=int,
              help="Larger groups count as of this size; default 100,000. Choose it without looking at the "
                   "data, and rather too large: it costs little accuracy. It costs time: Hc draws exact "
                   "noise for every size up to it in every region, some 100,000 numbers a second on two "
                   "cores. With the default bound 200 regions take minutes.")  # fmt: skip
@click.option("--size-budget", type=PART, metavar="NUMBER",
              help="In place of --max-size: the part of ε that estimates it; little is enough, such as 0.001 "
                   "for a bound some 7,000 too high.")  # fmt: skip
@click.option("--group-budget", type=PART, metavar="NUMBER",
              help="The part of ε for the numbers of groups, where these are not public.")  # fmt: skip
@click.option("--no-empty-groups", is_flag=True, help="It is public that every group has an entity at least: "
              "no size 0 is released.")  # fmt: skip
@click.option("--share", "shares", multiple=True, type=float, metavar="NUMBER",
              help="What a level has of the rest of ε, in proportion; once a level, the root first. Default: "
                   "even.")  # fmt: skip
def count_of_counts(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """How many groups have each size, of sizes up to very large ones, in every region (ε-DP).

    TABLE is a Parquet or CSV file with a row an entity (a person, a trip), or with numbers of entities.
    One entity more or less in a group is protected. Which groups and regions there are is public, unless
    --group-budget protects the numbers of groups. Only sizes that occur in the release get a row, and
    errors are few entities moved from group to group (earth mover's distance). For small sizes, up to a few
    hundred, see also group-size, which is for errors in the counts themselves.

    \b
    Households and group quarters by size, the regions in the table's own columns:
      hierdp release count-of-counts people.csv --levels state,county --group facility \\
          --epsilon 1 --out released
    \b
    Taxis by trips, no bound known, all taxis with a trip:
      hierdp release count-of-counts trips.parquet --levels borough,zone --group taxi --group zone \\
          --size-budget 0.001 --no-empty-groups --epsilon 1 --out released
    """

    def arguments() -> dict[str, Any]:
        asked = ("group", "entities", "unknown", "method", "merge", "max_size", "size_budget", "group_budget")
        if given["max_size"] is not None and given["size_budget"] is not None:
            raise click.UsageError("--size-budget estimates what --max-size gives: leave one of them out")
        return {
            **{name: given[name] for name in asked},
            **one_hierarchy(given),
            "smallest": 1 if given["no_empty_groups"] else None,
            "shares": given["shares"] or None,
        }

    run(table, "count-of-counts", arguments, epsilon=epsilon, out=out, overwrite=overwrite, simulate=simulate)
