"""The command line: hierdp demo, release, verify, reproduce, solvers, mechanisms."""

from __future__ import annotations

import errno
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hierdp.record import Release
    from hierdp.verification import Verification

NOT_PRIVATE = "[bold red]SIMULATED NOISE: this is NOT private. For experiments only; do not publish.[/]"

SECONDS = click.FloatRange(min=0, min_open=True, max=1e9)


class Friendly(click.Group):
    """Turns every foreseen failure into one plain message and an exit status, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from hierdp.errors import InputError
        from hierdp.record import NotProved, NotSolved

        try:
            return super().invoke(ctx)
        except InputError as bad:
            raise click.UsageError(str(bad)) from bad
        except (NotProved, NotSolved) as bug:
            raise click.ClickException(f"nothing was released: {bug}") from bug
        except MemoryError as short:
            raise click.ClickException("out of memory; nothing was written") from short
        except OSError as failure:
            why = "the disk is full" if failure.errno == errno.ENOSPC else str(failure)
            raise click.ClickException(f"{why}; nothing was released") from failure


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hierdp")
def main() -> None:
    """Differentially private counts along a hierarchy, repaired by exact optimization and proved optimal.

    Start with `hierdp demo`; then see `hierdp release group-size --help` and `hierdp release top-down --help`
    for your own tables.
    """
    from hierdp import progress

    progress.show_on(_console(stderr=True))


@main.command()
@click.option("--out", type=click.Path(path_type=Path), default=Path("hierdp-demo"), show_default=True,
              help="Folder to make, for the tables, manifests and the report.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace that folder if it exists.")
@click.option(
    "--time-limit", type=SECONDS, default=2.0, show_default=True, help="Seconds for each exact solve."
)
@click.option(
    "--simulate",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Seeded, NOT private noise, to repeat a run.",
)
def demo(out: Path, overwrite: bool, time_limit: float, simulate: int | None) -> None:
    """Release real flights two ways, and have every installed solver check each step.

    Takes the 2013 flights from New York that ship with hierdp: how many aircraft made how many flights to
    each airport (M_c^dp), and how many flights there were from where to where (InfTDA).
    """
    from hierdp import demo as job
    from hierdp import folder

    if math.isnan(time_limit):  # which no range excludes
        raise click.UsageError("--time-limit is nan: give seconds")
    folder.check(out, overwrite)
    console = _console()
    console.print("Reading the flights that left New York in 2013 (336,776, public, CC0) through DuckDB …")
    console.print(
        f"Releasing group sizes by M_c^dp (ε = {job.EPSILON:g}) and origin/destination counts by InfTDA "
        f"(ε = {job.EPSILON:g}, δ = {job.DELTA:g}), then solving each model again with every backend …"
    )
    if simulate is not None:
        console.print(NOT_PRIVATE)
    started = time.monotonic()
    made = job.run(_noise(simulate), time_limit)
    _print_verification(console, made.found)
    _print_frame(console, "Group sizes: error by level", made.size_errors)
    _print_frame(console, "Origin/destination: error by level", made.flow_errors)
    job.write(made, out, overwrite)
    console.print(
        f"Written to {out}/ in {time.monotonic() - started:.0f} s; open {out}/report.html in a browser."
    )
    if not made.found.agree:
        raise click.ClickException("a backend disagrees, or an answer is not proved: see the table")


@main.group()
def release() -> None:
    """Release your own table: group-size or top-down."""


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.argument("table", type=click.Path(path_type=Path)),
        click.option("--epsilon", required=True, metavar="NUMBER",
                     help="Privacy budget ε of the release, such as 1."),
        click.option("--out", type=click.Path(path_type=Path), required=True,
                     help="Folder to make: released.parquet, released.csv, manifest.json, report.html."),
        click.option("--overwrite", is_flag=True, help="Replace that folder if it exists (else it is kept)."),
        click.option("--regions", type=click.Path(path_type=Path),
                     help="Table of all regions, a column a level: the regions there are. Without it, those "
                          "seen in the data are, which makes them public."),
        click.option("--region-levels", metavar="COLUMNS",
                     help="With --regions: its columns, from coarse to fine, such as state,county."),
        click.option("--unknown", metavar="NAME",
                     help="Put rows with a missing or unknown region, or a missing group, into a region, or "
                          "a group, of this name. Without it they are an error; they are never dropped."),
        click.option("--simulate", type=click.IntRange(min=0), metavar="SEED",
                     help="Seeded noise, NOT private: for experiments."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@release.command("group-size")
@_common
@click.option(
    "--levels", metavar="COLUMNS", help="The table's columns of regions, coarse to fine: state,county."
)
@click.option("--region", metavar="COLUMN", help="With --regions: the table's column of the finest region.")
@click.option("--group", "groups", multiple=True, required=True, metavar="COLUMN",
              help="Column that names a row's group (household, taxi). Repeat it if several do.")  # fmt: skip
@click.option(
    "--entities", metavar="COLUMN", help="Column with numbers of entities; else each row is one entity."
)
@click.option("--max-size", type=int, required=True,
              help="Larger groups count as of this size. Choose it without looking at the data.")  # fmt: skip
@click.option("--root", default="all", show_default=True, help="Name of the region above all others.")
@click.option("--method", metavar="NAME", help="The mechanism, by its paper's name; default M_c^dp. See "
              "`hierdp mechanisms`.")  # fmt: skip
@click.option("--backend", metavar="NAME", help="Solver of the methods that leave it open (M_H, M_c, …).")
@click.option("--time-limit", type=SECONDS, help="Seconds for that solver; then nothing is released.")
@click.option("--window", type=click.IntRange(min=0), help="Truncate domains to noisy count ± this many; "
              "default: none are.")  # fmt: skip
def group_size(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """How many groups have each size, in every region (ε-DP; M_c^dp unless --method says otherwise).

    TABLE is a Parquet or CSV file with a row an entity (a person, a trip), or with numbers of entities.
    One entity more or less in a group is protected. Which groups and regions there are is public: a group
    with a row in TABLE is told to exist. In the result, the last size means "this size or more".

    \b
    Households by size, the regions in the table's own columns:
      hierdp release group-size people.csv --levels state,county --group household \\
          --max-size 20 --epsilon 1 --out released
    \b
    Taxis by trips, with a table of all zones:
      hierdp release group-size trips.parquet --regions zones.csv --region-levels borough,zone \\
          --region pickup_zone --group taxi --group pickup_zone --max-size 1000 --epsilon 0.5 --out released
    """
    columns = {
        "group": given["groups"],
        "entities": given["entities"],
        "max_size": given["max_size"],
        "unknown": given["unknown"],
    }

    def where() -> dict[str, Any]:
        if given["regions"] is None:
            if given["region"] or not given["levels"]:
                raise click.UsageError("say where the regions are: --levels, or --regions with --region")
            return {"levels": _columns(given["levels"]), "root": given["root"]}
        if given["levels"] or not given["region"]:
            raise click.UsageError(
                "with --regions, name the table's column by --region, and leave --levels out"
            )
        return {"regions": _regions(given, given["root"]), "region": given["region"]}

    chosen = {name: given[name] for name in ("method", "backend", "time_limit", "window")}

    def arguments() -> dict[str, Any]:
        return {**columns, **where(), **chosen}

    _release(table, "group-size", out, overwrite, simulate, arguments, epsilon=epsilon)


@release.command("top-down")
@_common
@click.option(
    "--delta",
    metavar="NUMBER",
    required=True,
    help="The δ of (ε, δ)-DP: far below 1 / number of people, such as 1e-8.",
)
@click.option("--axis", "axes", multiple=True, required=True, metavar="NAME=COLUMNS",
              help="An axis and its columns from coarse to fine, origin=o_state,o_county; with --regions "
                   "its one column of the finest region. Repeat it for each axis.")  # fmt: skip
@click.option("--count", metavar="COLUMN", help="Column with counts; else each row counts one.")
@click.option("--first", metavar="NAME", help="The axis refined first. Default: the last one.")
@click.option("--method", metavar="NAME", help="InfTDA (default), or what it is compared with: TDA_inf, "
              "TDA_L2, TDA, VanillaGauss, SH. See `hierdp mechanisms`.")  # fmt: skip
@click.option("--trips", type=click.IntRange(min=1), metavar="NUMBER",
              help="Trips of one person in TABLE, to protect them all; with --unbounded, at most so many. "
                   "Default: 1. Noise grows with it.")  # fmt: skip
@click.option("--distinct", is_flag=True, help="With --trips: one person's trips all lie in different cells. "
              "Less noise; say so only if it is so.")  # fmt: skip
@click.option("--unbounded", is_flag=True, help="Protect, too, whether a person is in TABLE at all: then the "
              "total is noisy, not public.")  # fmt: skip
@click.option("--share", "shares", multiple=True, type=float, metavar="NUMBER",
              help="Budget of a level in proportion; once a level, from the top (with --unbounded, the "
                   "total first). Default: even.")  # fmt: skip
@click.option("--backend", metavar="NAME", help="Solver of TDA_inf, TDA_L2 or TDA; see `hierdp solvers`.")
@click.option("--time-limit", type=SECONDS, help="Seconds for each of its solves; then nothing is released.")
def top_down(
    table: Path, epsilon: str, out: Path, overwrite: bool, simulate: int | None, **given: Any
) -> None:
    """Counts along hierarchies, such as trips from origin to destination (InfTDA, (ε, δ)-DP).

    TABLE is a Parquet or CSV file with a row a trip, or with counts. One trip in place of another is
    protected; for a person with several, say --trips. The regions are public, and so is the total unless
    --unbounded.

    \b
    Commuters, both ends by state and county:
      hierdp release top-down commuting.parquet --axis origin=o_state,o_county \\
          --axis destination=d_state,d_county --count workers --epsilon 1 --delta 1e-8 --out released
    \b
    Taxi rides by zone and hour, up to 20 of a passenger, who may be in the table or not:
      hierdp release top-down rides.csv --axis pickup=borough,zone --axis time=daypart,hour \\
          --trips 20 --unbounded --epsilon 1 --delta 1e-8 --out released
    """

    def axes() -> dict[str, Any]:
        regions = _regions(given, "all") if given["regions"] else None
        named: dict[str, Any] = {}
        for axis in given["axes"]:
            name, equals, columns = axis.partition("=")
            if not equals or not name or name in named:
                raise click.UsageError(f"--axis {axis}: give each axis once, as NAME=COLUMN,COLUMN")
            listed = _columns(columns)
            if regions is not None and len(listed) != 1:
                raise click.UsageError(
                    f"--axis {axis}: with --regions, name one column, of the finest region"
                )
            named[name] = listed if regions is None else (regions, listed[0])
        return {"axes": named, **{name: given[name] for name in ("count", "unknown", "first")}, **asked}

    asked = {name: given[name] for name in ("method", "trips", "distinct", "backend", "time_limit")}
    asked |= {"bounded": not given["unbounded"], "shares": given["shares"] or None}
    _release(table, "top-down", out, overwrite, simulate, axes, epsilon=epsilon, delta=given["delta"])


@main.command()
@click.argument("models", nargs=-1)
@click.option("--all", "everything", is_flag=True,
              help="All models, from 1 to 1,000,000 cells; exact backends up to 300.")  # fmt: skip
@click.option("--backends", metavar="NAMES", help="Comma-separated; default: all installed exact ones.")
@click.option("--instances", type=click.IntRange(min=1), default=3, show_default=True,
              help="Random instances of each model and size.")  # fmt: skip
@click.option("--size", "sizes", type=click.IntRange(min=1), multiple=True,
              help="Cells of an instance, about; repeat it for several sizes. Default: 30.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--time-limit", type=SECONDS, default=10.0, show_default=True, help="Seconds for each solve.")
@click.option("--instance", "replayed", type=click.Path(path_type=Path), multiple=True,
              help="Verify this saved instance (.npz) in place of random ones.")  # fmt: skip
@click.option("--save", type=click.Path(path_type=Path), default=Path("hierdp-disagreements"),
              show_default=True, help="Folder for the instances on which somebody disagrees.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Write the table to this Parquet file, too.")
def verify(models: Sequence[str], everything: bool, backends: str | None, save: Path, out: Path | None,
           time_limit: float, **drawn: Any) -> None:  # fmt: skip
    """Solve instances of MODELS (default: all) by the fast path and by exact backends, and compare.

    Exit status 1 if anybody disagrees: a backend with the fast path, or a fast answer with its certificate.
    Each such instance is saved, and the command that solves it again is printed.

    \b
    hierdp verify Isotonic Chebyshev --size 10 --size 1000 --instances 20
    hierdp verify --all --out verification.parquet
    """
    from hierdp import matrix

    if out is not None and not out.absolute().parent.is_dir():
        raise click.UsageError(f"there is no folder {out.absolute().parent} to put {out.name} in")
    sizes = matrix.SIZES if everything else drawn["sizes"] or (30,)
    try:
        if drawn["replayed"]:
            named = matrix.saved(drawn["replayed"])
        else:
            named = matrix.instances(models, sizes, drawn["instances"], drawn["seed"])
        chosen = _columns(backends) if backends else None
        found = matrix.run(named, chosen, time_limit, matrix.EXACT_UP_TO if everything else None)
    except ValueError as bad:
        raise click.UsageError(str(bad)) from bad
    console = _console()
    _print_verification(console, found)
    if out is not None:
        found.frame().to_parquet(out, index=False)
        console.print(f"Written to {out}.")
    for path in matrix.keep_disagreements(found, named, save):
        console.print(f"[bold red]Somebody disagrees. Again: hierdp verify --instance {path}[/]")
    sys.exit(0 if found.agree else 1)


@main.command()
@click.argument("paper", metavar="PAPER")
@click.option("--out", type=click.Path(path_type=Path), help="Folder to make; default: the paper's name.")
@click.option("--overwrite", is_flag=True, help="Replace that folder if it exists.")
@click.option("--quick", is_flag=True, help="Smaller data, fewer runs: about a minute on a laptop.")
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each setting; default: the paper's.")
@click.option("--time-limit", type=SECONDS, help="Seconds for each exact solve.")
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"), show_default=True,
              help="Folder of the data that do not ship; what is not there is done without.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def reproduce(paper: str, out: Path | None, overwrite: bool, quick: bool, runs: int | None,
              time_limit: float | None, data: Path, seed: int) -> None:  # fmt: skip
    """Run the experiments of PAPER again: its tables and figures, beside what was published.

    \b
    hierdp reproduce fioretto2019 --quick
    hierdp reproduce fioretto2019 --runs 10 --time-limit 1800 --out group-sizes
    """
    import importlib
    from dataclasses import replace

    from hierdp import folder
    from hierdp.reproduce import PAPERS

    if paper not in PAPERS:
        raise click.UsageError(
            f"no paper {paper!r}; there are: " + "; ".join(f"{k} ({v})" for k, v in PAPERS.items())
        )
    out = out or Path(paper)
    folder.check(out, overwrite)
    module = importlib.import_module(f"hierdp.reproduce.{paper}")
    settings = module.QUICK if quick else module.Settings()
    given = {"runs": runs, "time_limit": time_limit}
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    console = _console()
    if not data.is_dir():
        console.print(f"[yellow]There is no folder {data}: data that do not ship are done without.[/]")
    started = time.monotonic()
    made = module.study(settings, data if data.is_dir() else None, seed)
    for part in made.parts:
        for name, frame in part.frames.items():
            if len(frame) <= 40:
                _print_frame(console, f"{part.title} ({name})" if len(part.frames) > 1 else part.title, frame)
    made.write(out, overwrite)
    console.print(
        f"Written to {out}/ in {time.monotonic() - started:.0f} s; open {out}/report.html in a browser."
    )


@main.command()
def solvers() -> None:
    """The backends: which are installed, what each takes natively, how to get the others."""
    from rich.markup import escape

    from solvers import backends
    from solvers.capability import LEGEND

    table = _table("Backends", "name", "library", "version", "licence", *backends()[0].takes, "note")
    for backend in backends():
        note = "hierdp's own, proved by certificates" if backend.name == "fast" else ""
        if not backend.installed:
            note = f"not installed: {backend.install}"
        table.add_row(backend.name, backend.library, backend.version or "-", backend.licence,
                      *backend.takes.values(), escape(note))  # fmt: skip
    console = _console()
    console.print(table)
    console.print(LEGEND)
    console.print("And cvxpy:<solver>, pyomo:<solver> for all that they find (gurobi, cplex, mosek, cbc, …).")


@main.command()
def mechanisms() -> None:
    """The mechanisms: what each releases, and what it protects."""
    from hierdp.mechanisms import MECHANISMS

    heads = ("name", "hierdp release …", "releases", "guarantee", "neighbouring tables", "models", "paper")
    table = _table("Mechanisms", *heads)
    for m in MECHANISMS:
        table.add_row(m.name, m.command, m.releases, m.guarantee, m.neighbours, m.models, m.paper)
    _console().print(table)


def _release(
    table: Path,
    mechanism: str,
    out: Path,
    overwrite: bool,
    simulate: int | None,
    columns: Callable[[], Any],
    **budget: Any,
) -> None:
    from hierdp import folder
    from hierdp.budget import check_delta, check_epsilon
    from hierdp.front import release as release_table

    # All that can be refused is refused before any noise is drawn.
    folder.check(out, overwrite)
    checked: dict[str, float] = {"epsilon": check_epsilon(budget["epsilon"])}
    if "delta" in budget:
        checked["delta"] = check_delta(budget["delta"])
    console = _console()
    if simulate is not None:
        console.print(NOT_PRIVATE)
    given: dict[str, Any] = {**checked, **columns()}
    made: Release = release_table(table, mechanism, noise=_noise(simulate), **given)
    made.write(out, overwrite)
    proved = sum(bool(step.solution.certificate) for step in made.steps)
    spent = "ρ" if made.ledger.zcdp else "ε"
    console.print(
        f"{made.mechanism}: {len(made.table):,} rows; {proved} of {len(made.steps)} post-processing problems "
        f"proved optimal; {spent} = {made.ledger.spent:.6g} spent. Written to {out}/; open {out}/report.html."
    )


def _noise(seed: int | None) -> Any:
    from hierdp.noise import SimulatedNoise

    return None if seed is None else SimulatedNoise(seed)


def _regions(given: dict[str, Any], root: str) -> Any:
    from hierdp.tables import read_regions

    if not given["region_levels"]:
        raise click.UsageError("with --regions, name its columns from coarse to fine by --region-levels")
    return read_regions(given["regions"], _columns(given["region_levels"]), root)


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _console(stderr: bool = False) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:  # a file or a pipe has no width to keep to
        console.width = max(console.width, 190)
    return console


def _table(title: str, *columns: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _print_frame(console: Any, title: str, frame: Any) -> None:
    table = _table(title)
    for column in frame.columns:
        right = frame[column].dtype.kind in "if"
        table.add_column(str(column).replace("_", " "), justify="right" if right else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*(_shown(value) for value in row))
    console.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print_verification(console: Any, found: Verification) -> None:
    from hierdp.report import verification_frame

    table = _table("Every model, every backend")
    frame = verification_frame(found)
    words = ("step", "model", "backend", "status", "proved", "verdict")
    for column in frame.columns:
        side = "left" if column in words else "right"
        table.add_column(column, justify=side, overflow="fold", no_wrap=console.width >= 150)
    colours = {"DISAGREES": "bold red", "failed": "red", "stopped": "yellow", "unsupported": "dim"}
    before = None
    for row in frame.to_dict("records"):
        if before is not None and before != (row["step"], row["model"]):
            table.add_section()
        same = before == (row["step"], row["model"])
        before = (row["step"], row["model"])
        told = [str(value) if not isinstance(value, int) else f"{value:,}" for value in row.values()]
        table.add_row(*(["", "", ""] if same else told[:3]), *told[3:], style=colours.get(row["verdict"]))
    console.print(table)
    for bad in found.rows:
        if bad.verdict in ("DISAGREES", "failed"):
            console.print(f"[red]{bad.step} {bad.model} on {bad.backend}: {bad.status}: {bad.message}[/]")
    if found.note:
        console.print(f"Solved again: {found.note}.")
    console.print(repr(found))


if __name__ == "__main__":
    main()
