"""Axes as flags: bins of numbers, dates and names; and hierarchies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import columns
from hierdp.cli.sources import levels_of, region_flags, regions

if TYPE_CHECKING:
    from hierdp.counts.axes import Numbers

MOST_TRIED = 100_000
"""The largest number of bins tried for a recommendation."""


def bin_flags() -> list[click.Option]:
    """The columns to divide into bins."""
    return [
        click.Option(["--numbers"], multiple=True, metavar="COLUMN=LOW:HIGH[:BINS]",
                     help="Equal bins of numbers from LOW to HIGH, which is excluded: age=0:100:20. Default: "
                          "one bin per whole number. Repeat it for more dimensions."),
        click.Option(["--dates"], multiple=True, metavar="COLUMN=FROM:TO[:BINS]",
                     help="Equal bins of days from FROM to TO, which is excluded: "
                          "day=2013-01-01:2014-01-01. Default: one bin per day."),
        click.Option(["--names"], multiple=True, metavar="COLUMNS",
                     help="One bin per name, in the order of a hierarchy. With --regions, give the table's "
                          "column of the finest region. With "
                          "--regions-from-data, the columns from coarse to fine: state,county."),
        *region_flags(),
    ]  # fmt: skip


def axis_flags() -> list[click.Option]:
    """The hierarchies along which rows are counted."""
    return [
        click.Option(["--axis", "axes"], multiple=True, required=True, metavar="NAME=COLUMNS",
                     help="An axis and its columns. With --regions or --prefixes, its one column of the "
                          "finest region: origin=o_county. With --regions-from-data, from coarse to fine: "
                          "origin=o_state,o_county. Repeat it for each axis."),
        *region_flags(),
    ]  # fmt: skip


def planned_axis_flags() -> list[click.Option]:
    """The hierarchies of a release to come: numbers of regions, or as for the release."""
    return [
        click.Option(["--axis", "axes"], multiple=True, required=True, metavar="NAME=LEVEL:NUMBER,…",
                     help="An axis, with the number of regions on each of its levels, from coarse to fine: "
                          "origin=state:52,county:3221. Regions are divided among those above as evenly as "
                          "possible. Or as for the release: with --regions, a column of the finest region; "
                          "with --like, columns of that table. Repeat it for each axis."),
        *region_flags(),
    ]  # fmt: skip


def planned_axes(given: Mapping[str, Any]) -> dict[str, Any]:
    """By name: the numbers of regions by level; with --regions or --like, as `axes_of`."""
    if given["regions"] or given["prefixes"] or not all(":" in text for text in given["axes"]):
        if not given["regions"] and given["like"] is None:
            which = next((text for text in given["axes"] if ":" not in text), given["axes"][0])
            raise click.UsageError(
                f"--axis {which}: write NAME=LEVEL:NUMBER,…, such as origin=state:52,county:3221; columns "
                "need --regions or --like"
            )
        return axes_of(given)
    found: dict[str, Any] = {}
    for text in given["axes"]:
        name, equals, parts = (part.strip() for part in text.partition("="))
        if not equals or not name or name in found:
            raise click.UsageError(f"--axis {text}: give each axis once, as NAME=LEVEL:NUMBER,…")
        levels = [part.strip().rpartition(":") for part in parts.split(",")]
        found[name] = {level: number for level, _, number in levels}
        if len(found[name]) < len(levels):
            raise click.UsageError(f"--axis {text}: a level is given twice")
    return found


def axes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """By name: the columns of each axis; with --regions, the hierarchy and its one column."""
    everywhere = regions(given, "all") if given["regions"] else None
    named: dict[str, Any] = {}
    for axis in given["axes"]:
        name, equals, text = axis.partition("=")
        if not equals or not name or name in named:
            raise click.UsageError(f"--axis {axis}: give each axis once, as NAME=COLUMN,COLUMN")
        listed = columns(text)
        if everywhere is not None and len(listed) != 1:
            raise click.UsageError(f"--axis {axis}: with --regions, name one column, of the finest region")
        named[name] = levels_of(given, listed) if everywhere is None else (everywhere, listed[0])
    return named


def bins_of(given: Mapping[str, Any]) -> list[Any]:
    """The axes of `hierdp.tables.binning.histogram`: numbers, then dates, then names."""
    from hierdp.counts.axes import Dates, Numbers

    axes: list[Any] = []
    for text in given["numbers"]:
        name, low, high, bins = _parts("--numbers", text)
        axes.append(cut := Numbers(name, _number(text, low), _number(text, high), bins))
        _warn_of_fractions(text, cut)
    axes += [Dates(*_parts("--dates", text)) for text in given["dates"]]
    known = regions(given, "all") if given["regions"] is not None else None
    for text in given["names"]:
        named = columns(text)
        if known is not None and len(named) != 1:
            raise click.UsageError(
                f"--names {text}: with --regions, give one column, that of the finest region"
            )
        axes.append((named[-1], levels_of(given, named) if known is None else (known, named[-1])))
    if not axes:
        raise click.UsageError("no columns to divide into bins: give --numbers, --dates or --names")
    if known is not None and not given["names"]:
        raise click.UsageError("--regions needs --names with the table's column of the finest region")
    return axes


def sizes_of(given: Mapping[str, Any]) -> list[int]:
    """The number of bins along each axis that is given, for a plan; empty if none is."""
    if not any(given[name] for name in ("numbers", "dates", "names")):
        return []
    found = []
    for axis in bins_of(given):
        if not isinstance(axis, tuple):
            found.append(axis.bins)
        elif isinstance(axis[1], tuple):
            found.append(int(axis[1][0].tree.leaves.size))
        else:
            raise click.UsageError("--names: a plan reads no data; give the list of all regions (--regions)")
    return found


def _warn_of_fractions(text: str, cut: Numbers) -> None:
    """Warn of a likely mistake: the axis has whole ends, but its bins begin between whole numbers."""
    length = cut.high - cut.low
    if cut.whole or length % 1 or cut.low % 1:
        return
    fits = [n for n in range(1, int(min(length, MOST_TRIED)) + 1) if length % n == 0]
    near = [max(n for n in fits if n < cut.bins), *[n for n in fits if n > cut.bins][:1]]
    click.echo(
        f"Warning: --numbers {text} makes bins of width {length / cut.bins:.6g}, which begin between whole "
        f"numbers. `hierdp query` answers ranges of whole bins only: if {cut.name} is a whole number, use "
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
        raise click.UsageError(f"{option} {text}: the number of bins must be at least 1")
    return name, ends[0], ends[1], bins


def _number(option: str, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--numbers {option}: {text!r} is not a number") from None
