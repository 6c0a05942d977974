"""hierdp check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import WARNING, console, gigabytes, grid, with_limit

if TYPE_CHECKING:
    from hierdp.check.found import Found


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--fingerprint", metavar="HEX", help="What was printed when RELEASE was made, and perhaps "
              "published elsewhere: then it is this very release or it fails.")  # fmt: skip
@with_limit
def check(release: Path, fingerprint: str | None, limit: float) -> None:
    """Check a written RELEASE, a folder, from its files alone.

    Its counts (whole, not negative, adding up), its budget (each loss by the law of its noise, and their
    sum), the certificate of every post-processing step, made again without any solver, and that the table is
    what those steps gave. Exit status 1 if anything fails.

    \b
    hierdp check released
    hierdp check released --fingerprint 3f2a…
    """
    from hierdp.check import check as look

    sys.exit(0 if print_check(console(), release, look(release, fingerprint, gigabytes(limit))) else 1)


def print_check(screen: Any, release: Path, found: list[Found], brief: bool = False) -> bool:
    """A line a check, and the verdict; returns whether all hold.

    Parameters
    ----------
    screen : rich.console.Console
    release : path
        The folder, for the title.
    found : list of Found
    brief : bool
        Only what fails, and the verdict after the folder's name.
    """
    from hierdp.check.found import FAILS, OPEN

    failed = [line for line in found if line.verdict == FAILS]
    if failed or not brief:
        table = grid(f"{release}", "check", "verdict", "")
        colours = {FAILS: "bold red", OPEN: "yellow"}
        for line in failed if brief else found:
            table.add_row(line.check, line.verdict, line.why, style=colours.get(line.verdict))
        screen.print(table)
    where = f"{release}: " if brief else ""
    if failed:
        why = f"{len(failed)} of {len(found)} checks fail: do not rely on this release."
        screen.print(f"{where}{why}", style=WARNING)
        return False
    left = sum(line.verdict == OPEN for line in found)
    screen.print(f"{where}All checks hold{f'; {left} could not be made' if left else ''}.")
    if any(line.check == "privacy" and line.verdict == OPEN for line in found):
        screen.print("But the noise is simulated: this is NOT private. Do not publish it.", style=WARNING)
    return True
