"""hierdp analyze."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from hierdp.cli.common import console, grid

if TYPE_CHECKING:
    from hierdp.analysis.methods import Row
    from hierdp.analysis.queries import Queries


@click.command()
@click.argument("bins", metavar="BINS")
@click.option("--epsilon", required=True, type=float, metavar="NUMBER", help="Privacy budget ε, such as 1.")
@click.option("--dimensions", type=click.IntRange(1, 16), default=1, show_default=True,
              help="BINS along each dimension; families are then b along each.")  # fmt: skip
@click.option("--workload", metavar="NAME",
              help="ranges (default; boxes in several dimensions), prefixes, or K-way: all prefixes of all "
                   "marginals of K dimensions. Each query is as likely as the others.")  # fmt: skip
@click.option("--range", "ranges", multiple=True, metavar="LOW:HIGH",
              help="In place of --workload: the bins LOW … HIGH − 1, from 0; repeat it. An end left out is "
                   "that of the bins. In two dimensions LOW:HIGH,LOW:HIGH.")  # fmt: skip
@click.option("--file", type=click.File("r"), help="A file with a range a line; - for standard input.")
@click.option("--branching", metavar="NUMBERS", help="Branching factors to try, such as 2,8,16. Default: all "
              "up to 1,024; for given ranges some of them.")  # fmt: skip
@click.option("--matrix-mechanism", is_flag=True, help="The matrix mechanism's strategies, too, and the "
              "bound that no strategy is under; up to 512 bins, slow beyond 64.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder to make: report.html, methods.csv, and "
              "branching.csv and .png, variance against the branching factor.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace that folder if it exists.")
def analyze(bins: str, epsilon: float, dimensions: int, matrix_mechanism: bool, out: Path | None,
            overwrite: bool, **given: Any) -> None:  # fmt: skip
    """What to expect of each method for ranges over BINS bins, before you touch your data.

    Prints the expected variance of an answer (the mean over the workload, of unbiased answers with Laplace
    noise, ε-DP), exactly, not by simulation; the best branching factor and budget; and when asking the bins
    alone, the flat method, is best. BINS is a number, 2^20 for short.

    \b
    hierdp analyze 2^20 --epsilon 1
    hierdp analyze 100 --dimensions 2 --epsilon 0.5 --workload 1-way --out places
    hierdp analyze 120 --epsilon 1 --range 18:65 --range :18 --range 65:
    """
    from hierdp.analysis import methods, report
    from hierdp.execution import folder, progress
    from hierdp.privacy.budget import check_epsilon

    check_epsilon(epsilon)
    if out is not None:
        folder.check(out, overwrite)
    queries = _queries(_number(bins), dimensions, given)
    tried = _branchings(given["branching"])
    progress.watch_compiler()
    started = time.monotonic()
    rows = methods.analyse(queries, epsilon, tried)
    if matrix_mechanism:
        rows += methods.matrix_rows(queries, epsilon, steps=300)
    screen = console()
    size = f"{queries.bins:,} bins" + (f" in each of {dimensions} dimensions" if dimensions > 1 else "")
    title = f"{size}, ε = {epsilon:g}, {queries}"
    _print_rows(screen, title, queries, rows)
    advice = report.advice(queries, rows)
    for line in advice:
        screen.print(line, soft_wrap=True)  # a command is copied whole
    if out is not None:
        report.write(
            out, title, queries, rows, report.by_branching(queries, epsilon, tried), advice, overwrite
        )
        screen.print(f"Written to {out}/.")
    screen.print(f"{time.monotonic() - started:.1f} s", style="dim")


def _number(text: str) -> int:
    """``1048576`` or ``2^20``."""
    base, power, exponent = text.replace(",", "").partition("^")
    try:
        found = int(base) ** int(exponent) if power and int(exponent) <= 64 else int(base)
        if power and int(exponent) > 64:
            raise ValueError
    except ValueError:
        raise click.UsageError(f"BINS is {text!r}: give a number of bins, such as 1000 or 2^20") from None
    return found


def _queries(bins: int, dimensions: int, given: dict[str, Any]) -> Queries:
    from hierdp.analysis.given import Given
    from hierdp.analysis.queries import Regular
    from hierdp.analysis.shape import level_sizes

    level_sizes(bins, 2)  # refuses 0 bins
    lines: TextIO | tuple[()] = given["file"] or ()
    asked = [*given["ranges"], *(line.strip() for line in lines if line.strip())]
    if given["file"] is not None and not asked:
        raise click.UsageError(f"--file {given['file'].name}: there is no range in it")
    if asked:
        if given["workload"]:
            raise click.UsageError("give --workload, or ranges, not both")
        boxes = [_box(text, bins, dimensions) for text in asked]
        return Given(
            bins, [[low for low, _ in box] for box in boxes], [[high for _, high in box] for box in boxes]
        )
    workload = given["workload"] or "ranges"
    if workload == "ranges":
        return Regular.ranges(bins, dimensions)
    ways = "1" if workload == "prefixes" and dimensions == 1 else workload.removesuffix("-way")
    if not ways.isdecimal():
        hint = f"; for {dimensions} dimensions say {dimensions}-way" if workload == "prefixes" else ""
        raise click.UsageError(
            f"--workload {workload}: there are ranges, prefixes, and 1-way, 2-way, …{hint}"
        )
    return Regular.marginals(bins, dimensions, int(ways))


def _box(text: str, bins: int, dimensions: int) -> list[tuple[int, int]]:
    parts = text.split(",")
    if len(parts) != dimensions:
        raise click.UsageError(f"range {text!r}: give LOW:HIGH for each of {dimensions} dimension(s)")
    found = []
    for part in parts:
        low, colon, high = (piece.strip() for piece in part.partition(":"))
        try:
            if not colon:
                raise ValueError
            ends = int(low or 0), int(high or bins)
        except ValueError:
            raise click.UsageError(f"range {text!r}: write LOW:HIGH in numbers of bins") from None
        if not 0 <= ends[0] < ends[1] <= bins:
            raise click.UsageError(
                f"range {text!r}: it must hold a bin, and be within 0 … {bins - 1}; HIGH is not in it"
            )
        found.append(ends)
    return found


def _branchings(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise click.UsageError(f"--branching {text}: give whole numbers, such as 2,8,16") from None


def _print_rows(screen: Any, title: str, queries: Queries, rows: list[Row]) -> None:
    from hierdp.analysis.report import options, ordered

    flat = rows[0].variance
    table = grid(f"Expected variance of an answer: {title}", "method")
    for head in ("b", "levels"):
        table.add_column(head, justify="right")
    table.add_column("budget")
    for head in ("variance", "standard error", "× flat"):
        table.add_column(head, justify="right")
    table.add_column("release range-query", overflow="fold")
    notes = screen.width >= 150  # else they would take the room of the options
    if notes:
        table.add_column("", overflow="fold")
    for row in ordered(rows):
        numbers = [_shown(value) for value in (row.variance, row.variance**0.5, row.variance / flat)]
        shape = (row.method, str(row.branching or ""), str(row.levels or ""), row.budget)
        table.add_row(*shape, *numbers, options(queries, row), *([row.note] if notes else []))
    screen.print(table)


def _shown(value: float) -> str:
    if value != value:
        return "-"
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"
