"""`hierdp.query`: questions to a written release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.axes import Names, span
from hierdp.counts.labels import Labels, code_of
from hierdp.counts.size_table import CONFIDENCE
from hierdp.errors import InputError, listed
from hierdp.execution import progress
from hierdp.record import files, written

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.mechanisms.range_query.answers import RangeAnswers


def query(
    release: str | Path,
    questions: str | Sequence[str],
    *,
    confidence: float | None = None,
    simultaneous: bool = False,
    method: str = "estimate",
    unbiased: bool = False,
    labels: str | Path | None = None,
    limit: int | None = None,
) -> DataFrame:
    """Answer questions from a written release; this spends no budget.

    Parameters
    ----------
    release : path
        The folder.
    questions : str or sequence of str
        Of a histogram, LOW:HIGH, with the axis if there are several: ``"18:65"``, ``"x=0:4,y=2:8"``. Of other
        releases, names of columns: ``"county=Kings|Queens; size=1:4"``. See `hierdp query --help`.
    confidence : float, optional
        Each answer gets an interval that covers the true count with at least this probability; see
        docs/intervals.md. Default: 0.9, if the release has what intervals need. 0: no intervals.
    simultaneous : bool
        `confidence` is the probability that all intervals cover, which are wider for it.
    method : str
        Of intervals: "estimate", or "linear-programs", which are slower.
    unbiased : bool
        Whether to add an `unbiased` estimate from the measurements, with its `unbiased_error`: for sums of
        many counts, whose errors of repair would add up.
    labels : path, optional
        A table of names for the codes of regions, bins or categories.
    limit : int, optional
        Limit on the memory for reading the release, in bytes. Default: what its size justifies.

    Returns
    -------
    DataFrame
        A row for each question: the `query`, its `estimate` and `standard_error`, which is NaN if it is not
        known. For some releases more columns; see `hierdp query --help`.

    Raises
    ------
    InputError
        If a question does not fit the release; the message names it. If the folder is not a release, or takes
        more memory.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from hierdp import Numbers, SimulatedNoise, release
    >>> ages = pd.DataFrame({"age": [3, 17, 17, 40, 41]})
    >>> made = release(ages, "range-query", epsilon=1, axes=[Numbers("age", 0, 100, 4)], method="Flat",
    ...                noise=SimulatedNoise(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     query(made.write(f"{folder}/out"), ["0:50", "50:100"])["query"].tolist()
    ['0:50', '50:100']
    """
    folder, texts = Path(release), [questions] if isinstance(questions, str) else list(questions)
    names = None if labels is None else Path(labels)
    if has_regions(folder):
        return sums(folder, texts, limit, confidence, names, simultaneous, method, unbiased)
    if unbiased or method != "estimate":
        raise InputError("`method` and `unbiased` are for releases of regions; see `repair` for histograms")
    return boxes(folder, texts, limit, confidence, names, simultaneous)


def has_regions(release: Path) -> bool:
    """Whether a release is of regions, so that questions name them."""
    written.names_in(release)
    return (release / files.REGIONS).is_file()


def sums(
    release: Path,
    texts: Sequence[str],
    limit: int | None,
    confidence: float | None = None,
    labels: Path | None = None,
    simultaneous: bool = False,
    method: str = "estimate",
    unbiased: bool = False,
) -> DataFrame:
    """The answers to questions about regions and categories."""
    import pandas as pd

    from hierdp.questions.tables import Questions, with_names
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
    from hierdp.questions.intervals import accuracy_of, bounds_of

    progress.watch_compiler()
    asked = [questions.selection(text) for text in texts]
    level = CONFIDENCE if confidence is None else confidence
    try:
        columns |= accuracy_of(found, asked, level, simultaneous, method, unbiased)
    except InputError:
        if confidence is not None or simultaneous or method != "estimate" or unbiased:
            raise
    if level:
        columns |= bounds_of(found, answers)
    return pd.DataFrame({"query": texts, **columns})


def every_row(
    release: Path, limit: int | None, confidence: float | None, simultaneous: bool = False
) -> DataFrame:
    """The rows of a release's table, with intervals."""
    from hierdp.questions.intervals import table_of

    assert confidence is not None
    progress.watch_compiler()
    return table_of(written.read(release, limit), confidence, simultaneous)


def boxes(
    release: Path,
    texts: Sequence[str],
    limit: int | None,
    confidence: float | None = None,
    labels: Path | None = None,
    simultaneous: bool = False,
) -> DataFrame:
    """The answers to ranges and boxes."""
    from hierdp.mechanisms.range_query.answers import answers_frame
    from hierdp.mechanisms.range_query.reading import read_answers

    answers = read_answers(release, limit)
    names = _labels_of(release, answers, labels)
    progress.watch_compiler()
    spans = [_box(answers, text, names) for text in texts]
    ends = [[low for low, _ in box] for box in spans], [[high for _, high in box] for box in spans]
    frame = answers_frame(answers.box(*ends), texts)
    level = CONFIDENCE if confidence is None else confidence
    if level:
        from hierdp.questions.intervals import boxes_of

        low, high = map(np.array, ends)
        try:
            frame = frame.assign(**boxes_of(written.read(release, limit), low, high, level, simultaneous))
        except InputError:
            if confidence is not None or simultaneous:
                raise
    before = answers.before_repair
    return frame if before is None else frame.assign(before_repair=before.box(*ends).standard_error)


def _labels_of(release: Path, answers: RangeAnswers, labels: Path | None) -> Labels:
    """The names of a histogram's bins."""
    from hierdp.tables.labels import labels_for

    codes = {str(name) for axis in answers.axes if isinstance(axis, Names) for name in axis.names}
    return labels_for(labels, written.read_manifest(release), codes)


def _box(answers: RangeAnswers, text: str, labels: Labels) -> list[tuple[int, int]]:
    """The bins of a query along each axis."""
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
