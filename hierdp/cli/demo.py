"""hierdp demo."""

from __future__ import annotations

import math
import time
from functools import partial
from pathlib import Path

import click

from hierdp.cli.check import print_check
from hierdp.cli.common import NOT_PRIVATE, OVERWRITE, SECONDS, WARNING, console, noise, print_frame
from hierdp.cli.engine import spread
from hierdp.cli.matrix import print_matrix

WIDEST = 120
"""The maximum line length, also in a file."""


@click.command()
@partial(spread, there="Only problems with noisy counts are solved there.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("hierdp-demo"), show_default=True,
              help="Create this folder with the tables, manifests and the report.")  # fmt: skip
@OVERWRITE
@click.option(
    "--time-limit", type=SECONDS, default=2.0, show_default=True, help="Seconds for each exact solve."
)
@click.option(
    "--simulate",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Seeded noise, NOT private, for reproducible runs.",
)
def demo(out: Path, overwrite: bool, time_limit: float, simulate: int | None) -> None:
    """Release real flights with two mechanisms, and check each step with every installed solver.

    Uses the flights from New York in 2013, which are part of hierdp. M_c^dp releases how many aircraft made
    how many flights to each airport. InfTDA releases the number of flights between origins and destinations.
    Then both releases are checked from their files alone, as by `hierdp check`.

    Exit status 1 if a release fails its check, a solver is wrong, crashes or ends every solve with an error,
    or every solve fails.
    """
    from hierdp import demo as job
    from hierdp.checking import check
    from hierdp.execution import folder

    if math.isnan(time_limit):  # click's ranges accept nan
        raise click.UsageError("--time-limit must be a number of seconds, got nan")
    folder.check(out, overwrite)
    screen = console()
    screen.width = min(screen.width, WIDEST)
    screen.print("Reading the flights that left New York in 2013 (336,776, public, CC0) through DuckDB …")
    screen.print(f"Taken as public: regions, {job.TIMETABLE}; groups, {job.AIRCRAFT}.")
    screen.print(
        f"Releasing group sizes by M_c^dp (ε = {job.EPSILON:g}) and origin/destination counts by InfTDA "
        f"(ε = {job.EPSILON:g}, δ = {job.DELTA:g}), then solving each model again with every backend …"
    )
    if simulate is not None:
        screen.print(NOT_PRIVATE, style=WARNING)
    started = time.monotonic()
    made = job.run(noise(simulate), time_limit)
    print_matrix(screen, made.found)
    print_frame(screen, "Group sizes: error by level", made.size_errors)
    print_frame(screen, "Origin/destination: error by level", made.flow_errors)
    job.write(made, out, overwrite)
    screen.print(
        f"Written to {out}/ in {time.monotonic() - started:.0f} s. Open {out}/report.html in a browser: "
        "all solves, budgets and errors. For your own table: hierdp release --help."
    )
    checked = [print_check(screen, out / name, check(out / name), brief=True) for name in job.RELEASES]
    if not all(checked):
        raise click.ClickException("a release fails its check; see above")
    if not made.found.agree:
        raise click.ClickException("a backend is wrong, or a fast answer is not proved; see above")
    if made.found.broken:
        raise click.ClickException(f"{'; '.join(made.found.broken)}; see above")
