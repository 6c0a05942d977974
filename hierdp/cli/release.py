"""hierdp release: a command for each registered mechanism, built from its declared options."""

from __future__ import annotations

from contextlib import ExitStack
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any

import click

from hierdp.cli.app import complete
from hierdp.cli.commands import Commands, LazyCommand
from hierdp.cli.common import (
    NOT_PRIVATE,
    WARNING,
    console,
    exact_number,
    named_mechanism,
    noise,
    print_frame,
    with_sampler,
)
from hierdp.cli.engine import spread
from hierdp.cli.forms import arguments_of, flags_of, with_plan
from hierdp.cli.sources import TABLE, Input, files_read, from_tables
from hierdp.mechanisms import MECHANISMS, MechanismInfo
from hierdp.reports.solved import count_proved


def _options(mechanism: MechanismInfo) -> list[click.Parameter]:
    """The options of all mechanisms, then those that this one declares."""
    own = with_plan(flags_of(mechanism.keywords))
    taken = {flag for one in own for flag in one.opts}
    of_all = [without(one, taken) for one in shared.params]
    # What must be given comes first, and what all mechanisms have comes last.
    return sorted([*of_all, *own], key=lambda one: (not one.required, not one.required and one in of_all))


def without(option: click.Parameter, taken: set[str]) -> click.Parameter:
    """An option of all mechanisms, without the flags that a mechanism has for an option of its own."""
    if not taken & set(option.opts):
        return option
    left = copy(option)
    left.opts = [flag for flag in option.opts if flag not in taken]
    return left


@cache
def command_of(mechanism: MechanismInfo) -> LazyCommand:
    """The command of a mechanism, made once."""
    options = partial(_options, mechanism)
    return LazyCommand(mechanism.name, shared.callback, _help(mechanism.help), options)


def _help(text: str) -> str:
    """Mark the examples, which are indented, with a backspace, so that click does not fill them."""
    paragraphs = text.strip().split("\n\n")
    return "\n\n".join(f"\b\n{one}" if "\n  " in one else one for one in paragraphs)


@click.group(commands=Commands(MECHANISMS, lambda name: command_of(MECHANISMS[name]), named_mechanism))
def release() -> None:
    """Release your own table, by one of the mechanisms below, or by your own: FILE.py:CLASS."""


