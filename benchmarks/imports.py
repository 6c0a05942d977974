"""What importing costs a small release of a CSV file, by library.

    python -m benchmarks.imports [--runs 7]

A process releases six rows and lists the modules that it has loaded. Further processes import these in the
order of the table, so a library is charged for what it imports, unless a library above it has. The columns
are the median and the least CPU time of all runs. Modules are loaded from bytecode, as after an installation
(`PYTHONDONTWRITEBYTECODE` is unset, and the first process is not counted).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROWS = "state,county,home\nA,a,1\nA,a,1\nA,b,2\nB,c,3\nB,c,3\nB,d,4\n"
COMMAND = (
    "release group-size in.csv --levels state,county --group home --max-size 3 --epsilon 1 --out out "
    "--regions-from-data --groups-from-data"
)
OURS = {"hierdp", "models", "solvers"}
LIBRARIES = ("numpy", "pyarrow, pandas", "duckdb", "ibis", "opendp", "rich", "jinja2")
OTHERS, HIERDP = "other libraries, and Python's own", "hierdp, models, solvers"

LISTED = "import sys, json; from hierdp.cli import main; main({words!r}, standalone_mode=False)\n"
LISTED += "json.dump(list(sys.modules), open('modules', 'w'))"


def group(module: str) -> str:
    """The row of the table to which a module belongs."""
    library = module.partition(".")[0]
    if library in OURS:
        return HIERDP
    return next((row for row in LIBRARIES if library in row.split(", ")), OTHERS)


def charged(modules: list[str]) -> dict[str, float]:
    """CPU seconds of importing the modules here, by row of the table."""
    found = {}
    for row in (*LIBRARIES, OTHERS, HIERDP):
        began = time.process_time()
        for module in modules:
            if group(module) == row:
                with suppress(ImportError):  # some are made at run time, or moved
                    importlib.import_module(module)
        found[row] = time.process_time() - began
    return found


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--alone", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.alone:
        print(json.dumps(charged(json.loads(Path(given.alone).read_text()))))
        return
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["OPENBLAS_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.csv").write_text(ROWS)
        python = [sys.executable, "-P", "-c", LISTED.format(words=COMMAND.split())]
        subprocess.run(python, cwd=folder, env=kept, check=True, capture_output=True)
        listed = Path(folder, "modules")
        alone = [sys.executable, "-m", "benchmarks.imports", "--alone", str(listed)]
        runs = [json.loads(subprocess.check_output(alone, env=kept)) for _ in range(given.runs + 1)][1:]
        modules = json.loads(listed.read_text())
    print("| library | modules | CPU, ms | least, ms |\n| --- | ---: | ---: | ---: |")
    for row in (*runs[0], "all"):
        many = sum(row in (group(module), "all") for module in modules)
        taken = [1000 * (sum(run.values()) if row == "all" else run[row]) for run in runs]
        print(f"| {row} | {many} | {statistics.median(taken):.0f} | {min(taken):.0f} |")


if __name__ == "__main__":
    main()
