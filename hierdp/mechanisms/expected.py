"""What to expect of a release, without data: noise, and the errors that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.mechanisms.option import Option
from hierdp.privacy.budget import GAUSSIAN, Spend
from hierdp.privacy.noise import deviation_of, double_geometric_variance
from models.arithmetic.arrays import Floats, Ints
from models.tree import Tree

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_REGIONS = 20_000_000
"""The most regions of a hierarchy that is made from numbers."""

LEVEL, NAME, QUERY, ERROR, NOISE = "level", "counts_of", "query", "standard_error", "noise_deviation"
"""Columns of `Expected.table` by which a row is chosen, and its two errors."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What to expect of a release; made by `hierdp.plan`.

    Attributes
    ----------
    method : str
    table : DataFrame
        One row for each measurement, or for each method of `range-query`. `noise_deviation` is the standard
        deviation of the noise of one measured number; `standard_error` that of a released count, missing if
        it is not known without data. `bound` (top-down) is an error that no count of the level exceeds, up to
        the failure probability.
    notes : tuple of str
        What is known of the released counts, what is not, and why.
    epsilon : float
        The budget; with a wanted standard error, the one found.
    at : tuple of str
        The columns by which a row may be chosen (see `hierdp.plan`).
    answers : int, optional
        The number of noisy answers that a count is a sum or difference of; None if no intervals follow from
        the plan.
    noise : str
        The law of their noise.
    plan : mapping, optional
        The optimal plan, if one was asked for: the option `plan` of tabulation, or `shares` of others.
    """

    method: str
    table: DataFrame
    notes: tuple[str, ...] = ()
    epsilon: float = math.nan
    at: tuple[str, ...] = field(default=(NAME, LEVEL))
    answers: int | None = None
    noise: str = GAUSSIAN
    plan: Mapping[str, Any] | None = None

    def error(self, at: str | None) -> float:
        """The largest error of the chosen rows: the standard error if it is known, else that of the noise.

        Parameters
        ----------
        at : str, optional
            A level, by its name or number, or ``LEVEL:QUERY``; for ranges, a method. Default: the last
            level; for ranges, the best method.

        Raises
        ------
        InputError
            If there is no such row.
        """
        rows = self.table
        if at is not None:
            level, colon, query = at.partition(":")
            there = [rows[name].astype(str) for name in self.at]
            chosen = np.logical_or.reduce([column == at for column in there])
            if colon and QUERY in rows and not chosen.any():
                found = np.logical_or.reduce([column == level for column in there])
                chosen = found & (rows[QUERY] == query)
            if not chosen.any():
                names = list(dict.fromkeys(there[0].tolist()))
                raise InputError(f"nothing is measured at {at!r}; choose one of {listed(names)}")
            rows = rows[chosen]
        elif LEVEL in rows:
            rows = rows[rows[LEVEL] == rows[LEVEL].max()]
        elif NOISE not in rows:  # a row for each method
            return float(rows[ERROR].min())
        errors = rows[ERROR].astype(float)
        return float((errors.where(errors.notna(), rows[NOISE]) if NOISE in rows else errors).max())


def known_columns(table: DataFrame) -> DataFrame:
    """The table for a screen: numbers that are not known as words, without the numbers of levels."""
    import pandas as pd

    shown = table.drop(columns=[LEVEL, *([QUERY] if NAME in table and not _queries_differ(table) else [])],
                       errors="ignore")  # fmt: skip
    words = {ERROR: "not known", NOISE: "not measured", "bound": "not known", "interval_width": "not known"}
    for column in [one for one in words if one in shown]:
        missing = shown[column].isna()
        if missing.any():
            texts = [
                words[column] if gap else f"{value:,.4g}"
                for value, gap in zip(shown[column], missing, strict=True)
            ]
            shown[column] = pd.Series(texts, index=shown.index, dtype=object)
    return shown


def _queries_differ(table: DataFrame) -> bool:
    """Whether a level has several queries, so that its name does not say which one a row is about."""
    return bool(table[NAME].duplicated().any())


def frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A table from its rows, with the columns of the first."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(rows[0]) if rows else None)


def geometric_deviation(sensitivity: float, epsilon: float) -> float:
    """The standard deviation of double-geometric noise."""
    return math.sqrt(double_geometric_variance(sensitivity / epsilon))


def gaussian_deviation(sensitivity: float, rho: float) -> float:
    """The standard deviation of discrete Gaussian noise."""
    scale = sensitivity / math.sqrt(2 * rho)
    found = deviation_of(Spend("", "discrete Gaussian", sensitivity, scale, None, rho, True))
    assert found is not None
    return found


def deviation(noise: str, sensitivity: float, loss: float) -> float:
    """The standard deviation of noise of a law, for a loss ε or ρ."""
    return (gaussian_deviation if noise == GAUSSIAN else geometric_deviation)(sensitivity, loss)


LevelWeights = Annotated[
    Sequence[float] | None,
    Option(
        "In place of `shares`: the weight of each level's variance, from the top. The shares with the least "
        "weighted sum are found. The variance is that of the noise; of top-down, that of least squares, "
        "before counts become whole.",
        "NUMBER",
        flag="--optimize",
    ),
]
Largest = Annotated[
    bool, Option("With `optimize`: the least of the largest weighted variance, in place of the sum.")
]


def best_shares(
    weights: Sequence[float],
    sensitivities: Sequence[float],
    shares: Sequence[float] | None,
    noise: str,
    largest: bool = False,
    parts: Floats | None = None,
) -> list[float]:
    """The shares of levels with the least weighted variances of their counts, proved by `BudgetSplit`.

    - weights: above 0; one for each level that is measured, from the top.
    - sensitivities: of the levels' queries.
    - shares: must not be given, too.
    - noise: the law; variances of Gaussian noise are in proportion to 1/ρ, others to 1/ε².
    - largest: whether the largest weighted variance is minimized, in place of their sum. Of noise that is not
      Gaussian, that is the largest root of one, which is in proportion to 1/ε.
    - parts, shape (levels, levels): of the noise of each level (a column) in the variance of each level's
      counts, for Gaussian noise. Default: the variance is that of the level's own noise.

    Raises `InputError` if there is not one positive finite weight for each level, or shares are given, too.
    """
    from models import BudgetSplit
    from solvers import solve

    if shares is not None:
        raise InputError("give `shares`, or weights of levels to `optimize` for, not both")
    if len(weights) != len(sensitivities):
        raise InputError(
            f"`optimize`: {len(weights)} weights for {len(sensitivities)} levels; give one for each"
        )
    if not all(0 < weight < math.inf for weight in weights):
        raise InputError("`optimize`: weights must be positive and finite")
    own = np.eye(len(weights)) if parts is None else parts
    variances = np.asarray(weights, float)[:, None] * own * np.square(np.asarray(sensitivities, float))
    if noise != GAUSSIAN and largest:
        variances = np.sqrt(variances)
    if not largest:
        variances = variances.sum(axis=0)
    found = solve(BudgetSplit(variances, 1.0, np.ones(len(own)) if noise == GAUSSIAN or largest else None))
    if found.x is None or found.status != "optimal":
        raise InputError("`optimize`: the weights are too large, too small or too different for a proof")
    return [float(share) for share in found.x]


def shares_note(shares: Sequence[float]) -> str:
    """The shares, as options of the release."""
    return "Optimized, and proved; for the release: " + " ".join(f"--share {share:.4g}" for share in shares)


PlannedLevels = Annotated[
    Sequence[str] | None,
    Option(
        "The levels with their numbers of regions, from coarse to fine, without the root: "
        "state:52,county:3221. Regions are divided among those above as evenly as possible.",
        "LEVEL:NUMBER,…",
        form="planned levels",
    ),
]
PlannedRegions = Annotated[
    Hierarchy | None, Option("In place of `levels`: a public table of all regions.", form="planned regions")
]
RowsOfAPerson = Annotated[
    int, Option("The most rows of a person, if all of them are protected together.", "NUMBER", least=1)
]


def places_of(levels: Sequence[str] | None, regions: Hierarchy | None) -> Hierarchy:
    """The hierarchy that is given, or one with the given numbers of regions.

    Raises `InputError` if neither or both are given; see also `regions_of`.
    """
    if (levels is None) == (regions is None):
        raise InputError(
            "give the number of regions of each level (`--levels state:52|levels=['state=52']`), or a table "
            "of regions (`regions`)"
        )
    return regions_of(levels or ()) if regions is None else regions


def numbers_of(texts: Sequence[str], what: str) -> dict[str, int]:
    """The numbers in texts such as ``state=52``.

    Raises `InputError` if a text is not ``NAME=NUMBER``, a number is not positive, or a name occurs twice.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if (
            not name.strip()
            or not number.strip().replace(",", "").isdigit()
            or not int(number.replace(",", ""))
        ):
            raise InputError(f"{what} {text!r}: write NAME=NUMBER, such as state=52")
        if name.strip() in found:
            raise InputError(f"{what} {name.strip()!r} is given twice")
        found[name.strip()] = int(number.replace(",", ""))
    return found


def regions_of(levels: Sequence[str]) -> Hierarchy:
    """A hierarchy with a number of regions on each level, divided among their parents as evenly as possible.

    - levels: ``NAME=NUMBER``, from coarse to fine, without the root.

    Raises `InputError` if a number is below that of the level above, or too large.

    >>> regions_of(["state=2", "county=5"]).tree.levels[1]
    array([0, 0, 0, 1, 1])
    """
    numbers = numbers_of([levels] if isinstance(levels, str) else levels, "level")
    if not numbers:
        raise InputError("no levels: give the number of regions of each, such as state=52")
    above, parents = 1, list[Ints]()
    for name, number in numbers.items():
        if number < above:
            raise InputError(f"level {name!r} has {number} regions, fewer than the level above: {above}")
        if number > MOST_REGIONS:
            raise InputError(
                f"level {name!r} has {number:,} regions; at most {MOST_REGIONS:,} are planned for"
            )
        parents.append(np.arange(number) * above // number)
        above = number
    names = [np.array(["root"], dtype=object)]
    names += [np.arange(number).astype(str).astype(object) for number in numbers.values()]
    return Hierarchy(("root", *numbers), tuple(names), Tree(parents))
