"""Run every finding with the installed solvers, and print the table of docs/solver-findings.md.

Run as ``python -m benchmarks.findings``. Each script runs in a process of its own. ``--save`` adds what is
found to the committed results, with the date; ``--into docs/solver-findings.md`` fills the page from these.
A finding whose solver is not installed keeps its last result. Ends with 1 if a script fails otherwise.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "results" / "findings.csv"
PAGE = Path("docs/solver-findings.md")
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
MARKED = re.compile(r"(<!-- findings -->\n).*?(<!-- /findings -->)", re.DOTALL)
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


def run(script: Path) -> dict[str, str] | str:
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


def lines(rows: dict[str, dict[str, Any]]) -> list[str]:
    """The table in Markdown."""
    cells = [[str(row[name]) for name in COLUMNS] for _, row in sorted(rows.items())]
    return [f"| {' | '.join(one)} |" for one in (COLUMNS, ["---"] * len(COLUMNS), *cells)]


def filled(text: str) -> str:
    """A page with the committed table in its marked place."""
    made = "\n".join(lines(saved()))
    return MARKED.sub(lambda at: f"{at[1]}\n{made}\n\n{at[2]}", text)


def main() -> None:
    """Run, print, save or fill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--save", action="store_true", help="add to benchmarks/results/findings.csv")
    parser.add_argument("--into", type=Path, help="a page to fill from the saved results; runs nothing")
    given = parser.parse_args()
    if given.into is not None:
        given.into.write_text(filled(given.into.read_text(encoding="utf-8")), encoding="utf-8")
        return
    rows, failed = saved(), False
    for script in scripts():
        found = run(script)
        if isinstance(found, str):
            print(f"{script.name}: not run ({found})", file=sys.stderr)
            failed |= not found.startswith("ModuleNotFoundError")
        else:
            rows[found["script"]] = found
    print("\n".join(lines(rows)))
    if given.save:
        with RESULTS.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[name] for name in sorted(rows))
    sys.exit(failed)


if __name__ == "__main__":
    main()
