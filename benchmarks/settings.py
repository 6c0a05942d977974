"""The table of docs/solver-settings.md: what each solver gets, made from `solvers.settings`.

Run as ``python -m benchmarks.settings``; ``--into docs/solver-settings.md`` fills the page's marked place. A
test compares the page with this table, and each solver's own values with the installed package.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.reproduce.study import table_lines
from solvers.effort import OPTIONS
from solvers.settings import DOCUMENTED, interfaces

if TYPE_CHECKING:
    from pandas import DataFrame

PAGE = Path("docs/solver-settings.md")
MARKED = re.compile(r"(<!-- settings -->\n).*?(<!-- /settings -->)", re.DOTALL)

TOLERANCES = {
    "PDLP": ("eps_optimal_absolute", "eps_optimal_relative"),
    "GLOP": ("primal_feasibility_tolerance", "dual_feasibility_tolerance"),
    "CP-SAT": ("relative_gap_limit", "absolute_gap_limit"),
}
"""The tolerances that these backends set themselves."""


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
                "--tolerance": ", ".join(
                    f"`{_alone(name)}`" for name in TOLERANCES.get(solver, OPTIONS.get(solver, {}))
                ),
                "remark": about.remark,
            }
        )
    return pd.DataFrame(rows)


def _settings(solver: str) -> str:
    """The settings of each interface; interfaces with the same settings share a line."""
    of: dict[str, list[str]] = {}
    for interface, told in interfaces(solver).items():
        of.setdefault(_listed(told), []).append(interface)
    if len(of) == 1 and list(of.values()) == [["directly"]]:
        return next(iter(of))
    return "; ".join(f"{', '.join(through)}: {told}" for told, through in of.items())


def _listed(options: dict[str, Any]) -> str:
    return ", ".join(f"`{_alone(name)}={_short(value)}`" for name, value in options.items())


def _alone(name: str) -> str:
    """A parameter inside an option, without that option."""
    return name.rpartition("_params.")[2]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def filled(text: str) -> str:
    """A page with the table in its marked place."""
    return MARKED.sub(lambda at: f"{at[1]}\n{chr(10).join(table_lines(table()))}\n\n{at[2]}", text)


def main() -> None:
    """Print the table, or fill a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--into", type=Path, help="a file to fill")
    into = parser.parse_args().into
    if into is None:
        print("\n".join(table_lines(table())))
    else:
        into.write_text(filled(into.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
