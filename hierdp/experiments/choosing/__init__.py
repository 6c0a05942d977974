"""`recommend`: the method with the least error for a question, by simulated releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.errors import InputError, listed, unknown_name
from hierdp.execution import progress
from hierdp.experiments.choosing import methods
from hierdp.experiments.choosing.made_up import check_cells, made_up_bins, made_up_flows, made_up_groups
from hierdp.experiments.run import noise_for
from hierdp.privacy.account import refuse_protected
from hierdp.privacy.budget import GAUSSIAN, check_delta, check_epsilon
from hierdp.privacy.conversion import rho_of
from hierdp.tables import Flows
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

QUESTIONS: dict[str, dict[str, tuple[str, int]]] = {
    "groups": {"entities to move": (methods.EMD, -1), "counts by size": (methods.L1, -1)},
    "flows": {
        "destination totals": ("L1", 1),
        "cells": ("L1", -1),
        "largest error": ("largest error", -1),
        "invented cells": ("share of invented flows", -1),
        "missed cells": ("missed flows", -1),
    },
    "bins": {"shape": (methods.KLD, 0), "bins": (methods.BINS, 0), "ranges": (methods.RANGES, 0)},
}
"""For each kind of table, the errors that can be asked for, and the level that they mean by default."""

STEPS = (0.1, 0.3, 3.0, 10.0)
"""Multiples of ε, and of the numbers of a shape, at which the recommendation is made again."""

DEPTH = "levels, the root's included"
DEPTHS = (2, 3, 4)
ROUGHNESS = "roughness of neighbouring bins"
ROUGH = (0.0, 0.01, 0.1, 1.0)
UNDECIDED = (
    "The shape does not decide, as it does not say whether neighbours are alike (roughness 0) or unrelated "
    "(1): give public data (`like`)."
)

CONFIDENCE = 0.95

DELTA = 1e-8
"""The δ of methods for flows, if none is given."""

CLOSE = 1.1
"""A method is kept if its error is at most this times the least."""

FAR = 3.0
"""Methods with more than this times the least error are not tried on other shapes."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The method with the least predicted error.

    Attributes
    ----------
    question : str
    method : str
    command : str
        The arguments of `hierdp release` for it and its budget, without those of the table.
    ranking : DataFrame
        A row for each method: the mean error, its 95 % interval over the simulated releases, the mean divided
        by the least, and `alike`: whether the interval overlaps that of the best.
    flips : DataFrame
        What was changed, its value, and the best method there.
    left_out : tuple of str
        Methods that answer the question, but are too slow to be simulated on a table of this size.
    """

    question: str
    method: str
    command: str
    ranking: DataFrame
    flips: DataFrame
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Where the recommendation changes, in words."""
        found = []
        for changed, here in self.flips.groupby("changed", sort=False):
            other = here[~here["keeps"]]
            places = [f"{one.method} at {one.value:g}" for one in other.itertuples()]
            kept = f"{changed}: {self.method} from {here.value.min():g} to {here.value.max():g}"
            found.append(f"{changed}: " + ", ".join(places) if places else kept)
        if not self.flips.keeps[self.flips.changed == ROUGHNESS].all():
            found.append(UNDECIDED)
        if self.left_out:
            found.append(f"Not ranked, as too slow at this size: {', '.join(self.left_out)}.")
        return found


@dataclass(frozen=True, eq=False)
class Shape:
    """A public table, or made-up ones, and how they are made with other numbers: by what is changed, to what.

    - table: of each run; made-up ones of one shape are as different as tables of it may be.
    """

    kind: str
    table: Callable[[int], Any]
    max_size: int = 0
    others: Mapping[str, Sequence[tuple[float, Callable[[], Shape]]]] | None = None


