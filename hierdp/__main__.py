"""The command ``hierdp``, also as ``python -m hierdp``."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ADDRESSES = 2_000_000 * 1024
"""Bytes of address space (``ulimit -v``) that the libraries and a small release need."""

INTERRUPTED = "Error: interrupted; nothing is left half written"


def run() -> None:
    """Run the command line; Ctrl-C ends it with a message even before a command has started.

    If the caller ignores Ctrl-C (a background job, ``nohup``), it stays ignored.
    """
    try:
        _require_addresses()
        with _leaving_at_once():
            from hierdp.cli import main
        main()
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    finally:  # all output is written; an interrupt may end the process at once
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """End the process on Ctrl-C, where nothing has begun yet: Python drops interrupts in some callbacks."""

    def leave(*_: Any) -> None:
        os.write(2, f"{INTERRUPTED}\n".encode())
        os._exit(128 + signal.SIGINT)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _require_addresses() -> None:
    """Exit before the libraries are loaded if the limit on address space is too low for them.

    OpenBLAS waits forever for memory that it cannot get. It allocates memory per thread, so under a limit it
    gets one thread.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    if limit < ADDRESSES:
        sys.exit(
            f"Error: the limit on this process's memory (ulimit -v {limit // 1024}) is too low: hierdp needs "
            f"at least {ADDRESSES // 1024}. Nothing was read or written"
        )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    run()
