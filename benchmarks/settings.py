"""What each solver gets, and its own values, made from `solvers.settings`: a table of the benchmark `tables`.

A test compares each solver's own values with the installed package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solvers.settings import DOCUMENTED, interfaces

if TYPE_CHECKING:
    from pandas import DataFrame


def table() -> DataFrame:
    """One row for each solver."""
    import pandas as pd

    rows = []
    for solver, about in DOCUMENTED.items():
        rows.append(
            {
                "solver": f"[{about.name}]({about.source})",
                "settings": _settings(solver),
                "its own": _listed(about.own),
                "remark": about.remark,
            }
        )
    return pd.DataFrame(rows)


def _settings(solver: str) -> str:
    """The settings of each interface; interfaces with the same settings share a line."""
    of: dict[str, list[str]] = {}
    for interface, value in interfaces(solver).items():
        of.setdefault(_listed(value), []).append(interface)
    if len(of) == 1 and list(of.values()) == [["directly"]]:
        return next(iter(of))
    return "; ".join(f"{', '.join(through)}: {value}" for value, through in of.items())


def _listed(options: dict[str, Any]) -> str:
    return ", ".join(f"`{_alone(name)}={_short(value)}`" for name, value in options.items())


def _alone(name: str) -> str:
    """A parameter inside an option, without that option."""
    return name.rpartition("_params.")[2]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
