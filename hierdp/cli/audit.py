"""hierdp audit."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import WARNING, console, grid, with_mechanism, with_sampler
from hierdp.cli.engine import spread

if TYPE_CHECKING:
    from hierdp.audit import Case, Finding


@click.command()
@partial(spread, there="All runs and their noise are made there: the tables are made up.")
@click.argument("mechanisms", nargs=-1)
@click.option("--runs", type=click.IntRange(min=10), default=1000, show_default=True,
              help="Runs of each mechanism on each of its two tables.")  # fmt: skip
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.999,
              show_default=True, help="Confidence with which all bounds hold simultaneously.")  # fmt: skip
@click.option("--exact", is_flag=True,
              help="Use exact noise, as in a release. Default: simulated noise.")  # fmt: skip
@with_sampler
@with_mechanism
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of simulated noise.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.parquet",
              help="Save each result to this file. The same command then continues an interrupted audit; "
                   "other settings add rows.")  # fmt: skip
def audit(
    mechanisms: Sequence[str], runs: int, confidence: float, exact: bool, sampler: str | None, seed: int,
    out: Path | None,
) -> None:  # fmt: skip
    """Test mechanisms for more privacy loss than they claim, by running them many times.

    MECHANISMS are mechanisms or methods of `hierdp mechanisms`, or the samplers of noise: opendp, tables.
    Default: all, which takes half an hour. Exit status 1 if a lower bound on a loss exceeds the claim.

    \b
    hierdp audit Laplace H_b^c
    hierdp audit top-down --runs 20000 --workers 2
    hierdp audit --workers 2 --out audit.parquet

    An audit can show that a mechanism is NOT as private as it claims. It cannot show that a mechanism IS:
    that rests on the proofs in docs/privacy.md. "Would show" is the smallest loss that so many runs would
    have detected. An audit may be stopped; with --out, the same command continues it.
    """
    from hierdp.audit import audit as look
    from hierdp.audit import by_tables, exactly
    from hierdp.execution import progress
    from hierdp.privacy.noise import SimulatedNoise

    if sampler and not exact:
        raise click.UsageError("--noise chooses the sampler of exact noise: add --exact")
    cases = _named(mechanisms)
    exactly_by = by_tables if sampler == "tables" else exactly
    each = look(cases, runs, confidence, exactly_by if exact else SimulatedNoise, seed, out)
    screen = console()
    if screen.is_terminal:
        progress.show_on(screen)  # one screen for the progress bar and the lines
    found: list[Finding] = []
    show = _lines if screen.is_terminal else _plain
    try:
        with closing(each):
            for line in progress.steps(each, "mechanisms audited", len(cases)):
                show(screen, line, not found)
                found.append(line)
    except BaseException:
        if found:
            again = (
                "use --out to be able to continue" if out is None else "the same command continues from there"
            )
            click.echo(f"Stopped after {len(found)} of {len(cases)} cases; {again}.", err=True)
        raise
    over = sum(line.over for line in found)
    kind = f"exact noise, from {sampler or 'opendp'}" if exact else "simulated noise"
    screen.print(f"{runs:,} runs per table ({kind}); all bounds hold together with confidence {confidence}.")
    nothing = sum(line.shows_nothing for line in found)
    if nothing:
        few = f"{nothing} of {len(found)} cases show nothing: no loss could exceed the claim in so few runs"
        screen.print(f"{few}; give more --runs.", style=WARNING)
    if over:
        screen.print(f"{over} of {len(found)} cases lose more privacy than claimed.", style=WARNING)
    else:
        screen.print("No bound exceeds its claim. This does not prove privacy: see hierdp audit --help.")
    sys.exit(1 if over else 0)


def _named(mechanisms: Sequence[str]) -> list[Case]:
    """The cases of the named mechanisms or methods; all cases by default."""
    from hierdp.audit import SAMPLERS, cases
    from hierdp.errors import unknown_name

    every = (*cases(), *SAMPLERS)
    known = {case.mechanism: None for case in every} | {case.method: None for case in every}
    for name in mechanisms:
        if name not in known:
            raise click.UsageError(unknown_name(name, known, "unknown mechanism or method"))
    return [case for case in every if not mechanisms or {case.mechanism, case.method} & set(mechanisms)]


HEADS = {"mechanism": 5, "neighbour": 6, "claimed": 4, "at least": 4, "would show": 3, "event": 7, "runs": 2,
         "verdict": 5}  # fmt: skip
"""Columns on a terminal, and their relative widths."""


def _cells(line: Finding) -> dict[str, str]:
    claim, zcdp = line.claim, line.rho is not None
    unit, why = "ρ" if zcdp else "ε", "shows nothing" if line.shows_nothing else "under the claim"
    delta = f", δ {claim.delta:g}" if claim.delta else ""
    return {
        "mechanism": line.case.name,
        "relation": line.neighbours,
        "neighbour": line.case.change,
        "claimed": f"ε {claim.epsilon:g}{delta}" + (f", ρ {claim.rho:.3f}" if zcdp else ""),
        "at least": f"ε {line.epsilon:.2f}" + (f", ρ {line.rho:.3f}" if zcdp else ""),
        "would show": "no loss" if line.detectable == math.inf else f"{unit} {line.detectable:.2f}",
        "event": str(line.event),
        "runs": f"{line.runs:,}",
        "verdict": "MORE THAN CLAIMED" if line.over else why,
    }


def _plain(_: Any, line: Finding, first: bool) -> None:
    """Print a result to a file or pipe: one line of tab-separated cells."""
    cells = _cells(line)
    if first:
        click.echo("\t".join(cells))
    click.echo("\t".join(cells.values()))


def _lines(screen: Any, line: Finding, first: bool) -> None:
    """Print a result on a terminal, at once: a table of one row, with the same column widths each time."""
    cells, table = _cells(line), grid("", *HEADS)
    table.title, table.show_header, table.expand = None, first, True
    for column, share in zip(table.columns, HEADS.values(), strict=True):
        column.ratio = share
    table.add_row(*(cells[head] for head in HEADS), style="bold red" if line.over else None)
    screen.print(table)
