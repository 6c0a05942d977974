"""Every finding of docs/solver-findings.md again, with the installed solvers.

Each script runs in a process of its own. ``--save`` adds what is found to the committed results, with the
date, from which the benchmark `tables` fills the page. A finding whose solver is not installed keeps its last
result. Ends with 1 if a script fails otherwise.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "results" / "findings.csv"
COLUMNS = (
    "solver",
    "says",
    "option",
    "workaround",
    "first seen",
    "still in",
    "no longer in",
    "date",
    "script",
)
RUN = """
import json, runpy, sys
found = runpy.run_path(sys.argv[1])
print(json.dumps([found["FINDING"], bool(found["still"]())]))
"""
SECONDS = 120
"""After which a script that hangs is stopped."""


def scripts() -> list[Path]:
    """The findings' scripts."""
    return sorted(path for path in FOLDER.glob("*.py") if not path.name.startswith("_"))


def rerun(script: Path) -> dict[str, str] | str:
    """A row of the table; or why there is none."""
    line = [sys.executable, "-c", RUN, script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    about, still = json.loads(lines[-1])
    version = metadata.version(about.pop("package"))
    seen = {"still in": version, "no longer in": ""} if still else {"still in": "", "no longer in": version}
    return {**about, **seen, "date": date.today().isoformat(), "script": f"benchmarks/findings/{script.name}"}


def saved() -> dict[str, dict[str, Any]]:
    """The committed results, by script."""
    if not RESULTS.is_file():
        return {}
    with RESULTS.open(encoding="utf-8", newline="") as table:
        return {row["script"]: row for row in csv.DictReader(table)}


def table() -> DataFrame:
    """The committed results, a row for each script."""
    import pandas as pd

    return pd.read_csv(RESULTS, dtype=str, keep_default_na=False).sort_values("script")[[*COLUMNS]]


def run(
    *, save: Annotated[bool, f"into {RESULTS.name}, with the committed results"] = False
) -> Iterator[dict[str, Any]]:
    rows, failed = saved(), False
    for script in scripts():
        found = rerun(script)
        if isinstance(found, str):
            print(f"{script.name}: not run ({found})", file=sys.stderr)
            failed |= not found.startswith("ModuleNotFoundError")
        else:
            rows[found["script"]] = found
            yield found
    if save:
        with RESULTS.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[name] for name in sorted(rows))
    if failed:
        raise SystemExit(1)
