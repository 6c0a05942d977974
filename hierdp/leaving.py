"""End the command line at once on Ctrl-C while it is loaded, where nothing has begun yet.

This module is loaded before everything else of hierdp, and so imports little.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` also loads `enum`, for milliseconds
import os
import sys

INTERRUPTED = "Error: interrupted; nothing is left half written"


def is_command() -> bool:
    """Whether this process is the command ``hierdp`` or ``python -m hierdp``, not a program that uses it."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return name == "hierdp" or (name == "-m" and "hierdp" in sys.orig_argv)


def if_command() -> None:
    """The same as `at_once`, for the command line only: a program that imports hierdp keeps its handlers."""
    if is_command():
        at_once()


def at_once() -> None:
    """From now on, end with a message on Ctrl-C, unless the caller of this process ignores it.

    Python would print a traceback, and drops interrupts that arrive in callbacks.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def as_usual() -> None:
    """Raise `KeyboardInterrupt` again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(128 + signal.SIGINT)
