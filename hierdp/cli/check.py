"""hierdp check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import WARNING, console, grid, with_limit, with_mechanism

if TYPE_CHECKING:
    from hierdp.checking.result import CheckResult

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

RELIED_ON = (
    "certificates",
    "table from steps",
    "budget: queries",
    "budget: each loss",
    "budget: sum",
    "privacy",
)
"""Checks without which a release is taken on trust."""


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--fingerprint", metavar="HEX", help="The fingerprint printed when RELEASE was made. The check "
              "fails if RELEASE differs from that release in any byte.")  # fmt: skip
@click.option("--public-key", type=FILE, metavar="FILE", help="The publisher's Ed25519 "
              "public key (PEM). The check fails if its owner did not sign RELEASE.")  # fmt: skip
@click.option("--account", type=FILE, metavar="FILE", help="The account of the data. "
              "The check fails if RELEASE is not in it, with its fingerprint and cost.")  # fmt: skip
@click.option("--export", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Also write every step's problem, answer and prices to FOLDER.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "vipr"]), default="text", show_default=True,
              help="What --export writes: proofs.txt for the checker of docs/theorem, or a VIPR 1.1 "
              "certificate for each problem.")  # fmt: skip
@with_limit
@with_mechanism
def check(
    release: Path, fingerprint: str | None, public_key: Path | None, account: Path | None,
    folder: Path | None, form: str, limit: int | None,
) -> None:  # fmt: skip
    """Check RELEASE, a folder written by `hierdp release`, from its files alone.

    Its counts, budget, noise, certificates and tables are computed again, without any solver. Exit status 1
    if a check fails. See docs/guide/certificate.md.

    \b
    hierdp check released
    hierdp check released --fingerprint 3f2a…
    hierdp check released --public-key public.pem
    hierdp check released --account homes.account
    hierdp check released --export proofs
    hierdp check released --export certificates --format vipr
    """
    from hierdp.checking import check as look

    screen = console()
    found = look(release, fingerprint, limit, public_key, account)
    holds = print_check(screen, release, found)
    if folder is not None:
        from hierdp.checking.export import EXPORTED, export

        written, skipped = export(release, folder, limit, form)
        left = f"; {skipped:,} left out, with the reason for each" if skipped else ""
        screen.print(
            f"{written:,} problems written to {folder / EXPORTED if form == 'text' else folder}{left}."
        )
    sys.exit(0 if holds else 1)


def print_check(screen: Any, release: Path, found: list[CheckResult], brief: bool = False) -> bool:
    """Print one line per check, and the verdict; return whether all checks pass.

    - release: the folder, for the title.
    - brief: print only failed checks, and the verdict after the folder's name.
    """
    from hierdp.checking.result import FAILS, OPEN, SIMULATED

    failed = [line for line in found if line.verdict == FAILS]
    if failed or not brief:
        table = grid(f"{release}", "check", "verdict", "")
        colours = {FAILS: "bold red", OPEN: "yellow"}
        for line in failed if brief else found:
            style = colours.get(line.verdict, "yellow" if line.check == "warnings" else None)
            table.add_row(line.check, line.verdict, line.why, style=style)
        screen.print(table)
    where = f"{release}: " if brief else ""
    if failed:
        why = f"{len(failed)} of {len(found)} checks fail. Do not rely on this release."
        screen.print(f"{where}{why}", style=WARNING)
        return False
    left = [line for line in found if line.verdict == OPEN]
    simulated = [line for line in left if line.why.startswith(SIMULATED)]
    trusted = [line.check for line in left if line.check in RELIED_ON and line not in simulated]
    if trusted:
        what = f"{', '.join(trusted)} could not be checked"
        screen.print(f"{where}No check fails, but {what}.", style=WARNING)
    else:
        screen.print(f"{where}All checks hold{f'; {len(left)} could not be made' if left else ''}.")
    if simulated:
        screen.print("But the noise is simulated: this is NOT private. Do not publish it.", style=WARNING)
    return True
