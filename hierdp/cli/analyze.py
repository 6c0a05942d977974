"""hierdp analyze."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from hierdp.cli.common import OVERWRITE, console, grid

if TYPE_CHECKING:
    from hierdp.analysis.methods import Row
    from hierdp.analysis.queries import Queries


@click.command()
@click.argument("bins", metavar="BINS")
@click.option("--epsilon", type=float, metavar="NUMBER", help="Privacy budget ε, such as 1.")
@click.option("--standard-error", type=float, metavar="NUMBER",
              help="In place of --epsilon: find the least ε with this standard error.")  # fmt: skip
@click.option("--at", metavar="METHOD", help="With --standard-error: of which method. Default: the best one.")
@click.option("--dimensions", type=click.IntRange(1, 16), default=1, show_default=True,
              help="Number of dimensions, with BINS bins along each.")  # fmt: skip
@click.option("--workload", metavar="NAME",
              help="The queries, all equally likely: ranges (default; boxes in several dimensions), "
                   "prefixes, or K-way, all prefixes of all marginals of K dimensions.")  # fmt: skip
@click.option("--range", "ranges", multiple=True, metavar="LOW:HIGH",
              help="Instead of --workload: a query for the bins LOW … HIGH − 1, numbered from 0. Repeat it "
                   "for more queries. An omitted end is the first or the last bin. In two dimensions, write "
                   "LOW:HIGH,LOW:HIGH.")  # fmt: skip
@click.option("--file", type=click.File("r"),
              help="A file with one range per line; - for standard input.")  # fmt: skip
@click.option("--branching", metavar="NUMBERS", help="Branching factors to try, such as 2,8,16. Default: all "
              "up to 1,024; for given ranges a selection.")  # fmt: skip
@click.option("--matrix-mechanism", is_flag=True, help="Include strategies of the matrix mechanism, and a "
              "lower bound for all strategies. At most 512 bins; slow above 64.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Create this folder with report.html, "
              "methods.csv, and the variance by branching factor (branching.csv and .png).")  # fmt: skip
@OVERWRITE
def analyze(bins: str, epsilon: float | None, standard_error: float | None, at: str | None, dimensions: int,
            matrix_mechanism: bool, out: Path | None, overwrite: bool, **given: Any) -> None:  # fmt: skip
    """Compare the expected error of all methods for range queries over BINS bins, without data.

    For each method, prints the exact expected variance of an answer (the mean over the workload, for unbiased
    answers with Laplace noise under ε-DP), with the best branching factor and budget. Also says up to how
    many bins the flat method, which measures the bins only, is best. BINS is a number such as 1000 or 2^20.

    \b
    hierdp analyze 2^20 --epsilon 1
    hierdp analyze 100 --dimensions 2 --epsilon 0.5 --workload 1-way --out places
    hierdp analyze 120 --epsilon 1 --range 18:65 --range :18 --range 65:
    hierdp analyze 1000 --standard-error 5

    `hierdp plan range-query` is the same command.
    """
    from hierdp.analysis import methods, report
    from hierdp.execution import folder, progress
    from hierdp.privacy.budget import check_epsilon

    if (epsilon is None) == (standard_error is None):
        raise click.UsageError("give --epsilon, or the --standard-error that is wanted, and not both")
    if at is not None and standard_error is None:
        raise click.UsageError("--at says of which method a standard error is wanted; give --standard-error")
    if epsilon is not None:
        check_epsilon(epsilon)
    if out is not None:
        folder.check(out, overwrite)
    queries = _queries(_number(bins), dimensions, given)
    tried = _branchings(given["branching"])
    progress.watch_compiler()
    started = time.monotonic()
    rows = methods.analyse(queries, epsilon or 1.0, tried)
    if epsilon is None:
        assert standard_error is not None
        epsilon = _epsilon_for(standard_error, at, queries, rows)
        rows = methods.scaled(rows, epsilon)
    if matrix_mechanism:
        rows += methods.matrix_rows(queries, epsilon, steps=300)
    screen = console()
    size = f"{queries.bins:,} bins" + (f" in each of {dimensions} dimensions" if dimensions > 1 else "")
    title = f"{size}, ε = {epsilon:g}, {queries}"
    _print_rows(screen, title, queries, rows)
    advice = report.advice(queries, rows)
    for line in advice:
        screen.print(line, soft_wrap=True)  # no line breaks, so that a command can be copied
    if out is not None:
        report.write(
            out, title, queries, rows, report.by_branching(queries, epsilon, tried), advice, overwrite
        )
        screen.print(f"Written to {out}/.")
    screen.print(f"{time.monotonic() - started:.1f} s", style="dim")


def _epsilon_for(wanted: float, at: str | None, queries: Queries, rows: list[Row]) -> float:
    """The least ε with the wanted standard error, from the analysis for ε = 1."""
    from hierdp.analysis.report import frame
    from hierdp.mechanisms.expected import Expected
    from hierdp.mechanisms.planning import epsilon_for

    least = Expected("", frame(rows, queries), at=("method",)).error(at)
    return epsilon_for(wanted, lambda epsilon: least / epsilon)


def _number(text: str) -> int:
    """``1048576`` or ``2^20``."""
    base, power, exponent = text.replace(",", "").partition("^")
    try:
        found = int(base) ** int(exponent) if power and int(exponent) <= 64 else int(base)
        if power and int(exponent) > 64:
            raise ValueError
    except ValueError:
        raise click.UsageError(f"BINS must be a number of bins, such as 1000 or 2^20; got {text!r}") from None
    return found


def _queries(bins: int, dimensions: int, given: dict[str, Any]) -> Queries:
    from hierdp.analysis.explicit_workload import ExplicitWorkload
    from hierdp.analysis.queries import Regular
    from hierdp.analysis.workload import level_sizes

    level_sizes(bins, 2)  # refuses 0 bins
    lines: TextIO | tuple[()] = given["file"] or ()
    texts = [*given["ranges"], *(line.strip() for line in lines if line.strip())]
    if given["file"] is not None and not texts:
        raise click.UsageError(f"--file {given['file'].name} contains no range; write one LOW:HIGH per line")
    if texts:
        if given["workload"]:
            raise click.UsageError("give either --workload or ranges, not both")
        boxes = [_box(text, bins, dimensions) for text in texts]
        return ExplicitWorkload(
            bins, [[low for low, _ in box] for box in boxes], [[high for _, high in box] for box in boxes]
        )
    workload = given["workload"] or "ranges"
    if workload == "ranges":
        return Regular.ranges(bins, dimensions)
    ways = "1" if workload == "prefixes" and dimensions == 1 else workload.removesuffix("-way")
    if not ways.isdecimal():
        hint = f"; for {dimensions} dimensions use {dimensions}-way" if workload == "prefixes" else ""
        raise click.UsageError(
            f"--workload {workload}: choose ranges, prefixes, or K-way (1-way, 2-way, …){hint}"
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
            raise click.UsageError(f"range {text!r}: write LOW:HIGH, two numbers of bins") from None
        if not 0 <= ends[0] < ends[1] <= bins:
            raise click.UsageError(
                f"range {text!r} must contain a bin and lie within 0 … {bins - 1}; HIGH is excluded"
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
    notes = screen.width >= 150  # on narrow screens, leave the space to the options
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
