"""`run`: mechanisms × data × seeds, measured level by level. Comparisons are tables of its rows.

Below it, what the papers' runs share, which measure steps of their own.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hierdp import execution
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Ends, Table
from hierdp.errors import InputError, unknown_name
from hierdp.execution import folder
from hierdp.execution.resume import Row, keeping, runs
from hierdp.mechanisms.description import MechanismInfo
from hierdp.mechanisms.own import attribute_of, describe, parts_of
from hierdp.mechanisms.truth import TruthReader
from hierdp.metrics.cells import cell_errors, errors_by_size
from hierdp.metrics.level import Level
from hierdp.privacy.account import Entry, refuse_protected
from hierdp.privacy.charging import ChargingNoise
from hierdp.privacy.noise import Drawn, Law, SimulatedNoise
from hierdp.record.release import Release
from hierdp.tables import read
from hierdp.tables.sources import run as in_memory
from hierdp.versions import fingerprint, versions
from models.arithmetic.arrays import Flags, Ints

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.mechanisms.mechanism import Mechanism

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LevelFacts:
    """What is public of a level of a release, for a metric.

    Attributes
    ----------
    level : str
    cells : int
        The number of cells; those that are 0 in both tables may be left out of the counts.
    names : callable
        The names of the cells at given positions.
    settings, regions : mapping
        Those of the release.
    own : mapping of str to float
        The field's metrics, which need more than the counts: the earth mover's distance, or KLD.
    """

    level: str
    cells: int
    names: Callable[[Ints], Sequence[str]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, float] = field(default_factory=dict)


Metric = Callable[[NDArray[Any], NDArray[Any], LevelFacts], "float | Mapping[str, float]"]
"""Of the released and the true counts of a level, and what is public: a number, or several by name."""


def errors(released: NDArray[Any], true: NDArray[Any], public: LevelFacts) -> dict[str, float]:
    """L1, its mean, the largest error, bias, invented and lost cells, ranks, and the field's own metrics.

    See `hierdp.metrics.cells.cell_errors`.
    """
    return {**cell_errors(true, released, public.cells), **public.own}


def by_size(released: NDArray[Any], true: NDArray[Any], public: LevelFacts) -> dict[str, float]:
    """The mean error and the bias of a cell by the size of its true count: 0, 1 to 9, 10 to 99, ….

    See `hierdp.metrics.cells.errors_by_size`.
    """
    names = {"mean_error": "mean_error", "bias_per_cell": "bias"}
    rows = errors_by_size(true, released, public.cells)
    return {f"{name} of {row['true_count']}": row[key] for row in rows for key, name in names.items()}


METRICS: Mapping[str, Metric] = {"errors": errors}
"""Those of a comparison if no others are named."""

KNOWN: Mapping[str, Metric] = {"errors": errors, "by_size": by_size}
"""The metrics that the command line knows by name."""


def metric_of(name: str) -> dict[str, Metric]:
    """A metric by a name that is typed: one of `KNOWN`, or ``FILE.py:FUNCTION``, whose code is loaded.

    Raises `InputError` if there is none.
    """
    path, colon, attribute = name.rpartition(":")
    if not (colon and path.endswith(".py")):
        if name not in KNOWN:
            raise InputError(f"{unknown_name(name, KNOWN, 'no metric')}; or give your own, FILE.py:FUNCTION")
        return {name: KNOWN[name]}
    if not callable(metric := attribute_of(Path(path), attribute)):
        raise InputError(f"{name} is no function of (released, true, public)")
    return {attribute: metric}


def run(
    mechanisms: Sequence[Mechanism[Any]] | Mapping[str, Mechanism[Any]],
    data: Mapping[str, Any],
    seeds: Iterable[int],
    metrics: Mapping[str, Metric] = METRICS,
    *,
    workers: int | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    confidence: float | None = None,
    public: str | None = None,
) -> DataFrame:
    """Release every table by every mechanism with simulated noise, and measure each level. NOT PRIVATE.

    The noise of a run is that of ``SimulatedNoise(seed)``, as of ``hierdp release --simulate SEED``. So
    mechanisms that measure the same start from the same noisy answers, and differ by their post-processing
    alone; the column `noise` says which do. Levels of the same cells have one name, even if mechanisms of
    different kinds release them.

    Parameters
    ----------
    mechanisms : sequence of Mechanism, or mapping of str to Mechanism
        Values such as ``GroupSize(epsilon=1, …)``, or a user's own, by name. Default: their methods, and what
        differs between those of one method.
    data : mapping of str to table
        Public tables by name; see `hierdp.tables.read`.
    seeds : iterable of int
    metrics : mapping of str to callable
        Functions ``metric(released, true, public)`` of two arrays and a `LevelFacts`. They give a number, or
        several by name.
    workers : int, optional
        Number of processes. Default: this one, or what `hierdp.execution.using` says.
    out : path, optional
        A Parquet file for the rows.
    resume : path, optional
        A folder for finished runs until all are finished; the same call continues from there. Default: one
        beside `out`, if that is given.
    confidence : float, optional
        Make intervals as well; the metric `covered` is the share of them that cover the true count.
    public : str, optional
        Why the data are public although they have an account.

    Returns
    -------
    DataFrame
        A row for each mechanism, table, seed, level and metric: `mechanism`, `epsilon`, `settings` (its
        options in JSON), `data`, `seed`, `level`, `metric`, `value`; `seconds`, of noise and post-processing,
        without reading the table; `noise`, equal where the noisy answers are; `versions`.

    Raises
    ------
    InputError
        If a mechanism does not take a table, or the data have an account; nothing is run then. If a metric
        gives no numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from hierdp.mechanisms.top_down import TopDown
    >>> trips = pd.DataFrame({"from": ["A", "A", "B"], "to": ["B", "C", "C"], "people": [50, 20, 9]})
    >>> options = {"axes": {"from": ["from"], "to": ["to"]}, "count": "people", "delta": 1e-6}
    >>> def lost(released, true, public):
    ...     return int(((released == 0) & (true > 0)).sum())
    >>> rows = run([TopDown(epsilon=e, regions_from_data=True, **options) for e in (1, 10)],
    ...            {"trips": trips}, range(2), {"lost": lost})
    >>> rows[["mechanism", "epsilon", "seed", "level", "value"]].values.tolist()[-1]
    ['InfTDA', 10.0, 1, 'from from × to to', 0.0]
    """
    import pandas as pd

    named, seeds = labelled(mechanisms), [*seeds]
    for what, many in (("mechanisms", named), ("data", data), ("seeds", seeds), ("metrics", metrics)):
        if not many:
            raise InputError(f"{what}: give at least one")
    for seed in seeds:
        SimulatedNoise(seed)  # checks it
    for source in data.values():
        refuse_protected(source, public)
    tables = {name: in_memory(read(source)) for name, source in data.items()}
    held: dict[int, Any] = {}
    named = [(label, _in_memory(mechanism, public, held)) for label, mechanism in named]
    counted: dict[Any, Any] = {}
    truths: dict[tuple[str, float, str], Any] = {}
    for name, table in tables.items():
        for label, mechanism in named:
            how, reading = _reading(mechanism)
            key = name, how.question, tuple((option, id(value)) for option, value in reading.items())
            if key not in counted:
                counted[key] = how.read(table, **reading)
            truths[label, mechanism.epsilon, name] = counted[key]
            _refuse_early(label, mechanism, table)
    cases = [(*place, name, seed) for seed in seeds for name in tables for place in enumerate(named)]
    mixed = len({describe(type(one)).compared.question for _, one in named}) > 1
    shared = tables, truths, dict(metrics), confidence, mixed
    if resume is None and out is not None:
        resume = Path(out).absolute().with_name(f".{Path(out).name}.runs")
    keys = [f"{case[1:]!r}" for case in cases]
    saved: AbstractContextManager[None] = nullcontext()
    if resume is not None:
        digests = [digest_of(mechanism) for _, mechanism in named]
        keys = [f"{digests[number]} {name!r} {seed}" for number, _, name, seed in cases]
        code = [_source_of(metric) for metric in metrics.values()]
        saved = keeping(Path(resume), digest_of(tables), code, [*metrics], confidence, mixed)
    with saved, nullcontext() if workers is None else execution.using(workers):
        found = runs(one_run, [case[1:] for case in cases], "runs", shared, keys)
        library = f"{', '.join(f'{name} {version}' for name, version in versions())}; {fingerprint()[:12]}"
        settings = [_in_words(mechanism) for _, mechanism in named]
        frame = pd.DataFrame(
            [
                {"mechanism": label, "epsilon": float(mechanism.epsilon), "settings": settings[number],
                 "data": name, "seed": seed, **row}
                for (number, (label, mechanism), name, seed), rows in zip(cases, found, strict=True)
                for row in rows
            ]
        ).assign(versions=library)  # fmt: skip
        if mixed:  # levels of the same cells have one name, that of the first mechanism
            first = frame.drop_duplicates(["data", "cells"]).set_index(["data", "cells"])["level"]
            frame["level"] = first[[*zip(frame["data"], frame.pop("cells"), strict=True)]].to_numpy()
        if out is not None:
            with folder.file_appearing(Path(out)) as aside:
                frame.to_parquet(aside, index=False)
    return frame


def one_run(
    tables: Mapping[str, Any],
    truths: Mapping[Any, Any],
    metrics: Mapping[str, Metric],
    confidence: float | None,
    mixed: bool,
    named: tuple[str, Mechanism[Any]],
    name: str,
    seed: int,
) -> list[Row]:
    """The rows of one release: one for each level and metric.

    - mixed: whether the mechanisms answer different questions; then rows have the digest of their cells.
    """
    from hierdp.questions.intervals import with_intervals

    label, mechanism = named
    info = describe(type(mechanism))  # a process of its own does not know a user's own mechanisms
    noise = _WatchedNoise(seed)
    made = _released(info, mechanism, tables[name], noise)
    spent = {"seconds": time.perf_counter() - noise.began, "noise": noise.digest.hexdigest()[:12]}
    truth, how = truths[label, mechanism.epsilon, name], info.compared
    levels = how.levels(truth, made.counts, made.settings, made.regions)
    covering: list[Covered | None] = [None] * len(levels)
    if confidence is not None:
        ends = with_intervals(made, confidence).ends
        covering = [] if ends is None else covered(how, truth, made.counts, made.settings, made.regions, ends)
    rows = []
    for level, cover in zip(levels, covering, strict=True):
        public = LevelFacts(level.name, level.cells, level.names, made.settings, made.regions, level.more)
        values = dict(_values(level, metrics, public))
        if cover is not None:
            values["covered"] = float(cover[1].mean())
        place = {"level": level.name, **({"cells": same_cells(level)} if mixed else {})}
        rows += [{**place, "metric": key, "value": one, **spent} for key, one in values.items()]
    return rows


def _values(level: Level, metrics: Mapping[str, Metric], public: LevelFacts) -> Iterable[tuple[str, float]]:
    released, true = np.ravel(level.released), np.ravel(level.true)
    for name, metric in metrics.items():
        value = metric(released.copy(), true.copy(), public)
        several = value if isinstance(value, Mapping) else {name: value}
        try:
            yield from ((str(key), float(one)) for key, one in several.items())
        except (TypeError, ValueError):
            raise InputError(
                f"the metric {name!r} gave {value!r} for level {level.name!r}; it must give a number, or "
                "numbers by name"
            ) from None


Covered = tuple[NDArray[Any], Flags]
"""True counts, and whether their intervals cover them."""


def covered(
    how: TruthReader, truth: Any, table: Table, settings: Mapping[str, Any], regions: Any, ends: Ends
) -> list[Covered | None]:
    """Of each level: the true counts that have an interval, and whether it covers them; None without any."""
    rows = how.levels(truth, laid_out(table).numbered(settings), settings, regions)
    return [None if one.sums else _covered(one.true, one.released, ends) for one in rows]


def _covered(true: NDArray[Any], number: NDArray[Any], ends: Ends) -> Covered | None:
    """The true counts with an interval, and whether it covers them, from the numbers of their rows, or 0."""
    row = np.ravel(np.asarray(number, np.int64))
    lower, upper = (np.append(np.nan, each)[row] for each in ends)
    known, counts = ~np.isnan(lower), np.ravel(true)
    held = (lower <= counts) & (counts <= upper)
    return (counts[known], held[known]) if known.any() else None


def labelled(
    mechanisms: Sequence[Mechanism[Any]] | Mapping[str, Mechanism[Any]],
) -> list[tuple[str, Mechanism[Any]]]:
    """Mechanisms with their names, which are different for each ε.

    Raises `InputError` if one is no mechanism, or two are the same.
    """
    named = [*mechanisms.items()] if isinstance(mechanisms, Mapping) else [("", one) for one in mechanisms]
    for _, mechanism in named:
        parts_of(mechanism)  # which refuses what is none
    if not isinstance(mechanisms, Mapping):
        alike: dict[str, list[Mechanism[Any]]] = {}
        for mechanism in mechanisms:
            alike.setdefault(mechanism.method, []).append(mechanism)
        named = []
        for one in mechanisms:
            more = (f"{name} {getattr(one, name, None)}" for name in _differing(alike[one.method]))
            named.append((", ".join([one.method, *more]), one))
    places = [(label, mechanism.epsilon) for label, mechanism in named]
    if twice := [label for label, epsilon in places if places.count((label, epsilon)) > 1]:
        raise InputError(f"{twice[0]} is there twice: give each mechanism once, or names of your own")
    return named


def _differing(mechanisms: Sequence[Mechanism[Any]]) -> list[str]:
    """The options, besides ε, in which mechanisms differ."""
    names = dict.fromkeys(one.name for mechanism in mechanisms for one in fields(mechanism))  # type: ignore[arg-type]
    values = {name: {repr(getattr(one, name, None)) for one in mechanisms} for name in names}
    return [name for name, held in values.items() if name not in ("epsilon", "method") and len(held) > 1]


def _in_memory(mechanism: Mechanism[Any], public: str | None, held: dict[int, Any]) -> Mechanism[Any]:
    """With the rows of tables that are options, for workers on other machines; each is read once."""
    changed = {}
    for name, keyword in describe(type(mechanism)).keywords.items():
        value = getattr(mechanism, name)
        if value is not None and keyword.option.form == "table":
            refuse_protected(value, public)
            if id(value) not in held:
                held[id(value)] = in_memory(read(value))
            changed[name] = held[id(value)]
    return replace(mechanism, **changed) if changed else mechanism  # type: ignore[type-var]


def _reading(mechanism: Mechanism[Any]) -> tuple[TruthReader, dict[str, Any]]:
    """How its true counts are read, and the options for that which are not the defaults."""
    info = describe(type(mechanism))
    how, known = info.compared, info.keywords
    given = {name: getattr(mechanism, name) for name in how.reading if name in known}
    return how, {name: value for name, value in given.items() if value is not known[name].default}


def _released(info: MechanismInfo, mechanism: Mechanism[Any], table: Any, noise: Any) -> Release:
    from hierdp.mechanisms.mechanism import release

    return replace(release(mechanism, table, noise), own_mechanism=info.own)


class _Drawing(Exception):
    """A release reached its first draw: nothing in its table or options was refused."""


def _refuse_early(label: str, mechanism: Mechanism[Any], table: Any) -> None:
    """Begin a release and stop at its first draw, so that what is refused is refused before any run.

    Raises `InputError` if the method does not take the table or the options; the message names the method.
    """

    def stop() -> Entry:
        raise _Drawing

    try:
        _released(describe(type(mechanism)), mechanism, table, ChargingNoise(SimulatedNoise(0), stop))
    except _Drawing:
        pass
    except InputError as refused:
        raise InputError(f"{label} cannot run: {refused.marked}. Nothing was run") from None


class _WatchedNoise(SimulatedNoise):
    """Simulated noise that knows when the first number was drawn, and the digest of all noisy answers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._began: float | None = None
        self.digest = hashlib.sha256()

    @property
    def began(self) -> float:
        """When the first number was drawn; now, if none was."""
        self._began = self._began or time.perf_counter()
        return self._began

    def draw(self, law: Law, true: Any, /) -> Drawn:
        """See `Noise.draw`."""
        _ = self.began
        drawn = super().draw(law, true)
        self.digest.update(np.ascontiguousarray(drawn.answers).tobytes())
        return drawn


