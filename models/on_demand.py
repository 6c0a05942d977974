"""The public names of a package, loaded on first use, so that importing the package is fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def on_demand(
    package: str, names: Iterable[str], where: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package with these public names and ``__version__``.

    Hide them from type checkers, which would accept any name of the package.

    - where: the modules of the names that are loaded on first use.
    """

    def load(name: str) -> Any:
        if name == "__version__":
            return _version(package)
        if name in where:
            return getattr(importlib.import_module(where[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted([*names, "__version__"])

    return load, listed


def _version(package: str) -> str:
    from importlib import metadata  # it loads Python's parser of e-mails

    try:
        return metadata.version("hierdp")
    except metadata.PackageNotFoundError:
        raise AttributeError(
            f"{package} has no version, since hierdp is not installed: pip install hierdp"
        ) from None
