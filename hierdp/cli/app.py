"""The root of the command line; it turns every expected failure into a plain message."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from hierdp.cli.commands import COMMANDS
from hierdp.cli.common import Unprinted, console, visible

DEBUG = "HIERDP_DEBUG"
"""Environment variable; if set, an unexpected failure shows its traceback."""

NOTHING_WRITTEN = "nothing is left half written"
"""Ends every message about a failure, which may occur before or after the output folder appears."""

RESEND_SECONDS = 0.05
"""Seconds after which a lost interrupt is sent again."""

CLICKS = (click.ClickException, click.Abort, click.exceptions.Exit)

DECIMAL_COMMA = re.compile(r"(?=.*\b(?:number|float|integer)\b).*'([+-]?\d+),(\d+)'", re.DOTALL)
"""A message about a number that was written with a decimal comma."""

NO_MEMORY = ("cannot allocate memory", "failed to map segment", "can't start new thread")
"""Parts of the messages of the system's loader and of Python for lack of memory."""

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ErrorReportingGroup(click.Group):
    """A command group that ends every expected failure with one message and an exit status."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """Parse the options; --version and --help print here."""
        try:
            return super().make_context(*given, **more)
        except OSError as refused:
            if refused.errno == errno.EPIPE:
                raise
            drop_output()
            raise in_words(Unprinted(refused.errno, refused.strerror)) or refused from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments, for messages."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            with stopping(), plain_warnings():
                return super().invoke(ctx)
        except click.ClickException as error:
            escape(error)
            raise
        except CLICKS:
            raise
        except Exception as failure:
            if getattr(failure, "errno", None) == errno.EPIPE:  # the reader of the output closed it
                raise
            if drop_output() and isinstance(failure, OSError):
                failure = Unprinted(failure.errno, failure.strerror)
            known = in_words(failure)
            if known is None and os.environ.get(DEBUG):
                raise
            ended = known or unforeseen(failure)
            ended.message += stays_charged(failure)  # type: ignore[misc]  # Final in click's types only
            escape(ended)
            raise ended from None


def escape(error: click.ClickException) -> None:
    """Escape control characters in the message of an error, and complete what click says."""
    error.message = visible(error.message) + hint_at(error)  # type: ignore[misc]  # Final in click's types only


def stays_charged(failure: BaseException) -> str:
    """What stays charged to an account after a failure: hierdp's own note on it."""
    from hierdp.privacy.account import STAYS_CHARGED

    notes = (note for note in getattr(failure, "__notes__", ()) if STAYS_CHARGED in note)
    return "".join(f"; {note}" for note in notes)


def hint_at(error: click.ClickException) -> str:
    """What to do about an error that click reports, such as which other options are missing."""
    if comma := DECIMAL_COMMA.search(error.message):
        return f" Write a decimal point: {comma[1]}.{comma[2]}"
    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        given = {word.partition("=")[0] for word in context.meta.get(ARGUMENTS, ())} | set(error.param.opts)
        required = [one.opts for one in context.command.get_params(context) if one.required]
        others = ", ".join(opts[-1] for opts in required if not given & set(opts) and opts[-1][0] == "-")
        return f"Also missing: {others}." if others else ""
    unknown = isinstance(context.command, click.Group) and "No such command" in error.message
    if unknown and not getattr(error, "possibilities", None):
        return f" There are {', '.join(context.command.list_commands(context))}."
    return ""


ARGUMENTS = "hierdp.arguments"
"""Where a context has all arguments of the command line."""


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print hierdp's own warnings on one line, without the source code that raised them."""
    usual: Any = warnings.showwarning

    def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
        if category.__module__.startswith("models."):
            click.echo(f"Warning: {visible(str(message))}", err=True)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


@contextmanager
def complete(folder: Path) -> Iterator[None]:
    """Report a failure that follows the writing of a release: it exists, and its budget is spent."""
    try:
        yield
        sys.stdout.flush()
    except (*CLICKS, BrokenPipeError):
        raise
    except Exception as failure:
        why = failure.strerror if isinstance(failure, OSError) else type(failure).__name__
        drop_output()
        message = f"the release in {folder} is complete; only its summary could not be printed ({why})"
        raise Ended(message, os.EX_IOERR) from failure