@click.command()
@click.option("--epsilon", required=True, metavar="NUMBER",
              help="Privacy budget ε of the release, such as 1.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="Folder to create, for the tables (Parquet, CSV), manifest.json, report.html and the "
                  "files for `hierdp check`.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
@click.option("--title", metavar="TEXT", help="Title of the report, also in manifest.json. Public.")
@click.option("--note", metavar="TEXT", help="Text under the title, also in manifest.json. Public.")
@click.option("--labels", type=TABLE, metavar="TABLE",
              help="A table with the columns code and name: names for the codes of TABLE, in the report and "
                   "for `hierdp query`, `evaluate` and `export`. Public.")  # fmt: skip
@click.option("--csv-safe", is_flag=True,
              help="Put an apostrophe before names in the CSVs that a spreadsheet would run as a formula "
                   "(=cmd|…, @SUM). The Parquet files have the unchanged names.")  # fmt: skip
@click.option("--large-csv", is_flag=True,
              help="Write tables of more than 20 million rows as CSV, too. Without it, they are written as "
                   "Parquet only.")  # fmt: skip
@click.option("--no-proofs", is_flag=True,
              help="Leave out proofs.zip, which may be large. It has the answers and witnesses from "
                  "which `hierdp check` recomputes the certificates.")  # fmt: skip
@click.option("--confidence", type=float, metavar="NUMBER",
              help="Columns lower and upper: an interval for each count, which covers the true count with at "
                   "least this probability, at no further budget. Default: 0.9, where intervals are known, "
                   "for at most 20 million counts. 0: none.")  # fmt: skip
@click.option("--simultaneous", is_flag=True,
              help="--confidence is the probability that all of the intervals cover.")  # fmt: skip
@click.option("--account", type=Input(path_type=Path), metavar="FILE",
              help="The account of all releases of these data (see `hierdp account`). The release is "
                  "charged to it before noise is drawn, and refused if too little is left.")  # fmt: skip
@click.option("--without-account", metavar="REASON",
              help="Charge no account, although one lies beside TABLE; with --account, no other one, which "
                  "REASON has to name. The manifest gives the reason. Public.")  # fmt: skip
@click.option("--data", metavar="NAME", help="With --account: the data set's name in the account, if it is "
    "not the name of TABLE.")  # fmt: skip
@click.option("--sign", type=Input(path_type=Path), metavar="KEY",
              help="Ed25519 private key (PEM) to sign with, for `hierdp check --public-key`.")  # fmt: skip
@click.option("--simulate", type=click.IntRange(min=0), metavar="SEED",
              help="Seeded noise, NOT private: for experiments.")  # fmt: skip
@with_sampler
@from_tables
@spread
@click.pass_context
def shared(
    context: click.Context, /, table: Any, *, epsilon: str, out: Path, overwrite: bool, title: str | None,
    note: str | None, labels: Any, csv_safe: bool, large_csv: bool, no_proofs: bool,
    confidence: float | None, simultaneous: bool, account: Path | None, without_account: str | None,
    data: str | None, sign: Path | None, simulate: int | None, sampler: str | None, **given: Any,
) -> None:  # fmt: skip
    """Add the options of every mechanism: the table, the budget, and the output folder."""
    from hierdp.api import release as release_table
    from hierdp.counts.size_table import CONFIDENCE
    from hierdp.errors import InputError
    from hierdp.execution import folder
    from hierdp.privacy.account import Account
    from hierdp.privacy.budget import check_epsilon
    from hierdp.questions.intervals import if_known
    from hierdp.record.release import check_words
    from hierdp.record.signature import private_key
    from hierdp.reports.page import budget_frame, budget_in_words
    from hierdp.tables.labels import OTHER_CODES, codes_in, named_in, read_labels

    mechanism, screen = MECHANISMS[str(context.command.name)], console()
    check_words(title=title, note=note, **{"reason for charging no account": without_account})
    drawn = noise(simulate, sampler)
    if data is not None and account is None:
        raise InputError("--data names the data set of an account; give --account as well")
    known = None if labels is None else read_labels(labels)
    key = None if sign is None else private_key(sign)
    charged = None if account is None else Account(account, data)
    # The folder is made before any noise is drawn, so that any problem with it is found first.
    with ExitStack() as outside, folder.appearing(out, overwrite, files_read(context)) as aside:
        budget = check_epsilon(exact_number(epsilon))
        options = arguments_of(mechanism.keywords, given, context.get_parameter_source)
        if simulate is not None:
            screen.print(NOT_PRIVATE, style=WARNING)
        asked = CONFIDENCE if confidence is None and simultaneous else confidence or None
        made = release_table(table, mechanism.name, epsilon=budget, noise=drawn, account=charged,
                             without_account=without_account, confidence=asked,
                             simultaneous=simultaneous, **options)  # fmt: skip
        if made.charge is not None:  # covers every failure from here on, including the move of the folder
            outside.enter_context(made.charge.failing())
        if asked is None and confidence is None:
            made = if_known(made)
        used = {} if known is None else named_in(known, codes_in(made.counts, made.regions))
        fingerprint = made.fill(
            aside,
            proofs=not no_proofs,
            csv_safe=csv_safe,
            title=title,
            note=note,
            key=key,
            large_csv=large_csv,
            labels=used,
        )
    with complete(out):
        proved, solved = count_proved(line.line for line in made.proved)
        spent = "ρ" if made.ledger.zcdp else "ε"
        screen.print(
            f"{made.mechanism}: {len(made.counts):,} rows; {proved} of {solved} post-processing problems "
            f"proved optimal; {spent} = {made.ledger.spent:.6g} spent. Written to {out}/; open "
            f"{out}/report.html."
        )
        if made.intervals is not None:
            screen.print(f"Intervals: {made.intervals['covers']}.")
        for text in [*made.cautions, *([OTHER_CODES] if known and not used else [])]:
            screen.print(f"Warning: {text}.", style=WARNING)
        print_frame(screen, f"Budget: {budget_in_words(made.ledger)}", budget_frame(made.ledger))
        more = f"(for `hierdp check {out} --fingerprint …`)"
        screen.print(f"Fingerprint: {fingerprint} {more}")