def recommend(
    kind: str,
    question: str,
    *,
    epsilon: float,
    delta: float | None = None,
    levels: Sequence[str] | Hierarchy | None = None,
    axes: Mapping[str, Any] | None = None,
    bins: int | Sequence[int] | None = None,
    total: int | None = None,
    groups: int | None = None,
    filled: int | None = None,
    max_size: int | None = None,
    largest: int | None = None,
    like: Any = None,
    count: str = "count",
    runs: int = 5,
    public: str | None = None,
) -> Recommendation:
    """Rank all methods that answer a question, by simulated releases of a table that is not secret.

    Those are all that the registry of mechanisms has but `methods.NOT_FOR`. The tables are made up from the
    shape (`made_up`), another one for each run; or a public table of the same kind is taken.

    Parameters
    ----------
    kind : str
        "groups" (how many groups have each size, by region), "flows" (counts by cell of axes), or "bins" (a
        histogram).
    question : str
        One of `QUESTIONS`, and, after a colon, a level's name if it is not the default one: "entities to
        move: county".
    epsilon : float
    delta : float, optional
        Of the methods for flows; default: 1e-8. Those for bins release flows, too, with half of ε. With it,
        methods for groups are ranked under zCDP, too, with the ρ that (ε, δ) is converted to, beside those
        with ε-DP. Methods for bins are ε-DP.
    levels : sequence of str, or Hierarchy
        Of groups: the regions by level, such as ["state=52", "county=3221"], or the regions themselves.
    axes : mapping
        Of flows: for each axis its regions by level, {"state": 52, "county": 3221}, or a Hierarchy; with
        `like` as for `hierdp.release`.
    bins : int, or two
        The number of bins along each dimension.
    total : int
        The number of entities, trips or persons, about.
    groups : int, optional
        The number of groups.
    filled : int, optional
        The number of cells or bins that are not empty, about. Default: half.
    max_size : int, optional
        The largest size of a group in the release.
    largest : int, optional
        The largest size that is expected. Default: `max_size`.
    like : table, optional
        In place of `total`, `groups`, `filled` and `largest`: public data of the same kind. Groups: one row
        each, with the columns of the levels (`levels` are their names) and `size`. Flows: as for a release.
        Bins: a row for each, in order; with `total`, thinned or multiplied to it.
    count : str
        The column of counts, with `like`.
    runs : int
        Simulated releases of each method.
    public : str, optional
        Why the data of `like` are public although they have an account.

    Raises
    ------
    InputError
        If the shape is incomplete, or there is no such question.

    Examples
    --------
    >>> found = recommend("bins", "ranges", bins=16, total=500, filled=12, epsilon=1, runs=2)
    >>> found.ranking.columns.tolist()
    ['method', 'error', 'low', 'high', 'times_best', 'alike']
    >>> found.ranking.method[0] == found.method
    True
    """
    if kind not in QUESTIONS:
        raise InputError(unknown_name(kind, QUESTIONS, "no kind of table"))
    metric, level = question_of(kind, question)
    check_epsilon(epsilon)
    if delta is not None:
        check_delta(delta)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"runs must be a whole number of at least 1, got {runs!r}")
    refuse_protected(like, public)
    if kind == "groups":
        shape = shape_of_groups(levels, groups, total, max_size, largest, like)
    elif kind == "flows":
        shape = shape_of_flows(axes, total, filled, like, count)
    else:
        shape = shape_of_bins(bins, total, filled, like, count)
    ranking = ranked(shape, metric, level, epsilon, delta, runs)
    best = str(ranking.method[0])
    left_out = tuple(name for name in names_of(shape, delta) if name not in set(ranking.method))
    far = set(ranking.method[ranking.times_best > FAR])
    changes: dict[str, Sequence[tuple[float, Callable[[], Shape]]]] = {
        "ε": [(epsilon * step, lambda: shape) for step in STEPS]
    }
    changes |= shape.others or {}
    if isinstance(level, str):
        changes.pop(DEPTH, None)  # other depths have no levels of these names
    steps = [(name, value, make) for name, others in changes.items() for value, make in others]
    flips = []
    for name, value, make in progress.steps(steps, "other settings", len(steps)):
        try:
            here = ranked(make(), metric, level, value if name == "ε" else epsilon, delta, runs, far)
        except InputError:  # no table has such a shape
            continue
        keeps = bool((here.times_best[here.method == best] <= CLOSE).any())
        method = best if keeps else str(here.method[0])
        flips.append({"changed": name, "value": value, "method": method, "keeps": keeps})
    import pandas as pd

    table = pd.DataFrame(flips, columns=["changed", "value", "method", "keeps"])
    return Recommendation(question, best, command_of(best, epsilon, delta), ranking, table, left_out)


