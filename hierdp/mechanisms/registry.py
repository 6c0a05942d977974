"""The registry of mechanisms, one line each."""

from __future__ import annotations

from importlib import import_module
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError, unknown_name
from hierdp.mechanisms.description import MechanismInfo, MethodInfo
from hierdp.mechanisms.option import keywords_of

if TYPE_CHECKING:
    from hierdp.mechanisms.mechanism import Mechanism

PACKAGES = (
    "hierdp.mechanisms.group_size",
    "hierdp.mechanisms.count_of_counts",
    "hierdp.mechanisms.top_down",
    "hierdp.mechanisms.clustering",
    "hierdp.mechanisms.range_query",
    "hierdp.mechanisms.tabulation",
)
"""Their packages; each has a description, ``MECHANISM``, and loads its code on first use."""

_DESCRIBED: tuple[MechanismInfo, ...] = tuple(import_module(package).MECHANISM for package in PACKAGES)

MECHANISMS = {mechanism.name: mechanism for mechanism in _DESCRIBED}
"""The mechanisms, by their names for `hierdp release`."""


REPAIR: MechanismInfo = import_module("hierdp.mechanisms.repair").MECHANISM
"""Repairs of other people's counts: made by `hierdp repair`, and checked like releases."""


def released_by(name: object) -> MechanismInfo | None:
    """The mechanism, or `REPAIR`, whose releases have a name in their manifests; None if there is none."""
    known = (*MECHANISMS.values(), REPAIR)
    return next((mechanism for mechanism in known if mechanism.released(str(name))), None)


def info_of(kind: type[Mechanism[Any]]) -> MechanismInfo:
    """The description of a class of mechanisms: that of the registry, or one made from the class itself."""
    known = MECHANISMS.get(kind.NAME)
    if known is not None and known.kind is kind:
        return known
    releases = cleandoc(kind.__doc__ or "").partition("\n")[0].rstrip(".")
    methods = tuple(MethodInfo(name, "", kind.__module__) for name in kind.METHODS)
    guarantee = "ε-DP, or (ε, δ)-DP by zCDP" if "delta" in keywords_of(kind) else "ε-DP"
    about = releases, guarantee, kind.RELATION or "", methods
    return MechanismInfo(kind.NAME, kind.__module__, *about, value=kind, help=cleandoc(kind.__doc__ or ""))


def parts_of(mechanism: Mechanism[Any]) -> tuple[MechanismInfo, float, dict[str, Any]]:
    """What a value is made of: its description, its ε, and its other options.

    Raises `InputError` if it is no mechanism.
    """
    from hierdp.mechanisms.mechanism import Mechanism

    if not isinstance(mechanism, Mechanism):
        raise InputError(unknown_name(mechanism, MECHANISMS, "no mechanism"))
    info = info_of(type(mechanism))
    return info, mechanism.epsilon, {name: getattr(mechanism, name) for name in info.keywords}
