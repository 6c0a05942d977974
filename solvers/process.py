"""Processes of our own: started with a line to talk over, and gone when who started them is gone."""

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
"""How often a process looks whether the one that started it still lives."""

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
"""What a process runs. Cores come first: libraries start their threads as they are loaded, as many as there
are cores then, and no later limit reaches these. Where the system forbids it, it is done without."""


def started(serve: str, cores: Iterable[int] = ()) -> tuple[subprocess.Popen[bytes], Connection]:
    """A fresh interpreter that runs a function on its end of a line, and our end.

    Neither forked (threads do not survive that) nor spawned by `multiprocessing` (which runs the caller's
    script once more). In a process group of its own, so that Ctrl-C is left to the caller.

    Parameters
    ----------
    serve : str
        ``module:function``, which takes a `Connection`.
    cores : ints, optional
        What it, and all that it starts, is to keep to; default: what this process may use.
    """
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    told = (theirs.fileno(), os.getpid(), *cores)
    process = subprocess.Popen(
        [sys.executable, "-c", START, serve, *map(str, told)],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        process_group=0,
    )
    theirs.close()
    return process, Connection(ours.detach())


def ended(process: subprocess.Popen[bytes]) -> str:
    """Wait for its end, and say what it died of."""
    code = process.wait()
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def adopted(serve: str, descriptor: str, parent: str) -> None:
    """In the process: serve, but do not outlive the parent, whatever is being worked on."""

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    module, _, function = serve.partition(":")
    getattr(import_module(module), function)(Connection(int(descriptor)))