def command_of(method: str, epsilon: float, delta: float | None) -> str:
    """The arguments of `hierdp release` for a method of a ranking and its budget."""
    plain = method.removesuffix(methods.ZCDP)
    command = methods.COMMANDS.get(plain, f'count-of-counts --method "{plain}"')
    shown = f"{command} --epsilon {epsilon / 2 if method.endswith(methods.HALF) else epsilon:g}"
    if plain != method or command.startswith(("top-down", "tabulation")):
        shown += f" --delta {DELTA if delta is None else delta:g}"
    return shown


def question_of(kind: str, question: str) -> tuple[str, int | str]:
    """The metric, and the level, by its number or its name."""
    words, colon, level = question.partition(":")
    known = QUESTIONS[kind]
    if words.strip() not in known:
        raise InputError(unknown_name(words.strip(), known, f"{kind} have no question"))
    metric, usual = known[words.strip()]
    return metric, level.strip() if colon else usual


def names_of(shape: Shape, delta: float | None) -> list[str]:
    """All methods that release a kind of table."""
    table = shape.table(0)
    if shape.kind == "flows":
        return [*methods.ways_of_flows(len(table.axes))]
    if shape.kind == "bins":
        return [*methods.ways_of_bins()]
    found = [*methods.ways_of_groups(len(table.hierarchy.levels))]
    return found + ([] if delta is None else [f"{name}{methods.ZCDP}" for name in found])


def ranked(
    shape: Shape,
    metric: str,
    level: int | str,
    epsilon: float,
    delta: float | None,
    runs: int,
    without: Container[str] = (),
) -> DataFrame:
    """All methods, or all but some, by their mean errors.

    Raises
    ------
    InputError
        If there is no such level.
    """
    import pandas as pd
    from scipy import stats

    found = pd.DataFrame([each._asdict() for each in errors(shape, epsilon, delta, runs, without)])
    if isinstance(level, str):
        known = dict(zip(found.name, found.level, strict=True))
        if level not in known:
            raise InputError(f"there is no level {level!r}: choose one of {listed(known)}")
        level = int(known[level])
    here = found[(found.metric == metric) & (found.level == (level if level >= 0 else found.depth + level))]
    each = here.groupby("method", sort=False).error.agg(["mean", "std", "count"]).reset_index()
    each = each[each["count"] == runs]  # a method may be too slow on some tables
    factor = stats.t.ppf(0.5 + CONFIDENCE / 2, max(runs - 1, 1)) / math.sqrt(runs)
    half = factor * each["std"] if runs > 1 else np.nan
    made = pd.DataFrame({"method": each.method, "error": each["mean"], "low": each["mean"] - half})
    made["high"] = each["mean"] + half
    made = made.sort_values("error", kind="stable", ignore_index=True)
    least = float(made.error[0])
    made["times_best"] = made.error / least if least > 0 else np.where(made.error > 0, math.inf, 1.0)
    top = least if math.isnan(made.high[0]) else float(made.high[0])
    made["alike"] = made.low.fillna(made.error) <= top
    return made


