"""hierdp query."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from hierdp.cli.common import NOT_PRIVATE, WARNING, console, gigabytes, print_frame, printing, with_limit

if TYPE_CHECKING:
    from hierdp.mechanisms.range_query.answers import RangeAnswers


@click.command()
@click.argument("release", type=click.Path(path_type=Path))
@click.option("--range", "ranges", multiple=True, metavar="[AXIS=]LOW:HIGH",
              help="A query. Repeat it for more queries. An omitted end is the end of the axis, so :HIGH is "
                   "a prefix. For a box, give several axes: age=18:65,income=0:1000.")  # fmt: skip
@click.option("--file", type=click.File("r"),
              help="A file with one query per line; - for standard input.")  # fmt: skip
@with_limit
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
def query(release: Path, ranges: tuple[str, ...], file: TextIO | None, as_csv: bool, limit: float) -> None:
    """Answer range queries from RELEASE, a folder made by `hierdp release range-query`.

    Ranges of numbers and dates go from LOW to HIGH, which is excluded, and must consist of whole bins. Ranges
    of names include both ends. Queries spend no privacy budget.

    The standard error is exact: it follows from the distribution of the noise. It is not known for counts
    that were made non-negative or whole (--repair), because their error depends on the true counts. It is
    then printed as "not known", and left empty with --csv.

    \b
    hierdp query ages --range 18:65 --range :18 --range 65:
    hierdp query places --range x=-10:40,y=35:70
    """
    from hierdp.execution import progress
    from hierdp.mechanisms.range_query.answers import answers_frame
    from hierdp.mechanisms.range_query.reading import read_answers, warning_of

    texts = [*ranges, *(line.strip() for line in file or () if line.strip())]
    if not texts:
        raise click.UsageError("no query: give --range LOW:HIGH or --file")
    progress.watch_compiler()
    answers = read_answers(release, gigabytes(limit))
    spans = [_box(answers, text) for text in texts]
    frame = answers_frame(
        answers.box([[low for low, _ in box] for box in spans], [[high for _, high in box] for box in spans]),
        texts,
    )
    if as_csv:
        with printing():
            frame.to_csv(sys.stdout, index=False)
        return
    screen = console()
    if warning_of(release):
        screen.print(NOT_PRIVATE, style=WARNING)
    error = frame["standard_error"]
    if error.isna().any():
        frame["standard_error"] = error.astype(object).where(error.notna(), "not known")
    print_frame(screen, f"{release}", frame)


def _box(answers: RangeAnswers, text: str) -> list[tuple[int, int]]:
    """The bins of a query along each axis."""
    from hierdp.counts.axes import span
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
        found[name] = span(named[name], low.strip(), high.strip())
    return list(found.values())
