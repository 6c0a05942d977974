"""The benchmark's runs, one row each, in a Parquet file to which runs are added."""

from __future__ import annotations

import os
import platform
import re
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.bench.known_optimum import KnownOptimum
from hierdp.bench.manifest import EDITION
from hierdp.bench.problems import Problem, fresh
from hierdp.errors import InputError
from hierdp.execution import progress, store
from hierdp.execution.progress import plural
from hierdp.verification.judge import SEVERITY, KnownBounds, excess, judge
from models.arithmetic.exact import Number
from models.programs.layout import processors
from solvers import Solution, backends, solve
from solvers.backends.table import Backend, find, named
from solvers.probe import probe

if TYPE_CHECKING:
    from pandas import DataFrame

TOLERANCES: dict[str, float | None] = {"low": 1e-3, "default": None, "high": 1e-9}
"""The accuracies requested from backends; "default" is that of `solvers.solve`: each backend's highest."""

SETTINGS = ["time_limit", "threads", "presolve", "memory", "repeats"]
"""Columns of the settings that all backends have, unless they have no presolve to turn off."""

KEY = ["problem", "backend", "version", "tolerance", *SETTINGS]
"""Columns that identify a run; a run with the same values is not repeated."""

COLUMNS = [
    *KEY, "set", "model", "origin", "form", "variables", "rows", "status", "verdict", "relative_gap",
    "bound_error", "objective", "bound", "optimum", "proved", "primal_residual", "dual_residual",
    "build_seconds", "solve_seconds", "certificate_seconds", "cpu_seconds", "lower_quartile",
    "upper_quartile", "message", "python", "machine", "load", "edition", "date", "solver_version",
]  # fmt: skip


COMMITTED = Path(__file__).with_name(f"edition-{EDITION}.parquet")
"""The edition's rows, which `make edition` measures."""


@dataclass(frozen=True)
class Settings:
    """How the backends are run.

    Attributes
    ----------
    tolerances : sequence of str
        Names in `TOLERANCES`. Backends without tolerances have one row, under "default".
    time_limit : float
        Seconds for each solve.
    threads : int
        Threads of each solve, if the backend supports such a limit.
    presolves : sequence of bool
        Whether backends presolve. Those without a presolve that can be turned off have one row, under True.
    memory : float
        Gigabytes that a backend's process may allocate; 0 for no limit.
    repeats : int
        How often each problem is solved. Times are medians, with quartiles.
    """

    tolerances: Sequence[str] = ("default",)
    time_limit: float = 10.0
    threads: int = 1
    presolves: Sequence[bool] = (True,)
    memory: float = 0.0
    repeats: int = 1


def run(
    problems: Sequence[Problem],
    which: str,
    settings: Settings,
    results: Path,
    chosen: Sequence[str | Backend] | None,
    minutes: float | None = None,
) -> DataFrame:
    """Make the runs that a results file lacks, and return all its rows.

    Parameters
    ----------
    problems : sequence of Problem
    which : str
        The name of their test set, for the table.
    settings : Settings
    results : path
        A Parquet file; see `hierdp.execution.store`. A run that is killed loses at most one result.
    chosen : sequence of str or Backend, optional
        See `chosen_backends`.
    minutes : float, optional
        Start no run after this time.

    Raises
    ------
    InputError
        If the file is not a results file, or there is no such tolerance.
    ValueError
        If there is no such backend, or it is not installed.
    """
    for name in settings.tolerances:
        if name not in TOLERANCES:
            raise InputError(f"no tolerance {name!r}; there are {', '.join(TOLERANCES)}")
    until = None if minutes is None else time.monotonic() + 60 * minutes
    named = chosen_backends(chosen)
    with store.growing(results, COLUMNS, KEY) as kept:
        todo = [task for task in _tasks(problems, settings, named) if task.key not in kept.done]
        truth = _KnownOptima([one for one in named if one.name != "fast"], settings.time_limit)
        warm: set[str] = set()
        for task in progress.steps(todo, f"{which} problems", len(todo)):
            if until is not None and time.monotonic() > until:
                break
            kept.add(_row(task, which, truth.of(task.problem), warm))
    return read(results)


def missing(
    problems: Sequence[Problem], settings: Settings, results: Path, chosen: Sequence[str | Backend] | None
) -> int:
    """The number of runs that a results file lacks."""
    done = set(read(results)[KEY].itertuples(index=False, name=None))
    return sum(task.key not in done for task in _tasks(problems, settings, chosen_backends(chosen)))


def read(results: Path) -> DataFrame:
    """Read a results file, with the results that a killed run left beside it.

    Raises
    ------
    InputError
        If it is not a results file.
    """
    return store.read(results, COLUMNS)


@dataclass(frozen=True, eq=False)
class _Task:
    problem: Problem
    backend: Backend
    tolerance: str
    presolve: bool
    settings: Settings

    @property
    def key(self) -> tuple[Any, ...]:
        settings = self.settings
        return (
            self.problem.name,
            self.backend.name,
            self.backend.version,
            self.tolerance,
            settings.time_limit,
            settings.threads,
            self.presolve,
            settings.memory,
            settings.repeats,
        )

    def solve(self) -> Solution:
        """Solve a copy of the problem without cached results."""
        settings = self.settings
        return solve(
            fresh(self.problem.model), self.backend, settings.time_limit, settings.threads,
            TOLERANCES[self.tolerance], presolve=self.presolve, memory=int(settings.memory * 1e9) or None,
        )  # fmt: skip


