"""hierdp account."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import console, number, print_frame

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.privacy.account import Statement


class _Showing(click.Group):
    """A group whose first argument may be a file: then `show` is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["show", *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "FILE | COMMAND [ARGS]...")


@click.group(cls=_Showing)
def account() -> None:
    """What all releases of a data set may cost together, and have cost, kept in FILE beside the data.

    Give it to each release of these data, as --account FILE. A release is charged before it draws noise, and
    refused if it costs more than is left. What fails after the charge stays charged.

    \b
    hierdp account open homes.account --data homes.parquet --epsilon 3
    hierdp account homes.account
    """


@account.command("open")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", required=True, metavar="NAME", help="The data set's name: the file name of its "
              "table, such as homes.parquet, or another that each release then gives as --data.")  # fmt: skip
@click.option("--epsilon", required=True, metavar="NUMBER", help="The ε of all releases together, such as 3.")
@click.option("--delta", default="0", metavar="NUMBER", help="The δ of all releases together, far below 1 / "
              "number of people. Without it only ε-DP releases are taken.")  # fmt: skip
@click.option("--set-aside", default="0", metavar="NUMBER", help="The part of δ for releases that take some "
              "of it by themselves (top-down --method SH). Default: none.")  # fmt: skip
@click.option("--unit", type=click.Choice(["row", "person"]), default="row", show_default=True,
              help="Whom the account protects: one row (or one of a count), or a person with several "
                   "(top-down --trips).")  # fmt: skip
@click.option("--replaces", is_flag=True, help="Protect one in place of another, not one more or less: for "
              "releases with a public total, such as top-down without --unbounded. A release that protects "
              "one more or less is charged as two changes.")  # fmt: skip
def open_(file: Path, data: str, epsilon: str, delta: str, set_aside: str, unit: str, replaces: bool) -> None:
    """Make an account in FILE, which must not exist."""
    from hierdp.privacy.account import open_account
    from hierdp.privacy.budget import check_delta, check_epsilon

    part = number(set_aside)
    made = open_account(
        file,
        data,
        check_epsilon(number(epsilon)),
        0.0 if number(delta) == 0 else check_delta(number(delta)),
        set_aside=0.0 if part == 0 else check_delta(part),
        unit=unit,
        replaces=replaces,
    )
    print_statement(console(), file, made.statement())


@account.command()
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Show what FILE allows, and each release that was charged to it."""
    from hierdp.privacy.account import Account

    print_statement(console(), file, Account(file).statement())


def print_statement(screen: Any, file: Path, now: Statement) -> None:
    """The terms, a row a release, what is left, and the digest of it all."""
    terms = now.terms
    change = "in place of another" if terms.replaces else "more or less"
    delta = f", δ = {terms.delta:g}" if terms.delta else ""
    aside = f" ({terms.set_aside:g} of it set aside)" if terms.set_aside else ""
    title = f"{file}: {terms.data}, ε = {terms.epsilon:g}{delta}{aside} for all releases; protected: one "
    title += f"{terms.unit} {change}"
    if now.charges:
        print_frame(screen, title, _charges(now))
    else:
        screen.print(f"{title}\nNo release was charged yet.")
    screen.print(f"Spent: {100 * now.share:.4g} % of what it allows. Left: {_left(now)}.")
    screen.print(f"Last line: {now.digest} (kept elsewhere, it shows whether the account was made anew)")


def _charges(now: Statement) -> DataFrame:
    import pandas as pd

    rows = [
        {
            "entry": charge.entry,
            "charged at": charge.at,
            "mechanism": charge.what,
            "charged": charge.loss.in_words,
            "state": charge.state,
            "fingerprint": charge.fingerprint or "",
        }
        for charge in now.charges
    ]
    return pd.DataFrame(rows)


def _left(now: Statement) -> str:
    pure = f"ε = {now.left_epsilon:.6g} for an ε-DP release"
    zcdp = f", or ρ = {now.left_rho:.6g} for one under zCDP" if now.terms.rest else ""
    aside = f", and δ = {now.left_delta:g} of what is set aside" if now.terms.set_aside else ""
    return pure + zcdp + aside
