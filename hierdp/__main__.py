"""The command ``hierdp``, also as ``python -m hierdp``."""

from __future__ import annotations

import signal
import sys


def run() -> None:
    """Run the command line; Ctrl-C ends it in a plain message also before a command has begun.

    Where the caller ignores Ctrl-C (a job in the background, ``nohup``), it stays ignored to the end.
    """
    try:
        from hierdp.cli import main

        main()
    except KeyboardInterrupt:
        print("Error: interrupted; nothing is left half written", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    finally:  # all output is written; an interrupt may end the process at once
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    run()
