"""Processes of their own for measurements: what a function returns there, its time and its memory.

A child imports what this process imports, and never a user's files first. It loads no library of its own
accord, so that its memory is that of the function.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def python(*arguments: str) -> dict[str, Any]:
    """The arguments ``args`` and ``env`` of `subprocess.run` for Python with a safe import path."""
    from solvers.process import import_path  # a child that measures its memory loads no solvers

    first, last = import_path()
    path = os.pathsep.join(first + last)
    return {"args": [sys.executable, "-P", *arguments], "env": {**os.environ, "PYTHONPATH": path}}


def apart(function: Callable[..., Any], *arguments: Any, seconds: float | None = None) -> dict[str, Any]:
    """The row that a function returns in a process of its own; or, as ``failed``, why there is none.

    The row also has the process's ``process_seconds`` by the clock, ``process_cpu`` (with that of its own
    children) and ``process_mb`` at most. Arguments are numbers, texts and paths; after `seconds`, the process
    is stopped.
    """
    task = json.dumps([function.__module__, function.__name__, arguments], default=str)
    command = python("-m", "benchmarks.child", task)
    started = time.perf_counter()
    try:
        done = subprocess.run(**command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {seconds:g} s"}
    clock = time.perf_counter() - started
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        short = "MemoryError" in done.stderr or "Unable to allocate" in done.stderr
        return {"failed": "out of memory" if short else last[:1000]}
    return {"failed": "", "process_seconds": clock, **json.loads(done.stdout.splitlines()[-1])}


def needed(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """The row of `apart`.

    Raises `RuntimeError` if there is none.
    """
    row = apart(function, *arguments)
    if failed := row.pop("failed"):
        raise RuntimeError(f"{function.__name__} {' '.join(map(str, arguments))}: {failed}")
    return row


def hierdp(*arguments: str) -> dict[str, Any]:
    """Run hierdp's command line in this process."""
    from hierdp.__main__ import run

    sys.argv = ["hierdp", *arguments]
    try:
        run()
    except SystemExit as ended:
        if ended.code:
            raise
    return {}


def peak(reset: bool = False) -> float:
    """Peak of resident memory in MB (Linux); since the last reset, which sets it to what is resident now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found.group(1)) * 1024 / 10**6 if found else 0.0


def main() -> None:
    """Run the function that the command line names, and print its row."""
    module, name, arguments = json.loads(sys.argv[1])
    row = getattr(import_module(module), name)(*arguments)
    used = os.times()
    cpu = used.user + used.system + used.children_user + used.children_system
    print(f"\n{json.dumps({'process_cpu': cpu, 'process_mb': peak(), **row})}")


if __name__ == "__main__":
    main()
