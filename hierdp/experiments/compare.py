"""`hierdp.compare`: methods side by side on public data, with simulated noise."""

from __future__ import annotations

import hashlib
import json
import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from hierdp.api import name_of
from hierdp.checking.same_noise import measured, post_processed
from hierdp.errors import InputError, listed, unknown_name
from hierdp.execution import resume as saving
from hierdp.experiments.run import seed_for
from hierdp.experiments.summary import Comparison, comparison_of
from hierdp.mechanisms import MECHANISMS, MechanismInfo
from hierdp.mechanisms.option import check_options
from hierdp.mechanisms.own import describe
from hierdp.privacy.account import Entry, refuse_protected
from hierdp.privacy.budget import check_epsilon
from hierdp.privacy.charging import ChargingNoise
from hierdp.privacy.noise import Drawn, Law, SimulatedNoise
from hierdp.tables import read
from hierdp.tables.sources import run


def compare(
    source: Any,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float] = (1.0,),
    runs: int = 10,
    seed: int = 0,
    account: str | Path | None = None,
    public: str | None = None,
    same_noise: bool = False,
    resume: str | Path | None = None,
    command: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare methods on public data with simulated noise: errors by level with their spread, and time.

    Every run is a release by the method's own code, with noise from a seed, compared with the table itself.
    Do not use the table that you are going to release: what you choose by its results reveals something
    about it that no budget covers.

    Parameters
    ----------
    source : path, DataFrame, Arrow or Ibis table
        Public data, read once; see `hierdp.tables.read`.
    methods : sequence of str
        Names as in `hierdp mechanisms`, also of several mechanisms that answer the same question: group-size
        and count-of-counts; range-query and clustering.
    epsilons : sequence of float
    runs : int
        Runs of each method and ε.
    seed : int
        Seed of all noise. Each run has its own noise, whatever the other methods and runs.
    account : path, optional
        An account of the data (see `hierdp.privacy.account`), if it is not beside them.
    public : str, optional
        Why the data are public although they have an account; the report says it.
    same_noise : bool
        In each run all methods start from the same noisy answers: the first one measures, the others only
        post-process. So differences are those of the post-processing, and need fewer runs to show. All
        methods must measure the same, as M_c, M_c^r and M_c^dp do.
    resume : path, optional
        A folder for finished runs until all are finished; the same call continues from there.
    command : str, optional
        The command that repeats it, for the report.
    **options
        Options of the mechanisms, as for `hierdp.release`; each mechanism gets those that it takes.

    Returns
    -------
    Comparison
        `errors` has the mean, the standard deviation and the 95% interval of each metric by level, method and
        ε; `runs` every run; `write` makes a folder with a report and a plot.

    Raises
    ------
    InputError
        If there is no such method, the methods answer different questions, an option does not fit, or the
        data have an account and no reason says that they are public.

    Examples
    --------
    >>> import pandas as pd
    >>> trips = pd.DataFrame({"from": ["A", "A", "B"], "to": ["B", "C", "C"], "people": [50, 20, 9]})
    >>> found = compare(trips, methods=["InfTDA", "SH"], runs=2, axes={"from": ["from"], "to": ["to"]},
    ...                 count="people", delta=1e-6, regions_from_data=True)
    >>> found.title
    'InfTDA, SH: counts by cell, level by level'
    >>> found.summary[["level", "method", "runs"]].values.tolist()[-2:]
    [['from from × to to', 'InfTDA', 2], ['from from × to to', 'SH', 2]]
    """
    refuse_protected(source, public, account)
    budgets = [check_epsilon(epsilon) for epsilon in epsilons]
    for what, given in (("methods", methods), ("epsilons", budgets)):
        if isinstance(given, str) or not given or len(set(given)) < len(given):
            raise InputError(f"{what} must be a list of at least one, each once; got {given!r}")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InputError(f"runs must be a whole number of at least 1, got {runs!r}")
    SimulatedNoise(seed)  # checks it
    by_method = {method: mechanism_of(method) for method in methods}
    question = the_question(by_method)
    own = {mechanism.name: _own(mechanism, options) for mechanism in by_method.values()}
    for name in options:
        if not any(name in each for each in own.values()):
            raise InputError(f"{listed(own)} {'takes' if len(own) == 1 else 'take'} no `{name}`")
    for method, mechanism in by_method.items():
        check_options(mechanism.name, mechanism.keywords, {**own[mechanism.name], **mechanism.by(method)})
    table, own = run(read(source)), {name: _in_memory(name, each, public) for name, each in own.items()}
    how = next(iter(by_method.values())).compared
    reading = {name: value for each in own.values() for name, value in each.items() if name in how.reading}
    truth = how.read(table, **reading)
    for method, mechanism in by_method.items():
        _refuse_early(method, mechanism, table, budgets[0], own[mechanism.name])
    groups = [tuple(methods)] if same_noise else [(method,) for method in methods]
    cases = [(group, epsilon, number) for number in range(runs) for epsilon in budgets for group in groups]
    about = hashlib.sha256(pickle.dumps((table, own), protocol=5)).hexdigest(), seed
    with nullcontext() if resume is None else saving.keeping(Path(resume), about):
        kinds = [mechanism.kind for mechanism in by_method.values() if mechanism.own is not None]
        rows = saving.runs(one_run, cases, "runs", (table, truth, own, seed, kinds))
        settings = {
            "methods": ", ".join(methods),
            "epsilons": ", ".join(f"{epsilon:g}" for epsilon in budgets),
            "runs": runs,
            "seed": seed,
            **({"noise": "the same for all methods of a run"} if same_noise else {}),
            **({} if public is None else {"public": public}),
            "data": name_of(source) or "a table in memory",
            **({"options": _in_words(options)} if command is None else {"command": command}),
        }
        return comparison_of([row for each in rows for row in each], question, settings)


class _Drawing(Exception):
    """A release reached its first draw: nothing in its table or options was refused."""


def _refuse_early(
    method: str, mechanism: MechanismInfo, table: Any, epsilon: float, options: Mapping[str, Any]
) -> None:
    """Begin a release and stop at its first draw, so that what is refused is refused before any run.

    Raises `InputError` if the method does not take the table or the options; the message names the method.
    """

    def stop() -> Entry:
        raise _Drawing

    noise = ChargingNoise(SimulatedNoise(0), stop)
    try:
        mechanism.release(table, epsilon=epsilon, noise=noise, **mechanism.by(method), **options)
    except _Drawing:
        pass
    except InputError as refused:
        raise InputError(f"{method} cannot run: {refused.marked}. Nothing was run") from None


def one_run(
    table: Any,
    truth: Any,
    own: Mapping[str, Mapping[str, Any]],
    seed: int,
    kinds: Sequence[type],
    methods: Sequence[str],
    epsilon: float,
    number: int,
) -> list[dict[str, Any]]:
    """The errors of one release, and of other methods from its measurements, a row for each level.

    `seconds` are those of noise and post-processing: from the first draw on, without reading the table. Those
    of the other methods have no noise in them.

    - kinds: the users' own mechanisms, which a process of its own does not know yet.
    """
    for kind in kinds:
        describe(kind)
    first, *others = methods
    mechanism = mechanism_of(first)
    noise = _TimedNoise(seed_for(seed, first, epsilon, number))
    made = mechanism.release(
        table, epsilon=epsilon, noise=noise, **mechanism.by(first), **own[mechanism.name]
    )
    seconds = time.perf_counter() - noise.began
    found = [(first, made, seconds)]
    for method in others:
        began = time.perf_counter()
        found.append((method, post_processed(measured(made), method), time.perf_counter() - began))
    return [
        {"method": method, "epsilon": epsilon, "run": number, **level.errors(), "seconds": seconds}
        for method, made, seconds in found
        for level in mechanism.compared.levels(truth, made.counts, made.settings, made.regions)
    ]


class _TimedNoise(SimulatedNoise):
    """Simulated noise that knows when the first number was drawn."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._began: float | None = None

    @property
    def began(self) -> float:
        """When the first number was drawn; now, if none was."""
        self._began = self._began or time.perf_counter()
        return self._began

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `Noise.draw`."""
        _ = self.began
        return super().draw(law, true)


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


def the_question(by_method: Mapping[str, MechanismInfo]) -> str:
    """The question that all methods answer.

    Raises `InputError` if they answer different ones.
    """
    methods: dict[str, list[str]] = {}
    for method, mechanism in by_method.items():
        methods.setdefault(mechanism.compared.question, []).append(method)
    if len(methods) > 1:
        text = "; ".join(f"{', '.join(named)}: {question}" for question, named in methods.items())
        raise InputError(f"these methods answer different questions, and cannot be compared ({text})")
    return next(iter(methods))


def _in_words(options: Mapping[str, Any]) -> str:
    return json.dumps(dict(options), default=repr, ensure_ascii=False)


def _own(mechanism: MechanismInfo, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a mechanism takes."""
    if "method" in options:
        raise InputError("give the methods as a list (`methods`), not one method")
    keywords = mechanism.keywords
    return {name: value for name, value in options.items() if name in keywords}


def _in_memory(name: str, options: Mapping[str, Any], public: str | None) -> dict[str, Any]:
    """The options, with the rows of tables that are given by name, for workers on other machines."""
    keywords, found = MECHANISMS[name].keywords, dict(options)
    for option, value in options.items():
        if value is not None and keywords[option].option.form == "table":
            refuse_protected(value, public)
            found[option] = run(read(value))
    return found
