"""`hierdp.compare`: methods side by side on public data, with simulated noise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.api import name_of
from hierdp.errors import InputError, listed, unknown_name
from hierdp.experiments.run import METRICS, Metric, run
from hierdp.experiments.summary import Comparison, comparison_of
from hierdp.mechanisms import MECHANISMS, MechanismInfo
from hierdp.mechanisms.option import check_options
from hierdp.mechanisms.own import describe, parts_of
from hierdp.privacy.account import refuse_protected
from hierdp.privacy.budget import check_epsilon
from hierdp.privacy.noise import SimulatedNoise

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.mechanisms.mechanism import Mechanism


def compare(
    source: Any,
    *,
    methods: Sequence[str | Mechanism[Any]],
    epsilon: float | Sequence[float] | None = None,
    runs: int = 10,
    seed: int = 0,
    metrics: Mapping[str, Metric] | None = None,
    account: str | Path | None = None,
    public: str | None = None,
    resume: str | Path | None = None,
    command: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare methods on public data with simulated noise: errors by level with their spread, and time.

    Every run is a release by the method's own code, with noise from a seed, compared with the table itself;
    see `hierdp.experiments.run`. In each run, methods that measure the same start from the same noisy
    answers, so their differences are those of the post-processing. Do not use the table that you are going to
    release: what you choose by its results reveals something about it that no budget covers.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        Public data, read once; see `hierdp.tables.read`.
    methods : sequence of str or Mechanism
        Names as in `hierdp mechanisms`, or mechanisms as values, such as a user's own. They may be of several
        mechanisms if these have levels of the same cells: group-size and count-of-counts; range-query and
        clustering; top-down and tabulation.
    epsilon : float or sequence of float
        Default: 1, or those of the values.
    runs : int
        Runs of each method and ε.
    seed : int
        The runs have the seeds ``seed * runs``, ``seed * runs + 1``, …, as of ``hierdp release --simulate``.
    metrics : mapping of str to callable, optional
        In addition to the usual ones; see `hierdp.experiments.run`.
    account : path, optional
        An account of the data (see `hierdp.privacy.account`), if it is not beside them.
    public : str, optional
        Why the data are public although they have an account; the report says it.
    resume : path, optional
        A folder for finished runs until all are finished; the same call continues from there.
    command : str, optional
        The command that repeats it, for the report.
    **options
        Options of the mechanisms that are named, as for `hierdp.release`; each gets those that it takes.

    Returns
    -------
    Comparison
        `errors` has the mean, the standard deviation and the 95% interval of each metric by level, method and
        ε; `runs` every run; `write` makes a folder with a report and pictures.

    Raises
    ------
    InputError
        If there is no such method, the methods have no level of the same cells, an option does not fit, or
        the data have an account and no reason says that they are public.

    Examples
    --------
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"from": ["A", "A", "B"], "to": ["B", "C", "C"], "people": [50, 20, 9]})
    >>> found = compare(trips, methods=["InfTDA", "SH"], runs=2, axes={"from": ["from"], "to": ["to"]},
    ...                 count="people", delta=1e-6, regions_from_data=True)
    >>> found.title
    'InfTDA, SH: counts by cell, level by level'
    >>> found.summary[["level", "mechanism", "runs"]].values.tolist()[-2:]
    [['from from × to to', 'InfTDA', 2], ['from from × to to', 'SH', 2]]
    """
    import pandas as pd

    refuse_protected(source, public, account)
    if isinstance(methods, str) or not methods:
        raise InputError(f"methods must be a list of at least one, each once; got {methods!r}")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"runs must be a whole number of at least 1, got {runs!r}")
    SimulatedNoise(seed)  # checks it
    mechanisms = _values(methods, epsilon, options)
    questions = dict.fromkeys(describe(type(one)).compared.question for one in mechanisms)
    data = {name_of(source) or "a table in memory": source}
    measured = partial(run, metrics={**METRICS, **(metrics or {})}, resume=resume, public=public)
    seeds = range(seed * runs, (seed + 1) * runs)
    if len(questions) == 1:
        rows = measured(mechanisms, data, seeds)
    else:
        rows = _common(measured(mechanisms, data, seeds[:1]), questions)  # before any others are run
        if runs > 1:
            rows = pd.concat([rows, measured(mechanisms, data, seeds[1:])])
        rows = _common(rows, questions).reset_index(drop=True)
    settings = {
        "methods": ", ".join(dict.fromkeys(rows["mechanism"])),
        "epsilon": ", ".join(f"{one:g}" for one in dict.fromkeys(rows["epsilon"])),
        "runs": runs,
        "seed": seed,
        **({} if public is None else {"public": public}),
        "data": rows["data"].iloc[0],
        **({"options": json.dumps(options, default=repr, ensure_ascii=False)} if command is None else {}),
        **({} if command is None else {"command": command}),
    }
    return comparison_of(rows, "; ".join(questions), settings)


def _common(rows: DataFrame, questions: Iterable[str]) -> DataFrame:
    """The rows of the levels that all mechanisms have.

    Raises `InputError` if there are none.
    """
    among = rows.groupby("level", sort=False)["mechanism"].nunique()
    common = among.index[among == rows["mechanism"].nunique()]
    if not len(common):
        raise InputError(
            f"these methods answer different questions ({'; '.join(questions)}), and have no level of the "
            "same cells; compare methods whose releases have the same finest cells"
        )
    return rows[rows["level"].isin(common)]


def _values(
    methods: Sequence[str | Mechanism[Any]],
    epsilon: float | Sequence[float] | None,
    options: Mapping[str, Any],
) -> list[Mechanism[Any]]:
    """The mechanisms that are named, with the options that each takes, and those that are given."""
    several = [epsilon] if epsilon is None or isinstance(epsilon, float | int | str) else [*epsilon]
    budgets = [None if one is None else check_epsilon(one) for one in several]
    if not budgets or len(set(budgets)) < len(budgets):
        raise InputError(f"epsilon must be a number, or a list of at least one, each once; got {epsilon!r}")
    if "method" in options:
        raise InputError("give the methods as a list (`methods`), not one method")
    named = {method: mechanism_of(method) for method in methods if isinstance(method, str)}
    if len(named) < sum(isinstance(method, str) for method in methods):
        raise InputError(f"methods must be a list of at least one, each once; got {[*methods]!r}")
    takers = {mechanism.name: mechanism.keywords for mechanism in named.values()}
    for name in options:
        if not any(name in keywords for keywords in takers.values()):
            raise InputError(f"{listed(takers)} {'takes' if len(takers) == 1 else 'take'} no `{name}`")
    found: list[Mechanism[Any]] = []
    for budget in budgets:
        for method in methods:
            if not isinstance(method, str):
                parts_of(method)  # which refuses what is no mechanism
                found.append(method if budget is None else replace(method, epsilon=budget))  # type: ignore[type-var]
                continue
            info = named[method]
            own = {name: value for name, value in options.items() if name in info.keywords} | info.by(method)
            check_options(info.name, info.keywords, own)
            found.append(info.kind(epsilon=1.0 if budget is None else budget, **own))
    return found


def mechanism_of(method: str) -> MechanismInfo:
    """The mechanism that has a method, also one given by level: ``Hg x Hc x Hc``.

    Raises `InputError` if there is none.
    """
    for mechanism in MECHANISMS.values():
        names = {one.name for one in mechanism.methods}
        if method in names or {part.strip() for part in str(method).split(" x ")} <= names:
            return mechanism
    known = [one.name for each in MECHANISMS.values() for one in each.methods]
    raise InputError(unknown_name(method, known, "no method"))
