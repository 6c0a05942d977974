"""hierdp query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import click

from hierdp.cli.common import NOT_PRIVATE, WARNING, console, print_frame, printing, with_labels, with_limit


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
@click.option(
    "--confidence",
    type=float,
    metavar="NUMBER",
    help="That of the intervals lower … upper: each covers the true count with at least this probability. "
    "Default: 0.9, where intervals are known. 0: none. Without a query, intervals of every row.",
)
@click.option(
    "--method",
    type=click.Choice(["estimate", "linear-programs"]),
    default="estimate",
    show_default=True,
    help="Of intervals. linear-programs: the least and the largest sum that bounds on the noise on this "
    "level and those above allow, proved; slower, and narrower mainly for sums of many flows.",
)
@click.option(
    "--unbiased",
    is_flag=True,
    help="Also give an estimate from the noisy counts, which is right on average, and its standard error: "
    "for sums of many counts, in which the average effect of a repair adds up.",
)
@click.option("--simultaneous", is_flag=True,
              help="--confidence is the probability that all of the intervals cover.")  # fmt: skip
@with_labels
@with_limit
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
def query(
    release: Path, ranges: tuple[str, ...], wheres: tuple[str, ...], file: TextIO | None, as_csv: bool,
    limit: int | None, confidence: float | None, method: str, unbiased: bool, simultaneous: bool,
    labels: Path | None,
) -> None:  # fmt: skip
    """Answer queries from RELEASE, a folder made by `hierdp release` or `hierdp repair`.

    \b
    hierdp query homes --where "county=Kings|Queens; size=1:4"
    hierdp query trips --where "origin=JFK; destination.state=CA" --csv
    hierdp query ages --range 18:65 --range :18 --range 65:
    hierdp query places --range x=-10:40,y=35:70

    Queries spend no budget. Standard errors are exact, from the law of the noise. They are not known for
    counts that were made whole or non-negative, because these depend on the true counts: see
    docs/guide/repair.md.
    """
    from hierdp.counts.size_table import CONFIDENCE, covering
    from hierdp.questions import query as questions
    from hierdp.record.written import read_manifest

    if ranges and wheres:
        raise click.UsageError("--range is for histograms, --where for tables of regions: give one of them")
    lines = [line.strip() for line in file or () if line.strip()]
    texts = [*ranges, *wheres, *lines]
    if (unbiased or method != "estimate") and (ranges or not questions.has_regions(release)):
        raise click.UsageError("--unbiased and --method are for tables of regions (--where)")
    if not texts and confidence is None:
        raise click.UsageError(
            "no query: give --range LOW:HIGH, --where COLUMN=NAME or --file; or --confidence for every row"
        )
    if not texts:
        frame = questions.every_row(release, limit, confidence, simultaneous)
    elif wheres or (not ranges and questions.has_regions(release)):
        frame = questions.sums(release, texts, limit, confidence, labels, simultaneous, method, unbiased)
    else:
        frame = questions.boxes(release, texts, limit, confidence, labels, simultaneous)
    if as_csv:
        with printing():
            frame.to_csv(sys.stdout, index=False)
        return
    screen = console()
    if read_manifest(release).get("warning"):
        screen.print(NOT_PRIVATE, style=WARNING)
    unknown = ("standard_error", "before_repair", "lower", "upper", "bound", "unbiased", "unbiased_error")
    for column in unknown:
        if column in frame and frame[column].isna().any():
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "not known")
    print_frame(screen, f"{release}", frame)
    if "lower" in frame:
        said = covering(CONFIDENCE if confidence is None else confidence, simultaneous)
        screen.print(f"Intervals: {said}.")
