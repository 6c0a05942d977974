"""hierdp audit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import WARNING, console, grid
from hierdp.cli.engine import spread

if TYPE_CHECKING:
    from hierdp.audit import Case, Finding


@click.command()
@partial(spread, there="Runs are made there, noise and all: the tables are made up.")
@click.argument("mechanisms", nargs=-1)
@click.option("--runs", type=click.IntRange(min=10), default=1000, show_default=True,
              help="Of each mechanism on each of its two tables.")  # fmt: skip
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.999,
              show_default=True, help="With which all bounds of the table hold together.")  # fmt: skip
@click.option("--exact", is_flag=True,
              help="Exact noise, as in a release. Default: simulated, of the same law.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of simulated noise.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet",
              help="Keep each finding there as it comes. The same command goes on from there; other settings "
                   "add rows.")  # fmt: skip
def audit(
    mechanisms: Sequence[str], runs: int, confidence: float, exact: bool, seed: int, out: Path | None
) -> None:
    """Look for a mechanism that loses more privacy than it claims, from outside, by running it.

    MECHANISMS are names as `hierdp mechanisms` has them (group-size, InfTDA, …); default: all, which takes
    some minutes. Each runs many times on a made-up table and as often on a neighbour of it. A third of the
    runs chooses an event, such as "count[A 2] ≥ 21", that tells the two tables apart; the others bound
    how much likelier it is on one of them, and so the ε (under zCDP also the ρ) that the mechanism has at
    least. Exit status 1 if that is more than it claims.

    What it can show: that a mechanism is NOT as private as it says. Half the noise, noise that two counts
    share, a repair that peeks at true counts: each makes some event far too likely on one table.

    What it cannot show: that a mechanism IS private. A bound under the claim says that these runs, these
    tables and these events found nothing. It is often far under it, as more runs bring out; loss that
    only rare events or other tables show stays unseen, and so does a fault smaller than chance. For proof
    there are sensitivities, tested on all neighbours of small tables: docs/privacy.md.

    With --workers or --scheduler the runs are made there, noise and all: the tables are made up.

    Stop it when you like, with Ctrl-C or harder: what was found is on the screen, a line a case. With --out
    it is in a file, too, and the same command goes on from there. That is safe, unlike for a release: the
    tables are made up, so that no true count is in the file, and no budget is spent twice. A finding is made
    anew if what it depends on has changed: the mechanisms named, --runs, --confidence, --seed, --exact, or
    hierdp itself.

    \b
    hierdp audit Laplace H_b^c
    hierdp audit top-down --runs 20000 --workers 2
    hierdp audit --workers 2 --out audit.parquet
    """
    from hierdp.audit import audit as look
    from hierdp.audit import exactly
    from hierdp.execution import progress
    from hierdp.privacy.noise import SimulatedNoise

    cases = _named(mechanisms)
    each = look(cases, runs, confidence, exactly if exact else SimulatedNoise, seed, out)
    screen = console()
    if screen.is_terminal:
        progress.show_on(screen)  # so that its bar and our lines do not run into each other
    found: list[Finding] = []
    show = _lines if screen.is_terminal else _plain
    try:
        with closing(each):
            for line in progress.steps(each, "mechanisms audited", len(cases)):
                show(screen, line, not found)
                found.append(line)
    except BaseException:
        if found:
            again = "begun again, it goes on from there" + (" only with --out" if out is None else "")
            click.echo(f"Stopped after {len(found)} of {len(cases)} cases; {again}.", err=True)
        raise
    over = sum(line.over for line in found)
    kind = "exact" if exact else "simulated"
    screen.print(
        f"{runs:,} runs a table ({kind} noise); all bounds hold together with confidence {confidence}."
    )
    if over:
        screen.print(f"{over} of {len(found)} lose more than they claim.", style=WARNING)
    else:
        screen.print("No bound exceeds its claim. That is no proof of privacy: see hierdp audit --help.")
    sys.exit(1 if over else 0)


def _named(mechanisms: Sequence[str]) -> list[Case]:
    """The cases of mechanisms named by front door or by method; of all by default."""
    from hierdp.audit import CASES
    from hierdp.errors import listed

    known = {case.mechanism: None for case in CASES} | {case.method: None for case in CASES}
    for name in mechanisms:
        if name not in known:
            raise click.UsageError(f"no mechanism {name!r}; there are {listed(known, most=len(known))}")
    return [case for case in CASES if not mechanisms or {case.mechanism, case.method} & set(mechanisms)]


HEADS = {"mechanism": 5, "neighbour": 6, "claimed": 4, "at least": 4, "event": 7, "runs": 2, "verdict": 5}
"""Columns on a terminal, and their shares of its width."""


def _cells(line: Finding) -> dict[str, str]:
    claim, zcdp = line.claim, line.rho is not None
    delta = f", δ {claim.delta:g}" if claim.delta else ""
    return {
        "mechanism": line.case.name,
        "relation": line.neighbours,
        "neighbour": line.case.change,
        "claimed": f"ε {claim.epsilon:g}{delta}" + (f", ρ {claim.rho:.3f}" if zcdp else ""),
        "at least": f"ε {line.epsilon:.2f}" + (f", ρ {line.rho:.3f}" if zcdp else ""),
        "event": str(line.event),
        "runs": f"{line.runs:,}",
        "verdict": "MORE THAN CLAIMED" if line.over else "under the claim",
    }


def _plain(_: Any, line: Finding, first: bool) -> None:
    """A line of a file or a pipe, its cells set apart by tabs."""
    cells = _cells(line)
    if first:
        click.echo("\t".join(cells))
    click.echo("\t".join(cells.values()))


def _lines(screen: Any, line: Finding, first: bool) -> None:
    """A table of its own, as wide as those before and after it: it is there as soon as it is found."""
    cells, table = _cells(line), grid("", *HEADS)
    table.title, table.show_header, table.expand = None, first, True
    for column, share in zip(table.columns, HEADS.values(), strict=True):
        column.ratio = share
    table.add_row(*(cells[head] for head in HEADS), style="bold red" if line.over else None)
    screen.print(table)
