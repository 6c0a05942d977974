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
              help="A question; repeat it for more. An end left out is the axis's own, so :HIGH is a prefix. "
                   "For a box, give several axes: age=18:65,income=0:1000.")  # fmt: skip
@click.option("--file", type=click.File("r"), help="A file with a question a line; - for standard input.")
@with_limit
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with all digits.")
def query(release: Path, ranges: tuple[str, ...], file: TextIO | None, as_csv: bool, limit: float) -> None:
    """Ask RELEASE, a folder that `hierdp release range-query` made: counts of ranges and boxes.

    Ranges of numbers and dates go from LOW up to, and without, HIGH, and must consist of whole bins; those of
    names hold both ends. Asking spends nothing more.

    The standard error is exact: it follows from the law of the noise. Counts that were made non-negative or
    whole (--repair) have none, for how far off they are depends on the true counts. It is then shown as
    "not known", and left empty with --csv.

    \b
    hierdp query ages --range 18:65 --range :18 --range 65:
    hierdp query places --range x=-10:40,y=35:70
    """
    from hierdp.execution import progress
    from hierdp.mechanisms.range_query.answers import answers_frame
    from hierdp.mechanisms.range_query.reading import read_answers, warning_of

    asked = [*ranges, *(line.strip() for line in file or () if line.strip())]
    if not asked:
        raise click.UsageError("ask something: --range LOW:HIGH, or --file")
    progress.watch_compiler()
    answers = read_answers(release, gigabytes(limit))
    spans = [_box(answers, text) for text in asked]
    frame = answers_frame(
        answers.box([[low for low, _ in box] for box in spans], [[high for _, high in box] for box in spans]),
        asked,
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
    """The bins that a question asks for, along each axis."""
    from hierdp.counts.axes import span
    from hierdp.errors import InputError, listed

    named = {axis.name: axis for axis in answers.axes}
    found = {name: (0, axis.bins) for name, axis in named.items()}
    seen = set()
    for part in text.split(","):
        before, equals, ends = part.rpartition("=")
        name = before if equals else answers.axes[0].name
        if not equals and len(named) > 1:
            raise InputError(
                f"{text!r}: say of which axis, {listed(named)}, as in {next(iter(named))}={part}"
            )
        if name not in named:
            raise InputError(f"{text!r}: there is no axis {name!r}; there are {listed(named)}")
        low, colon, high = ends.partition(":")
        if not colon or ":" in high or name in seen:
            raise InputError(f"{text!r}: write LOW:HIGH, once an axis")
        seen.add(name)
        found[name] = span(named[name], low.strip(), high.strip())
    return list(found.values())
