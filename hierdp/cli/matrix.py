"""A verification as a matrix: one row per backend, one column per model; cells show verdict and time."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from hierdp.cli.common import grid

if TYPE_CHECKING:
    from hierdp.verification.table import Row, Verification

COLOURS = {
    "wrong": "bold red",
    "failed": "red",
    "inaccurate": "yellow",
    "stopped": "yellow",
    "unsupported": "dim",
}
LEGEND = (
    "solved: found the proved optimum. bound: solved the relaxation, which bounds the optimum. inaccurate: "
    "has no answer that it calls optimal. stopped: reached the time limit. –: not supported. 3/4: holds "
    "for 3 of 4 models. Times: the median for building and solving a model."
)


def print_matrix(screen: Any, found: Verification) -> None:
    """Print the matrix, its legend and its outcome."""
    from rich.text import Text

    cells: dict[tuple[str, str], list[Row]] = {}
    for row in found.rows:
        cells.setdefault((row.backend, row.model), []).append(row)
    kinds = list(dict.fromkeys(model for _, model in cells))
    counts = [len({row.step for row in found.rows if row.model == kind}) for kind in kinds]
    heads = [kind if many == 1 else f"{many} {kind}" for kind, many in zip(kinds, counts, strict=True)]
    table = grid("Every model, every backend", "backend", *heads)
    for backend in dict.fromkeys(backend for backend, _ in cells):
        line = [cell(cells.get((backend, kind), [])) for kind in kinds]
        table.add_row(backend, *(Text(text, style=COLOURS.get(worst, "")) for text, worst in line))
    screen.print(table)
    screen.print(LEGEND)
    print_outcome(screen, found)


def print_outcome(screen: Any, found: Verification) -> None:
    """Print failures and wrong answers with their reasons, and how many models were solved."""
    for bad in found.rows:
        if bad.verdict in ("wrong", "failed"):
            why = f"{bad.status}: {bad.message}" if bad.message else bad.status
            screen.print(f"{bad.verdict}: {bad.backend} on {bad.model}, {bad.step}: {why}", style="red")
    if found.note:
        screen.print(f"Solved again: {found.note}.")
    screen.print(repr(found))


def cell(rows: list[Row]) -> tuple[str, str]:
    """The text of a cell (worst verdict, how many models share it, median time), and that verdict."""
    from hierdp.verification.judge import SEVERITY

    tried = [row for row in rows if row.verdict != "unsupported"]
    if not tried:
        return "–", "unsupported"
    worst = max((row.verdict for row in tried), key=SEVERITY.index)
    shared = sum(row.verdict == worst for row in tried)
    part = "" if shared == len(tried) else f" {shared}/{len(tried)}"
    return f"{worst}{part} {seconds(median(row.build_seconds + row.solve_seconds for row in tried))}", worst


def seconds(value: float) -> str:
    """A time with about three characters and its unit.

    Examples
    --------
    >>> seconds(0.0000041), seconds(0.0123), seconds(2.04)
    ('4.1 µs', '12 ms', '2 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.2g} {unit}" if value < 100 * size else f"{value / size:.0f} {unit}"
    return f"{value / 1e-6:.2g} µs" if value < 1e-4 else f"{value / 1e-6:.0f} µs"
