"""hierdp repair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hierdp.cli.app import complete
from hierdp.cli.commands import LazyCommand
from hierdp.cli.common import OVERWRITE, console, with_mechanism
from hierdp.cli.forms import arguments_of, flags_of
from hierdp.cli.sources import with_public
from hierdp.errors import InputError
from hierdp.mechanisms.option import Keyword
from hierdp.mechanisms.registry import REPAIR

OF_RELEASES = "repair", "merge", "backend", "time_limit"
"""Options for releases alone; `method` and `window` are for both, and all others are for tables of counts."""


@click.command()
@click.argument("noisy", type=click.Path(path_type=Path))
@click.option("--repair", metavar="NAME",
              help="For releases of range-query: least squares, non-negative or whole.")  # fmt: skip
@click.option("--merge", metavar="NAME", help="For releases of count-of-counts: weighted, plain or at once.")
@click.option(
    "--backend", metavar="NAME", help="For releases of group-size, top-down and tabulation: the solver."
)
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For releases of group-size, top-down, tabulation: seconds for each step.")  # fmt: skip
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
@click.pass_context
def shared(
    context: click.Context, /, noisy: Path, out: Path, overwrite: bool, public: str | None, title: str | None,
    note: str | None, csv_safe: bool, confidence: float | None, simultaneous: bool, **flags: Any,
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
    of_a_table = arguments_of(_keywords(), flags, context.get_parameter_source)
    of_a_release = {name: flags[name] for name in OF_RELEASES if flags[name] is not None}
    with folder.appearing(out, overwrite, [noisy]) as aside:
        if noisy.is_dir():
            both = {name: of_a_table.pop(name) for name in ("method", "window") if name in of_a_table}
            _refuse(of_a_table, f"{noisy} is a release, whose noisy counts are repaired")
            if "method" not in both:
                raise InputError(
                    f"{noisy} is a release: name the method (--method) that is to start from its noise"
                )
            made: Release = repaired(noisy, **both, **of_a_release)
            budget = "the noise of the release: no further budget"
        else:
            _refuse(of_a_release, f"{noisy} is a table")
            refuse_protected(noisy, public)
            if missing := [f"--{name}" for name in ("levels", "count") if name not in of_a_table]:
                raise InputError(f"{noisy} is a table: name its columns with {' and '.join(missing)}")
            made = repair_table(noisy, **of_a_table)
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


def _refuse(given: Mapping[str, Any], why: str) -> None:
    """Refuse options of the other kind of input."""
    if given:
        raise InputError(f"--{next(iter(given)).replace('_', '-')} does not apply: {why}")


def _keywords() -> Mapping[str, Keyword]:
    """The options of tables, of which a release needs none."""
    known = REPAIR.keywords
    return {**known, "levels": replace(known["levels"], default=None)}


repair = LazyCommand("repair", shared.callback, shared.help, lambda: [*flags_of(_keywords()), *shared.params])
