"""Options for distributing work and for continuing an interrupted run: --workers, --scheduler, --resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

RELEASES = "True counts stay on this machine, which also draws the noise."
"""What help says about the data that workers receive in a release."""


def spread(command: Callable[..., Any], there: str = RELEASES) -> Callable[..., Any]:
    """Add --workers and --scheduler to a command; see `hierdp.execution`.

    `there` says in the help what the scheduler's workers do.
    """

    @click.option("--workers", type=click.IntRange(min=1), metavar="NUMBER",
                  help="Number of processes that share the work. Default: this process only. The result does "
                       "not depend on it.")  # fmt: skip
    @click.option("--scheduler", metavar="ADDRESS",
                  help="Use the workers of this Dask scheduler instead, such as tcp://host:8786. "
                       f"{there}")  # fmt: skip
    @wraps(command)
    def spread_out(workers: int | None, scheduler: str | None, **given: Any) -> Any:
        from hierdp.execution import using

        with using(workers, scheduler):
            return command(**given)

    return spread_out


@contextmanager
def resuming(folder: Path, *about: Any) -> Iterator[None]:
    """`hierdp.execution.resume.keeping`, with a message if the run is interrupted."""
    from hierdp.execution.resume import keeping

    with report_interruption(folder), keeping(folder, *about):
        yield


@contextmanager
def report_interruption(folder: Path) -> Iterator[None]:
    """Say where finished runs are, if a run is interrupted.

    The same command continues after an interruption, but not after an error that it would meet again.
    """
    from hierdp.errors import InputError
    from hierdp.record.step import NotProved, NotSolved

    try:
        yield
    except BaseException as end:
        if folder.is_dir():
            again = isinstance(end, InputError | NotProved | NotSolved | click.ClickException)
            more = "a corrected command may use them" if again else "the same command continues from there"
            click.echo(f"Finished runs are saved in {folder}; {more}.", err=True)
        raise
