"""Whether options are of the kinds that a function's annotations say: in words, before any work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError

WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Hierarchy: "a Hierarchy",
}


def check_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Texts, numbers, lists of these and hierarchies are checked; what else there is, the function checks.

    Raises
    ------
    InputError
        If an option is of another kind.

    Examples
    --------
    >>> def counted(*, columns: Sequence[str], width: int | None = None): ...
    >>> check_options(counted, {"columns": ["a"], "width": None})
    >>> check_options(counted, {"columns": ["a"], "width": "4"})
    Traceback (most recent call last):
    hierdp.errors.InputError: width must be a whole number, got '4'
    """
    try:
        hints = get_type_hints(function)
    except NameError:  # imported for type checkers only
        return
    for name, value in options.items():
        hint = hints.get(name, Any)
        if not _fits(value, hint):
            told = repr(value) if isinstance(value, str | Real) else f"one of type {type(value).__name__}"
            raise InputError(f"{name} must be {_words(hint)}, got {told}")


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        (each,) = get_args(hint)
        if each not in WORDS:
            return True
        if isinstance(value, str):
            return each not in (int, float)  # one name is as good as a list of one
        return isinstance(value, Iterable) and all(_fits(one, each) for one in value)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint in (str, Hierarchy, type(None)):
        return isinstance(value, hint)
    return True


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(one) for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is Sequence:
        each = _words(get_args(hint)[0])
        return ("a text or " if each == WORDS[str] else "") + f"a list of {each.removeprefix('a ')}s"
    return WORDS[hint]
