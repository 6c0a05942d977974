"""hierdp reproduce."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import click

from hierdp.cli.common import OVERWRITE, SECONDS, SEED, console, print_frame
from hierdp.cli.engine import resuming, spread
from hierdp.experiments.papers import PAPERS

_QUICK_SECONDS = 90.0
"""About the time of any paper with quick settings, on a laptop."""


@click.command(
    epilog="\b\nPAPER is one of:\n" + "\n".join(f"{name:15}{what}" for name, what in PAPERS.items())
)
@partial(spread, there="All runs and their noise are made there: the data are public or made up.")
@click.argument("paper", metavar="PAPER", required=False)  # the message for a missing one lists the papers
@click.option("--out", type=click.Path(path_type=Path), help="Folder to create; default: the paper's name.")
@OVERWRITE
@click.option(
    "--quick",
    is_flag=True,
    help="Make fewer runs, and say what cannot be concluded from them: a minute or two on a laptop.",
)
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each setting; default: the paper's.")
@click.option("--time-limit", type=SECONDS, help="Seconds for each exact solve.")
@click.option("--data", type=click.Path(path_type=Path), default=Path("../shared/data"), show_default=True,
              help="Folder of the data sets that are not part of hierdp, or one file of the paper's own data "
                   "(see docs/PAPER.md). Parts on missing data are left out.")  # fmt: skip
@SEED
@click.option("--resume", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Folder for finished runs until all are finished; the same command continues from there. "
                   "Default: a folder beside --out.")  # fmt: skip
def reproduce(paper: str | None, out: Path | None, overwrite: bool, quick: bool, runs: int | None,
              time_limit: float | None, data: Path, seed: int, resume: Path | None) -> None:  # fmt: skip
    """Repeat the experiments of PAPER, and show its tables and figures beside the published ones.

    \b
    hierdp reproduce fioretto2019 --quick
    hierdp reproduce fioretto2019 --runs 10 --time-limit 1800 --out group-sizes
    hierdp reproduce qardaji2013 --data cit-HepTh.txt
    """
    import importlib
    from dataclasses import replace

    from hierdp.execution import folder, progress
    from hierdp.experiments.study import readable

    if paper not in PAPERS:
        from hierdp.errors import listed, unknown_name

        missing = f"PAPER is missing; there are {listed(PAPERS)}"
        raise click.UsageError(missing if paper is None else unknown_name(paper, PAPERS, "unknown paper"))
    out = out or Path(paper)
    folder.check(out, overwrite)
    module = importlib.import_module(f"hierdp.experiments.papers.{paper}")
    settings = module.QUICK if quick else module.Settings()
    given = {"runs": runs, "time_limit": time_limit}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if not hasattr(settings, name):
            raise click.UsageError(f"{paper} has no option --{name.replace('_', '-')}")
    settings = replace(settings, **given)
    screen = console()
    if not data.exists():
        screen.print(
            f"The folder {data} does not exist; parts that need its data are left out.", style="yellow"
        )
    if quick:
        progress.announce("The quick settings", _QUICK_SECONDS)
    started = time.monotonic()
    there = data.absolute() if data.exists() else None
    with resuming(resume or out.absolute().with_name(f".{out.absolute().name}.runs"), settings, seed, there):
        made = replace(
            module.study(settings, there, seed), note=f"Quick settings. {module.QUICK_NOTE}" if quick else ""
        )
        for part in made.parts:
            for name, frame in part.frames.items():
                if len(frame) <= 40:
                    title = f"{part.title} ({name})" if len(part.frames) > 1 else part.title
                    print_frame(screen, title, readable(frame, 3))
        made.write(out, overwrite)
    screen.print(
        f"Written to {out}/ in {time.monotonic() - started:.0f} s; open {out}/report.html in a browser."
    )
