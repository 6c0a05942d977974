"""What each command imports, in what time, and which modules ask for it.

Small commands are run on tables of a few rows. A row is a library that a command imports: the CPU time of its
own modules (without those of other libraries that they import), the least of all runs, and the last modules
of the chain that first imported it. Modules are loaded from bytecode, as after an installation
(`PYTHONDONTWRITEBYTECODE` is unset, and the first run is not counted). With ``--module``, only the chain of
one module, such as ``pandas.core.frame``, is shown, from its beginning.

With ``--fresh``, a row is a command: its CPU seconds in a fresh environment, where nothing is compiled; with
Python's bytecode, but without compiled kernels; and warm, with both.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

from benchmarks.child import hierdp, needed, python

ROWS = """state,county,home,age,work
A,a,1,3,a
A,a,1,3,b
A,b,2,1,c
B,c,3,2,c
B,c,3,2,d
B,d,4,5,a
"""
PUBLIC = "--levels state,county --group home --regions-from-data --groups-from-data"
AXES = "--axis home=county --axis work=work"
COMMANDS = {
    "help": "--help",
    "group-size": f"release group-size in.csv {PUBLIC} --max-size 3 --epsilon 1 --out sizes",
    "count-of-counts": f"release count-of-counts in.csv {PUBLIC} --epsilon 1 --out counts",
    "top-down": f"release top-down in.csv {AXES} --epsilon 1 --delta 1e-6 --regions-from-data --out trips",
    "range-query": "release range-query in.csv --numbers age=0:7 --epsilon 1 --out ranges",
    "clustering": "release clustering in.csv --numbers age=0:7 --epsilon 1 --out clusters",
    "tabulation": (
        "release tabulation in.csv --levels state,county --attribute age --epsilon 1 --delta 1e-6 "
        "--regions-from-data --attribute-from-data --query total --query age --out tables"
    ),
    "check": "check sizes",
    "query": "query ranges --range 1:3",
    "export": "export sizes --to csv --out copy.csv",
}  # fmt: skip
OURS = ("hierdp", "models", "solvers")
PYTHON = "Python's own"

WATCHED = """
import json, sys, time

class Watch:
    "Keeps who asks for each module, and the CPU time between finding it and having run it."
    def __init__(self):
        self.chain, self.spent, self.stack, self.began = {}, {}, [], time.process_time()
    def find_spec(self, name, path=None, target=None):
        frame, asking = sys._getframe(1), []
        while frame:
            module = frame.f_globals.get("__name__", "")
            if not module.startswith("importlib") and asking[-1:] != [module]:
                asking.append(module)
            frame = frame.f_back
        self.chain.setdefault(name, asking[-2::-1])
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)):
                if spec.loader and hasattr(spec.loader, "exec_module"):
                    self.timed(name, spec.loader)
                return spec
    def timed(self, name, loader):
        run, create = loader.exec_module, loader.create_module
        def measured(job, module):
            self.switch(name)
            try:
                return job(module)
            finally:
                self.stack.pop()
                self.lap(name)
        try:
            loader.exec_module = lambda module: measured(run, module)
            loader.create_module = lambda spec: measured(create, spec)
        except AttributeError:  # built in
            pass
    def lap(self, name):
        now = time.process_time()
        if name:
            self.spent[name] = self.spent.get(name, 0) + now - self.began
        self.began = now
    def switch(self, name):
        self.lap(self.stack[-1] if self.stack else "")
        self.stack.append(name)

watch = Watch()
sys.meta_path.insert(0, watch)
code = 0
try:
    from hierdp.__main__ import run
    sys.argv = ["hierdp", *WORDS]
    run()
except SystemExit as ended:
    code = ended.code
all = time.process_time()
with open("imported.json", "w") as file:
    json.dump({"chain": watch.chain, "spent": watch.spent, "all": all}, file)
sys.exit(code)
"""


def arguments(words: str) -> list[str]:
    """A command's, which may be repeated."""
    return [*words.split(), *["--overwrite"] * ("--out" in words)]


