"""Convert the declared options of a mechanism to flags, and the given flags to keywords."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hierdp.cli.axes import (
    axes_of,
    axis_flags,
    bin_flags,
    bins_of,
    planned_axes,
    planned_axis_flags,
    sizes_of,
)
from hierdp.cli.common import columns, exact_number, number
from hierdp.cli.sources import TABLE, Input, hierarchy_of, region_flags, regions
from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms.option import Keyword, read_toml


@dataclass(frozen=True)
class Form:
    """The flags of a keyword whose value is neither a text, nor a number, nor a list of these.

    - flags: makes the flags, from the keyword and its help.
    - read: makes keywords with values, from the keyword and the values of all flags; None leaves one out.
    """

    flags: Callable[[Keyword, str], Sequence[click.Option]]
    read: Callable[[Keyword, Mapping[str, Any]], Mapping[str, Any]]


def flags_of(keywords: Mapping[str, Keyword]) -> list[click.Option]:
    """The flags of a mechanism's keywords, in their order."""
    found: list[click.Option] = []
    for keyword in keywords.values():
        text = with_flags(keyword.option.help, keywords)
        form = FORMS.get(keyword.option.form)
        found += form.flags(keyword, text) if form else [_flag(keyword, text)]
    return found


def arguments_of(
    keywords: Mapping[str, Keyword],
    given: Mapping[str, Any],
    source_of: Callable[[str], ParameterSource | None],
) -> dict[str, Any]:
    """The keywords that were given on the command line, with their values.

    - given: the values of all flags.
    - source_of: says where a flag's value comes from; the mechanism supplies defaults.
    """
    found: dict[str, Any] = {}
    for name, keyword in keywords.items():
        form = FORMS.get(keyword.option.form)
        if form:
            found |= form.read(keyword, given)
        elif source_of(name) is not ParameterSource.DEFAULT and name not in found:
            value = keyword.set_by_flag
            found[name] = given[name] if value is None else value
    return {name: value for name, value in found.items() if value is not None}


def _flag(keyword: Keyword, text: str) -> click.Option:
    """One flag for one keyword, by its type."""
    names = [keyword.flag, keyword.name]
    if keyword.set_by_flag is not None:
        return click.Option(names, is_flag=True, help=text)
    several = keyword.each is not None
    if keyword.each is str:
        text += " Repeat it for several."
    default = {} if keyword.required else {"default": keyword.default}
    return click.Option(
        names,
        type=_type(keyword),
        metavar=None if keyword.choices else keyword.option.metavar,
        required=keyword.required,
        multiple=several,
        show_default=bool(default) and keyword.default is not None,
        help=text,
        **default,
    )


