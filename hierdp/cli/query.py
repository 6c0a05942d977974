"""hierdp query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from hierdp.cli.common import (
    NOT_PRIVATE,
    WARNING,
    console,
    gigabytes,
    print_frame,
    printing,
    with_labels,
    with_limit,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.counts.labels import Labels
    from hierdp.mechanisms.range_query.answers import RangeAnswers


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--range", "ranges", multiple=True, metavar="[AXIS=]LOW:HIGH",
              help="A query of a histogram. Repeat it for more queries. An omitted end is the end of the "
                   "axis, so :HIGH is a prefix. For a box, give several axes: "
                   "age=18:65,income=0:1000.")  # fmt: skip
@click.option("--where", "wheres", multiple=True, metavar="COLUMN=NAME|NAME;…",
              help="A query of a table of regions, by the names of a level (county=Kings|Queens), of an axis "
                   "(origin=JFK), or of categories (age=child). Repeat it for more queries.")  # fmt: skip
@click.option("--file", type=click.File("r"),
              help="A file with one query per line, as --range for a histogram and --where for any other "
                   "release; - for standard input.")  # fmt: skip
@click.option("--interval", is_flag=True,
              help="For counts made whole level by level (InfTDA, TDA, TopDown, BlueDown): 90 % intervals by "
                   "bootstrap, with their measured coverage, and the utility bound.")  # fmt: skip
@click.option("--times", type=click.IntRange(min=20), default=100, show_default=True, metavar="NUMBER",
              help="With --interval: how many times the released counts are released again.")  # fmt: skip
@with_labels
@with_limit
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
def query(
    release: Path,
    ranges: tuple[str, ...],
    wheres: tuple[str, ...],
    file: TextIO | None,
    as_csv: bool,
    limit: float,
    interval: bool,
    times: int,
    labels: Path | None,
) -> None:
    """Answer queries from RELEASE, a folder made by `hierdp release` or `hierdp repair`.

    A query of regions and categories (--where) is the sum of their counts. Columns that are not named are
    summed over; names of one column are separated by |, columns by semicolons. AXIS.LEVEL names a level that
    several axes have. Sizes may be a range: size=1:4 is 1, 2 and 3.

    A query of a histogram (--range; releases of range-query and clustering) is the sum of its bins. Ranges of
    numbers and dates go from LOW to HIGH, which is excluded, and must consist of whole bins. Ranges
    of names include both ends. Queries spend no privacy budget.

    The standard error is exact: it follows from the distribution of the noise. It is not known for counts
    that were made non-negative or whole, because their error depends on the true counts, nor for a sum of
    several rows of a table. It is then printed as "not known", and left empty with --csv. For a histogram
    that was made non-negative or whole, the column before_repair has the exact standard error that the answer
    had before.

    With --interval, counts that were made whole and non-negative level by level get an interval by parametric
    bootstrap: the released counts are taken as the truth, and released again with simulated noise of the same
    law. This spends no budget. Such intervals are estimates. They are printed with the coverage that was
    measured for counts of this size on public data (nominal: 90 %); where it was too low, as for small
    counts, the interval is "not known". For InfTDA, bound is an error that no count of the level exceeds,
    with a probability of 95 %, whatever the data.

    \b
    hierdp query ages --range 18:65 --range :18 --range 65:
    hierdp query places --range x=-10:40,y=35:70
    hierdp query homes --where "county=Kings|Queens; size=1:4"
    hierdp query trips --where "origin=JFK; destination.state=CA" --csv
    """
    from hierdp.mechanisms.range_query.reading import read_answers, warning_of

    if ranges and wheres:
        raise click.UsageError("--range is for histograms, --where for tables of regions: give one of them")
    lines = [line.strip() for line in file or () if line.strip()]
    texts = [*ranges, *wheres, *lines]
    if not texts:
        raise click.UsageError("no query: give --range LOW:HIGH, --where COLUMN=NAME or --file")
    if wheres or (not ranges and _has_regions(release)):
        frame = _sums(release, texts, gigabytes(limit), times if interval else None, labels)
    else:
        answers = read_answers(release, gigabytes(limit))
        frame = _boxes(answers, texts, _labels_of(release, answers, labels))
        if interval:
            click.echo(_no_interval(frame), err=True)
    if as_csv:
        with printing():
            frame.to_csv(sys.stdout, index=False)
        return
    screen = console()
    if warning_of(release):
        screen.print(NOT_PRIVATE, style=WARNING)
    for column in ("standard_error", "before_repair", "low", "high", "bound"):
        if column in frame and frame[column].isna().any():
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "not known")
    print_frame(screen, f"{release}", frame)


def _has_regions(release: Path) -> bool:
    from hierdp.record import files, written

    written.names_in(release)
    return (release / files.REGIONS).is_file()


def _labels_of(release: Path, answers: RangeAnswers, labels: Path | None) -> Labels:
    """The names of a histogram's bins."""
    from hierdp.counts.axes import Names
    from hierdp.record import written
    from hierdp.tables.labels import labels_for

    codes = {str(name) for axis in answers.axes if isinstance(axis, Names) for name in axis.names}
    return labels_for(labels, written.read_manifest(release), codes)


