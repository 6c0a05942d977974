"""The command line's root: plain messages for every foreseen failure."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hierdp.cli.common import console

DEBUG = "HIERDP_DEBUG"
"""With this variable set, an unforeseen failure shows its traceback."""

WHOLE = "nothing is left half written"
"""Said of every end that may come before or after a folder has appeared."""

AGAIN = 0.05
"""Seconds after which an interrupt that was lost is sent once more."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Friendly(click.Group):
    """Turns every foreseen failure into one plain message and an exit status, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with stopping() as told:
            return self._invoke(ctx, told)

    def _invoke(self, ctx: click.Context, told: Sequence[int]) -> Any:
        from hierdp.errors import InputError
        from hierdp.execution import LostWorker
        from hierdp.record import NotProved, NotSolved

        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except InputError as bad:
            raise click.UsageError(str(bad)) from bad
        except (NotProved, NotSolved, LostWorker) as bug:
            raise click.ClickException(f"nothing was released: {bug}") from bug
        except MemoryError as short:
            raise click.ClickException(f"out of memory; {WHOLE}") from short
        except OSError as failure:
            if failure.errno == errno.EPIPE:  # whoever read our output has read enough
                raise
            why = "the disk is full" if failure.errno in FULL else str(failure)
            raise click.ClickException(f"{why}; {WHOLE}") from failure
        except Exception as bug:
            if told:  # DuckDB, for one, makes a RuntimeError of an interrupt
                raise KeyboardInterrupt from bug
            if os.environ.get(DEBUG):
                raise
            # Its message might quote a count, so only its kind and place are told.
            what = f"unforeseen {type(bug).__name__} at {_place(bug)}; {WHOLE}"
            more = f"Please report this. {DEBUG}=1 shows a traceback, which may quote true counts"
            raise Ended(f"{what}. {more}", os.EX_SOFTWARE) from None


class Ended(click.ClickException):
    """A message, and an exit status that says which kind of end it was."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # click has it on the class


@contextmanager
def stopping() -> Iterator[Sequence[int]]:
    """Let Ctrl-C end in a message, and SIGTERM likewise, as `kill`, `timeout` or a batch system sends it.

    Yields the signals to stop that have come.
    """
    ours = threading.current_thread() is threading.main_thread()
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    taken = [number for number in usual if ours and signal.getsignal(number) is usual[number]]
    told: list[int] = []

    def stop(number: int, _: Any) -> None:
        told.append(number)
        raise KeyboardInterrupt

    try:
        with heard():
            for number in taken:
                signal.signal(number, stop)
            yield told
    except KeyboardInterrupt as stopped:
        terminated = signal.SIGTERM in told
        word, number = ("terminated", signal.SIGTERM) if terminated else ("interrupted", signal.SIGINT)
        raise Ended(f"{word}; {WHOLE}", 128 + number) from stopped
    finally:
        for number in taken:
            signal.signal(number, usual[number])


@contextmanager
def heard() -> Iterator[None]:
    """Python drops an interrupt that comes in a callback from C, such as a compiler's: send it once more."""
    before = sys.unraisablehook
    sending: list[threading.Timer] = []

    def again(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        main = threading.main_thread().ident
        sending.append(threading.Timer(AGAIN, signal.pthread_kill, [main, signal.SIGINT]))
        sending[-1].start()

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in sending:
            timer.cancel()


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
