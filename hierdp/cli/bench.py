"""hierdp bench: run, report, write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hierdp.cli.common import SECONDS, columns, console, print_frame

if TYPE_CHECKING:
    from hierdp.bench.problems import Problem

SETS = click.Choice(["small", "medium", "large"])
DATA = click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"),
                    show_default=True, help="Folder of the data that do not ship; what is not there is "
                    "done without.")  # fmt: skip

MODELS = click.option("--models", metavar="NAMES", help="Comma-separated; default: all.")


@click.group()
def bench() -> None:
    """Benchmark solvers on the models of the papers: every answer is held against a proved optimum.

    \b
    hierdp bench run --set small --out results.parquet
    hierdp bench report results.parquet --out benchmark
    """


@bench.command()
@click.option("--set", "sets", type=SETS, multiple=True, default=("small",), show_default=True,
              help="Test set; repeat it for several.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("hierdp-bench.parquet"),
              show_default=True,
              help="Results; if it exists it grows, and what is there is not run again.")  # fmt: skip
@click.option(
    "--backends", metavar="NAMES", help="Comma-separated; default: the fast path and all installed."
)
@MODELS
@click.option("--tolerance", "tolerances", type=click.Choice(["low", "default", "high"]), multiple=True,
              default=("default",), show_default=True,
              help="1e-3, as accurate as it goes, 1e-9. Repeat it.")  # fmt: skip
@click.option("--time-limit", type=SECONDS, default=10.0, show_default=True, help="Seconds for each solve.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Of each solve.")
@click.option("--minutes", type=SECONDS, help="Begin no solve after so many; the same command goes on.")
@DATA
def run(sets: tuple[str, ...], out: Path, backends: str | None, models: str | None,
        tolerances: tuple[str, ...], time_limit: float, threads: int, minutes: float | None,
        data: Path) -> None:  # fmt: skip
    """Solve test sets by backends, and keep a row each.

    Stop it when you like, with Ctrl-C or harder: the same command goes on from there.
    """
    import time

    from hierdp.bench import metrics, runs
    from hierdp.bench.problems import problems
    from hierdp.bench.report import asked as of_tolerance
    from hierdp.cli.app import Ended
    from hierdp.errors import InputError

    if not out.absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder {out.absolute().parent} to put {out.name} in")
    asked = runs.Settings(tolerances, time_limit, threads)
    chosen = columns(backends) if backends else None
    screen = console()
    until = None if minutes is None else time.monotonic() + 60 * minutes
    left = 0
    for which in dict.fromkeys(sets):
        found = _chosen(problems(which, data if data.is_dir() else None), models)
        try:
            spare = None if until is None else max(0.0, until - time.monotonic()) / 60
            rows = runs.run(found, which, asked, out, chosen, spare)
            left += runs.missing(found, asked, out, chosen)
        except InputError:
            raise
        except KeyboardInterrupt as stop:
            why = f"interrupted; what was solved is kept in {out}, and the same command goes on"
            raise Ended(why, 130) from stop
        except ValueError as bad:
            raise click.UsageError(str(bad)) from bad
        of_set = (rows["set"] == which) & (rows["time_limit"] == time_limit) & (rows["threads"] == threads)
        for tolerance in dict.fromkeys(tolerances):
            here = of_tolerance(rows[of_set], tolerance)
            if not here.empty:
                title = f"{which.capitalize()} problems, tolerance {tolerance}"
                print_frame(screen, title, metrics.by_backend(metrics.settled(here)))
    if left:
        screen.print(
            f"Stopped after {minutes:g} minutes, {left:,} runs before the end: the same command goes on."
        )
    screen.print(f"{len(rows):,} rows in {out}. Next: hierdp bench report {out}")


@bench.command()
@click.argument("results", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path), default=Path("hierdp-bench"), show_default=True,
              help="Folder to make: report.md, report.html, tables, plots.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace that folder if it exists.")
def report(results: Path, out: Path, overwrite: bool) -> None:
    """Tables, performance profiles and wrong answers from RESULTS of `hierdp bench run`."""
    from hierdp.bench.report import study
    from hierdp.execution import folder

    folder.check(out, overwrite)
    study(results).write(out, overwrite)
    console().print(f"Written to {out}/; open {out}/report.html in a browser.")


@bench.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--set", "which", type=SETS, default="small", show_default=True, help="Test set.")
@MODELS
@DATA
def write(folder: Path, which: str, models: str | None, data: Path) -> None:
    """Save a test set to FOLDER for other tools.

    Each problem as .mps and .lp, and exactly as .npz; those with cones (BudgetSplit, StrategySDP) as .npz
    only. SCIP and Gurobi take the .mps and .lp; HiGHS reads them too, but solves no integer QPs (MIQP).
    FOLDER/optima.csv has each problem's form and optimum, and says whether a certificate proves it.
    """
    from hierdp.bench.files import OPTIMA
    from hierdp.bench.files import write as write_problems
    from hierdp.bench.problems import problems

    chosen = _chosen(problems(which, data if data.is_dir() else None), models)
    paths = write_problems(chosen, folder)
    console().print(f"{len(paths)} files in {folder}/; the optima are in {folder}/{OPTIMA}.")


def _chosen(found: list[Problem], models: str | None) -> list[Problem]:
    """The problems of the named models, over the reals or not."""
    if models is None:
        return found
    kinds = {problem.kind.removesuffix(" (relaxed)") for problem in found}
    for name in columns(models):
        if name not in kinds:
            raise click.UsageError(f"no model {name}; there are {', '.join(sorted(kinds))}")
    return [one for one in found if one.kind.removesuffix(" (relaxed)") in columns(models)]
