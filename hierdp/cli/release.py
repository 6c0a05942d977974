"""hierdp release: what its mechanisms share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from hierdp.cli.app import complete
from hierdp.cli.common import NOT_PRIVATE, WARNING, console, noise, number, print_frame
from hierdp.cli.engine import spread
from hierdp.cli.sources import from_tables
from hierdp.cli.sources import one_hierarchy as one_hierarchy
from hierdp.cli.sources import regions as regions
from hierdp.cli.sources import with_regions as with_regions
from hierdp.reports.solved import counted


@click.group()
def release() -> None:
    """Release your own table, by one of the mechanisms below."""


def common(command: Callable[..., Any]) -> Callable[..., Any]:
    """The table, the budget, and where to write: what every mechanism takes."""
    return with_options(
        from_tables(spread(command)),
        click.option("--epsilon", required=True, metavar="NUMBER",
                     help="Privacy budget ε of the release, such as 1."),
        click.option("--out", type=click.Path(path_type=Path), required=True,
                     help="Folder to make, for tables (Parquet, CSV), manifest.json, report.html and "
                          "what `hierdp check` needs."),
        click.option("--overwrite", is_flag=True, help="Replace that folder if it exists (else it is kept)."),
        click.option("--title", metavar="TEXT", help="Title of the report; kept in manifest.json. Public."),
        click.option("--note", metavar="TEXT", help="What stands under the title; kept in manifest.json. "
                     "Public."),
        click.option("--csv-safe", is_flag=True, help="Put an apostrophe before names in the CSVs that a "
                     "spreadsheet would run as a formula (=cmd|…, @SUM). Parquet has them as they are."),
        click.option("--no-proofs", is_flag=True, help="Leave out proofs.zip, the models and answers by "
                     "which `hierdp check` makes the certificates again; it may be large."),
        click.option("--simulate", type=click.IntRange(min=0), metavar="SEED",
                     help="Seeded noise, NOT private: for experiments."),
    )  # fmt: skip


def run(
    table: Any,
    mechanism: str,
    arguments: Callable[[], Mapping[str, Any]],
    *,
    epsilon: str,
    out: Path,
    overwrite: bool,
    simulate: int | None,
) -> None:
    """Release and write. `arguments` gives the mechanism's options; those that are None are left out."""
    from hierdp.execution import folder
    from hierdp.front import release as release_table
    from hierdp.privacy.budget import check_epsilon
    from hierdp.record.release import check_words
    from hierdp.reports.page import budget_frame, budget_in_words

    screen, given = console(), click.get_current_context().params
    words = {"title": given["title"], "note": given["note"]}
    check_words(**words)
    # The folder is made before any noise is drawn: whatever is wrong with it is found before that.
    with folder.appearing(out, overwrite, _files(given)) as aside:
        budget = check_epsilon(number(epsilon))
        options = {name: value for name, value in arguments().items() if value is not None}
        if simulate is not None:
            screen.print(NOT_PRIVATE, style=WARNING)
        made = release_table(table, mechanism, epsilon=budget, noise=noise(simulate), **options)
        fingerprint = made.fill(aside, proofs=not given["no_proofs"], csv_safe=given["csv_safe"], **words)
    with complete(out):
        proved, solved = counted(line.line for line in made.proved)
        spent = "ρ" if made.ledger.zcdp else "ε"
        screen.print(
            f"{made.mechanism}: {len(made.table):,} rows; {proved} of {solved} post-processing problems "
            f"proved optimal; {spent} = {made.ledger.spent:.6g} spent. Written to {out}/; open "
            f"{out}/report.html.",
        )
        print_frame(screen, f"Budget: {budget_in_words(made.ledger)}", budget_frame(made.ledger))
        more = f"(for `hierdp check {out} --fingerprint …`)"
        screen.print(f"Fingerprint: {fingerprint} {more}")


def _files(given: Mapping[str, Any]) -> list[Path]:
    """The files that a command reads: a folder that holds one is not replaced."""
    named = [given.get(name) for name in ("table", "regions", "groups", "database")]
    return [Path(name) for name in named if name and "://" not in name and Path(name).exists()]


def with_options(command: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    """A command with these options, in this order, before its own."""
    for option in reversed(options):
        command = option(command)
    return command