def with_plan(options: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options of a command, with --plan, a file of them, unless one of them has that flag."""
    if any("--plan" in option.opts for option in options):
        return [*options]
    words = (
        'A TOML file with any of these options by name, such as max-size = 20 or levels = ["state", '
        '"county"]. Those on the command line come before its own.'
    )
    file = click.Option(["--plan", "plan_file"], type=Input(readable=False), metavar="FILE.toml", help=words,
                        is_eager=True, expose_value=False, callback=_take_plan)  # fmt: skip
    return [*options, file]


def _take_plan(context: click.Context, file: click.Parameter, path: str | None) -> None:
    """Make the entries of a plan's file the defaults of the command's options."""
    if path is None:
        return
    known: dict[str, click.Option] = {}
    for option in context.command.params:
        if isinstance(option, click.Option) and option is not file:
            flags = [flag.lstrip("-").replace("-", "_") for flag in option.opts]
            known |= dict.fromkeys([str(option.name), *flags], option)
    defaults: dict[str, Any] = {}
    for key, value in read_toml(path, parse_float=str).items():  # a budget is the decimal that was typed
        named = known.get(key.replace("-", "_"))
        if named is None:
            flags = sorted({each.opts[0].lstrip("-") for each in known.values()})
            raise InputError(f"the plan {path!r}: {unknown_name(key, flags, 'no option')}")
        if isinstance(value, dict) or isinstance(value, bool) != bool(named.is_flag):
            what = "true or false" if named.is_flag else "a text, a number, or a list of these"
            raise InputError(f"the plan {path!r}: {key!r} must be {what}, not {value!r}")
        if value is True:
            defaults[str(named.name)] = True
        elif value is not False:
            texts = [str(part) for part in (value if isinstance(value, list) else [value])]
            defaults[str(named.name)] = texts if named.multiple else ",".join(texts)
    context.default_map = defaults


if TYPE_CHECKING:
    _AnyType = click.ParamType[Any]
else:
    _AnyType = click.ParamType  # generic since click 8.4


class Number(_AnyType):
    """A number; any other text is passed on, for the mechanism to refuse."""

    name = "number"

    def convert(self, value: Any, *_: Any) -> Any:
        """Convert a text."""
        return exact_number(value)


def _type(keyword: Keyword) -> click.ParamType[Any]:
    option, kind = keyword.option, keyword.each or keyword.type
    if keyword.choices:
        return click.Choice(keyword.choices)
    if kind not in (int, float):
        return click.STRING
    if option.least is option.above is option.most is None:
        return click.INT if kind is int else click.FLOAT if keyword.each else Number()
    low = option.least if option.above is None else option.above
    ranged = click.IntRange if kind is int else click.FloatRange
    return ranged(low, option.most, min_open=option.above is not None)  # type: ignore[arg-type]


def with_flags(text: str, keywords: Mapping[str, Keyword]) -> str:
    """Replace keywords in backticks by flags."""
    return re.sub(r"`(\w+)`", lambda one: keywords[one[1]].flag if one[1] in keywords else one[0], text)


def _table(keyword: Keyword, text: str) -> list[click.Option]:
    return [click.Option([keyword.flag, keyword.name], type=TABLE, metavar=keyword.option.metavar, help=text)]


def _path(keyword: Keyword, text: str) -> list[click.Option]:
    kind = Input(readable=False)
    return [click.Option([keyword.flag, keyword.name], type=kind, metavar=keyword.option.metavar, help=text)]


def _one_text(keyword: Keyword, text: str) -> list[click.Option]:
    return [_flag(replace(keyword, type=str), text)]


def _columns(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    text = given[keyword.name]
    return {keyword.name: None if text is None else columns(text)}


def _column_or_number(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    text = given[keyword.name]
    return {keyword.name: None if text is None else number(text)}


def _planned_flags(_: Keyword, text: str) -> list[click.Option]:
    found = region_flags()
    found[0].help = f"{text} One of the next three flags says how to read TABLE."
    return found


def _planned_regions(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {keyword.name: None if given["regions"] is None else regions(given, "all")}


def _planned_levels(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Numbers of regions by level: ``state:52,county:3221``; with --regions they are those of the table."""
    text = given[keyword.name]
    if text is None or given["regions"] is not None:
        return {keyword.name: None}
    parts = [part.rpartition(":") for part in columns(text)]
    if not all(level and number.isdigit() for level, _, number in parts):
        raise click.UsageError(
            f"--levels {text}: give each level with its number of regions, such as state:52,county:3221, or "
            "a table of all regions (--regions)"
        )
    return {keyword.name: [f"{level}={number}" for level, _, number in parts]}


def _planned_bins(keyword: Keyword, text: str) -> list[click.Option]:
    number = _flag(keyword, f"{text} Or give the columns to divide into bins, as for the release.")
    number.required = False
    return [number, *bin_flags()]


def _number_of_bins(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    sizes = sizes_of(given)
    if (given[keyword.name] is None) == (not sizes):
        raise click.UsageError(f"give {keyword.flag}, or the columns to divide into bins (--numbers)")
    return {keyword.name: math.prod(sizes) if sizes else given[keyword.name]}


def _planned_groups(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A number, or the public table of all groups, one row each."""
    text = given[keyword.name]
    if text is None or text.isdigit():
        return {keyword.name: None if text is None else int(text)}
    from hierdp.tables import read
    from hierdp.tables.sources import run

    table = read(text)
    return {keyword.name: int(run(table.aggregate(rows=table.count()))["rows"][0].as_py())}


def _planned_attributes(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``NAME=NUMBER`` as given; a list of categories as its length."""
    found = []
    for text in given[keyword.name]:
        name, equals, rest = text.partition("=")
        if not equals and given["plan"] is None:
            raise click.UsageError(
                f"{keyword.flag} {text}: give its categories, or their number, such as {text}=2"
            )
        found.append(text if rest.isdigit() or not equals else f"{name}={len(columns(rest))}")
    return {keyword.name: found or None}


def _name_or_shares(keyword: Keyword, text: str) -> list[click.Option]:
    shares = f"In place of {keyword.flag}: the relative budget of a level; one per level, from the top."
    return [
        click.Option([keyword.flag, keyword.name], metavar=keyword.option.metavar, help=text),
        click.Option(["--share", "shares"], type=float, multiple=True, metavar="NUMBER", help=shares),
    ]


def _which_of_both(keyword: Keyword, given: Mapping[str, Any]) -> Mapping[str, Any]:
    if given[keyword.name] is not None and given["shares"]:
        raise click.UsageError(f"give {keyword.flag} or --share, not both")
    return {keyword.name: given["shares"] or given[keyword.name]}


FORMS: dict[str | None, Form] = {
    "table": Form(_table, lambda keyword, given: {keyword.name: given[keyword.name]}),
    "path": Form(_path, lambda keyword, given: {keyword.name: given[keyword.name]}),
    "columns": Form(_one_text, _columns),
    "column or number": Form(_one_text, _column_or_number),
    "regions": Form(lambda *_: region_flags(), lambda _, given: hierarchy_of(given)),
    "in levels": Form(lambda *_: [], lambda *_: {}),
    "planned regions": Form(_planned_flags, _planned_regions),
    "axes": Form(lambda *_: axis_flags(), lambda keyword, given: {keyword.name: axes_of(given)}),
    "planned levels": Form(_one_text, _planned_levels),
    "planned bins": Form(_planned_bins, _number_of_bins),
    "planned groups": Form(_table, _planned_groups),
    "planned attributes": Form(lambda keyword, text: [_flag(keyword, text)], _planned_attributes),
    "planned axes": Form(
        lambda *_: planned_axis_flags(), lambda keyword, given: {keyword.name: planned_axes(given)}
    ),
    "bins": Form(lambda *_: bin_flags(), lambda keyword, given: {keyword.name: bins_of(given)}),
    "name or shares": Form(_name_or_shares, _which_of_both),
}
"""The forms, by the `form` of an `Option`."""
