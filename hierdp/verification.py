"""The same models, solved by every backend: does anyone find better than the fast path?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from hierdp import progress
from hierdp.record import Release
from models import HierarchyQIP, Isotonic, Model
from solvers import Solution, backends, solve

if TYPE_CHECKING:
    from pandas import DataFrame

TOLERANCE = 1e-6
"""Relative agreement asked of objectives and bounds in floats; whole objectives must be equal."""

Verdict = Literal["agrees", "bound holds", "stopped", "unsupported", "failed", "DISAGREES"]


@dataclass(frozen=True)
class Row:
    """One model on one backend, held against the fast path.

    `verdict`: ``agrees`` (same optimum, or both find none), ``bound holds`` (a relaxation, or an answer
    that is not claimed optimal, is on the right side), ``stopped`` (time limit), ``unsupported``,
    ``failed`` (the backend's own error), ``DISAGREES``. `proved`: whether the fast answer's certificate
    proves it optimal. `ratio`: the backend's build and solve time over the fast path's.
    """

    step: str
    model: str
    variables: int
    backend: str
    status: str
    objective: float | None
    bound: float | None
    gap: float | None
    build_seconds: float
    solve_seconds: float
    ratio: float | None
    proved: bool
    verdict: Verdict
    message: str


@dataclass(frozen=True)
class Verification:
    """The table of a cross-verification."""

    rows: tuple[Row, ...]
    note: str = ""

    @property
    def agree(self) -> bool:
        """Whether no backend disagrees, and every fast answer is proved optimal."""
        return not self.disagreements and all(row.proved for row in self.rows)

    @property
    def disagreements(self) -> list[Row]:
        """The rows that disagree."""
        return [row for row in self.rows if row.verdict == "DISAGREES"]

    def frame(self) -> DataFrame:
        """As a DataFrame, a row a model and backend."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def __repr__(self) -> str:
        verdicts = [row.verdict for row in self.rows]
        counted = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        proved = sum(row.proved for row in self.rows if row.backend == "fast")
        models = sum(row.backend == "fast" for row in self.rows)
        return f"Verification({models} models, {proved} proved optimal; {counted})"


def verify(
    what: Release | Model | Iterable[tuple[str, Model]],
    backends: Sequence[str] | None = None,
    time_limit: float = 10.0,
    sample: int = 6,
) -> Verification:
    """Solve models again with exact backends and hold the answers against the fast path's.

    Parameters
    ----------
    what : Release, model, or pairs of (name, model)
        Of a release, all models but the many small ones of one kind: of those, the `sample` largest in
        variables and evenly spread others.
    backends : sequence of str, optional
        Default: every installed exact backend.
    time_limit : float
        Seconds for each solve.
    sample : int

    Returns
    -------
    Verification
        Look at `agree`, `frame()`.

    Examples
    --------
    >>> from models import Chebyshev
    >>> verify(Chebyshev([5, 3, -2], total=4), backends=["highs", "cp-sat"])
    Verification(1 models, 1 proved optimal; 3 agrees)
    """
    named = [("", what)] if not isinstance(what, Release) and hasattr(what, "program") else what
    note = ""
    if isinstance(named, Release):
        named, note = _sampled(named, sample)
    chosen = list(_exact_backends() if backends is None else backends)
    pairs = [(name, form) for name, model in named for form in _forms(model, chosen)]
    rows: list[Row] = []
    for name, model in progress.steps(pairs, "solving again with exact backends", len(pairs)):
        rows += _rows(name, model, chosen, time_limit)
    return Verification(tuple(rows), note)


def _exact_backends() -> list[str]:
    return [backend.name for backend in backends() if backend.name != "fast" and backend.installed]


def _forms(model: Any, chosen: Sequence[str]) -> list[Any]:
    """The model, and its relaxation too where a backend over the reals is to have its say."""
    relaxable = isinstance(model, HierarchyQIP | Isotonic) and model.integer
    windowed = isinstance(model, HierarchyQIP) and model.window is not None
    over_reals = any(backend.name in chosen and not backend.integer for backend in backends())
    if relaxable and not windowed and over_reals:
        return [model, replace(model, integer=False)]
    return [model]


def _sampled(release: Release, sample: int) -> tuple[list[tuple[str, Any]], str]:
    """A stated sample where one kind of model occurs many times."""
    kinds: dict[str, list[Any]] = {}
    for step in release.steps:
        kinds.setdefault(type(step.model).__name__, []).append(step)
    chosen, notes = [], []
    for kind, steps in kinds.items():
        if len(steps) > sample:
            # Evenly spread over the steps, which come level by level: the root's is always among them.
            places = sorted({round(i * (len(steps) - 1) / max(1, sample - 1)) for i in range(sample)})
            notes.append(f"{len(places)} of {len(steps)} {kind} models (evenly spread over the regions)")
            steps = [steps[i] for i in places]
        else:
            notes.append(f"all {len(steps)} {kind} models" if len(steps) > 1 else f"the {kind} model")
        chosen += [(step.name, step.model) for step in steps]
    return chosen, f"{release.mechanism}: {', '.join(notes)}"


def _rows(name: str, model: Any, chosen: Sequence[str], time_limit: float) -> list[Row]:
    reference = solve(model)
    if reference.status == "optimal":
        reference = solve(model)  # timed warm: the first call may load compiled code
    proved = bool(reference.certificate)
    rows = [
        _row(name, model, reference, reference, "agrees" if proved or reference.x is None else "DISAGREES")
    ]
    for backend in chosen:
        found = solve(model, backend, time_limit=time_limit)
        rows.append(_row(name, model, found, reference, _verdict(found, reference)))
    return rows


def _verdict(found: Solution, reference: Solution) -> Verdict:
    if found.status in ("unsupported", "size_limit"):
        return "unsupported"
    if found.status in ("numerical", "out_of_memory", "crashed", "error"):
        return "failed"
    none = ("infeasible", "unbounded")
    if found.status in none or reference.status in none:
        if found.status == "time_limit":
            return "stopped"
        relaxation = found.status == "relaxed" and reference.status == "infeasible"
        return (
            "bound holds" if relaxation else ("agrees" if found.status == reference.status else "DISAGREES")
        )
    if reference.objective is None:
        return "unsupported"
    if found.status == "optimal" and found.objective is not None:
        if isinstance(found.objective, int) and isinstance(reference.objective, int):
            return "agrees" if found.objective == reference.objective else "DISAGREES"
        same = math.isclose(found.objective, reference.objective, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return "agrees" if same else "DISAGREES"
    slack = TOLERANCE * max(1.0, abs(float(reference.objective)))
    bound_ok = found.bound is None or float(found.bound) <= float(reference.objective) + slack
    answer_ok = found.objective is None or float(found.objective) >= float(reference.objective) - slack
    if not (bound_ok and answer_ok):
        return "DISAGREES"
    # Without a bound, an answer that is not claimed optimal says nothing of the optimum.
    return "stopped" if found.status == "time_limit" or found.bound is None else "bound holds"


def _row(name: str, model: Any, found: Solution, reference: Solution, verdict: Verdict) -> Row:
    def number(value: Any) -> float | None:
        return None if value is None else float(value)

    kind = type(model).__name__ + ("" if getattr(model, "integer", True) else " (relaxed)")
    seconds = found.build_seconds + found.solve_seconds
    fast = reference.solve_seconds
    return Row(
        name,
        kind,
        model.program().size if reference.x is None else int(reference.x.size),
        found.backend,
        found.status,
        number(found.objective),
        number(found.bound),
        number(found.gap),
        found.build_seconds,
        found.solve_seconds,
        seconds / fast if fast > 0 and found.status != "unsupported" else None,
        bool(reference.certificate) or reference.status == "infeasible",
        verdict,
        found.message,
    )