def digest_of(what: Any) -> str:
    """A digest of a value; equal for equal values in every process."""
    return hashlib.sha256(pickle.dumps(what, protocol=5)).hexdigest()


def _source_of(metric: Metric) -> str:
    """The code of a metric, on which finished runs depend; its name, if there is none."""
    try:
        return inspect.getsource(metric)
    except (TypeError, OSError):
        return repr(metric)


def _in_words(mechanism: Mechanism[Any]) -> str:
    """The options of a mechanism that are not the defaults, in JSON; of tables, that they are there."""

    def shown(value: Any) -> str:
        text = repr(value)
        return text if len(text) < 200 and "\n" not in text else f"a {type(value).__name__}"

    keywords = describe(type(mechanism)).keywords
    given = {name: getattr(mechanism, name) for name, one in keywords.items()}
    given = {name: value for name, value in given.items() if value is not keywords[name].default}
    return json.dumps(given, default=shown, ensure_ascii=False)


def same_cells(level: Level) -> str:
    """A digest of the cells of a level that are truly positive, and of their number, whatever the level is.

    Two mechanisms may name the same cells in other orders: "A → f" and "f, A".
    """
    names = level.names(np.flatnonzero(np.ravel(level.true) > 0))
    parts = sorted("\t".join(sorted(re.split(" → |, ", name))) for name in names)
    return hashlib.sha256("\n".join([str(level.cells), *parts]).encode()).hexdigest()


