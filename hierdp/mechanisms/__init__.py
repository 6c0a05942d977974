"""The mechanisms, one package each, and the registry that lists them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hierdp.mechanisms.description import MechanismInfo as MechanismInfo
from hierdp.mechanisms.description import MethodInfo as MethodInfo
from hierdp.mechanisms.registry import MECHANISMS as MECHANISMS

if TYPE_CHECKING:
    from hierdp.mechanisms.mechanism import Mechanism as Mechanism


def __getattr__(name: str) -> Any:
    """`Mechanism`, loaded on first use: listings of mechanisms do without it."""
    if name != "Mechanism":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("hierdp.mechanisms.mechanism").Mechanism
