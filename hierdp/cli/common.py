"""What the commands share: the screen, tables on it, options given as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hierdp.noise import SimulatedNoise

NOT_PRIVATE = "[bold red]SIMULATED NOISE: this is NOT private. For experiments only; do not publish.[/]"

SECONDS = click.FloatRange(min=0, min_open=True, max=1e9)


def noise(seed: int | None) -> SimulatedNoise | None:
    """What --simulate asks for; None is exact noise."""
    from hierdp.noise import SimulatedNoise

    return None if seed is None else SimulatedNoise(seed)


def number(text: str) -> float | str:
    """A number; what is none stays text, for who takes it to say so."""
    try:
        return float(text)
    except ValueError:
        return text


def columns(text: str) -> list[str]:
    """``state, county`` as names."""
    return [name.strip() for name in text.split(",")]


def console(stderr: bool = False) -> Any:
    """Where to print."""
    from rich.console import Console

    screen = Console(stderr=stderr, highlight=False)
    if not screen.is_terminal:  # a file or a pipe has no width to keep to
        screen.width = max(screen.width, 190)
    return screen


def grid(title: str, *heads: str) -> Any:
    """An empty table with a title."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def print_frame(screen: Any, title: str, frame: Any) -> None:
    """A DataFrame as a table."""
    table = grid(title)
    for column in frame.columns:
        right = frame[column].dtype.kind in "if"
        table.add_column(str(column).replace("_", " "), justify="right" if right else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_shown(value) for value in row))
    screen.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
