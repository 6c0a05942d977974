"""The registry of mechanisms, one line each."""

from __future__ import annotations

from importlib import import_module

from hierdp.mechanisms.description import MechanismInfo

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
