"""A mechanism as a value: all that is chosen without the table; what everything does with it, told once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from hierdp.counts.layout import Regions
from hierdp.counts.rows import frame_of
from hierdp.counts.size_table import plain
from hierdp.errors import InputError
from hierdp.measurements.measuring import Differs, Measure, MeasureTruth
from hierdp.measurements.query import Query
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.expected import (
    LEVEL,
    NAME,
    Expected,
    Largest,
    LevelWeights,
    best_shares,
    deviation,
    frame,
    shares_note,
)
from hierdp.mechanisms.option import Keyword, keywords_of
from hierdp.mechanisms.public import Public
from hierdp.mechanisms.solver_options import SolverOptions, checked
from hierdp.mechanisms.unit import PrivacyUnit
from hierdp.privacy.budget import Allowed, Ledger, check_delta, check_epsilon
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import ExactNoise, Noise
from hierdp.record.case import Case
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import NotProved, Solving, Step

if TYPE_CHECKING:
    from hierdp.record.written import ReleaseFolder

NOTHING = Allowed(0.0)
"""What a mechanism may spend that measures nothing."""

Facts = TypeVar("Facts")
"""What is public of a table: its regions, and whatever else needs no noise."""


class Mechanism(Generic[Facts]):
    """The options of a release. A subclass is a frozen dataclass with keywords only.

    Its fields are the options of `hierdp.release`, the flags of the command line in the order of its help,
    and the settings in a manifest; `hierdp.mechanisms.shared_options` declares those of several mechanisms.
    Release, check, another repair of the same noise, second releases, plans and intervals all follow from
    these methods:

    - `check_options`: refuses what is wrong without the table; `lists` says which lists are public.
    - `read`: true counts of a table. `facts`: what is public of them, and the true counts as queries take
      them.
    - `facts_of`: the same public facts, from a written release.
    - `queries_of`: all that may be measured, from public facts alone; `run` narrows those that depend on
      earlier answers.
    - `run`: measures and solves; gives the table and the settings.

    The base has no fields, so that a subclass's own come first, and none is inherited without a word.
    """

    epsilon: float
    method: str

    NAME: ClassVar[str]
    """For `hierdp release` and accounts. Default: the name of the class, in lower case with dashes."""
    METHODS: ClassVar[Mapping[str, Any]] = {}
    """By name: each with the options that it `takes`, and what solves its models, `solving(options)`, if not
    by the fast paths.

    A mechanism without methods has no option `method`; its releases have its name.
    """
    SETTINGS: ClassVar[Sequence[str]] = ()
    """The options in a manifest's settings, which have their names."""
    MEASURES: ClassVar[bool] = True
    """Whether it measures true counts. If not, its releases have no budget, and claim no privacy."""
    RELATION: ClassVar[str | None] = None
    """The neighbouring relation, if it is not one of trips."""
    REPLACED: ClassVar[bool] = False
    """Whether the relation replaces a unit, rather than adding or removing one."""
    BY_ROW: ClassVar[bool] = True
    """Whether sensitivities are those of one row, and a unit's loss follows by group privacy."""
    COUNTED: ClassVar[str] = "count"
    """The option that names the column of numbers."""
    OF_THE_REPAIR: ClassVar[Sequence[str]] = ()
    """Options of the post-processing alone: `hierdp repair` may give others to the same measurements."""
    FOLLOWS: ClassVar[Sequence[str]] = ()
    """Settings that follow from the post-processing, besides these options."""
    ROUNDED: ClassVar[Sequence[str]] = ()
    """The methods whose answers need not be optimal among whole counts; `run` checks their rounding."""
    RELEASE: ClassVar[type[Release]] = Release
    """What a release is."""
    MOST_IN_MEMORY: ClassVar[int | None] = None
    """Solved steps with more variables in all are saved at once."""
    MOST_SIMULATED: ClassVar[int] = 0
    """The most rows of a release whose errors the report simulates by second releases (`truth_of`)."""
    PLANNED: ClassVar[type[Planned]]
    """The options of a plan."""
    NOTES: ClassVar[Sequence[str]] = ()
    """What is known of released counts without data, for a plan."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = get_annotations(cls)
        clash = [name for name in own if "ClassVar" not in str(own[name]) and hasattr(Mechanism, name)]
        if clash:
            raise TypeError(f"{cls.__name__}: no option can have the name of a method, {clash[0]!r}")
        if "NAME" not in cls.__dict__:
            cls.NAME = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        if not cls.METHODS:
            cls.method = cls.NAME

    # What a mechanism says.

    def lists(self) -> Public:
        """Which lists are public, and which are taken from the data.

        Raises `InputError` if one is missing.
        """
        return Public({}, {})

    def read(self, source: Any) -> Any:
        """The true counts of a table."""
        raise NotImplementedError

    def facts(self, data: Any) -> tuple[Facts, Any]:
        """The public facts of true counts, and the true counts as queries take them."""
        raise NotImplementedError

    def facts_of(self, manifest: Mapping[str, Any], regions: Regions, table: Any) -> Facts:
        """The public facts of a written release; `table` is None for questions about intervals.

        May raise `Differs`.
        """
        raise NotImplementedError

    def name_of(self, facts: Facts) -> str:
        """The name of a release with these options, for its manifest."""
        return self.method

    def regions_of(self, facts: Facts) -> Regions:
        """The regions of a release, by axis."""
        return {}

    def queries_of(self, facts: Facts, allowed: Allowed) -> list[Query]:
        """What may be measured: all there is, if some queries depend on earlier answers."""
        raise NotImplementedError

    def run(
        self, facts: Facts, allowed: Allowed, measure: Measure, solve: Solving
    ) -> tuple[Any, dict[str, Any]]:
        """Measure, and repair what was measured: the table and the settings."""
        raise NotImplementedError

    @staticmethod
    def shape(table: Any, manifest: Mapping[str, Any], regions: Regions, /) -> str:
        """What is wrong with a table's columns, levels and regions, in words; empty if nothing is."""
        return ""

    def truth_of(self, facts: Facts, table: Any) -> Any:
        """A release's counts as if they were true, as queries take them: for second releases."""
        raise NotImplementedError

    # What follows, unless a mechanism says otherwise.

    @property
    def chosen(self) -> Any:
        """The method; raises `InputError` if there is none of that name, or it takes no such option."""
        return self.METHODS and checked(self.method, self.solver, self.METHODS)

    @property
    def solver(self) -> SolverOptions:
        """The options of the solver."""
        return SolverOptions(*(getattr(self, name, None) for name in ("backend", "time_limit", "window")))

    @property
    def solving(self) -> Solving:
        """What solves the models."""
        solving = getattr(self.chosen, "solving", None)
        return Step.solve if solving is None else solving(self.solver)

    @property
    def unit(self) -> PrivacyUnit:
        """The protected change."""
        names = "person", "rows_per_person", "most_per_row"
        persons: dict[str, Any] = {name: getattr(self, name, None) for name in names}
        counts = getattr(self, self.COUNTED, None)
        return PrivacyUnit.of(
            **persons, counts=counts, relation=self.RELATION, by_row=self.BY_ROW, replaced=self.REPLACED
        )

    @property
    def allowed(self) -> Allowed:
        """The budget of the measurements, for what their sensitivities are for: one row, or a unit."""
        unit, delta = self.unit, getattr(self, "delta", None)
        return Allowed.of(self.epsilon, delta, unit.rows if unit.by_row and unit.enforced is not None else 1)

    @property
    def loss(self) -> Loss:
        """What an account is charged, before noise is drawn."""
        epsilon, delta = check_epsilon(self.epsilon), getattr(self, "delta", None)
        if delta is None:
            return self.unit.loss(epsilon, None)
        return self.unit.loss(None, rho_of(epsilon, check_delta(delta)))

    def check_options(self) -> None:
        """Refuse what is wrong without the table, which may be large.

        Raises
        ------
        InputError
            If an option is out of range, or the method does not take it.
        """
        self.allowed, self.chosen  # noqa: B018

    def settings(self) -> dict[str, Any]:
        """The options in a manifest's settings."""
        options = {name: getattr(self, name) for name in self.SETTINGS}
        return {name: value for name, value in options.items() if value is not None}

    @classmethod
    def of(cls, manifest: Mapping[str, Any], **changes: Any) -> Self:
        """That of a release, from its manifest alone: the one decoder. Columns of its table are not known.

        Settings that its method does not take, but another does, follow from its answers.
        """
        settings, budget, known = manifest["settings"], manifest["budget"], keywords_of(cls)
        takes = cls.takes(changes.get("method", manifest["mechanism"]))
        others = {name for method in cls.METHODS for name in cls.takes(method) if name not in takes}
        options = {name: settings[name] for name in cls.SETTINGS if name in settings and name not in others}
        options["epsilon"] = budget["epsilon"]
        if "delta" in known:
            options["delta"] = budget["delta"] or None
        if cls.METHODS:
            options["method"] = manifest["mechanism"]
        return cls.without_table(**{**options, **changes})

    @classmethod
    def takes(cls, method: str) -> Sequence[str]:
        """The options of a method; none, if there is no method of that name."""
        takes: Sequence[str] = getattr(cls.METHODS.get(method), "takes", ())
        return takes

    @classmethod
    def without_table(cls, **options: Any) -> Self:
        """With these options; required ones that are not among them, such as columns of a table, are None."""
        unknown = {name: None for name, keyword in keywords_of(cls).items() if keyword.required}
        return cls(**{**unknown, **options})

    def check_measured(self, settings: Mapping[str, Any]) -> None:
        """Refuse measurements that another method made for itself alone; raises `InputError`."""

    def explaining(self) -> AbstractContextManager[Any]:
        """A context in which a release says why it fails."""
        return nullcontext()

    # Plans.

    @property
    def answers_per_count(self) -> int | None:
        """How many noisy answers a count is a sum or difference of; None: no intervals from a plan."""
        return 1

    def expected(self, planned: Any) -> Expected:
        """What to expect of a release, without data."""
        facts, allowed = planned.facts(self), planned.allowed(self)
        mechanism, notes, shares = self, list[str](), None
        if isinstance(planned, PlannedShares) and planned.optimize is not None:
            measured = [query.sensitivity for query in self.queries_of(facts, allowed)]
            given, parts = getattr(self, "shares", None), self.parts_of_variances(facts)
            best = best_shares(planned.optimize, measured, given, allowed.noise, planned.largest, parts)
            mechanism, notes = replace(self, shares=best), [shares_note(best)]  # type: ignore[type-var]
            shares = {"shares": best}
        mechanism.check_options()
        rows = mechanism.planned_rows(facts, allowed, planned)
        notes += mechanism.planned_notes(facts, planned)
        return Expected(
            mechanism.name_of(facts),
            frame(rows),
            tuple(notes),
            self.epsilon,
            answers=mechanism.answers_per_count,
            at=tuple(name for name in (NAME, LEVEL) if not rows or name in rows[0]),
            noise=allowed.noise,
            plan=shares,
        )

    def parts_of_variances(self, facts: Facts) -> Any:
        """Of the noise of each level in the variances of each level's counts; None: only a level's own."""

    def planned_rows(self, facts: Facts, allowed: Allowed, planned: Any) -> list[dict[str, Any]]:
        """The rows of a plan: one for each query of a level."""
        return [row_of(query) for query in self.queries_of(facts, allowed)]

    def planned_notes(self, facts: Facts, planned: Any) -> Sequence[str]:
        """What is known of the released counts without data, and what is not."""
        return self.NOTES


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The options of `hierdp plan`: its fields, and those of the release that `OF_THE_RELEASE` names.

    A field `rows_per_person` is the most rows of a person, if all of them are protected together.
    """

    OF_THE_RELEASE: ClassVar[Sequence[str] | None] = None
    """By default, all that a manifest has, `delta`, `method` and `shares`."""

    @classmethod
    def of_the_release(cls, kind: type[Mechanism[Any]]) -> Sequence[str]:
        """The options of the release that a plan takes."""
        if cls.OF_THE_RELEASE is not None:
            return cls.OF_THE_RELEASE
        return [name for name in keywords_of(kind) if name in (*kind.SETTINGS, "delta", "method", "shares")]

    def facts(self, mechanism: Any) -> Any:
        """The public facts of a table of this shape; None if the queries follow from the options alone."""

    def allowed(self, mechanism: Mechanism[Any]) -> Allowed:
        """The budget of the measurements, for what their sensitivities are for."""
        return Allowed.of(
            mechanism.epsilon, getattr(mechanism, "delta", None), getattr(self, "rows_per_person", 1)
        )


@dataclass(frozen=True, kw_only=True)
class PlannedShares(Planned):
    """The options of a plan of levels, which may have the best shares of the budget."""

    optimize: LevelWeights = None
    largest: Largest = False


Mechanism.PLANNED = Planned


def planning_keywords(kind: type[Mechanism[Any]]) -> dict[str, Keyword]:
    """The options of a plan, in the order of the help."""
    known, own = keywords_of(kind), keywords_of(kind.PLANNED)
    return {**{name: known[name] for name in kind.PLANNED.of_the_release(kind)}, **own}


def plan(kind: type[Mechanism[Any]], *, epsilon: float, **options: Any) -> Expected:
    """What to expect of a release, from the options of a plan."""
    of_release = kind.PLANNED.of_the_release(kind)
    own = {name: value for name, value in options.items() if name not in of_release}
    chosen = {name: value for name, value in options.items() if name in of_release}
    return kind.without_table(epsilon=epsilon, **chosen).expected(kind.PLANNED(**own))


def row_of(query: Query) -> dict[str, Any]:
    """A plan's row of a query: of a level of one hierarchy, or of all."""
    if query.level is None:
        about: dict[str, Any] = {"counts_of": query.name}
    else:
        tree, level = query.level
        name, regions = query.name.partition(" by ")[2], int(tree.level_sizes[level])
        about = {"level": level, "counts_of": name, "regions": regions, "query": query.name}
    return {
        **about,
        "measured": query.answers,
        "noise_deviation": deviation(query.noise, query.sensitivity, query.loss),
        "standard_error": np.nan,
    }


