"""Every finding of docs/solver-findings.md again, with the installed solvers.

Each script runs in a process of its own. ``--save FILE`` writes the committed results, changed by what is
found, with the date; the benchmark `tables` fills the page from them. A finding whose solver is not installed
keeps its last result. ``--reports FOLDER`` writes, for each finding that is still there, a report to the
solver's authors, with versions, script, what is expected and what is seen. Ends with 1 if a script fails
otherwise.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hierdp.bench import findings

if TYPE_CHECKING:
    from pandas import DataFrame

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "results" / "findings.csv"
COLUMNS = ("solver", "says", "option", "workaround", "first seen", "still in", "no longer in", "date",
           "script")  # fmt: skip
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


def code(script: Path) -> str:
    """A script as a report has it: without its docstring, `FINDING` and `still`."""
    text = script.read_text(encoding="utf-8")
    lines, gone = text.splitlines(), set()
    for part in ast.parse(text).body:
        names = [getattr(part, "name", ""), *(getattr(one, "id", "") for one in getattr(part, "targets", ()))]
        if isinstance(part, ast.Expr) or {"FINDING", "still"} & {*names}:
            gone |= {*range(part.lineno, (part.end_lineno or 0) + 1)}
    kept = "\n".join(line for k, line in enumerate(lines, 1) if k not in gone)
    return re.sub(r"\n{3,}", "\n\n", kept).replace("  # fmt: skip", "").strip()


def report(script: Path, row: dict[str, str]) -> str:
    """The text of a report, with what the script prints now."""
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    title, _, about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").partition("\n")
    seen, _, right = row["says"].partition("; ")
    said = "\n".join(done.stdout.strip().splitlines()[-2:])  # after what the solver prints
    about = f"{about.strip()}\n\nOption: {row['option']}. Workaround: {row['workaround']}.".strip()
    right = right or row["workaround"]
    return findings.report(
        title.rstrip("."), about, f"{row['solver']} {row['still in']}", code(script),
        f"{right[0].upper()}{right[1:]}.", f"{seen}. The script prints\n\n```\n{said}\n```",
    )  # fmt: skip


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
    *,
    save: Annotated[Path | None, "a CSV file: benchmarks/results/findings.csv"] = None,
    reports: Annotated[Path | None, "a folder for texts of reports"] = None,
) -> Iterator[dict[str, Any]]:
    rows, failed = saved(), False
    for script in scripts():
        found = rerun(script)
        if isinstance(found, str):
            print(f"{script.name}: not run ({found})", file=sys.stderr)
            failed |= not found.startswith("ModuleNotFoundError")
        else:
            rows[found["script"]] = found
            if reports is not None and found["still in"]:
                reports.mkdir(parents=True, exist_ok=True)
                text = report(script, found)
                (reports / f"{script.stem}.md").write_text(text, encoding="utf-8")
            yield found
    if save is not None:
        with save.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[name] for name in sorted(rows))
    if failed:
        raise SystemExit(1)
