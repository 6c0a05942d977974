"""The first run on a machine compiles what the command needs, once, with a message."""

import os
import shlex
import subprocess
import sys

import pytest

from hierdp.execution import progress

HOMES = "state,county,home,n\nA,a,1,2\nA,a,2,0\nA,a2,4,1\nB,b,3,5\nB,b,5,5\nB,c,6,3\n"
TRIPS = "o_state,o,d,n\nA,a,x,30\nA,a,y,2\nB,b,x,10\n"
AGES = "age\n" + "".join(f"{7 * k % 60}\n" for k in range(90))

RUN = """
import atexit, sys
from numba.core.event import Listener, register
from models.arithmetic import kernels
if sys.argv.pop(1) == "large":
    kernels.SMALL = -1  # as if every array were too large for Python's loops
from hierdp.cli import main

class Kernels(Listener):
    def on_start(self, event):
        kernel = event.data["dispatcher"].py_func
        if kernel.__module__.partition(".")[0] in ("models", "solvers", "hierdp"):
            found.append(f"{kernel.__module__}.{kernel.__qualname__}")
    def on_end(self, event):
        pass

found = []
register("numba:compile", Kernels())
atexit.register(lambda: print("\\nkernels", *found))
main(prog_name="hierdp")
"""

HOUSES = "homes.csv --levels state,county --group home --entities n --regions-from-data --groups-from-data"
COMMANDS = {
    "group-size": (
        f"{HOUSES} --max-size 20",
        40,  # the exchange of units over a tree has 17
        {"solvers.fast.exchange", "solvers.fast.hierarchy", "solvers.fast.hierarchy_relaxed"}
        | {
            "solvers.fast.isotonic",
            "models.arithmetic.pools",
            "models.check.reader",
        },
    ),
    "count-of-counts": (
        f"{HOUSES} --max-size 200",
        15,
        {"solvers.fast.isotonic", "models.arithmetic.pools", "solvers.fast.matching"}
        | {"models.check.reader"},
    ),
    "top-down": (
        "trips.csv --axis origin=o_state,o --axis to=d --regions-from-data --count n --delta 1e-8",
        12,
        {"solvers.fast.chebyshev", "models.chebyshev", "models.segments"},
    ),
    "range-query": (
        "ages.csv --numbers age=0:120",
        8,
        {"solvers.fast.inference", "models.constrained_inference", "hierdp.analysis.consistent"},
    ),
    "clustering": (
        "ages.csv --numbers age=0:120",
        20,  # the noisy counts decide which exact searches run
        {"solvers.fast.exact_paths", "solvers.fast.clustering", "solvers.fast.segment_paths"}
        | {"models.arithmetic.run_costs", "models.witnesses.sorted_runs"}
        | {"models.witnesses.ordered_runs", "models.clustering", "hierdp.mechanisms.clustering.ahp_rules"},
    ),
}
"""Arguments, the most kernels that may be compiled, and the modules that they come from. The limits are
slightly above what runs compiled when this was written (34, 10, 8, 4 and 10); the calls depend on noise."""

SHARED = {
    "models.arithmetic.exact",
    "models.arithmetic.distance",
    "models.programs.layout",
    "models.runs",
    "models.arithmetic.places",
    "models.check.checker",
}
"""Arithmetic, layout and the checker, which all models use."""


def ran(command, size):
    """Standard error, and the compiled kernels."""
    arguments = [sys.executable, "-c", RUN, size, *shlex.split(command)]
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": "kernels"},
    )
    assert done.returncode == 0, done.stderr
    return done.stderr, done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", list(COMMANDS)[::2])
def test_a_first_run_compiles_what_it_needs_and_says_so_once(tmp_path, monkeypatch, mechanism):
    monkeypatch.chdir(tmp_path)
    for name, text in {"homes.csv": HOMES, "trips.csv": TRIPS, "ages.csv": AGES}.items():
        (tmp_path / name).write_text(text)
    arguments, most, modules = COMMANDS[mechanism]
    command = f"release {mechanism} {arguments} --epsilon 1 --simulate 1 --out out --overwrite"
    said, kernels = ran(command, "large")
    assert said.splitlines().count(progress.COMPILING) == 1
    assert 0 < len(kernels) <= most
    assert {kernel.rpartition(".")[0] for kernel in kernels} <= modules | SHARED
    said, kernels = ran(command, "large")  # loads the kernels that the first run compiled
    assert (progress.COMPILING in said, kernels) == (False, [])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [name for name in COMMANDS if name != "clustering"])
def test_a_small_table_compiles_nothing_or_a_little(tmp_path, monkeypatch, mechanism):
    monkeypatch.chdir(tmp_path)
    for name, text in {"homes.csv": HOMES, "trips.csv": TRIPS, "ages.csv": AGES}.items():
        (tmp_path / name).write_text(text)
    _, kernels = ran(
        f"release {mechanism} {COMMANDS[mechanism][0]} --epsilon 1 --simulate 1 --out out", "small"
    )
    assert len(kernels) <= 4  # sums that machine code reorders, or kernels slow on a busy machine
