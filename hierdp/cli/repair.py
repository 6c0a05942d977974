"""hierdp repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hierdp.cli.app import complete
from hierdp.cli.common import columns, console
from hierdp.mechanisms.registry import REPAIR


@click.command()
@click.argument("noisy", type=click.Path(path_type=Path))
@click.option("--levels", required=True, metavar="COLUMNS", callback=lambda *given: columns(given[2]),
              help="The columns of regions, from coarse to fine: state,county. On rows of inner regions the "
                   "finer ones are empty; on the root's row all are.")  # fmt: skip
@click.option(
    "--count",
    required=True,
    metavar="COLUMN",
    help="The column of counts. whole and least-absolute need whole counts, the other methods take "
    "fractions; chebyshev rounds them to about a millionth.",
)
@click.option("--standard-error", metavar="COLUMN",
              help="A column of standard errors: counts weigh 1 / standard error², with chebyshev and "
                   "least-absolute 1 / standard error. Default: all weigh the same.")  # fmt: skip
@click.option("--method", type=click.Choice([method.name for method in REPAIR.methods]),
              default="hierarchy-qip", show_default=True,
              help="least-squares: consistent; with standard errors if some are given. non-negative, whole: "
                   "the nearest such counts. hierarchy-qip: whole and non-negative, of a given total. "
                   "chebyshev: the same, with the least largest change, in standard errors. least-absolute: "
                   "the same, with the least sum of absolute changes, robust against a few wrong "
                   "counts.")  # fmt: skip
@click.option("--fixed", multiple=True, metavar="LEVEL",
              help="A level whose counts stay as given, such as root. Repeat it for more. For hierarchy-qip "
                   "and chebyshev, which take the total of least squares without it, and for "
                   "least-absolute.")  # fmt: skip
@click.option("--window", type=click.IntRange(min=0), metavar="NUMBER",
              help="Largest change of a given count below the fixed ones, for hierarchy-qip.")  # fmt: skip
@click.option("--root", default="all", show_default=True, metavar="NAME",
              help="Name of the region above all others.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="Folder to create, for the tables, manifest.json, the report and the proofs.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the folder if it exists.")
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option("--note", metavar="TEXT", help="Text under the title.")
@click.option("--csv-safe", is_flag=True, help="As of `hierdp release`: names that a spreadsheet would run "
              "as a formula are marked in the CSVs.")  # fmt: skip
def repair(
    noisy: Path,
    out: Path,
    overwrite: bool,
    title: str | None,
    note: str | None,
    csv_safe: bool,
    **options: Any,
) -> None:
    """Repair NOISY: counts that somebody else has noised or estimated, made consistent.

    NOISY is a Parquet or CSV file with one row per region: its level columns, its count, and optionally a
    standard error. Rows of inner regions that were not measured may be missing. Each method is a model of the
    project, solved and proved optimal; `hierdp check` verifies the result from its files. No noise is added,
    and no privacy is claimed.

    \b
    hierdp repair noisy.csv --levels state,county --count people --standard-error se --out repaired
    hierdp repair forecast.csv --levels region,shop --count sales --fixed root --out whole
    hierdp repair noisy.csv --levels state,county --count people --method least-squares --out estimates
    hierdp check repaired
    """
    from hierdp.execution import folder
    from hierdp.mechanisms.repair import repair as repair_table
    from hierdp.record.release import check_words
    from hierdp.reports.solved import counted

    check_words(title=title, note=note)
    with folder.appearing(out, overwrite, [noisy]) as aside:
        made = repair_table(noisy, **options)
        fingerprint = made.fill(aside, title=title, note=note, csv_safe=csv_safe)
    with complete(out):
        proved, solved = counted(line.line for line in made.proved)
        screen = console()
        screen.print(
            f"{made.mechanism}: {len(made.table):,} rows; {proved} of {solved} problems proved optimal; no "
            f"noise added, no privacy claimed. Written to {out}/; open {out}/report.html."
        )
        screen.print(f"Fingerprint: {fingerprint} (for `hierdp check {out} --fingerprint …`)")
