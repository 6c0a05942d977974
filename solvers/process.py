"""Child processes with a connection to their parent, which end when the parent ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from importlib import import_module
from multiprocessing.connection import Connection

WATCH_SECONDS = 1.0
"""How often a process checks that its parent is alive."""

START = """
import os, sys
serve, line, parent, *cores = sys.argv[1:]
if cores:
    try:
        os.sched_setaffinity(0, map(int, cores))
    except OSError:
        pass
from solvers.process import adopted
adopted(serve, line, parent)
"""
"""What a process runs. Cores are set first: libraries start one thread for each core when they are loaded,
and no later limit changes that. On systems that forbid it, there is no limit."""


def started(serve: str, cores: Iterable[int] = ()) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start an interpreter that runs a function on one end of a connection; returns it and the other end.

    The process is neither forked (threads do not survive that) nor spawned by `multiprocessing` (which runs
    the caller's script again). It is in a process group of its own, so that Ctrl-C reaches the caller only.

    Parameters
    ----------
    serve : str
        ``module:function``, which takes a `Connection`.
    cores : ints, optional
        The cores for the process and its children; default: those that this process may use.
    """
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    arguments = (theirs.fileno(), os.getpid(), *cores)
    process = subprocess.Popen(
        [sys.executable, "-c", START, serve, *map(str, arguments)],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        process_group=0,
    )
    theirs.close()
    return process, Connection(ours.detach())


def ended(process: subprocess.Popen[bytes]) -> str:
    """Wait until the process ends; returns its signal or its exit status."""
    code = process.wait()
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def adopted(serve: str, descriptor: str, parent: str) -> None:
    """In the child: serve, and end as soon as the parent has ended, even in the middle of work."""

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    module, _, function = serve.partition(":")
    getattr(import_module(module), function)(Connection(int(descriptor)))
