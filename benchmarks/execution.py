"""The gain by more workers: the same work here, by one process, by two; and the cost of sending it.

Seconds are medians of runs in turns. CPU seconds, of this process and of all that it started, hardly depend
on other programs on the machine. No number of workers reduces this process's own CPU seconds, so the elapsed
time divided by these bounds the possible gain.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from hierdp import execution
from hierdp.counts.hierarchy import Hierarchy
from hierdp.data.census import census
from hierdp.data.trips import published
from hierdp.execution import engine
from hierdp.mechanisms.group_size import group_size, measure
from hierdp.mechanisms.group_size import post_processing as group_size_fits
from hierdp.mechanisms.solver_options import SolverOptions
from hierdp.mechanisms.top_down import top_down
from hierdp.privacy.noise import SimulatedNoise
from hierdp.record.step import Step, solve_each
from hierdp.reproduce.fioretto2019 import QUICK, experiments
from hierdp.tables import GroupSizes
from hierdp.verification.verify import verify
from models import Chebyshev, FixedSum, Isotonic

WORKERS = (None, 1, 2)
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """CPU seconds of a process and all its living descendants."""
    used: dict[int, float] = {}
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            used[int(entry.name)] = (int(fields[11]) + int(fields[12])) / TICK
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used.get(pid, 0.0) for pid in family)


def jobs(quick: bool) -> dict[str, Callable[[], Any]]:
    """All work that is spread over workers, at sizes at which this may pay off."""
    data = census(0, leaves=152, max_size=100) if quick else census(0)
    noisy, _ = measure(data, 1.0, SimulatedNoise(0))
    places = data.hierarchy
    names = [str(i) for i in range(len(noisy))]

    def monotone() -> int:
        cuts = execution.chunks(len(noisy), group_size_fits.CELLS_A_TASK // noisy.shape[1])
        tasks = [(names[cut], noisy[cut], data.groups) for cut in cuts]
        return sum(1 for _ in solve_each(group_size_fits.monotone, tasks, Step.solve, "monotone"))

    towns = Hierarchy.flat("town", [f"t{i}" for i in range(4)])
    rng = np.random.default_rng(0)
    small = GroupSizes(towns, towns.tree.sum_up(rng.integers(0, 30, (4, 4))))
    trips = published("binary sparse")
    random = [
        (f"{kind.__name__} {i}", kind.random(np.random.default_rng(i), 300))
        for kind in (Isotonic, Chebyshev, FixedSum)
        for i in range(4 if quick else 8)
    ]
    runs = {"census": census(0, leaves=152, max_size=100, groups=2_352_608)}
    return {
        f"monotone sizes of {len(places.frame()):,} regions × {noisy.shape[1]:,} (M_c^dp)": monotone,
        "a whole M_c^dp release of them": lambda: group_size(data, 1.0, SimulatedNoise(1)),
        "M_dp^OP's tables by CP-SAT": lambda: group_size(
            small, 4.0, SimulatedNoise(1), "M_dp^OP", SolverOptions(window=4 if quick else 8)
        ),
        "TDA_inf by HiGHS, 16,000 trips": lambda: top_down(trips, 1.0, 1e-8, SimulatedNoise(1), "TDA_inf"),
        f"verify, {len(random)} instances, highs and cp-sat": lambda: verify(
            random, ["highs", "cp-sat"], 10.0
        ),
        "reproduce: errors of every method, 9 runs": lambda: experiments.accuracy(
            runs, replace(QUICK, runs=3), 0
        ),
    }


def curve(
    job: Callable[[], Any], engines: dict[Any, Any], times: int
) -> dict[Any, tuple[float, float, float]]:
    """Median seconds, CPU seconds of this process and of all, by number of workers; each warmed once."""
    found: dict[Any, list[tuple[float, float, float]]] = {workers: [] for workers in engines}
    for turn in range(times + 1):
        for workers, one in engines.items():
            before = engine._engine.set(one)
            clock, own, whole = time.perf_counter(), time.process_time(), cpu_seconds(os.getpid())
            job()
            row = (time.perf_counter() - clock, time.process_time() - own, cpu_seconds(os.getpid()) - whole)
            engine._engine.reset(before)
            if turn:
                found[workers].append(row)
    return {
        workers: tuple(statistics.median(column) for column in zip(*rows, strict=True))
        for workers, rows in found.items()
    }


def run(*, quick: Annotated[bool, "smaller work, once"] = False) -> Iterator[dict[str, Any]]:
    engines = {workers: None if workers is None else engine._made(workers, None) for workers in WORKERS}
    for name, job in jobs(quick).items():
        found = curve(job, engines, 1 if quick else 5)
        here = found[None]
        for workers, (seconds, own, whole) in found.items():
            yield {"work": name, "workers": workers or "this process", "seconds": seconds,
                   "times as fast": here[0] / seconds, "CPU here": own, "CPU in all": whole,
                   "× CPU": whole / max(here[2], 0.01)}  # fmt: skip
    for one in engines.values():
        if one is not None:
            one.close()