def errors(
    shape: Shape, epsilon: float, delta: float | None, runs: int, without: Container[str] = ()
) -> Iterator[methods.Error]:
    """Of every method, or all but some, on every level."""
    for run in range(runs):
        table = shape.table(run)

        def noise(query: str, _: int, run: int = run) -> Any:
            return noise_for(0, shape.kind, query, run)

        names = [name for name in names_of(shape, delta) if name not in without]
        if shape.kind == "groups":
            pure = [name for name in names if not name.endswith(methods.ZCDP)]
            found = methods.errors_of_groups(table, shape.max_size, epsilon, 1, noise, pure)
            if delta is not None:
                more = [name.removesuffix(methods.ZCDP) for name in names if name not in pure]
                rho = rho_of(epsilon, delta)
                made = methods.errors_of_groups(table, shape.max_size, rho, 1, noise, more, GAUSSIAN)
                found = chain(found, (each._replace(method=each.method + methods.ZCDP) for each in made))
        elif shape.kind == "flows":
            found = methods.errors_of_flows(
                table, epsilon, DELTA if delta is None else delta, 1, noise, names
            )
        else:
            found = methods.errors_of_bins(table, epsilon, 1, noise, names)
        yield from (each._replace(run=run) for each in found)


def shape_of_groups(
    levels: Any,
    groups: int | None,
    total: int | None,
    max_size: int | None,
    largest: int | None = None,
    like: Any = None,
) -> Shape:
    """Groups by size to simulate on; the arguments are those of `recommend`."""
    from hierdp.mechanisms.expected import regions_of

    _check_complete(
        "groups", {"levels": levels, "max_size": max_size}, {"total": total, "groups": groups}, like
    )
    assert max_size is not None
    if like is not None:
        public = _groups_like(like, levels)
        check_cells(public.hierarchy.tree.size * (max_size + 1))
        return Shape("groups", lambda _: public, max_size)
    assert total is not None
    assert groups is not None
    places = levels if isinstance(levels, Hierarchy) else regions_of(levels)
    check_cells(places.tree.size * (max_size + 1))
    most, mean = min(largest or max_size, max_size), total / groups

    def of(number: int, there: Hierarchy = places) -> Shape:
        entities = round(number * mean)
        return Shape("groups", lambda run: made_up_groups(there, number, entities, most, run), max_size)

    numbers = [(groups * step, partial(of, max(1, round(groups * step)))) for step in STEPS]
    depths = [(depth, partial(of, groups, there)) for depth, there in _deeper(places)]
    return replace(of(groups), others={"number of groups": numbers, DEPTH: depths})


