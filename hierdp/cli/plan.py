"""hierdp plan: a command for each registered mechanism, built from the options that its plan declares."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hierdp.cli.analyze import analyze
from hierdp.cli.axes import sizes_of
from hierdp.cli.commands import Commands, LazyCommand
from hierdp.cli.common import console, named_mechanism, print_frame
from hierdp.cli.forms import arguments_of, flags_of, with_flags, with_plan
from hierdp.cli.recommend import KINDS, command_of_kind
from hierdp.cli.release import command_of
from hierdp.cli.sources import PUBLIC, refuse_tables, with_public
from hierdp.mechanisms import MECHANISMS, MechanismInfo
from hierdp.privacy.account import refuse_protected


def _options(mechanism: MechanismInfo) -> list[click.Parameter]:
    """The options of all mechanisms, those that this one declares, and, hidden, those of its release.

    A plan takes whatever `hierdp release` takes, so that the same line can be planned first; what it does not
    need is named, and not read.
    """
    own = with_plan([*shared.params, *flags_of(mechanism.planning_keywords)])
    return [*own, *of_release(mechanism, own)]


def of_release(mechanism: MechanismInfo, own: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options of a mechanism's release that a plan has not, all optional and hidden."""
    taken = {text for one in own for text in (one.name, *one.opts)}
    found = []
    for one in map(copy, command_of(mechanism).params):
        if not taken & {one.name, *one.opts}:
            one.required = False
            if isinstance(one, click.Option):
                one.hidden, one.default = True, None
            else:
                one.metavar = ""
            found.append(one)
    return found


USED = ("most_per_row", "rows_per_person", "numbers", "dates", "names")
"""Hidden options that a plan uses."""


def tell_unused(context: click.Context, *more: str) -> None:
    """Name the options that only a release needs. Nothing of theirs is read."""
    given = [one for one in context.command.params
             if context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE]  # fmt: skip
    hidden = [one for one in given if getattr(one, "hidden", one.name == "table") and one.name not in USED]
    if names := [*more, *("TABLE" if one.name == "table" else one.opts[0] for one in hidden)]:
        click.echo(f"A plan reads no data: it does not need {', '.join(names)}.", err=True)


def _options_of_analyze() -> list[click.Parameter]:
    """The options of `hierdp analyze`, and, hidden, those of a release, whose bins it takes, too."""
    own = [*(copy(one) for one in analyze.params), PUBLIC]
    own[0].required = False
    return [*own, *of_release(MECHANISMS["range-query"], own)]


@click.pass_context
def analyzed(context: click.Context, /, bins: str | None, out: Path | None, **given: Any) -> None:
    """Run `hierdp analyze` for the bins of a release, whose folder `--out` then names, or for a number."""
    refuse_protected(given["regions"], given["public"])
    sizes = sizes_of(given)
    if sizes:
        if len(set(sizes)) > 1:
            raise click.UsageError("the analysis needs the same number of bins along each dimension")
        tell_unused(context, *([] if bins is None else ["TABLE"]), *([] if out is None else ["--out"]))
        bins, given["dimensions"], out = str(sizes[0]), len(sizes), None
    elif bins is None:
        raise click.UsageError("no bins: give their number, such as 1000 or 2^20, or as for the release")
    else:
        tell_unused(context)
    rows = given["most_per_row"] or given["rows_per_person"]
    if rows is not None and given["epsilon"] is not None:
        given["epsilon"] /= rows
        click.echo(f"With so many rows of a person, ε is {given['epsilon']:g} for each.", err=True)
    names = {one.name for one in analyze.params}
    context.invoke(analyze, bins=bins, out=out, **{name: given[name] for name in given if name in names})


@cache
def _command_of(mechanism: MechanismInfo) -> click.Command:
    name = mechanism.name
    if name == "range-query":
        return LazyCommand(name, analyzed, analyze.help, _options_of_analyze)
    help = f"What to expect of `hierdp release {name}`, without data: {mechanism.releases}."
    return LazyCommand(name, shared.callback, help, partial(_options, mechanism))


def _made(name: str) -> click.Command:
    return command_of_kind(name) if name in KINDS else _command_of(MECHANISMS[name])


class _Planned(Collection[str]):
    """The mechanisms, those that were loaded included, and the kinds of tables."""

    def __contains__(self, name: object) -> bool:
        return name in MECHANISMS or name in KINDS

    def __iter__(self) -> Iterator[str]:
        return iter((*MECHANISMS, *KINDS))

    def __len__(self) -> int:
        return len(MECHANISMS) + len(KINDS)


