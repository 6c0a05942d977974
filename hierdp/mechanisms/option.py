"""The options of a mechanism, declared once, as the keywords of its ``from_table``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, cleandoc, formatannotation, signature
from textwrap import fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

COMMON = {
    "source": ("path, DataFrame, Arrow or Ibis table", "See `hierdp.tables.read`."),
    "epsilon": ("float", "The privacy budget ε of the release."),
    "noise": (
        "Noise, optional",
        "Exact noise by default. `SimulatedNoise(seed)` is for experiments: the release is not private.",
    ),
}
"""The keywords of every ``from_table``, with their types and descriptions."""


@dataclass(frozen=True)
class Option:
    """The meaning of a keyword, in its annotation: ``Annotated[type, Option("…")]``.

    Python, the command line, and the help of both use it.

    Attributes
    ----------
    help : str
        A description. It names other keywords in backticks, which the command line replaces by their flags.
        It does not repeat the default, which is in the signature.
    metavar : str, optional
        The placeholder of the value in the command line's help, such as ``COLUMN``.
    flag : str, optional
        The flag of the command line. Default: ``--`` and the keyword, with dashes.
    value : object, optional
        The keyword's value if the flag is given, for a flag without a value; `help` describes the effect. A
        bool needs none: its flag gives the opposite of the default.
    least, above, most : float, optional
        Bounds of a number: at least, above, at most.
    form : str, optional
        A key of `hierdp.cli.forms.FORMS`, for a value that is neither a text, nor a number, nor a list of
        these.
    instead_of : str, optional
        Another keyword, which cannot be given together with this one.
    """

    help: str
    metavar: str | None = None
    flag: str | None = None
    value: Any = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    form: str | None = None
    instead_of: str | None = None


@dataclass(frozen=True)
class Keyword:
    """A keyword of a function, with its declaration.

    - type: without ``Annotated`` and None.
    - default: ``Parameter.empty`` if the keyword is required.
    """

    name: str
    type: Any
    default: Any
    option: Option

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is Parameter.empty

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def set_by_flag(self) -> Any:
        """The keyword's value by a flag without a value; None if the flag takes a value."""
        return not self.default if self.type is bool else self.option.value

    @property
    def choices(self) -> tuple[str, ...]:
        """All values, if they are listed."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def each(self) -> Any:
        """The type of the elements of a list; None for any other type."""
        return get_args(self.type)[0] if get_origin(self.type) is Sequence else None


@cache
def keywords_of(from_table: Callable[..., Any]) -> Mapping[str, Keyword]:
    """The keywords of a mechanism's function, in order, without those that all mechanisms have.

    >>> def count(source, *, epsilon, column: Annotated[str | None, Option("Of what.")] = None): ...
    >>> keywords_of(count)["column"]
    Keyword(name='column', type=<class 'str'>, default=None, option=Option(help='Of what.', ...
    """
    hints = get_type_hints(from_table, include_extras=True)
    return {
        name: _keyword(name, hints.get(name, Any), parameter.default)
        for name, parameter in signature(from_table).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY and name not in COMMON
    }


def _keyword(name: str, hint: Any, default: Any) -> Keyword:
    option = Option("")
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        option = next((one for one in more if isinstance(one, Option)), option)
    return Keyword(name, _without_none(hint), default, option)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(one for one in get_args(hint) if one is not NoneType)]  # noqa: UP007
    return hint


F = TypeVar("F", bound=Callable[..., Any])


def documented(from_table: F) -> F:
    """Write the declared options into a function's docstring, and their plain types into its signature."""
    given = signature(from_table)
    hints = get_type_hints(from_table)
    rows = [f"{name} : {kind}\n    {words}" for name, (kind, words) in COMMON.items()]
    rows += [_row(keyword) for keyword in keywords_of(from_table).values()]
    text = cleandoc(from_table.__doc__ or "")
    from_table.__doc__ = f"{text}\n\nParameters\n----------\n" + "\n".join(rows) + "\n"
    plain = [
        one if one.name in COMMON else one.replace(annotation=_plain(hints.get(one.name, Any)))
        for one in given.parameters.values()
    ]
    from_table.__signature__ = Signature(plain, return_annotation=given.return_annotation)  # type: ignore[attr-defined]
    return from_table


def _row(keyword: Keyword) -> str:
    kind = _plain(keyword.type)
    if keyword.choices:
        kind = " or ".join(f'"{choice}"' for choice in keyword.choices)
    if not keyword.required:
        kind += ", optional" if keyword.default is None else f", default {keyword.default!r}"
    words, value = keyword.option.help, keyword.set_by_flag
    words = words if value is None else f"With {value!r}: {words}"
    lines = fill(words, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f"{keyword.name} : {kind}\n{lines}"


def _plain(hint: Any) -> str:
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", formatannotation(hint))