def first_runs(words: str, folder: Path, runs: int) -> dict[str, float]:
    """Median CPU seconds of a command: first, without kernels, and warm."""
    compiled = {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "NUMBA_CACHE_DIR": f"{folder}/kernels"}
    states = {"first": ("bytecode", "kernels"), "without kernels": ("kernels",), "warm": ()}
    taken: dict[str, list[float]] = {state: [] for state in states}
    with chdir(folder), mock.patch.dict(os.environ, compiled):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(runs):
            for state, missing in states.items():
                for one in missing:
                    shutil.rmtree(folder / one, ignore_errors=True)
                taken[state].append(needed(hierdp, *arguments(words))["process_cpu"])
    return {f"{state}, CPU s": statistics.median(seconds) for state, seconds in taken.items()}


def imported(words: str, folder: Path) -> dict[str, Any]:
    """The chain and the CPU seconds of each module that a command imports, and the CPU seconds of all."""
    command = python("-c", f"WORDS = {arguments(words)!r}\n{WATCHED}")
    command["env"].pop("PYTHONDONTWRITEBYTECODE", None)
    command["env"]["OPENBLAS_NUM_THREADS"] = "1"
    done = subprocess.run(**command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"hierdp {words}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads((folder / "imported.json").read_text())
    return found


def library(module: str) -> str:
    """The row of a module."""
    name = module.partition(".")[0]
    return PYTHON if name in sys.stdlib_module_names else "hierdp" if name in OURS else name


def rows_of(command: str, runs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row for each library, the costliest first."""
    modules: dict[str, list[str]] = {}
    for module in runs[0]["spent"]:
        modules.setdefault(library(module), []).append(module)
    costs = {
        name: min(1000 * sum(one["spent"].get(module, 0.0) for module in own) for one in runs)
        for name, own in modules.items()
    }
    for name in sorted(costs, key=lambda name: -costs[name]):
        first = name if name in runs[0]["chain"] else modules[name][0]
        chain = "" if name in ("hierdp", PYTHON) else shown(runs[0]["chain"].get(first, []))
        yield {"command": command, "library": name, "modules": len(modules[name]), "CPU ms": costs[name],
               "imported by": chain}  # fmt: skip
    everything = min(1000 * one["all"] for one in runs)
    yield {"command": command, "library": "the whole command", "modules": len(runs[0]["spent"]),
           "CPU ms": everything, "imported by": ""}  # fmt: skip


def shown(chain: list[str], last: int | None = 4) -> str:
    """The last modules that ask, without Python's and the command line's own."""
    asking = [module for module in chain if library(module) not in ("__main__", "click", PYTHON)]
    asking = [one for one, before in zip(asking, ["", *asking], strict=False) if one != before]
    kept = asking if last is None else asking[-last:]
    return "… → " * (len(kept) < len(asking)) + " → ".join(kept)


def run(
    *,
    runs: Annotated[int, "of each command; the least is shown"] = 3,
    commands: Annotated[tuple[str, ...], f"of: {', '.join(COMMANDS)}"] = tuple(COMMANDS),
    module: Annotated[str, "show the chain of this module alone"] = "",
    least: Annotated[float, "CPU milliseconds that a library takes to be listed"] = 5.0,
    fresh: Annotated[bool, "time first runs instead; medians"] = False,
) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.csv").write_text(ROWS)
        for needs, release in (("check", "group-size"), ("export", "group-size"), ("query", "range-query")):
            if needs in commands and release not in commands:
                imported(COMMANDS[release], folder)
        for command in COMMANDS:
            if command not in commands:
                continue
            if fresh:
                yield {"command": command, **first_runs(COMMANDS[command], folder, runs)}
                continue
            found = [imported(COMMANDS[command], folder) for _ in range(runs + 1)][1:]
            if module:
                chain = found[0]["chain"].get(module)
                yield {
                    "command": command,
                    "imported by": "not imported" if chain is None else shown(chain, None),
                }
                continue
            yield from (row for row in rows_of(command, found) if row["CPU ms"] >= least)