def release(mechanism: Mechanism[Any], source: Any, noise: Noise | None = None) -> Release:
    """Measure the true counts of a table, and repair the noisy ones.

    Parameters
    ----------
    mechanism : Mechanism
    source : path, DataFrame, Arrow or Ibis table
        See `hierdp.tables.read`.
    noise : Noise, optional
        Exact by default.

    Raises
    ------
    InputError
        If the table or an option is wrong; nothing is released.
    NotSolved
        If the chosen solver does not solve the post-processing.
    """
    mechanism.check_options()
    lists = mechanism.lists()
    facts, measure = _measuring(mechanism, mechanism.read, source, noise)
    return lists.of(_released(mechanism, facts, measure))


def release_counts(
    mechanism: Mechanism[Any], data: Any, noise: Noise | None = None, allowed: Allowed | None = None
) -> Release:
    """The same for true counts in memory, as `Mechanism.read` gives them; nothing is said of lists.

    - allowed: what the measurements may cost together, if it does not follow from ε and δ as usual.
    """
    mechanism.check_options()
    facts, measure = _measuring(mechanism, lambda same: same, data, noise)
    return _released(mechanism, facts, measure, allowed)


def case_of(mechanism: Mechanism[Any], change: str, tables: tuple[Any, Any], by: Sequence[str]) -> Case:
    """A case of an audit: a mechanism, and two neighbouring tables of true counts, as from `Mechanism.read`.

    - change: how the second differs from the first, in words.
    - by: the columns that name a row of a release.
    """
    run = partial(release_counts, mechanism)
    return Case(mechanism.NAME, mechanism.method, change, tables, tuple(by), run)