def drop_output() -> bool:
    """Discard buffered output that cannot be written; Python would fail to write it again at exit.

    Returns: whether output was discarded.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


def in_words(failure: Exception) -> click.ClickException | None:
    """The message for an expected failure; None for an unexpected one."""
    if isinstance(failure, MemoryError) or _no_memory(failure):
        return click.ClickException(f"out of memory; {NOTHING_WRITTEN}")
    if isinstance(failure, Unprinted):
        return Ended(
            f"standard output cannot be written ({failure.strerror}); {NOTHING_WRITTEN}", os.EX_IOERR
        )
    if isinstance(failure, OSError):
        why = "the disk is full" if failure.errno in DISK_FULL else str(failure)
        return click.ClickException(f"{why}; {NOTHING_WRITTEN}")
    from hierdp.errors import InputError
    from hierdp.execution import LostWorker
    from hierdp.record.step import NotProved, NotSolved

    if isinstance(failure, InputError):
        return click.UsageError(failure.spelled(_flags_of(failure)))
    if isinstance(failure, NotProved | NotSolved | LostWorker):
        return click.ClickException(f"nothing was released: {failure}")
    return None


ELSEWHERE = {"region": "levels"}
"""Options of Python whose values another flag gives on the command line."""


def _flags_of(failure: Exception) -> Callable[[str, str | None], str]:
    """Spells an option as the command that failed does: its flag in place of its name in Python."""
    frames = (frame for frame, _ in traceback.walk_tb(failure.__traceback__))
    contexts = [frame.f_locals.get("ctx") for frame in frames]
    inner = next((one for one in reversed(contexts) if isinstance(one, click.Context)), None)
    params = {} if inner is None else {one.name: one for one in inner.command.get_params(inner)}

    def spelled(name: str, value: str | None) -> str:
        option = params.get(name) or params.get(ELSEWHERE.get(name, ""))
        if not isinstance(option, click.Option):
            return name if value is None else f"{name}={value}"
        flag = max(option.opts, key=len)
        return flag if option.is_flag or not value else f"{flag} {value}"

    return spelled


def _no_memory(failure: Exception) -> bool:
    """Whether a library could not be loaded, or a thread not started, for lack of memory.

    A library may say so in the failure that it handled.
    """
    handled: BaseException | None = failure
    while isinstance(handled, ImportError | RuntimeError | OSError):
        if any(part in str(handled).lower() for part in NO_MEMORY):
            return True
        handled = handled.__context__
    return False


def unforeseen(failure: Exception) -> click.ClickException:
    """The message for an unexpected failure: only its type and place, because its text may quote a count."""
    what = f"unforeseen {type(failure).__name__} at {_place(failure)}; {NOTHING_WRITTEN}"
    more = f"Please report this. {DEBUG}=1 shows a traceback, which may quote true counts"
    return Ended(f"{what}. {more}", os.EX_SOFTWARE)


class Ended(click.ClickException):
    """A message with its own exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.exit_code = status  # type: ignore[misc]  # a class variable in click's types


@contextmanager
def stopping() -> Iterator[None]:
    """End with a message on Ctrl-C, and on SIGTERM as sent by `kill`, `timeout` or a batch system.

    This includes interrupts that a library turns into its own error, as DuckDB and extensions being loaded
    do. A signal that the caller ignores stays ignored.
    """
    ours = threading.current_thread() is threading.main_thread()
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    taken = [number for number in usual if ours and signal.getsignal(number) is usual[number]]
    received: list[int] = []

    def stop(number: int, _: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    try:
        with resent_interrupts(received):
            for number in taken:
                signal.signal(number, stop)
            yield
    except CLICKS:
        raise
    except BaseException as end:
        if not received and not isinstance(end, KeyboardInterrupt):
            raise
        terminated = signal.SIGTERM in received
        word, number = ("terminated", signal.SIGTERM) if terminated else ("interrupted", signal.SIGINT)
        raise Ended(f"{word}; {NOTHING_WRITTEN}{stays_charged(end)}", 128 + number) from end
    finally:
        for number in taken:
            signal.signal(number, usual[number])


@contextmanager
def resent_interrupts(received: list[int]) -> Iterator[None]:
    """Send an interrupt again if Python dropped it because it arrived in a callback from C.

    Compilers run such callbacks. `received` contains the numbers of the signals received so far.
    """
    before = sys.unraisablehook
    sending: list[threading.Timer] = []

    def again(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        main = threading.main_thread().ident
        number = received[-1] if received else signal.SIGINT
        sending.append(threading.Timer(RESEND_SECONDS, signal.pthread_kill, [main, number]))
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


@click.group(
    cls=ErrorReportingGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="hierdp")
def main() -> None:
    """Differentially private counts along a hierarchy, repaired by exact optimization and proved optimal.

    Start with `hierdp demo`. For your own tables, see `hierdp release --help` and `hierdp mechanisms`.
    """
    from hierdp.execution import progress

    progress.show_on(console(stderr=True))