def shape_of_flows(
    axes: Any, total: int | None, filled: int | None = None, like: Any = None, count: str = "count"
) -> Shape:
    """Flows to simulate on; the arguments are those of `recommend`."""
    from hierdp.mechanisms.top_down.expected import flows_of

    _check_complete("flows", {"axes": axes}, {"total": total}, like)
    if like is not None:
        public = _flows_like(like, axes, count)
        return Shape("flows", lambda _: public)
    assert total is not None
    shape = flows_of(axes)
    possible = math.prod(int(axis.tree.level_sizes[-1]) for axis in shape.axes)
    many = max(1, min(possible, total) // 2) if filled is None else filled

    def of(cells: float, there: Flows = shape) -> Shape:
        return Shape("flows", lambda run: made_up_flows(there, total, max(1, round(cells)), run))

    deeper = [dict(_deeper(axis)) for axis in shape.axes]
    depths = [
        (depth, partial(of, many, replace(shape, axes=tuple(one[depth] for one in deeper))))
        for depth in DEPTHS
        if all(depth in one for one in deeper)
    ]
    filled_otherwise = [(many * step, partial(of, many * step)) for step in STEPS]
    return replace(of(many), others={"cells that are not empty": filled_otherwise, DEPTH: depths})


def shape_of_bins(
    bins: Any, total: int | None, filled: int | None = None, like: Any = None, count: str = "count"
) -> Shape:
    """A histogram to simulate on; the arguments are those of `recommend`."""
    _check_complete("bins", {"bins": bins}, {"total": total}, like)
    sizes = (bins,) if isinstance(bins, int) else tuple(bins)
    if len(sizes) > 2 or min(sizes) < 1:
        raise InputError(f"bins {sizes}: give their number, along one or two dimensions")
    if like is not None:
        public = _bins_like(like, sizes, count)
        public = public if total is None else scaled(public, total)
        return Shape("bins", lambda _: public)
    assert total is not None
    many = max(1, min(math.prod(sizes), total) // 2) if filled is None else filled

    def of(filled: float, rough: float | None = None) -> Shape:
        return Shape("bins", lambda run: made_up_bins(sizes, total, max(1, round(filled)), run, rough))

    return replace(
        of(many),
        others={
            "bins that are not empty": [(many * step, partial(of, many * step)) for step in STEPS],
            ROUGHNESS: [(rough, partial(of, many, rough)) for rough in ROUGH],
        },
    )


def _check_complete(kind: str, always: Mapping[str, Any], without_like: Mapping[str, Any], like: Any) -> None:
    given = {**always, **(without_like if like is None else {})}
    if missing := [name for name, one in given.items() if one is None]:
        raise InputError(
            f"the shape of {kind} is not complete: give {listed(missing)}, or a public table (`like`)"
        )


def _deeper(places: Hierarchy) -> Iterator[tuple[int, Hierarchy]]:
    """The same number of finest regions under trees of other depths, in equal steps of size."""
    from hierdp.mechanisms.expected import regions_of

    leaves = int(places.tree.level_sizes[-1])
    for depth in DEPTHS:
        numbers = [round(leaves ** (k / (depth - 1))) for k in range(1, depth)]
        if depth != len(places.levels) and len({1, *numbers}) == depth:
            yield depth, regions_of([f"level {k}={number}" for k, number in enumerate(numbers, start=1)])


def _flows_like(like: Any, axes: Any, count: str) -> Flows:
    from hierdp.tables import flows, read
    from hierdp.tables.cells import axes_by_name

    named = count if count in read(like).columns else None
    return flows(like, axes=axes_by_name(axes), count=named)


def _groups_like(like: Any, levels: Any) -> SizeRuns:
    """One row for each group, with the columns of its regions and `size`."""
    from hierdp.tables import read
    from hierdp.tables.sources import run

    if isinstance(levels, Hierarchy):
        raise InputError("with `like`, give the columns of the regions as `levels`")
    names, table = list(levels), read(like)
    if lost := [name for name in (*names, "size") if name not in table.columns]:
        raise InputError(
            f"the public table has no column {listed(lost)}: one row a group, its regions and `size`"
        )
    frame = run(table.select(*names, "size")).to_pandas()
    places = Hierarchy.from_columns(frame, names)
    at = places.positions(frame[names[-1]].astype(str).to_numpy(object))
    sizes = frame["size"].to_numpy()
    if not np.issubdtype(sizes.dtype, np.integer) or sizes.min() < 0:
        raise InputError("the sizes of the public groups must be whole numbers of at least 0")
    leaves = int(places.tree.level_sizes[-1])
    rows = [np.unique(sizes[at == leaf], return_counts=True) for leaf in range(leaves)]
    return SizeRuns(places, Runs.from_rows(rows).summed_up(places.tree))


def scaled(counts: Ints, total: int) -> Ints:
    """Counts of another total: some persons, at random from a fixed seed, or each several times."""
    share = total / max(int(counts.sum()), 1)
    if share < 1:
        return np.asarray(np.random.default_rng(0).binomial(counts, share), dtype=np.int64)
    return np.asarray(np.rint(counts * share), dtype=np.int64)


def _bins_like(like: Any, sizes: tuple[int, ...], count: str) -> Ints:
    from hierdp.tables import read
    from hierdp.tables.columns import refuse, whole_of
    from hierdp.tables.sources import run

    table = read(like)
    number, faults = whole_of(table, count)
    refuse(table, faults, "the public table")
    counts = np.asarray(run(table.select(n=number))["n"].to_numpy(), dtype=np.int64)
    if counts.size != math.prod(sizes):
        raise InputError(f"the public table has {counts.size:,} rows for {math.prod(sizes):,} bins")
    return counts.reshape(sizes)