def _measuring(
    mechanism: Mechanism[Any], read: Any, source: Any, noise: Noise | None
) -> tuple[Any, MeasureTruth]:
    """The public facts, and what alone holds the true counts; it forgets them as soon as all is measured."""
    facts, truth = mechanism.facts(read(source))
    return facts, MeasureTruth(truth, noise or ExactNoise())


def _released(
    mechanism: Mechanism[Any], facts: Any, measure: MeasureTruth, allowed: Allowed | None = None
) -> Release:
    most = mechanism.MOST_IN_MEMORY
    allowed = allowed or (mechanism.allowed if mechanism.MEASURES else NOTHING)
    steps = Steps(mechanism.solving) if most is None else Steps(mechanism.solving, most)
    with mechanism.explaining():
        table, settings = mechanism.run(facts, allowed, measure, steps)
    ledger, measured = None, None
    if mechanism.MEASURES:
        measured, delta = measure.measurements, getattr(mechanism, "delta", None) or 0.0
        about = {"conversion": allowed.conversion, "threshold": allowed.threshold, **mechanism.unit.ledger}
        ledger = Ledger(float(mechanism.epsilon), delta, spends=measured.spends, **about)
    regions = mechanism.regions_of(facts)
    name, kind = mechanism.name_of(facts), mechanism.RELEASE
    return kind(name, table, ledger, steps.kept, settings, regions, measurements=measured)


