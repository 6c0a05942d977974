"""hierdp audit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import console, grid
from hierdp.cli.engine import spread

if TYPE_CHECKING:
    from hierdp.audit import Case, Finding


@click.command()
@spread
@click.argument("mechanisms", nargs=-1)
@click.option("--runs", type=click.IntRange(min=10), default=1000, show_default=True,
              help="Of each mechanism on each of its two tables.")  # fmt: skip
@click.option("--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.999,
              show_default=True, help="With which all bounds of the table hold together.")  # fmt: skip
@click.option("--exact", is_flag=True,
              help="Exact noise, as in a release. Default: simulated, of the same law.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of simulated noise.")
def audit(mechanisms: Sequence[str], runs: int, confidence: float, exact: bool, seed: int) -> None:
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

    \b
    hierdp audit Laplace H_b^c
    hierdp audit top-down --runs 20000 --workers 2
    """
    from hierdp import progress
    from hierdp.audit import audit as look
    from hierdp.audit import exactly
    from hierdp.noise import SimulatedNoise

    cases = _named(mechanisms)
    each = look(cases, runs, confidence, exactly if exact else SimulatedNoise, seed)
    found = list(progress.steps(each, "mechanisms audited", len(cases)))
    screen = console()
    _print(screen, found)
    over = sum(line.over for line in found)
    kind = "exact" if exact else "simulated"
    screen.print(
        f"{runs:,} runs a table ({kind} noise); all bounds hold together with confidence {confidence}."
    )
    if over:
        screen.print(f"[bold red]{over} of {len(found)} lose more than they claim.[/]")
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


def _print(screen: Any, found: Sequence[Finding]) -> None:
    """A line a case."""
    from rich.markup import escape

    table = grid(
        "Audit", "mechanism", "relation", "neighbour", "claimed", "at least", "event", "runs", "verdict"
    )
    for line in found:
        claim, zcdp = line.claim, line.rho is not None
        delta = f", δ {claim.delta:g}" if claim.delta else ""
        claimed = f"ε {claim.epsilon:g}{delta}" + (f", ρ {claim.rho:.3f}" if zcdp else "")
        least = f"ε {line.epsilon:.2f}" + (f", ρ {line.rho:.3f}" if zcdp else "")
        verdict = "MORE THAN CLAIMED" if line.over else "under the claim"
        told = (line.case.name, line.neighbours, line.case.change, claimed, least, str(line.event))
        table.add_row(*map(escape, told), f"{line.runs:,}", verdict, style="bold red" if line.over else None)
    screen.print(table)
