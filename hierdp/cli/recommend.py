"""hierdp plan groups, flows and bins: the best method for a question, on a made-up or a public table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from hierdp.cli.commands import LazyCommand
from hierdp.cli.common import columns, console, print_frame
from hierdp.cli.sources import PUBLIC, Input

KINDS = {
    "groups": "how many groups of each size are in every region",
    "flows": "counts by origin and destination, or of other axes",
    "bins": "a histogram of one or two dimensions",
}
"""Kinds of tables, beside the mechanisms."""

OPTIONS: Mapping[str, click.Option] = {
    "levels": click.Option(
        ["--levels"], metavar="LEVEL:NUMBER,…", required=True,
        help="Numbers of regions by level: state:52,county:3221; with --like, its columns: state,county."),
    "axes": click.Option(
        ["--axis", "axes"], multiple=True, required=True, metavar="NAME=LEVEL:NUMBER,…",
        help="An axis with its numbers of regions: origin=state:52,county:3221; with --like, its columns: "
             "origin=o_state,o_county. Repeat it for each axis."),
    "bins": click.Option(
        ["--bins"], required=True, metavar="NUMBER[,NUMBER]",
        help="The number of bins along each dimension."),
    "total": click.Option(
        ["--total"], type=click.IntRange(min=1), metavar="NUMBER",
        help="Entities, trips or persons, about. Bins of --like are brought to this total."),
    "groups": click.Option(
        ["--groups"], type=click.IntRange(min=1), metavar="NUMBER", help="Groups, about."),
    "max_size": click.Option(
        ["--max-size"], type=click.IntRange(min=1), required=True, metavar="NUMBER",
        help="The largest size in the release."),
    "largest": click.Option(
        ["--largest"], type=click.IntRange(min=1), metavar="NUMBER",
        help="The largest size that is expected. Default: --max-size."),
    "filled": click.Option(
        ["--filled"], type=click.IntRange(min=1), metavar="NUMBER",
        help="Cells or bins that are not empty, about. Default: half of them."),
    "count": click.Option(
        ["--count"], default="count", show_default=True, metavar="COLUMN",
        help="The column of counts of --like."),
    "delta": click.Option(
        ["--delta"], type=float, metavar="NUMBER",
        help="The δ of (ε, δ)-DP. Flows: by default 1e-8. Groups: with it, zCDP is ranked, too."),
}  # fmt: skip

OWN = {
    "groups": ("levels", "groups", "total", "max_size", "largest", "delta"),
    "flows": ("axes", "total", "filled", "count", "delta"),
    "bins": ("bins", "total", "filled", "count"),
}


def _options(kind: str) -> list[click.Parameter]:
    """The options of all kinds, and those of this one."""
    from hierdp.experiments.choosing import QUESTIONS  # which needs SciPy

    return [
        click.Option(["--for", "question"], required=True, metavar="QUESTION[: LEVEL]",
                     help=f"What counts: {'; '.join(QUESTIONS[kind])}."),
        click.Option(["--epsilon"], type=float, required=True, metavar="NUMBER",
                     help="Privacy budget ε."),
        click.Option(["--like"], type=Input(path_type=Path), metavar="TABLE",
                     help="In place of the numbers: public data of the same kind, such as last year's. "
                          "A choice by these is far better."),
        PUBLIC,
        click.Option(["--runs"], type=click.IntRange(min=1), default=5, show_default=True,
                     metavar="NUMBER", help="Simulated releases of each method."),
        *(OPTIONS[name] for name in OWN[kind]),
    ]  # fmt: skip


def command_of_kind(kind: str) -> LazyCommand:
    """The command of a kind of table."""
    help = (
        f"The best method for {KINDS[kind]}: of all that answer the question, by simulated releases of "
        "made-up tables of this shape, or of a public one."
    )
    return LazyCommand(kind, partial(_recommend, kind), help, partial(_options, kind))


def _recommend(kind: str, question: str, like: Path | None, **given: Any) -> None:
    from hierdp.experiments.choosing import recommend

    if "levels" in given:
        given["levels"] = [_equals(text, like) for text in columns(given["levels"])]
    if "axes" in given:
        given["axes"] = dict(_axis(text, like) for text in given["axes"])
    if "bins" in given:
        given["bins"] = [_whole(text) for text in columns(given["bins"])]
    source = None if like is None else str(like)
    found = recommend(kind, question, like=source, **given)
    screen = console()
    print_frame(screen, f"{question}, ε = {given['epsilon']:g}: errors of simulated releases", found.ranking)
    for note in found.notes:
        screen.print(note)
    screen.print(f"Use {found.method}: hierdp release {found.command} TABLE …")


def _whole(text: str) -> int:
    if not text.isdigit():
        raise click.UsageError(f"--bins {text}: give a whole number, such as 4096, or two, such as 256,256")
    return int(text)


def _equals(text: str, like: Path | None) -> str:
    """``state=52`` of ``state:52``; with a public table, a column."""
    if like is not None:
        return text
    level, colon, number = text.rpartition(":")
    if not colon:
        raise click.UsageError(f"--levels {text}: write LEVEL:NUMBER, such as state:52; columns need --like")
    return f"{level}={number}"


def _axis(text: str, like: Path | None) -> tuple[str, Any]:
    name, equals, parts = text.partition("=")
    if not equals:
        raise click.UsageError(
            f"--axis {text}: write NAME=LEVEL:NUMBER,…, such as origin=state:52,county:3221"
        )
    if like is not None:
        return name, columns(parts)
    return name, dict(_equals(part, None).split("=") for part in columns(parts))