def seed_for(seed: int, *what: Any) -> int:
    """A seed for each use: independent of others, and reproducible."""
    digest = hashlib.sha256(repr((seed, what)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def noise_for(seed: int, *what: Any) -> SimulatedNoise:
    """Noise from `seed_for`."""
    return SimulatedNoise(seed_for(seed, *what))


def crossed(**values: Iterable[Any]) -> list[Row]:
    """All combinations of some values, by name."""
    return [dict(zip(values, case, strict=True)) for case in product(*values.values())]


def all_rows(
    measure: Callable[..., list[Row]], cases: Sequence[Row], what: str, given: tuple[Any, ...]
) -> DataFrame:
    """The rows that `measure` returns for all cases, in one table, each behind its case.

    Finished cases can be saved: see `hierdp.execution.resume.runs`.
    """
    import pandas as pd

    values = [tuple(case.values()) for case in cases]
    found = runs(measure, values, what, given, [f"{what}: {value!r}" for value in values])
    return pd.DataFrame([case | row for case, rows in zip(cases, found, strict=True) for row in rows])


def summed_up(
    rows: DataFrame, by: Sequence[str], summary: Callable[[DataFrame], Mapping[str, Any]]
) -> DataFrame:
    """One row for each group of rows: its values of the columns `by`, and what `summary` makes of it."""
    import pandas as pd

    groups = rows.groupby(list(by), sort=False)
    return pd.DataFrame([dict(zip(by, key, strict=True)) | dict(summary(mine)) for key, mine in groups])


def by_level(values: Any, level: Any, name: str = "level_{}", spread: str = "std_{}") -> Row:
    """The mean and the standard deviation over runs at each level."""
    found: Row = {}
    for one, here in values.groupby(level, sort=False):
        found |= {name.format(one): here.mean(), spread.format(one): here.std()}
    return found


def present(folder: Path | None, name: str) -> Path | None:
    """A file or folder in a folder of data, if both are there."""
    found = folder / name if folder else None
    return found if found and found.exists() else None


def timed(job: Callable[..., T], *given: Any) -> tuple[float, T]:
    """Elapsed seconds, and the job's result."""
    started = time.perf_counter()
    done = job(*given)
    return time.perf_counter() - started, done


def said(settings: Any, seed: int, sets: Iterable[str]) -> dict[str, Any]:
    """Everything needed to repeat a study: its settings (a dataclass), seed, data sets, date, versions."""
    saved = {name: str(value) for name, value in asdict(settings).items()}
    library = ", ".join(f"{name} {version}" for name, version in versions())
    day = time.strftime("%Y-%m-%d")
    return {**saved, "seed": seed, "data": ", ".join(sets), "date": day, "versions": library}