def rerun(
    kind: type[Mechanism[Any]],
    measure: Measure,
    solve: Solving,
    table: Any,
    manifest: Mapping[str, Any],
    regions: Regions,
) -> tuple[Any, dict[str, Any]]:
    """The table and the settings of a release, from its measurements and saved answers.

    - manifest: with the budget of one row (`budget_of_one_row`).

    Raises `Differs` if they do not follow.
    """
    mechanism = kind.of(manifest)
    facts = mechanism.facts_of(manifest, regions, table)
    try:
        mechanism.check_options()
        return mechanism.run(facts, _stated(kind, manifest), measure, solve)
    except (NotProved, InputError) as apart:
        raise Differs(str(apart)) from None


def _stated(kind: type[Mechanism[Any]], manifest: Mapping[str, Any]) -> Allowed:
    """What the measurements of a release may cost together."""
    return Allowed.stated(manifest["budget"]) if kind.MEASURES else NOTHING


def other_method(
    kind: type[Mechanism[Any]], name: str, manifest: Mapping[str, Any], **options: Any
) -> tuple[str, dict[str, Any], Solving]:
    """What another method needs that measures the same: its name, its settings, and what solves its models.

    Raises `InputError` if there is no such method, it takes no such option, or it cannot use the
    measurements.
    """
    if kind.METHODS:
        options["method"] = name
    elif name != kind.NAME:
        raise InputError(f"{kind.NAME} has no methods: only {kind.NAME!r} starts from its measurements")
    mechanism = kind.of(manifest, **{**dict.fromkeys(kind.OF_THE_REPAIR), **options})
    mechanism.check_options()
    mechanism.check_measured(manifest["settings"])
    left = (*kind.OF_THE_REPAIR, *kind.FOLLOWS)
    kept = {key: value for key, value in manifest["settings"].items() if key not in left}
    return mechanism.method, {**kept, **mechanism.settings()}, mechanism.solving


