"""Where to work, and how to go on where a run was stopped: --workers, --scheduler, --resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

RELEASES = "True counts stay here, and so does the drawing of noise."
"""What a scheduler's workers get of a release."""


def spread(command: Callable[..., Any], there: str = RELEASES) -> Callable[..., Any]:
    """Options of a command whose work may be done by others; see `hierdp.execution`. What is done `there`?"""

    @click.option("--workers", type=click.IntRange(min=1), metavar="NUMBER",
                  help="Processes that share the work; default: this one alone. The result is the same, "
                       "byte for byte.")  # fmt: skip
    @click.option("--scheduler", metavar="ADDRESS",
                  help="In their place, the workers of this Dask scheduler, such as tcp://host:8786. "
                       f"{there}")  # fmt: skip
    @wraps(command)
    def spread_out(workers: int | None, scheduler: str | None, **given: Any) -> Any:
        from hierdp.execution import using

        with using(workers, scheduler):
            return command(**given)

    return spread_out


@contextmanager
def resuming(folder: Path, *about: Any) -> Iterator[None]:
    """`hierdp.execution.resume.keeping`, and a word to whoever stopped it."""
    from hierdp.execution.resume import keeping

    try:
        with keeping(folder, *about):
            yield
    except BaseException:
        if folder.is_dir():
            click.echo(f"Finished runs are kept in {folder}: the same command goes on from there.", err=True)
        raise
