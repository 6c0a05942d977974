"""hierdp verify."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hierdp.cli.common import SECONDS, WARNING, columns, console, grid
from hierdp.cli.engine import resuming, spread
from hierdp.cli.matrix import COLOURS, print_outcome

if TYPE_CHECKING:
    from hierdp.verification.table import Verification


@click.command()
@partial(spread, there="Instances are solved there.")
@click.argument("models", nargs=-1)
@click.option("--all", "everything", is_flag=True,
              help="All models with 1 to 1,000,000 cells; exact backends up to 300 cells.")  # fmt: skip
@click.option("--backends", metavar="NAMES", help="Comma-separated; default: all installed exact ones.")
@click.option("--instances", type=click.IntRange(min=1), default=3, show_default=True,
              help="Random instances of each model and size.")  # fmt: skip
@click.option("--size", "sizes", type=click.IntRange(min=1), multiple=True,
              help="Approximate number of cells; repeat it for several sizes. Default: 30.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the random instances.")  # fmt: skip
@click.option("--time-limit", type=SECONDS, default=10.0, show_default=True, help="Seconds for each solve.")
@click.option("--instance", "replayed", type=click.Path(path_type=Path), multiple=True,
              help="Verify this saved instance (.npz) instead of random ones.")  # fmt: skip
@click.option("--save", type=click.Path(path_type=Path), default=Path("hierdp-disagreements"),
              show_default=True, help="Folder for instances with a wrong or unproved answer.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Also write the table to this Parquet file.")
@click.option("--resume", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for finished instances until all are finished; the same command continues from "
                   "there.")  # fmt: skip
def verify(models: Sequence[str], everything: bool, backends: str | None, save: Path, out: Path | None,
           time_limit: float, resume: Path | None, **drawn: Any) -> None:  # fmt: skip
    """Solve instances of MODELS (default: all) with the fast path and with exact backends, and compare.

    Exit status 1 if an answer is wrong, or a fast answer is not proved by its certificate. Each such instance
    is saved, and a command that solves it again is printed. Exit status 1 also if a backend crashes or ends
    every solve with an error, or if every solve by exact backends fails.

    \b
    hierdp verify Isotonic Chebyshev --size 10 --size 1000 --instances 20
    hierdp verify --all --out verification.parquet
    """
    from hierdp.execution import folder, progress
    from hierdp.verification import matrix
    from hierdp.verification.verify import verify as solve_again

    if out is not None and not out.absolute().parent.is_dir():
        raise click.UsageError(
            f"the folder {out.absolute().parent} of {out.name} does not exist; create it first"
        )
    exact_up_to = matrix.EXACT_UP_TO if everything else None
    sizes = matrix.SIZES if everything else drawn["sizes"] or (30,)
    progress.watch_compiler()
    try:
        if drawn["replayed"]:
            named = matrix.saved(drawn["replayed"])
        else:
            named = matrix.instances(models, sizes, drawn["instances"], drawn["seed"])
        chosen = columns(backends) if backends else None
        with nullcontext() if resume is None else resuming(resume):
            found = solve_again(named, chosen, time_limit, exact_up_to=exact_up_to)
    except ValueError as bad:
        raise click.UsageError(str(bad)) from bad
    screen = console()
    print_verification(screen, found)
    if out is not None:
        with folder.file_appearing(out) as aside:
            found.frame().to_parquet(aside, index=False)
        screen.print(f"Written to {out}.")
    for path in matrix.keep_disagreements(found, named, save):
        screen.print(f"Wrong, or not proved. To repeat it: hierdp verify --instance {path}", style=WARNING)
    for why in found.broken:
        screen.print(f"{why}.", style=WARNING)
    sys.exit(0 if found.agree and not found.broken else 1)


def print_verification(screen: Any, found: Verification) -> None:
    """Print one line per model and backend."""
    from hierdp.verification.sections import verification_frame

    table = grid("Every model, every backend")
    frame = verification_frame(found)
    words = ("step", "model", "backend", "status", "proved", "verdict")
    for column in frame.columns:
        side = "left" if column in words else "right"
        table.add_column(column, justify=side, overflow="fold", no_wrap=screen.width >= 150)
    before = None
    for row in frame.to_dict("records"):
        if before is not None and before != (row["step"], row["model"]):
            table.add_section()
        same = before == (row["step"], row["model"])
        before = (row["step"], row["model"])
        cells = [str(value) if not isinstance(value, int) else f"{value:,}" for value in row.values()]
        table.add_row(*(["", "", ""] if same else cells[:3]), *cells[3:], style=COLOURS.get(row["verdict"]))
    screen.print(table)
    print_outcome(screen, found)
