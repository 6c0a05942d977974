"""Measure time, and say where and with what: shared by the benchmarks."""

from __future__ import annotations

import math
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

DATA = Path("../shared/data")
"""A folder of data that are not part of hierdp."""

PACKAGES = ("hierdp", "numpy", "numba", "scipy", "pandas", "scikit-learn", "opendp", "inf-tda", "ruptures",
            "kmeans1d", "cvxpy", "pyomo", "highspy", "ortools", "clarabel", "osqp", "scs", "pyscipopt",
            "python-flint", "cryptography", "mbi", "hierarchicalforecast")  # fmt: skip


def data_file(folder: Path, name: str) -> Path:
    """A file of data that are not part of hierdp.

    Raises `InputError` if there is none.
    """
    from hierdp.errors import InputError

    if not (folder / name).exists():
        raise InputError(f"{folder} has no file {name}: give the folder that has it with --data")
    return folder / name


def timed(job: Callable[[], Any], turns: int = 3, enough: float = 5.0) -> tuple[float, Any]:
    """Median seconds of at most a number of turns (fewer if they take long), and the result."""
    taken: list[float] = []
    while len(taken) < turns and sum(taken) < enough:
        done = None  # only one answer in memory at a time
        started = time.perf_counter()
        done = job()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken), done


def on_cpu(job: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads of this process, and the result."""
    started = time.process_time()
    done = job()
    return time.process_time() - started, done


def in_turns(turns: int, *jobs: Callable[[], float], enough: float = math.inf) -> list[list[float]]:
    """What each job says that it took, turn by turn, after one warm-up; at least two turns.

    No turn begins after `enough` seconds.
    """
    for job in jobs:
        job()
    taken: list[list[float]] = [[] for _ in jobs]
    until = time.monotonic() + enough
    while len(taken[0]) < turns and (len(taken[0]) < 2 or time.monotonic() < until):
        for seconds, job in zip(taken, jobs, strict=True):
            seconds.append(job())
    return taken


def compiled() -> None:
    """Compile each kernel of this process from its first call: otherwise Python runs small ones."""
    from models.arithmetic import kernels

    kernels.SMALL = 0


def guarded(gigabytes: float) -> None:
    """Limit the memory of this process; beyond the limit, it raises `MemoryError`."""
    most = int(gigabytes * 10**9)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def place() -> dict[str, Any]:
    """The machine and versions with which a row was measured."""
    return {**_place(), "load": os.getloadavg()[0]}


@cache
def _place() -> dict[str, str]:
    from hierdp.bench.runs import machine

    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES if version(name))
    return {"python": platform.python_version(), "versions": versions, "machine": machine()}


def version(package: str) -> str:
    """The installed version of a package; empty if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def header() -> str:
    """The same in a line."""
    at = place()
    return f"{at['machine']}, load {at['load']:.1f}; Python {at['python']}; {at['versions']}"


def seconds_in_words(value: float) -> str:
    """Seconds in a suitable unit: 12 µs, 3.4 ms, 5.6 s."""
    if value != value:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size or unit == "µs":
            return f"{value / size:.3g} {unit}"
    return ""


def ratio_in_words(value: float) -> str:
    """A ratio with three digits, large ones in full; empty if there is none."""
    if value != value:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
