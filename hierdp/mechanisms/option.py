"""The options of a mechanism, declared once: as the fields of its class, or the keywords of a function."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, cleandoc, formatannotation, signature
from numbers import Integral, Real
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, options_listed

EPSILON = "epsilon : float\n    The privacy budget ε of the release."
"""What all mechanisms have besides their own options, for their documentation."""


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


def keywords_of(declaring: Callable[..., Any]) -> Mapping[str, Keyword]:
    """The keywords of a mechanism's function or class, in order, without those that all mechanisms have.

    >>> def count(source, *, epsilon, column: Annotated[str | None, Option("Of what.")] = None): ...
    >>> keywords_of(count)["column"]
    Keyword(name='column', type=<class 'str'>, default=None, option=Option(help='Of what.', ...
    """
    return _declared(declaring)


@cache
def _declared(declaring: Callable[..., Any]) -> Mapping[str, Keyword]:
    hints = get_type_hints(declaring, include_extras=True)
    return {
        name: _keyword(name, hints.get(name, Any), parameter.default)
        for name, parameter in signature(declaring).parameters.items()
        if parameter.kind is Parameter.KEYWORD_ONLY and name not in ("source", "epsilon", "noise")
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


def documented(kind: F) -> F:
    """Write the declared options into a class's docstring, and their plain types into its signature."""
    given, hints = signature(kind), get_type_hints(kind)
    rows = [EPSILON, *map(_row, keywords_of(kind).values())]
    text = cleandoc(kind.__doc__ or "")
    kind.__doc__ = f"{text}\n\nParameters\n----------\n" + "\n".join(rows) + "\n"
    plain = [
        parameter.replace(annotation=_plain(hints.get(parameter.name, Any)))
        for parameter in given.parameters.values()
    ]
    kind.__signature__ = Signature(plain, return_annotation=given.return_annotation)  # type: ignore[attr-defined]
    return kind


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


WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Hierarchy: "a Hierarchy",
}


def check_options(mechanism: str, keywords: Mapping[str, Keyword], options: Mapping[str, Any]) -> None:
    """Check names and types of options, and that none is missing or excluded by another.

    Texts, numbers, lists of these and hierarchies are checked here; the mechanism checks everything else,
    including ranges of numbers.

    Raises `InputError` if an option does not exist, is missing, has a wrong type, or is given together with
    one that it replaces.

    >>> from hierdp.mechanisms.option import keywords_of
    >>> def counted(source, *, columns: Sequence[str], width: int | None = None): ...
    >>> check_options("counted", keywords_of(counted), {"columns": ["a"], "width": None})
    >>> check_options("counted", keywords_of(counted), {"columns": ["a"], "width": "4"})
    Traceback (most recent call last):
    hierdp.errors.InputError: width must be a whole number, got '4'
    """
    for name in options:
        if name not in keywords:
            raise InputError(f"{mechanism} takes no `{name}`; it takes {options_listed(keywords)}")
    for name, keyword in keywords.items():
        if keyword.required and name not in options:
            raise InputError(f"{mechanism} needs `{name}`")
    for name, value in options.items():
        keyword = keywords[name]
        if value is None and keyword.default is None:
            continue
        if not _fits(value, keyword.type):
            shown = repr(value) if isinstance(value, str | Real) else f"one of type {type(value).__name__}"
            raise InputError(f"`{name}` must be {_words(keyword.type)}, got {shown}")
        other = keyword.option.instead_of
        if options.get(other or "") is not None:
            raise InputError(f"`{name}` replaces `{other}`: leave out one of them")


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        (each,) = get_args(hint)
        if each not in WORDS:
            return True
        if isinstance(value, str):
            return each not in (int, float)  # one name counts as a list of one
        return isinstance(value, Iterable) and all(_fits(one, each) for one in value)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint in (str, Hierarchy):
        return isinstance(value, hint)
    return True


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        each = _words(get_args(hint)[0])
        return ("a text or " if each == WORDS[str] else "") + f"a list of {each.removeprefix('a ')}s"
    return WORDS[hint]


def read_toml(path: str | Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The entries of a plan's file.

    Raises `InputError` if there is no such file, or it is not a TOML file in UTF-8.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"), parse_float=parse_float)
    except OSError as wrong:
        raise InputError(f"the plan {str(path)!r} cannot be read: {wrong.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise InputError(f"the plan {str(path)!r} is not a TOML file in UTF-8: {wrong}") from None
