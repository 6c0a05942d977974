"""hierdp repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hierdp.cli.app import complete
from hierdp.cli.common import OVERWRITE, columns, console, number, with_mechanism
from hierdp.cli.sources import with_public
from hierdp.errors import InputError

OF_TABLES = "by", "levels", "count", "standard_error", "scale", "law", "fixed", "root"
OF_RELEASES = "repair", "merge", "backend", "time_limit"
"""Options for tables of counts, and for releases."""


@click.command()
@click.argument("noisy", type=click.Path(path_type=Path))
@click.option("--levels", metavar="COLUMNS", callback=lambda *given: given[2] and columns(given[2]),
              help="The columns of regions, from coarse to fine: state,county. On rows of inner regions the "
                   "finer ones are empty; on the root's row all are.")  # fmt: skip
@click.option("--by", metavar="COLUMNS", callback=lambda *given: given[2] and columns(given[2]),
              help="Columns that tell independent tables apart, such as dates: each is repaired by "
                   "itself.")  # fmt: skip
@click.option(
    "--count",
    metavar="COLUMN",
    help="The column of counts. whole and least-absolute need whole counts, the other methods take "
    "fractions; chebyshev rounds them to about a millionth.",
)
@click.option("--standard-error", metavar="COLUMN",
              help="A column of standard errors, or one number for all counts: counts weigh 1 / standard "
                   "error², with chebyshev and least-absolute 1 / standard error. Default: all weigh the "
                   "same.")  # fmt: skip
@click.option("--scale", metavar="COLUMN",
              help="In place of --standard-error: the scale of the noise, a column or a number. It needs "
                   "--law.")  # fmt: skip
@click.option("--law", metavar="NAME",
              help="The law of the noise, or a column of laws: double-geometric or Laplace (P(x) ∝ "
                   "exp(−|x| / scale)), discrete Gaussian or Gaussian (∝ exp(−x² / 2 scale²)).")  # fmt: skip
@click.option("--method", metavar="NAME",
              help="Default: hierarchy-qip. least-squares: consistent; with standard errors if some are "
                   "given. non-negative, whole: the nearest such counts. hierarchy-qip: whole and "
                   "non-negative, of a given total. chebyshev: the same, with the least largest change, in "
                   "standard errors. least-absolute: the same, with the least sum of absolute changes, "
                   "robust against a few wrong counts. For a release: another method of its mechanism; see "
                   "`hierdp mechanisms`.")  # fmt: skip
@click.option("--fixed", multiple=True, metavar="LEVEL",
              help="A level whose counts stay as given, such as root. Repeat it for more. For hierarchy-qip "
                   "and chebyshev, which take the total of least squares without it, and for "
                   "least-absolute.")  # fmt: skip
@click.option("--window", type=click.IntRange(min=0), metavar="NUMBER",
              help="Largest change of a given count below the fixed ones, for hierarchy-qip; of a noisy "
                   "count, for releases of group-size.")  # fmt: skip
@click.option("--repair", metavar="NAME",
              help="For releases of range-query: least squares, non-negative or whole.")  # fmt: skip
@click.option("--merge", metavar="NAME", help="For releases of count-of-counts: weighted, plain or at once.")
@click.option(
    "--backend", metavar="NAME", help="For releases of group-size, top-down and tabulation: the solver."
)
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For releases of group-size, top-down, tabulation: seconds for each step.")  # fmt: skip
@click.option("--root", metavar="NAME",
              help="Name of the region above all others. Default: all.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True,
              help="Folder to create, for the tables, manifest.json, the report and the proofs.")  # fmt: skip
@OVERWRITE
@click.option("--title", metavar="TEXT", help="Title of the report.")
@click.option("--note", metavar="TEXT", help="Text under the title.")
@click.option("--confidence", type=float, metavar="NUMBER",
              help="As of `hierdp release`: columns lower and upper. A table needs standard "
                   "errors.")  # fmt: skip
@click.option("--simultaneous", is_flag=True, help="As of `hierdp release`.")
@with_public
@with_mechanism
@click.option("--csv-safe", is_flag=True, help="As of `hierdp release`: names that a spreadsheet would run "
              "as a formula are marked in the CSVs.")  # fmt: skip
def repair(
    noisy: Path, out: Path, overwrite: bool, public: str | None, title: str | None, note: str | None,
    csv_safe: bool, confidence: float | None, simultaneous: bool, **options: Any,
) -> None:  # fmt: skip
    """Make noisy counts consistent, proved optimal: a table's, or those of a release by another method.

    NOISY is a Parquet or CSV file with a row for each region: its level columns, its count, and optionally a
    standard error. No noise is added, and no privacy is claimed. Or it is the folder of a release, whose
    measurements another method starts from; this costs no further budget.

    \b
    hierdp repair noisy.csv --levels state,county --count people --standard-error se --out repaired
    hierdp repair noisy.csv --levels state,county --count people --scale 2 --law Laplace --out repaired
    hierdp repair forecast.csv --levels region,shop --count sales --fixed root --out whole
    hierdp repair forecasts.csv --by date --levels region,shop --count sales --out whole
    hierdp repair noisy.csv --levels state,county --count people --method least-squares --out estimates
    hierdp repair released --method M_c --out released-by-M_c
    """
    from hierdp.checking.same_noise import repaired
    from hierdp.counts.size_table import CONFIDENCE
    from hierdp.execution import folder
    from hierdp.mechanisms.repair import repair as repair_table
    from hierdp.privacy.account import refuse_protected
    from hierdp.questions.intervals import if_known, with_intervals
    from hierdp.record.release import Release, check_words
    from hierdp.reports.solved import count_proved

    check_words(title=title, note=note)
    given = {name: value for name, value in options.items() if value not in (None, ())}
    with folder.appearing(out, overwrite, [noisy]) as aside:
        if noisy.is_dir():
            refuse(given, OF_TABLES, f"{noisy} is a release, whose noisy counts are repaired")
            if "method" not in given:
                raise InputError(
                    f"{noisy} is a release: name the method (--method) that is to start from its noise"
                )
            made: Release = repaired(noisy, **given)
            budget = "the noise of the release: no further budget"
        else:
            refuse(given, OF_RELEASES, f"{noisy} is a table")
            refuse_protected(noisy, public)
            if missing := [f"--{name}" for name in ("levels", "count") if name not in given]:
                raise InputError(f"{noisy} is a table: name its columns with {' and '.join(missing)}")
            made = repair_table(source_of(noisy, given), **given)
            budget = "no noise added, no privacy claimed"
        if confidence is None and not simultaneous:
            made = if_known(made)
        elif confidence != 0:
            made = with_intervals(made, confidence or CONFIDENCE, simultaneous)
        fingerprint = made.fill(aside, title=title, note=note, csv_safe=csv_safe)
    with complete(out):
        proved, solved = count_proved(line.line for line in made.proved)
        screen = console()
        screen.print(
            f"{made.mechanism}: {len(made.table):,} rows; {proved} of {solved} problems proved optimal; "
            f"{budget}. Written to {out}/; open {out}/report.html."
        )
        if made.intervals is not None:
            screen.print(f"Intervals: {made.intervals['covers']}.")
        screen.print(f"Fingerprint: {fingerprint} (for `hierdp check {out} --fingerprint …`)")


def source_of(noisy: Path, given: dict[str, Any]) -> Any:
    """The table, or the counts in it with the standard errors that follow from numbers, scales and laws."""
    if "law" in given and "scale" not in given:
        raise InputError("--law says what --scale means; give --scale as well")
    spread: dict[str, Any] = {
        name: number(given[name]) for name in ("standard_error", "scale") if name in given
    }
    if "scale" not in given and not isinstance(spread.get("standard_error"), float):
        return noisy
    from hierdp.measurements.measurement import Measurements

    law = {name: given.pop(name) for name in ("law",) if name in given}
    for name in spread:
        del given[name]
    return Measurements.from_frame(noisy, given["levels"], given.pop("count"), **spread, **law)


def refuse(given: dict[str, Any], flags: tuple[str, ...], why: str) -> None:
    """Refuse options of the other kind of input."""
    if strange := [name for name in flags if name in given]:
        raise InputError(f"--{strange[0].replace('_', '-')} does not apply: {why}")
