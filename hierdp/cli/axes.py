"""The axes of a histogram, as options: numbers, dates, names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import columns
from hierdp.cli.release import regions, with_options, with_regions
from hierdp.cli.sources import levels_of

if TYPE_CHECKING:
    from hierdp.counts.axes import Numbers

MOST_TOLD = 100_000
"""Numbers of bins that are looked through for one to advise."""


def with_axes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Columns to be cut into bins, and what becomes of rows outside them."""
    bins = with_options(
        command,
        click.option("--numbers", multiple=True, metavar="COLUMN=LOW:HIGH[:BINS]",
                     help="Equal bins of numbers from LOW up to, and without, HIGH: age=0:100:20. Default: a "
                          "bin each whole number. Repeat it for more dimensions."),
        click.option("--dates", multiple=True, metavar="COLUMN=FROM:TO[:BINS]",
                     help="Equal bins of days from FROM up to, and without, TO: "
                          "day=2013-01-01:2014-01-01. Default: a bin each day."),
        click.option("--names", multiple=True, metavar="COLUMNS",
                     help="A bin each name, in the order of a hierarchy: its columns from coarse to fine, "
                          "state,county; with --regions the table's column of the finest region."),
        click.option("--count", metavar="COLUMN", help="Column with counts; else each row counts one."),
        click.option("--clip", is_flag=True,
                     help="Count numbers and dates beyond the bins in the first or the last one. Without it "
                          "they are an error."),
    )  # fmt: skip
    return with_regions(bins)


def axes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `hierdp.tables.binning.histogram`: numbers, then dates, then names."""
    from hierdp.counts.axes import Dates, Numbers

    axes: list[Any] = []
    for text in given["numbers"]:
        name, low, high, bins = _parts("--numbers", text)
        axes.append(cut := Numbers(name, _number(text, low), _number(text, high), bins))
        _tell_of_fractions(text, cut)
    axes += [Dates(*_parts("--dates", text)) for text in given["dates"]]
    known = regions(given, "all") if given["regions"] is not None else None
    for text in given["names"]:
        named = columns(text)
        if known is not None and len(named) != 1:
            raise click.UsageError(f"--names {text}: with --regions, name one column, of the finest region")
        axes.append((named[-1], levels_of(given, named) if known is None else (known, named[-1])))
    if not axes:
        raise click.UsageError("say which columns to cut into bins: --numbers, --dates or --names")
    if known is not None and not given["names"]:
        raise click.UsageError("--regions is for --names: name the table's column of the finest region")
    told = {name: given[name] for name in ("count", "unknown")}
    return {"axes": axes, "clip": given["clip"], **told}


def _tell_of_fractions(text: str, cut: Numbers) -> None:
    """Bins from a whole number to another that begin between whole numbers may be a slip."""
    length = cut.high - cut.low
    if cut.whole or length % 1 or cut.low % 1:
        return
    fits = [n for n in range(1, int(min(length, MOST_TOLD)) + 1) if length % n == 0]
    near = [max(n for n in fits if n < cut.bins), *[n for n in fits if n > cut.bins][:1]]
    click.echo(
        f"Warning: --numbers {text} makes bins of {length / cut.bins:.6g} each, which begin between whole "
        f"numbers, and `hierdp query` asks for whole bins: if {cut.name} is whole, take "
        f"{' or '.join(map(str, near))} bins.",
        err=True,
    )


def _parts(option: str, text: str) -> tuple[str, str, str, Any]:
    name, _, rest = text.partition("=")
    ends = rest.split(":")
    if not name or len(ends) not in (2, 3) or not (ends[-1].isdigit() or len(ends) == 2):
        raise click.UsageError(f"{option} {text}: write COLUMN=LOW:HIGH or COLUMN=LOW:HIGH:BINS")
    bins = int(ends[2]) if len(ends) == 3 else None
    if bins == 0:
        raise click.UsageError(f"{option} {text}: there is one bin at least")
    return name, ends[0], ends[1], bins


def _number(option: str, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--numbers {option}: {text!r} is no number") from None