def _sums(
    release: Path, texts: list[str], limit: int, times: int | None = None, labels: Path | None = None
) -> DataFrame:
    """The answers to questions about regions and categories."""
    import pandas as pd

    from hierdp.execution import progress
    from hierdp.questions.parsing import with_names
    from hierdp.questions.tables import Questions
    from hierdp.record import written
    from hierdp.tables.labels import codes_in, labels_for

    found = written.read(release, limit)
    names = labels_for(labels, found.manifest, codes_in(found.table, found.regions))
    questions = Questions(found.table, found.manifest["settings"], found.regions, names)
    answers = [questions.ask(text) for text in progress.steps(texts, "queries answered", len(texts))]
    columns: dict[str, list[Any]] = {
        **({"named": [with_names(text, names) for text in texts]} if names else {}),
        "estimate": [one.estimate for one in answers],
        "standard_error": [one.standard_error for one in answers],
    }
    if times is not None:
        from hierdp.questions.intervals import Intervals

        progress.watch_compiler()
        intervals = Intervals(found.table, found.manifest, found.regions, times).of(texts, answers)
        columns |= {
            "low": [one.low for one in intervals],
            "high": [one.high for one in intervals],
            "coverage": [one.in_words for one in intervals],
            "bound": [one.bound for one in intervals],
        }
    return pd.DataFrame({"query": texts, **columns})


def _no_interval(frame: DataFrame) -> str:
    """Why a histogram has no intervals by bootstrap, and what it has."""
    if "before_repair" in frame:
        return (
            "Note: there are no intervals for this histogram. Its counts were made non-negative or whole, so "
            "their standard errors depend on the true counts and are not known. before_repair is the exact "
            "standard error that each answer had before. A release with --repair 'least squares' has exact "
            "standard errors, but its counts may be negative."
        )
    if frame["standard_error"].isna().any():
        return (
            "Note: there are no intervals for this histogram. Its bins have the means of clusters, whose "
            "bias depends on the true counts and is not known. Releases by range-query, and by clustering "
            "--method Laplace, have exact standard errors. `hierdp plan clustering` gives the noise of a "
            "cluster."
        )
    return (
        "Note: the standard errors are exact, so there is nothing to estimate by --interval. The estimate ± "
        "1.645 standard errors covers about 90 % of answers to ranges of several bins."
    )


def _boxes(answers: RangeAnswers, texts: list[str], labels: Labels) -> DataFrame:
    """The answers to ranges and boxes."""
    from hierdp.execution import progress
    from hierdp.mechanisms.range_query.answers import answers_frame

    progress.watch_compiler()
    spans = [_box(answers, text, labels) for text in texts]
    ends = [[low for low, _ in box] for box in spans], [[high for _, high in box] for box in spans]
    frame = answers_frame(answers.box(*ends), texts)
    before = answers.before_repair
    return frame if before is None else frame.assign(before_repair=before.box(*ends).standard_error)


def _box(answers: RangeAnswers, text: str, labels: Labels) -> list[tuple[int, int]]:
    """The bins of a query along each axis."""
    from hierdp.counts.axes import Names, span
    from hierdp.counts.labels import code_of
    from hierdp.errors import InputError, listed

    named = {axis.name: axis for axis in answers.axes}
    found = {name: (0, axis.bins) for name, axis in named.items()}
    seen = set()
    for part in text.split(","):
        before, equals, ends = part.rpartition("=")
        name = before if equals else answers.axes[0].name
        if not equals and len(named) > 1:
            raise InputError(f"{text!r}: name the axis ({listed(named)}), as in {next(iter(named))}={part}")
        if name not in named:
            raise InputError(f"{text!r}: unknown axis {name!r}; the axes are {listed(named)}")
        low, colon, high = ends.partition(":")
        if not colon or ":" in high or name in seen:
            raise InputError(f"{text!r}: write LOW:HIGH, once for each axis")
        seen.add(name)
        axis, low, high = named[name], low.strip(), high.strip()
        if isinstance(axis, Names):
            low, high = (end and code_of(end, map(str, axis.names), labels) for end in (low, high))
        found[name] = span(axis, low, high)
    return list(found.values())
