"""Code shared by the commands: the screen, tables on it, options given as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.errors import InputError

if TYPE_CHECKING:
    from hierdp.privacy.noise import Noise

NOT_PRIVATE = "SIMULATED NOISE: this is NOT private. For experiments only; do not publish."
WARNING = "bold red"
"""The style of warnings."""

SECONDS = click.FloatRange(min=0, min_open=True, max=1e9)

OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
SEED = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the noise."
)


def with_sampler(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --noise, the sampler of exact noise."""
    words = (
        "Sampler of exact noise: OpenDP's (default), or tables, as exact and hundreds of times faster, which "
        "need hierdp[noise]. The manifest names it."
    )
    return click.option("--noise", "sampler", type=click.Choice(["opendp", "tables"]), help=words)(command)


def noise(seed: int | None, sampler: str | None = None) -> Noise | None:
    """The noise that --simulate and --noise select; None for the exact noise of OpenDP."""
    if seed is not None:
        from hierdp.privacy.noise import SimulatedNoise

        if sampler is not None:
            raise click.UsageError("--noise chooses the sampler of exact noise: leave it out with --simulate")
        return SimulatedNoise(seed)
    if sampler == "tables":
        from hierdp.privacy.tabulated import TabulatedNoise

        return TabulatedNoise()
    return None


def number(text: str) -> float | str:
    """A number, or the text unchanged if it is not one; the function that receives it reports the error."""
    try:
        return float(text)
    except ValueError:
        return text


def exact_number(text: str) -> float | str:
    """A number of a budget, which must not be rounded; any other text is returned unchanged.

    Raises `InputError` if the number has more digits than a float keeps.
    """
    value = number(text)
    if isinstance(value, float) and 0 < value < math.inf and Decimal(text) != Decimal(repr(value)):
        raise InputError(f"{text} has more digits than are kept: write {value!r}")
    return value


def columns(text: str) -> list[str]:
    """The names in a comma-separated list such as ``state, county``."""
    return [name.strip() for name in text.split(",")]


def console(stderr: bool = False) -> Any:
    """A screen that prints to standard output or standard error."""
    from rich.console import Console

    class Screen(Console):
        """Prints text literally: no markup, and control characters are escaped."""

        def render_str(self, text: str, **more: Any) -> Any:
            return super().render_str(visible(text), **more)

        def print(self, *what: Any, **more: Any) -> None:
            with printing():
                super().print(*what, **more)

    screen = Screen(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not screen.is_terminal:  # a file or a pipe has no limited width
        screen.width = max(screen.width, 190)
    return screen


class Unprinted(OSError):
    """Standard output could not be written; the release itself is not affected."""


@contextmanager
def printing() -> Iterator[None]:
    """Distinguish failures of standard output from failures of other files.

    Raises `Unprinted` if standard output cannot be written, for example because the device is full. A closed
    pipe raises `BrokenPipeError`.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as refused:
        raise Unprinted(refused.errno, refused.strerror) from None


def visible(text: str) -> str:
    """A text with control characters escaped, except line feeds and tabs.

    Names come from untrusted files; control characters could move the cursor or overwrite output.

    Examples
    --------
    >>> print(visible("a\\x1b[2Kb"))
    a\\x1b[2Kb
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters of ASCII and Latin-1, line separators, direction marks, and lone surrogates."""


def named_mechanism(typed: str) -> str:
    """The name of a mechanism for what is typed; a user's own one is loaded."""
    from hierdp.mechanisms import own
    from hierdp.mechanisms.registry import MECHANISMS

    return own.load(typed).name if typed not in MECHANISMS and own.is_own(typed) else typed


def with_mechanism(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --mechanism, which loads a user's own mechanism before anything else."""

    def load(_: click.Context, _option: click.Parameter, typed: str | None) -> None:
        if typed is not None:
            from hierdp.mechanisms import own

            own.load(typed)

    words = "Your own mechanism (see docs/guide/add-mechanism.md). Its code is run."
    option = click.option(
        "--mechanism", metavar="FILE.py:CLASS", is_eager=True, expose_value=False, callback=load, help=words
    )
    return option(command)


def with_limit(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --limit, a limit on the memory and time for reading a release; it is passed on in bytes."""
    words = (
        "Most memory for reading RELEASE; a minute of checking for each GB, and at least ten. Default: what "
        "the size of its files justifies, at least 1. A release that needs more is refused before it is read."
    )
    size = click.FloatRange(min=0, min_open=True, max=1e6)

    def in_bytes(_: click.Context, __: click.Parameter, value: float | None) -> int | None:
        return None if value is None else int(value * 1e9)

    return click.option("--limit", type=size, metavar="GB", callback=in_bytes, help=words)(command)


def with_labels(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --labels, a table with the names of codes."""
    words = (
        "A table (.csv, .parquet) with the columns code and name, or two columns: names for the codes of "
        "RELEASE, in addition to those that it was released with."
    )
    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--labels", type=kind, metavar="TABLE", help=words)(command)


def grid(title: str | None, *heads: str) -> Any:
    """An empty table, with a title if there is one."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def print_frame(screen: Any, title: str, frame: Any) -> None:
    """Print a DataFrame as a table; numbers, also as text, are right-aligned."""
    table = grid(None)
    for column in frame.columns:
        right = frame[column].dtype.kind in "if" or all(map(_is_number, frame[column]))
        table.add_column(str(column).replace("_", " "), justify="right" if right else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_shown(value) for value in row))
    screen.print(title, style="italic")  # a table's own title is no wider than the table
    screen.print(table)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and not value.strip("0123456789,.e+-")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        if value != value:  # not known
            return ""
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
