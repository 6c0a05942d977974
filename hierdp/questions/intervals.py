"""Intervals for counts that were made whole and non-negative level by level, by parametric bootstrap.

The error of such counts depends on the true ones. The bootstrap takes the released counts as the truth and
releases them again, many times, with the same mechanism and simulated noise of the same law. The root of the
mean squared difference from the released counts estimates their standard error. Only released counts are
used, so it spends no privacy budget.

The true counts are not the released ones, so nothing guarantees that such an interval covers the truth as
often as it says. Its coverage was measured on public data (`python -m benchmarks intervals`), by method,
level and size of the count in units of its own bootstrap error; for single counts, and for sums of several.
An interval is given only for counts of a size from which on, in every level that was measured, it covered at
least `LEAST` of all counts, and of those that are truly positive: many counts released as 0 are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.mechanisms.registry import released_by
from hierdp.privacy.noise import SimulatedNoise
from hierdp.questions.tables import Answer, Questions
from models.arithmetic.arrays import Floats

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.counts.hierarchy import Hierarchy

NOMINAL, WIDTH = 0.9, 1.645
"""The intervals are ± 1.645 bootstrap errors, which cover 90 % of normal errors."""

LEAST = 0.85
"""The least measured coverage with which an interval is given."""

ENOUGH = 100
"""The least number of counts that a measured coverage is of."""

TIMES = 100
"""The default number of second releases."""

FAILURE = 0.05
"""The probability with which a level's utility bound may fail."""

CLASSES = (1, 2, 5, 20)
"""Sizes of counts, in bootstrap errors, that divide the classes of the measured coverage."""

COVERAGE = "coverage.csv"
"""The measured coverage: a row for each data set, ε, method, level and class of size."""


class Interval(NamedTuple):
    """An interval for an answer, NaN if it is not known.

    Attributes
    ----------
    low, high : float
    covered : (float, float)
        The least and the largest coverage measured for counts of this size, over data sets and levels.
    bound : float
        By the utility theorem, no count of the answer's level is off by more, with a probability of 95 %.
    """

    low: float = math.nan
    high: float = math.nan
    covered: tuple[float, float] = (math.nan, math.nan)
    bound: float = math.nan

    @property
    def in_words(self) -> str:
        """The measured coverage as text, empty if there is none."""
        low, high = self.covered
        return "" if math.isnan(low) else f"{100 * low:.0f}–{100 * high:.0f} %"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals for answers from a release.

    Parameters
    ----------
    table : DataFrame
    manifest : mapping
    regions : mapping of str to Hierarchy
    times : int
        The number of second releases, 20 or more.
    seed : int
        Of their noise, so that intervals can be repeated.

    Raises
    ------
    InputError
        If the release is of a kind that has no such intervals.
    """

    table: Any
    manifest: Mapping[str, Any]
    regions: Mapping[str, Hierarchy]
    times: int = TIMES
    seed: int = 1

    def __post_init__(self) -> None:
        if self.times < 20:
            raise InputError(f"{self.times} second releases are too few for an interval: use 20 or more")
        self._again()

    def of(self, texts: Sequence[str], answers: Sequence[Answer]) -> list[Interval]:
        """The intervals of answers to questions."""
        simulated = [
            [Questions(table, self.manifest["settings"], self.regions).ask(text).estimate for text in texts]
            for table in self._tables()
        ]
        errors = deviations(np.array([one.estimate for one in answers]), np.array(simulated))
        bounds = self._bounds()
        return [self._interval(*one, bounds) for one in zip(answers, errors.tolist(), strict=True)]

    def _interval(self, answer: Answer, error: float, bounds: Sequence[float] | None) -> Interval:
        found = Interval()
        if bounds is not None and answer.cells == 1:
            found = found._replace(bound=bounds[answer.level])
        covered = coverage(str(self.manifest["mechanism"]), answer.estimate, error, answer.cells > 1)
        if covered is None:
            return found
        low, high = interval(answer.estimate, error)
        return found._replace(low=float(low), high=float(high), covered=covered)

    def _again(self) -> Callable[..., DataFrame]:
        mechanism = released_by(self.manifest["mechanism"])
        function = None if mechanism is None else mechanism.released_again
        if function is None or "standard_error" in self.table:
            raise InputError(
                f"there are no intervals for {self.manifest['mechanism']}: only for counts that were made "
                "whole and non-negative level by level (InfTDA and its relatives, TopDown, BlueDown)"
            )
        return function

    def _tables(self) -> Iterator[DataFrame]:
        function = self._again()
        for number in progress.steps(range(self.times), "releasing the released counts again", self.times):
            noise = SimulatedNoise(self.seed * 1_000_003 + number)
            yield function(self.table, self.manifest, self.regions, noise)

    def _bounds(self) -> list[float] | None:
        mechanism = released_by(self.manifest["mechanism"])
        assert mechanism is not None
        function = mechanism.bounds
        found: list[float] | None = function and function(self.table, self.manifest, self.regions, FAILURE)
        return found


def deviations(estimate: Floats, simulated: Floats) -> Floats:
    """The root of the mean squared difference of simulated counts from released ones.

    Parameters
    ----------
    estimate : array, shape (counts,)
    simulated : array, shape (times, counts)
    """
    return np.asarray(np.sqrt(np.mean((simulated - estimate) ** 2, axis=0)))


def interval(estimate: Any, error: Any) -> tuple[Any, Any]:
    """The ends of the interval of a count: whole numbers, 0 or more."""
    away = WIDTH * error
    return np.maximum(0, np.floor(estimate - away)), np.ceil(estimate + away)


def class_of(estimate: Any, error: Any) -> Any:
    """The class of a count by its size in bootstrap errors: 0 for a count of 0, then 1 … 5."""
    ratio = np.divide(estimate, error, out=np.full(np.shape(estimate), np.inf), where=np.asarray(error) > 0)
    return np.where(np.asarray(estimate) == 0, 0, 1 + np.searchsorted(CLASSES, ratio, side="right"))


def coverage(method: str, estimate: float, error: float, several: bool) -> tuple[float, float] | None:
    """The least and largest coverage measured for counts of this size, over data sets and levels.

    Parameters
    ----------
    method : str
    estimate, error : float
        A count and its bootstrap error.
    several : bool
        Whether it is a sum of several released counts.

    Returns
    -------
    (float, float), or None if the coverage of this size or a larger one was too low, or was not measured.
    """
    there = measured()
    size = int(class_of(np.array([float(estimate)]), np.array([error]))[0])
    rows = there[(there["method"] == method) & (there["sum"] == several) & (there["counts"] >= ENOUGH)]
    rows = rows[rows["class"] >= size]
    positive = rows["covered_positive"].where(rows["positive"] >= ENOUGH, 1.0)
    here = rows[rows["class"] == size]["covered"]
    if not len(here) or rows["covered"].min() < LEAST or positive.min() < LEAST:
        return None
    return float(here.min()), float(here.max())


@cache
def measured() -> DataFrame:
    """The measured coverage."""
    import pandas as pd

    with resources.files(__package__).joinpath(COVERAGE).open() as file:
        return pd.read_csv(file)
