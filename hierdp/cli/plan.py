"""hierdp plan: a command for each registered mechanism, built from the options that its plan declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import click

from hierdp.cli.analyze import analyze
from hierdp.cli.common import console, print_frame
from hierdp.cli.forms import arguments_of, flags_of
from hierdp.mechanisms import MECHANISMS, Mechanism
from hierdp.mechanisms.option import keywords_of

OWN = {"range-query": analyze}
"""The commands that are not built from declared options."""


class PlanCommand(click.Command):
    """The command of a mechanism. Its code is loaded when its options are first needed."""

    def __init__(self, mechanism: Mechanism) -> None:
        help = f"What to expect of `hierdp release {mechanism.name}`, without data: {mechanism.releases}."
        super().__init__(mechanism.name, callback=shared.callback, help=help)
        self.mechanism = mechanism
        del self.params  # click has set it; from here on, the property below is used

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """The options of all mechanisms, then those that this one declares."""
        return [*shared.params, *flags_of(keywords_of(self.mechanism.expecting))]


class PlanCommands(Mapping[str, click.Command]):
    """The commands, by the names of their mechanisms."""

    def __getitem__(self, name: str) -> click.Command:
        return OWN[name] if name in OWN else _command_of(MECHANISMS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(MECHANISMS)

    def __len__(self) -> int:
        return len(MECHANISMS)


@cache
def _command_of(mechanism: Mechanism) -> PlanCommand:
    return PlanCommand(mechanism)


@click.group(commands=PlanCommands())
def plan() -> None:
    """What to expect of a release, without data: its noise, and errors where mathematics gives them.

    \b
    hierdp plan top-down --axis origin=state:52,county:3221 --axis destination=state:52,county:3221 \\
        --epsilon 1 --delta 1e-8
    hierdp plan tabulation --level state=51 --level county=3143 --attribute group=8 --attribute age=2 \\
        --method GLS --delta 1e-10 --standard-error 5 --at county:total
    hierdp plan range-query 2^20 --epsilon 1
    """


@click.command()
@click.option("--epsilon", type=float, metavar="NUMBER", help="Privacy budget ε, such as 1.")
@click.option("--standard-error", type=float, metavar="NUMBER",
              help="In place of --epsilon: find the least ε with this standard error. Where that of released "
                   "counts is not known, the standard deviation of the noise counts.")  # fmt: skip
@click.option("--at", metavar="LEVEL[:QUERY]",
              help="With --standard-error: where. Default: the last level.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the table to this CSV file, with all digits.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@click.pass_context
def shared(
    context: click.Context,
    /,
    *,
    epsilon: float | None,
    standard_error: float | None,
    at: str | None,
    out: Path | None,
    overwrite: bool,
    **given: Any,
) -> None:
    """Add the options of every plan: the budget or the wanted error, and the output."""
    from hierdp.errors import InputError
    from hierdp.mechanisms.expected import known_columns
    from hierdp.planning import plan as planned

    assert isinstance(context.command, PlanCommand)
    mechanism = context.command.mechanism
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists; choose another file, or add --overwrite")
    options = arguments_of(keywords_of(mechanism.expecting), given, context.get_parameter_source)
    found = planned(mechanism.name, epsilon=epsilon, standard_error=standard_error, at=at, **options)
    screen = console()
    print_frame(
        screen, f"{mechanism.name}, {found.method}, ε = {found.epsilon:g}", known_columns(found.table)
    )
    for note in found.notes:
        screen.print(note)
    if out is not None:
        found.table.to_csv(out, index=False)
        screen.print(f"Written to {out}.")
