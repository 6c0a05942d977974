"""Measure time and memory in a separate process; shared by the peers and the curves of cost."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.child import python
from hierdp.bench.runs import machine

PACKAGES = ("hierdp", "numpy", "numba", "scipy", "scikit-learn", "opendp", "ruptures", "kmeans1d", "cvxpy",
            "pyomo", "highspy", "ortools", "clarabel", "osqp", "scs", "pyscipopt")  # fmt: skip


def timed(job: Callable[[], Any], turns: int = 3, enough: float = 5.0) -> tuple[float, Any]:
    """Median seconds of at most a number of turns (fewer if they take long), and the result."""
    taken: list[float] = []
    while len(taken) < turns and sum(taken) < enough:
        done = None  # only one answer in memory at a time
        started = time.perf_counter()
        done = job()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken), done


def peak(reset: bool = False) -> float:
    """Peak of resident memory in MB (Linux); since the last reset, which sets it to what is resident now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


def guarded(gigabytes: float) -> None:
    """Limit the memory of this process; beyond the limit, it raises `MemoryError`."""
    most = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def apart(module: str, arguments: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run ``python -m module --alone …`` and read the JSON of its last line; or say how it failed."""
    command = python("-m", module, "--alone", *arguments)
    try:
        done = subprocess.run(**command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {seconds:g} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        short = "MemoryError" in done.stderr or "Unable to allocate" in done.stderr
        return {"failed": "out of memory" if short else last[:120]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"failed": "", **found}


def place() -> dict[str, Any]:
    """The machine and versions with which a row was measured."""
    return {
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {version}" for name, version in _versions()),
        "machine": machine(),
        "load": os.getloadavg()[0],
    }


def _versions() -> list[tuple[str, str]]:
    found = []
    for name in PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append((name, "not installed"))
    return found


class Clock:
    """A limit on elapsed time."""

    def __init__(self, minutes: float | None) -> None:
        self._until = None if minutes is None else time.monotonic() + 60 * minutes

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self._until is not None and time.monotonic() > self._until


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
