"""hierdp bench: run, report, reduce, page, write, verify, check."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import OVERWRITE, SECONDS, columns, console, print_frame

if TYPE_CHECKING:
    from hierdp.bench.own_solver import OwnSolver
    from hierdp.bench.problems import Problem

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
SETS = click.Choice(["small", "medium", "large"])
DATA = click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"),
                    show_default=True, help="Folder of the data sets that are not part of hierdp. Problems "
                    "on missing data are left out.")  # fmt: skip

MODELS = click.option("--models", metavar="NAMES", help="Comma-separated; default: all.")


SOLVER = click.option("--solver", type=click.Path(path_type=Path),
                      help="A program of yours, run as `PROGRAM PROBLEM.mps SOLUTION.sol SECONDS`. Without "
                      "--backends, only it runs.")  # fmt: skip
TAKES = click.option("--takes", metavar="FORMS", default="LP,MILP,QP,MIQP", show_default=True,
                     help="What --solver reads. Without MIQP, squares of whole variables become "
                     "lines.")  # fmt: skip


@click.group()
def bench() -> None:
    """Benchmark solvers on the models of the papers: every answer is compared with a proved optimum.

    \b
    hierdp bench run --set small --out results.parquet
    hierdp bench report results.parquet --out benchmark
    """


@bench.command()
@click.option("--set", "sets", type=SETS, multiple=True, default=("small",), show_default=True,
              help="Test set; repeat it for several.")  # fmt: skip
@click.option("--out", type=FILE, default=Path("hierdp-bench.parquet"), show_default=True,
              help="Results. An existing file is extended; runs that it contains are skipped.")  # fmt: skip
@click.option("--backends", metavar="NAMES", help="Comma-separated; default: the fast path and all "
              "installed. MODULE:ROW is a Backend in a module of yours.")  # fmt: skip
@SOLVER
@TAKES
@MODELS
@click.option("--tolerance", "tolerances", type=click.Choice(["low", "default", "high"]), multiple=True,
              default=("default",), show_default=True,
              help="Solver tolerance: low is 1e-3, high is 1e-9, default is each backend's most accurate "
                   "setting. Repeat it for several.")  # fmt: skip
@click.option("--time-limit", type=SECONDS, default=10.0, show_default=True, help="Seconds for each solve.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True,
              help="Threads of each solve.")  # fmt: skip
@click.option("--presolve", "presolves", type=click.Choice(["on", "off"]), multiple=True, default=("on",),
              show_default=True,
              help="Whether backends simplify problems first. Repeat it for both.")  # fmt: skip
@click.option("--memory", type=SECONDS, metavar="GB",
              help="Memory that a backend's process may allocate (Linux); default: no limit.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True,
              help="Solve each problem so many times; times are medians, with quartiles.")  # fmt: skip
@click.option("--minutes", type=SECONDS,
              help="Start no solve after this many minutes. The same command continues.")  # fmt: skip
@DATA
def run(sets: tuple[str, ...], out: Path, backends: str | None, solver: Path | None, takes: str,
        models: str | None, tolerances: tuple[str, ...], time_limit: float, threads: int,
        presolves: tuple[str, ...], memory: float | None, repeats: int, minutes: float | None,
        data: Path) -> None:  # fmt: skip
    """Solve test sets with backends, and save one row per solve.

    With --solver, the table has the edition's results on the same problems, too.

    A backend's first solve, and its first one after its process has ended, follows a tiny problem that is not
    counted.

    You can stop it at any time; the same command continues from there. Exit status 1, with all rows saved, if
    a backend crashes (without --memory) or ends every solve with an error, or if every solve fails; or if
    --solver gives a wrong answer, or no longer solves what the build before it in --out solved.
    """
    import time

    from hierdp.bench import metrics, own_solver, runs
    from hierdp.bench.problems import with_no_optimum
    from hierdp.bench.report import at_tolerance, distinguished
    from hierdp.cli.app import Ended
    from hierdp.errors import InputError
    from hierdp.verification.judge import broken

    if not out.absolute().parent.is_dir():
        raise click.UsageError(
            f"the folder {out.absolute().parent} of {out.name} does not exist; create it first"
        )
    presolving = tuple(word == "on" for word in dict.fromkeys(presolves))
    settings = runs.Settings(tolerances, time_limit, threads, presolving, memory or 0.0, repeats)
    chosen: list[Any] | None = columns(backends) if backends else None
    own = None if solver is None else _own(solver, takes)
    if own is not None:
        chosen = [*(chosen or []), own]
    try:
        exact = {one.name for one in runs.chosen_backends(chosen)} - {"fast"}
    except ValueError as bad:
        raise click.UsageError(str(bad)) from bad
    screen = console()
    until = None if minutes is None else time.monotonic() + 60 * minutes
    left = 0
    solves: list[tuple[str, str]] = []
    for which in dict.fromkeys(sets):
        found = _chosen(with_no_optimum(which, data if data.is_dir() else None), models)
        try:
            spare = None if until is None else max(0.0, until - time.monotonic()) / 60
            rows = runs.run(found, which, settings, out, chosen, spare)
            left += runs.missing(found, settings, out, chosen)
        except InputError:
            raise
        except KeyboardInterrupt as stop:
            why = f"interrupted; finished solves are saved in {out}, and the same command continues"
            raise Ended(why, 130) from stop
        except ValueError as bad:
            raise click.UsageError(str(bad)) from bad
        of_set = rows["set"] == which
        for name, value in (("time_limit", time_limit), ("threads", threads), ("memory", settings.memory),
                            ("repeats", repeats)):  # fmt: skip
            of_set &= rows[name] == value
        by_others = rows[
            of_set & rows["problem"].isin({one.name for one in found}) & rows["backend"].isin(exact)
        ]
        if memory is not None:  # a process may end when it gets no more
            by_others = by_others[by_others["status"] != "crashed"]
        solves += zip(by_others["backend"], by_others["status"], strict=True)
        for tolerance in dict.fromkeys(tolerances):
            here = at_tolerance(distinguished(rows[of_set]), tolerance)
            if not here.empty:
                title = f"{which.capitalize()} problems, tolerance {tolerance}"
                if own is not None:
                    title = f"{title}; other machines' times are not comparable"
                    here = own_solver.beside_the_edition(here, own)
                print_frame(screen, title, metrics.by_backend(metrics.settled(here)))
    if left:
        screen.print(
            f"Stopped after {minutes:g} minutes with {left:,} runs left; the same command continues."
        )
    screen.print(f"{len(rows):,} rows in {out}. Next: hierdp bench report {out}")
    wrong = broken(solves)
    if own is not None:
        wrong += own_solver.complaints(metrics.settled(rows), own)
    if wrong:
        why = f"{'; '.join(wrong)}; see the column message in {out}"
        raise click.ClickException(f"{why}. For another attempt, choose another --out")


@bench.command()
@click.argument("results", type=FILE)
@click.option("--out", type=click.Path(path_type=Path), default=Path("hierdp-bench"), show_default=True,
              help="Create this folder with report.md, report.html, tables and plots.")  # fmt: skip
@OVERWRITE
def report(results: Path, out: Path, overwrite: bool) -> None:
    """Make tables, performance profiles and a list of wrong answers from RESULTS of `hierdp bench run`."""
    from hierdp.bench.report import study
    from hierdp.execution import folder

    folder.check(out, overwrite)
    study(results).write(out, overwrite)
    console().print(f"Written to {out}/; open {out}/report.html in a browser.")


@bench.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", type=FOLDER, default=Path("findings"),
              show_default=True, help="Folder for scripts and programs.")  # fmt: skip
@click.option("--backends", metavar="NAMES", help="Comma-separated; default: all that are wrong.")
@SOLVER
@TAKES
@click.option(
    "--seconds", type=SECONDS, default=60.0, show_default=True, help="Most time for each wrong row."
)
@DATA
def reduce(results: Path, out: Path, backends: str | None, solver: Path | None, takes: str,
           seconds: float, data: Path) -> None:  # fmt: skip
    """Reduce the wrong answers in RESULTS of `hierdp bench run` to small programs.

    The installed version of the solver is run. Variables, rows and digits are taken away as long as it is
    wrong, which a feasible point, or a ray, proves. Each program is written as .mps and .lp; and as a script
    that needs only the solver, if hierdp calls it through qpsolvers or cvxpy. A .md has the text of a report
    to its authors.

    Exit status 1 if a wrong answer could not be reduced, for example because a newer version is right.
    """
    from hierdp.bench.findings import reduce_results

    chosen: list[Any] | None = columns(backends) if backends else None
    if solver is not None:
        chosen = [*(chosen or []), _own(solver, takes)]
    left = 0
    for found in reduce_results(results, out, data if data.is_dir() else None, chosen, seconds):
        click.echo(f"{found.backend} on {found.problem}: {found.message}")
        for path in found.files:
            click.echo(f"  {path}")
        left += not found.files
    if left:
        raise click.exceptions.Exit(1)


@bench.command()
@click.argument("results", type=FILE)
@click.option("--out", type=FILE, default=Path("leaderboard.html"),
              show_default=True, help="Create this page; an existing file is replaced.")  # fmt: skip
def page(results: Path, out: Path) -> None:
    """Make a page with a sortable table of all backends from RESULTS of `hierdp bench run`.

    It filters by form, size and model, draws performance profiles, and lists the runs of each problem. It is
    a single file that works without a network.
    """
    from hierdp.bench.leaderboard import write_leaderboard

    write_leaderboard(results, out)
    console().print(f"Written {out}; open it in a browser.")


@bench.command()
@click.argument("folder", type=FOLDER)
@click.option("--set", "which", type=click.Choice([*SETS.choices, "ladder"]), default="small",
              show_default=True, help="Test set. The ladder has four models, from a thousand to ten million "
              "variables, beyond 100,000 as .npz only.")  # fmt: skip
@click.option("--up-to", type=click.IntRange(min=1), metavar="N",
              help="With --set ladder: the most variables. Default: 10,000,000.")  # fmt: skip
@click.option("--texts-up-to", type=click.IntRange(min=0), metavar="N",
              help="Write larger problems as .npz only.")  # fmt: skip
@click.option("--archive", type=FILE, metavar="FILE.tar.gz",
              help="Also pack the set into this archive: the same bytes each time.")  # fmt: skip
@MODELS
@DATA
def write(folder: Path, which: str, up_to: int | None, texts_up_to: int | None, archive: Path | None,
          models: str | None, data: Path) -> None:  # fmt: skip
    """Write a test set to FOLDER, for other tools.

    Each problem is written as .mps and .lp, with cones (BudgetSplit, StrategySDP) as .cbf, and exactly as
    .npz, with its answer and proof. SCIP and Gurobi read and solve the .mps and .lp files. HiGHS reads them,
    but cannot solve integer QPs (MIQP). A .sol has all variables at the optimum. FOLDER/manifest.json has
    each problem's source, status, structure, size, optimum and the hashes of its files; FOLDER/optima.csv the
    optima alone. A .proof.txt has the program, the answer and its row prices as rational numbers; a
    .proof.json proves that there is no optimum.
    """
    from hierdp.bench.archive import pack
    from hierdp.bench.files import OPTIMA
    from hierdp.bench.files import write as write_problems
    from hierdp.bench.known_optimum import STATED_UP_TO
    from hierdp.bench.ladder import SIZES, TEXTS_UP_TO, Ladder
    from hierdp.bench.problems import with_no_optimum

    chosen: Collection[Problem]
    if which == "ladder":
        if models is not None:
            raise click.UsageError("--set ladder has four models, and takes no --models")
        chosen, texts = Ladder(up_to or SIZES[-1]), TEXTS_UP_TO
    else:
        if up_to is not None:
            raise click.UsageError("--up-to is for --set ladder; the other sets have fixed sizes")
        found = with_no_optimum(which, data if data.is_dir() else None)
        chosen, texts = _chosen(found, models), STATED_UP_TO
    paths = write_problems(chosen, folder, which, texts if texts_up_to is None else texts_up_to)
    console().print(f"{len(paths)} files in {folder}/; the optima are in {folder}/{OPTIMA}.")
    if archive is not None:
        pack(paths, archive)
        console().print(f"Packed into {archive}. Next: hierdp bench verify {archive}")


@bench.command()
@click.argument("test_set", metavar="SET", type=click.Path(path_type=Path))
def verify(test_set: Path) -> None:
    """Check a test set, a folder or an archive: hashes, texts as readers find them, and proofs of optima.

    Each .mps and .lp is read by hierdp, HiGHS and, if installed, Gurobi, and compared with the model.
    Ends with exit code 1 if a file has changed or a proof fails.

    \b
    hierdp bench write problems --archive hierdp-instances-2026.2.tar.gz
    hierdp bench verify hierdp-instances-2026.2.tar.gz
    """
    import pandas as pd

    from hierdp.bench.archive import verify as verified

    found = pd.DataFrame(verified(test_set))
    bad = found[~found["verdict"].isin(["proved", "not proved"])]
    screen = console()
    if not bad.empty:
        print_frame(screen, f"Failures in {test_set}", bad)
    counts = found["verdict"].value_counts()
    screen.print(", ".join(f"{number:,} {verdict}" for verdict, number in counts.items()))
    if not bad.empty:
        raise click.exceptions.Exit(1)


@bench.command()
@click.argument("answers", type=FOLDER)
@click.option("--problems", "folder", type=click.Path(path_type=Path), required=True,
              help="The folder or archive of the test set, from hierdp bench write.")  # fmt: skip
@click.option("--out", type=FILE, help="Also write the table as .csv.")
def check(answers: Path, folder: Path, out: Path | None) -> None:
    """Judge the solution files in ANSWERS: feasible and optimal, with one line for each problem.

    ANSWERS has a file NAME.sol (of HiGHS, SCIP, Gurobi or CPLEX) or NAME.json for each problem of the test
    set. No solver runs: the optima are proved again by the certificates in the set. The values are those of
    the .mps, by name or in its order. Rows and bounds may be violated by 1e-6, times the size of the side;
    whole variables by 1e-6; the objective may differ by 1e-6 + 1e-8 · |optimum|. Whole answers of the model
    must then be optimal exactly. Ends with exit code 1 if anything is not solved.

    \b
    hierdp bench write problems --set small
    hierdp bench check my-answers --problems problems
    """
    from hierdp.bench.archive import opened
    from hierdp.bench.checked import check_answers, table

    with opened(folder) as test_set:
        rows = check_answers(answers, test_set)
    frame = table(rows)
    for row in rows:
        click.echo(row.line)
    if out is not None:
        frame.to_csv(out, index=False)
    counts = frame["verdict"].value_counts()
    click.echo(
        f"{len(rows):,} problems: " + ", ".join(f"{number:,} {word}" for word, number in counts.items())
    )
    if not (frame["verdict"] == "solved").all():
        raise click.exceptions.Exit(1)


def _own(solver: Path, takes: str) -> OwnSolver:
    """The program as a backend, with a folder that exists until the command ends."""
    import tempfile

    from hierdp.bench import own_solver

    if unknown := set(columns(takes)) - set(own_solver.FORMS):
        raise click.UsageError(f"--takes: unknown form {min(unknown)}; choose from LP, MILP, QP, MIQP")
    aside = click.get_current_context().with_resource(tempfile.TemporaryDirectory())
    return own_solver.OwnSolver.of(solver, Path(aside), columns(takes))


def _chosen(found: list[Problem], models: str | None) -> list[Problem]:
    """The problems of the named models, including their relaxations."""
    if models is None:
        return found
    kinds = {problem.kind.removesuffix(" (relaxed)") for problem in found}
    for name in columns(models):
        if name not in kinds:
            raise click.UsageError(f"unknown model {name}; choose from {', '.join(sorted(kinds))}")
    return [one for one in found if one.kind.removesuffix(" (relaxed)") in columns(models)]
