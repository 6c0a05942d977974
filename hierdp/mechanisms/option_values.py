"""Check that the values of options fit their declaration, before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, options_listed
from hierdp.mechanisms.option import Keyword

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
