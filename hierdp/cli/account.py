"""hierdp account."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import console, exact_number, print_frame

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.privacy.account import Statement
    from hierdp.privacy.whom import Whom


class _Showing(click.Group):
    """A command group; if its first argument is a file, it runs `show`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "FILE | COMMAND [ARGS]...")


@click.group(cls=_Showing)
def account() -> None:
    """Keep the budget of all releases of a data set, and what they have spent, in FILE.

    Use --account FILE with each release of these data. A release is charged before it draws noise, and
    refused if it costs more than is left. A release that fails after the charge stays charged.

    \b
    hierdp account open homes.account --data homes.parquet --epsilon 3
    hierdp account homes.account
    """


@account.command("open")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, metavar="NAME", help="The data set's name: the file name of its "
              "table, such as homes.parquet, or a name that releases give with --data.")  # fmt: skip
@click.option("--epsilon", required=True, metavar="NUMBER", help="The ε of all releases together, such as 3.")
@click.option("--delta", default="0", metavar="NUMBER", help="The δ of all releases together, far below 1 / "
              "number of people. Without it, only ε-DP releases are accepted.")  # fmt: skip
@click.option("--set-aside", default="0", metavar="NUMBER", help="The part of δ for releases that spend δ "
    "by themselves (top-down --method SH). Default: 0.")  # fmt: skip
@click.option("--person", metavar="COLUMN", help="Protect a person with all their rows: the column that "
              "names the person of each row. Every release names it, too (--person).")  # fmt: skip
@click.option("--count", metavar="COLUMN", help="Protect one of what a column of numbers counts, for "
              "releases that count it without --person and --most-per-row.")  # fmt: skip
@click.option("--unit", type=click.Choice(["row", "person"]),
              help="Default: row. With person and without --person: persons that no column names, as in "
                  "top-down --trips.")  # fmt: skip
@click.option("--replaces", is_flag=True, help="Neighbouring tables differ by replacing one row or person, "
    "rather than by adding or removing one. For releases with a public total, such as top-down without "
    "--unbounded. Releases that protect adding or removing are charged as two changes.")  # fmt: skip
def open_(
    file: Path, data: str, epsilon: str, delta: str, set_aside: str, person: str | None, count: str | None,
    unit: str | None, replaces: bool,
) -> None:  # fmt: skip
    """Create an account in FILE, which must not exist."""
    if (person is not None) + (count is not None) > 1 or (unit == "row" and person) or (unit and count):
        raise click.UsageError("an account protects one unit: give one of --person, --count and --unit")
    from hierdp.privacy.account import open_account
    from hierdp.privacy.budget import check_delta, check_epsilon

    part, miss = exact_number(set_aside), exact_number(delta)
    made = open_account(
        file,
        data,
        check_epsilon(exact_number(epsilon)),
        0.0 if miss == 0 else check_delta(miss),
        set_aside=0.0 if part == 0 else check_delta(part),
        unit="person" if person else "count" if count else unit or "row",
        column=person or count,
        replaces=replaces,
    )
    print_statement(console(), file, made.statement())


@account.command()
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Show the budget of FILE, and each release charged to it.

    Entries are the lines of FILE: a release has one for its charge, by which manifests and `hierdp check`
    name it, and one for its outcome.
    """
    from hierdp.privacy.account import Account

    print_statement(console(), file, Account(file).statement())


def print_statement(screen: Any, file: Path, now: Statement) -> None:
    """Print the terms, one row for each release, what is left, and the digest."""
    terms = now.terms
    change = "in place of another" if terms.replaces else "more or less"
    delta = f", δ = {terms.delta:g}" if terms.delta else ""
    aside = f" ({terms.set_aside:g} of it set aside)" if terms.set_aside else ""
    title = f"{file}: {terms.data}, ε = {terms.epsilon:g}{delta}{aside} for all releases; protected: one "
    title += f"{_unit(terms.whom.name)} {change}"
    if now.charges:
        print_frame(screen, title, _charges(now))
    else:
        screen.print(f"{title}\nNo release has been charged yet.")
    screen.print(f"Spent: {100 * now.share:.4g} % of the budget. Left: {_left(now)}.")
    screen.print(f"Last line: {now.digest} (a copy kept elsewhere shows whether the account was replaced)")


def _unit(name: str) -> str:
    """ "a person, by column 'id'" as "person, by column 'id':"; the text before it has the article."""
    short = name.removeprefix("a ").removeprefix("one ")
    return f"{short}:" if "column" in short else short


def _charges(now: Statement) -> DataFrame:
    import pandas as pd

    rows = [
        {
            "release": number,
            "entry": charge.entry,
            "charged at": charge.at,
            "mechanism": charge.what,
            "charged": charge.loss.in_words,
            "for": _for(charge.loss.whom),
            "state": charge.state,
            "fingerprint": charge.fingerprint or "",
        }
        for number, charge in enumerate(now.charges, start=1)
    ]
    return pd.DataFrame(rows)


def _for(whom: Whom) -> str:
    """The unit of a charge, with its bound."""
    if whom.unit == "person":
        return f"{whom.column or 'a person'}, {whom.rows} rows"
    if whom.unit == "count":
        return f"one of {whom.counts}"
    return "a row" if whom.counts is None else f"a row, up to {whom.rows} of {whom.counts}"


def _left(now: Statement) -> str:
    pure = f"ε = {now.left_epsilon:.6g} for an ε-DP release"
    zcdp = f", or ρ = {now.left_rho:.6g} for one under zCDP" if now.terms.rest else ""
    aside = f", and δ = {now.left_delta:g} of what is set aside" if now.terms.set_aside else ""
    return pure + zcdp + aside
