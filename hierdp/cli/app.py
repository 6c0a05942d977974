"""The command line's root: plain messages for every foreseen failure."""

from __future__ import annotations

import errno
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import console

DEBUG = "HIERDP_DEBUG"
"""With this variable set, an unforeseen failure shows its traceback."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Friendly(click.Group):
    """Turns every foreseen failure into one plain message and an exit status, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from hierdp.errors import InputError
        from hierdp.execution import LostWorker
        from hierdp.record import NotProved, NotSolved

        try:
            with terminating():
                return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except InputError as bad:
            raise click.UsageError(str(bad)) from bad
        except (NotProved, NotSolved, LostWorker) as bug:
            raise click.ClickException(f"nothing was released: {bug}") from bug
        except MemoryError as short:
            raise click.ClickException("out of memory; nothing was written") from short
        except OSError as failure:
            if failure.errno == errno.EPIPE:  # whoever read our output has read enough
                raise
            why = "the disk is full" if failure.errno in FULL else str(failure)
            raise click.ClickException(f"{why}; nothing was released") from failure
        except KeyboardInterrupt as stop:
            raise Ended("interrupted; nothing was written", 128 + signal.SIGINT) from stop
        except Exception as bug:
            if os.environ.get(DEBUG):
                raise
            # Its message might quote a count, so only its kind and place are told.
            what = f"unforeseen {type(bug).__name__} at {_place(bug)}; nothing was released"
            more = f"Please report this. {DEBUG}=1 shows a traceback, which may quote true counts"
            raise Ended(f"{what}. {more}", os.EX_SOFTWARE) from None


class Ended(click.ClickException):
    """A message, and an exit status that says which kind of end it was."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click has it on the class


@contextmanager
def terminating() -> Iterator[None]:
    """Take SIGTERM, as `kill`, `timeout` or a batch system sends it, for Ctrl-C: what is unfinished goes."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    told = []

    def stop(number: int, _: Any) -> None:
        told.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        if not told:
            raise
        raise Ended("terminated; nothing was written", 128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _place(bug: BaseException) -> str:
    frames = [
        frame for frame in traceback.extract_tb(bug.__traceback__) if "site-packages" not in frame.filename
    ]
    return f"{'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].lineno}" if frames else "start"


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hierdp")
def main() -> None:
    """Differentially private counts along a hierarchy, repaired by exact optimization and proved optimal.

    Start with `hierdp demo`; then see `hierdp release group-size --help` and `hierdp release top-down --help`
    for your own tables.
    """
    from hierdp import progress

    progress.show_on(console(stderr=True))