def chosen_backends(names: Sequence[str | Backend] | None) -> list[Backend]:
    """The backends of these names, and rows unchanged; ``module:ROW`` is a `Backend` of the reader's own.

    Without names: the fast path and every exact backend that is installed.

    Raises
    ------
    ValueError
        If there is no such backend, or it is not installed.
    """
    if names is None:
        return [one for one in backends() if one.installed]
    return [find(one if isinstance(one, Backend) else named(one)) for one in names]


def _tasks(problems: Iterable[Problem], settings: Settings, chosen: Sequence[Backend]) -> Iterable[_Task]:
    for problem in problems:
        for backend in chosen:
            for tolerance in settings.tolerances if backend.tolerant else ("default",):
                for presolve in settings.presolves if backend.presolves else (True,):
                    yield _Task(problem, backend, tolerance, presolve, settings)


class _KnownOptima:
    """The proved optimum of the current problem, computed once for each problem.

    If the fast path proves nothing, the chosen backends solve the problem once before their runs, so that all
    its rows are judged by the same optimum.
    """

    def __init__(self, others: Sequence[Backend], limit: float) -> None:
        self._others, self._limit = others, limit
        self._problem: Problem | None = None
        self._truth: KnownOptimum | None = None

    def of(self, problem: Problem) -> KnownOptimum:
        if self._problem is not problem or self._truth is None:
            self._problem = problem
            if problem.none is None:
                self._truth = KnownOptimum.of(problem.model, self._others, self._limit, stored=problem.stored)
            else:
                self._truth = KnownOptimum.without(problem.model, problem.none.status)
        return self._truth


def _row(task: _Task, which: str, truth: KnownOptimum, warm: set[str]) -> dict[str, Any]:
    """Run a task, after a tiny problem if the backend's process is new."""
    settings, problem, ours = task.settings, task.problem, task.backend.name == "fast"
    if not ours and task.backend.name not in warm:
        probe(task.backend)
        warm.add(task.backend.name)
    tried = []
    for _ in range(settings.repeats):
        found = task.solve()
        judged = judge(found, truth.bounds, TOLERANCES[task.tolerance], settings.time_limit)
        tried.append((found, judged, _proving(problem, found) if ours else None))
        if found.cpu_seconds is None and found.status in ("time_limit", "crashed"):  # its process has ended
            warm.discard(task.backend.name)
    found, judged, _ = max(tried, key=lambda one: SEVERITY.index(one[1]))
    totals = [one.build_seconds + one.solve_seconds + (proving or 0.0) for one, _, proving in tried]
    row = {
        **dict(zip(KEY, task.key, strict=True)),
        "set": which,
        "model": problem.kind,
        "origin": problem.origin,
        "form": truth.form,
        "variables": truth.variables,
        "rows": truth.rows,
        "status": found.status,
        "verdict": judged,
        **numbers(found, truth.bounds.including(found)),
        "primal_residual": found.primal_residual,
        "dual_residual": found.dual_residual,
        "build_seconds": _median(one.build_seconds for one, _, _ in tried),
        "solve_seconds": _median(one.solve_seconds for one, _, _ in tried),
        "certificate_seconds": _median(proving for _, _, proving in tried),
        "cpu_seconds": _median(one.cpu_seconds for one, _, _ in tried),
        "lower_quartile": float(np.quantile(totals, 0.25)),
        "upper_quartile": float(np.quantile(totals, 0.75)),
        "message": found.message[:200],
        "python": platform.python_version(),
        "machine": machine(),
        "load": os.getloadavg()[0],
        "edition": EDITION,
        "date": date.today().isoformat(),
        "solver_version": task.backend.behind or task.backend.version,
    }
    return {name: row[name] for name in COLUMNS}


def numbers(found: Solution, known: KnownBounds) -> dict[str, float | None]:
    """What the verdict is based on. Gaps are known if the optimum is proved."""

    def plain(value: Number | None) -> float | None:
        return None if value is None else float(value)

    def gap(value: Number | None) -> float | None:
        if value is None or known.high is None or not known.proved:
            return None
        return float(excess(value, known.high)[0])

    over = gap(found.bound)
    return {
        "relative_gap": gap(found.objective),
        "bound_error": None if over is None else max(over, 0.0),
        "objective": plain(found.objective),
        "bound": plain(found.bound),
        "optimum": plain(known.high),
        "proved": known.proved,
    }


def _median(values: Iterable[float | None]) -> float | None:
    """The median of the known values."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _proving(problem: Problem, found: Solution) -> float | None:
    """Seconds of the certificate of the fast path's answer, on a copy of the model without cached results."""
    if found.x is None or found.certificate is None:
        return None
    model: Any = fresh(problem.model)
    started = time.perf_counter()
    model.certificate(found.x, found.certificate.witness)
    return time.perf_counter() - started


def machine() -> str:
    """The processor's name, if the system provides it, and the number of cores."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # not Linux
        text = ""
    named = re.search(r"model name\s*: (.*)", text)
    return f"{named[1].strip() if named else platform.machine()}, {plural(processors(), 'core')}"
