"""hierdp check."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hierdp.cli.common import console, grid


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--fingerprint", metavar="HEX", help="What was printed when RELEASE was made, and perhaps "
              "published elsewhere: then it is this very release or it fails.")  # fmt: skip
def check(release: Path, fingerprint: str | None) -> None:
    """Check a written RELEASE, a folder, from its files alone.

    Its counts (whole, not negative, adding up), its budget (each loss by the law of its noise, and their
    sum), the certificate of every post-processing step, made again without any solver, and that the table is
    what those steps gave. Exit status 1 if anything fails.

    \b
    hierdp check released
    hierdp check released --fingerprint 3f2a…
    """
    from rich.markup import escape

    from hierdp.check import FAILS, OPEN
    from hierdp.check import check as look

    found = look(release, fingerprint)
    table = grid(f"{release}", "check", "verdict", "")
    colours = {FAILS: "bold red", OPEN: "yellow"}
    for line in found:
        table.add_row(line.check, line.verdict, escape(line.why), style=colours.get(line.verdict))
    screen = console()
    screen.print(table)
    failed = sum(line.verdict == FAILS for line in found)
    if failed:
        screen.print(f"[bold red]{failed} of {len(found)} checks fail: do not rely on this release.[/]")
    else:
        left = sum(line.verdict == OPEN for line in found)
        screen.print(f"All checks hold{f'; {left} could not be made' if left else ''}.")
        if any(line.check == "privacy" and line.verdict == OPEN for line in found):
            screen.print("[bold red]But the noise is simulated: this is NOT private. Do not publish it.[/]")
    sys.exit(1 if failed else 0)
