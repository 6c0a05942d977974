"""Child processes with a connection to their parent, which end when the parent ends.

They import what their parent imports, but never first from the current directory, as ``python -c`` does: a
user's `random.py`, `models.py` or `solvers/` there must not take the place of Python's or of ours.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

WATCH_SECONDS = 1.0
"""How often a process checks that its parent is alive."""

GIVEN = [os.path.realpath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
"""The folders in PYTHONPATH, when this module is loaded: the current directory may change later."""

START = """
import os, sys
serve, line, parent, last, *cores = sys.argv[1:]
if cores:
    try:
        os.sched_setaffinity(0, map(int, cores))
    except OSError:
        pass
from solvers.process import adopted
adopted(serve, line, parent, last)
"""
"""What a process runs. Cores are set first: libraries start one thread for each core when they are loaded,
and no later limit changes that. On systems that forbid it, there is no limit."""


def started(serve: str, cores: Iterable[int] = ()) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start an interpreter that runs a function on one end of a connection; returns it and the other end.

    The process is neither forked (threads do not survive that) nor spawned by `multiprocessing` (which runs
    the caller's script again). It is in a process group of its own, so that Ctrl-C reaches the caller only.

    - serve: ``module:function``, which takes a `Connection`.
    - cores: the cores for the process and its children; default: those that this process may use.
    """
    ours, theirs = socket.socketpair()
    path, last = import_path()
    arguments = (theirs.fileno(), os.getpid(), os.pathsep.join(last), *cores)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START, serve, *map(str, arguments)],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        process_group=0,
    )
    theirs.close()
    return process, Connection(ours.detach())


def import_path() -> tuple[list[str], list[str]]:
    """This process's import path for a child, and the part of it that comes last there.

    That is the current directory: a user's own modules are found in it, but none takes the place of Python's,
    a library's or ours. If it is in PYTHONPATH, or contains these packages (a checkout), it keeps its place.
    """
    here = None
    with suppress(OSError):  # the current directory was removed
        here = os.getcwd()
    kept = set(GIVEN)
    kept.add(str(Path(__file__).resolve().parents[1]))
    entries = list(dict.fromkeys(found for entry in sys.path if (found := entry or here)))
    last = [entry for entry in entries if entry == here and os.path.realpath(here) not in kept]
    return [entry for entry in entries if entry not in last], last


def ended(process: subprocess.Popen[bytes]) -> str:
    """Wait until the process ends; returns its signal or its exit status."""
    code = process.wait()
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def adopted(serve: str, descriptor: str, parent: str, last: str) -> None:
    """In the child: serve, and end as soon as the parent has ended, even in the middle of work."""

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(WATCH_SECONDS)
        os.killpg(0, signal.SIGKILL)  # this process, which is the first of its group, and what it runs

    threading.Thread(target=watch, daemon=True).start()
    module, _, function = serve.partition(":")
    run = getattr(import_module(module), function)
    sys.path += last.split(os.pathsep) if last else []
    run(Connection(int(descriptor)))
