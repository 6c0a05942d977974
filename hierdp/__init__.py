"""Differentially private counts along a hierarchy, repaired by exact optimization and proved optimal.

>>> from hierdp import Hierarchy, release, verify
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hierdp.axes import Dates as Dates
    from hierdp.axes import Names as Names
    from hierdp.axes import Numbers as Numbers
    from hierdp.errors import InputError as InputError
    from hierdp.front import release as release
    from hierdp.hierarchy import Hierarchy as Hierarchy
    from hierdp.noise import SimulatedNoise as SimulatedNoise
    from hierdp.record import Release as Release
    from hierdp.verification import verify as verify

_WHERE = {
    "Dates": "hierdp.axes",
    "Hierarchy": "hierdp.hierarchy",
    "InputError": "hierdp.errors",
    "Names": "hierdp.axes",
    "Numbers": "hierdp.axes",
    "Release": "hierdp.record",
    "SimulatedNoise": "hierdp.noise",
    "release": "hierdp.front",
    "verify": "hierdp.verification",
}
__all__ = [
    "Dates",
    "Hierarchy",
    "InputError",
    "Names",
    "Numbers",
    "Release",
    "SimulatedNoise",
    "release",
    "verify",
]


def _refuse_shadows() -> None:
    """Two of our three packages have common names; say so where another's got in the way."""
    for package, ours in (("models", "certificate"), ("solvers", "capability")):
        found = importlib.util.find_spec(package)
        inside = list(found.submodule_search_locations or ()) if found is not None else []
        if any(Path(folder, f"{ours}.py").exists() for folder in inside):
            continue
        culprit = (found.origin or ", ".join(inside)) if found is not None else "nothing"
        raise ImportError(
            f"hierdp brings a package called {package!r}, but Python finds {culprit} under that name. "
            "Rename that file or folder, or take its folder off the import path (PYTHONPATH, sys.path). "
            "If hierdp's own is missing, install it again: pip install --force-reinstall hierdp"
        )


_refuse_shadows()


def __getattr__(name: str) -> Any:
    """Load on first use: importing hierdp stays quick."""
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'hierdp' has no attribute {name!r}")