def bootstrap(
    kind: type[Mechanism[Any]], table: Any, manifest: Mapping[str, Any], regions: Regions, noise: Noise
) -> Any:
    """The table of a second release, whose true counts are the released ones; by the default solver."""
    mechanism = kind.of(manifest, **({"backend": None} if "backend" in keywords_of(kind) else {}))
    kept = {key: value for key, value in manifest["settings"].items() if key not in kind.FOLLOWS}
    facts = mechanism.facts_of({**manifest, "settings": {**kept, **mechanism.settings()}}, regions, table)
    allowed = Allowed.stated(manifest["budget"])
    measure = MeasureTruth(mechanism.truth_of(facts, table), noise)
    return plain(frame_of(mechanism.run(facts, allowed, measure, mechanism.solving)[0]))


def facts_of_release(
    kind: type[Mechanism[Any]], release: ReleaseFolder
) -> tuple[Mechanism[Any], Any, Allowed]:
    """The mechanism of a release, its public facts and its budget; the manifest's is that of one row."""
    mechanism = kind.of(release.manifest)
    facts = mechanism.facts_of(release.manifest, release.regions, None if kind.MEASURES else release.table)
    return mechanism, facts, _stated(kind, release.manifest)


def checking_of(kind: type[Mechanism[Any]]) -> Checking:
    """That of a mechanism whose options are a class."""
    return Checking(
        kind.shape,
        partial(rerun, kind),
        neighbours=(lambda manifest: kind.of(manifest).unit.neighbours) if kind.MEASURES else None,
        rounded=kind.ROUNDED,
        rows_of_a_person=None if kind.BY_ROW else partial(_rows_of_a_unit, kind),
        replaces=lambda manifest: kind.of(manifest).unit.replaced,
        other=partial(other_method, kind) if kind.MEASURES else None,
        takes=kind.OF_THE_REPAIR,
    )


def _rows_of_a_unit(kind: type[Mechanism[Any]], manifest: Mapping[str, Any]) -> int | None:
    unit = kind.of(manifest).unit
    return None if unit.replaced else unit.rows