@click.group(commands=Commands(_Planned(), _made, named_mechanism))
def plan() -> None:
    """What to expect of a release, without data: its noise, and errors where mathematics gives them.

    A plan takes the options of `hierdp release`, with numbers of regions in place of columns. `groups`,
    `flows` and `bins` recommend a method of all mechanisms for a table of such a shape.

    \b
    hierdp plan top-down --axis origin=state:52,county:3221 --axis destination=state:52,county:3221 \\
        --epsilon 1 --delta 1e-8
    hierdp plan tabulation --levels state:51,county:3143 --attribute group=8 --attribute age=2 \\
        --method GLS --delta 1e-10 --standard-error 5 --at county:total
    hierdp plan range-query 2^20 --epsilon 1
    hierdp plan flows --axis origin=state:52 --axis destination=state:52 --total 1000000 --filled 1000 \\
        --for "destination totals" --epsilon 1
    """


@click.command()
@click.option("--epsilon", type=float, metavar="NUMBER", help="Privacy budget ε, such as 1.")
@click.option("--standard-error", type=float, metavar="NUMBER",
              help="In place of --epsilon: find the least ε with this standard error. Where that of released "
                   "counts is not known, the standard deviation of the noise counts.")  # fmt: skip
@click.option("--at", metavar="LEVEL[:QUERY]",
              help="With --standard-error: where. Default: the last level.")  # fmt: skip
@click.option("--confidence", type=float, metavar="NUMBER",
              help="Also the width of the intervals of the release, such as 0.9.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.csv",
              help="Write the table to this file, with all digits.")  # fmt: skip
@click.option("--plan-out", type=click.Path(path_type=Path), metavar="FILE.toml",
              help="With --optimize: write the optimal plan, for `hierdp release --plan`.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the files if they exist.")
@with_public
@click.pass_context
def shared(
    context: click.Context,
    /,
    *,
    epsilon: float | None,
    standard_error: float | None,
    at: str | None,
    confidence: float | None,
    out: Path | None,
    plan_out: Path | None,
    overwrite: bool,
    public: str | None,
    **given: Any,
) -> None:
    """Add the options of every plan: the budget or the wanted error, and the output."""
    from hierdp.errors import InputError
    from hierdp.mechanisms.expected import known_columns
    from hierdp.mechanisms.planning import plan as planned

    mechanism = MECHANISMS[str(context.command.name)]
    folder, out = (out, None) if out is not None and out.suffix.lower() != ".csv" else (None, out)
    for file in (out, plan_out):
        if file is not None and file.exists() and not overwrite:
            raise InputError(f"{file} exists; choose another file, or add --overwrite")
    refuse_tables(context, {**given, "public": public})
    keywords = mechanism.planning_keywords
    options = arguments_of(keywords, given, context.get_parameter_source)
    if (most := given.get("most_per_row") or given.get("rows_per_person")) is not None:
        options.setdefault("trips" if "trips" in keywords else "rows_per_person", most)
    tell_unused(context, *(["--out"] if folder is not None else []))
    options |= {"epsilon": epsilon, "standard_error": standard_error, "at": at, "confidence": confidence}
    options["public"] = public
    found = planned(mechanism.name, **options)
    screen = console()
    print_frame(
        screen, f"{mechanism.name}, {found.method}, ε = {found.epsilon:g}", known_columns(found.table)
    )
    for note in found.notes:
        screen.print(with_flags(note, keywords))
    if out is not None:
        found.table.to_csv(out, index=False)
        screen.print(f"Written to {out}.")
    if plan_out is not None:
        if found.plan is None:
            raise InputError("there is no optimal plan to write: say what to --optimize")
        plan_out.write_text(toml_of(found.plan), encoding="utf-8")
        screen.print(f"Written to {plan_out}: `hierdp release {mechanism.name} --plan {plan_out}` runs it.")


def toml_of(entries: Mapping[str, Any]) -> str:
    """A plan as a TOML file: texts, numbers, lists and tables of these."""
    return "".join(
        f"{json.dumps(name, ensure_ascii=False)} = {_toml(value)}\n" for name, value in entries.items()
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(name, ensure_ascii=False)} = {_toml(one)}" for name, one in value.items()
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # TOML's texts and numbers are written as JSON's
