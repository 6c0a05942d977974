"""Solve the same models with every backend, and compare the answers with the fast path's."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hierdp.checking.rerun import Rerun
from hierdp.errors import InputError
from hierdp.execution import progress, resume
from hierdp.execution.progress import plural
from hierdp.mechanisms.registry import released_by
from hierdp.record.proofs import SavedStep
from hierdp.record.release import Release
from hierdp.record.replay import Replay, SavedAnswer
from hierdp.record.step import Step
from hierdp.record.written import ReleaseFolder
from hierdp.verification.judge import KnownBounds, Verdict, judge, known_bounds, refuted
from hierdp.verification.table import Row, Verification
from models import Certificate, Model
from solvers import Backend, Solution, backends, fast, solve
from solvers.backends.table import find


def verify(
    what: Release | Model | Iterable[tuple[str, Model]],
    backends: Sequence[str | Backend] | None = None,
    time_limit: float = 10.0,
    sample: int = 6,
    exact_up_to: int | None = None,
) -> Verification:
    """Solve models again with exact backends, and compare the answers with the fast path's.

    Parameters
    ----------
    what : Release, model, or pairs of (name, model)
        A release is represented by all its models, except that many small models of one kind are sampled.
    backends : sequence of str or Backend, optional
        Default: every installed exact backend.
    time_limit : float
        Seconds for each solve.
    sample : int
    exact_up_to : int, optional
        Larger models are solved by the fast path only; the note says how many.

    Returns
    -------
    Verification
        See `agree` and `frame()`.

    Examples
    --------
    >>> from models import Chebyshev
    >>> verify(Chebyshev([5, 3, -2], total=4), backends=["highs", "cp-sat"])
    Verification(1 model, 1 proved optimal; 3 solved)
    """
    named = [("", what)] if not isinstance(what, Release) and hasattr(what, "program") else what
    note = ""
    if isinstance(named, Release):
        named, note = _sampled(named, sample)
    chosen_backends = _exact_backends() if backends is None else backends
    chosen = [backend for backend in chosen_backends if find(backend).name != "fast"]  # always the first
    pairs = [(name, form) for name, model in named for form in _forms(model, chosen)]
    cases = [(name, model, chosen, time_limit, exact_up_to) for name, model in pairs]
    settings = [f"{name} {_description(model)} {rest}" for name, model, *rest in cases]
    seconds = len(pairs) * len(chosen) * time_limit
    if seconds >= progress.LONG_SECONDS:
        each = f"{plural(len(pairs), 'model')}, each by the fast path and {plural(len(chosen), 'backend')}"
        progress.tell(f"{each}: {progress.duration(seconds)} if every backend reaches its time limit")
    found = resume.runs(_tried, cases, "solving again with exact backends", names=settings)
    rows = [Row(**row) for one in found for row in one]
    left_alone = sum(len(one) == 1 and len(chosen) > 0 for one in found)
    if left_alone:
        note += "; " if note else ""
        note += f"{plural(left_alone, 'model')} beyond {exact_up_to:,} cells by certificate only"
    return Verification(tuple(rows), note)


def _exact_backends() -> list[str]:
    return [backend.name for backend in backends() if backend.name != "fast" and backend.installed]


def _forms(model: Any, chosen: Sequence[str | Backend]) -> list[Any]:
    """The model, and its relaxation if it has one and some backend solves over the reals."""
    relaxed = model.relaxed() if hasattr(model, "relaxed") else None
    if relaxed is not None and any(not find(backend).integer for backend in chosen):
        return [model, relaxed]
    return [model]


def _sampled(release: Release, sample: int) -> tuple[list[tuple[str, Any]], str]:
    """Sample the models of a kind that occurs many times, and state the sample in words."""
    kinds: dict[str, list[Callable[[], tuple[str, Model]]]] = {}
    for step in steps_of(release):
        kinds.setdefault(type(step.model).__name__, []).extend(step.parts)
    chosen, notes = [], []
    for kind, steps in kinds.items():
        if len(steps) > sample:
            # Evenly spread over the steps, which are in level order; the root's step is always included.
            places = sorted({round(i * (len(steps) - 1) / max(1, sample - 1)) for i in range(sample)})
            notes.append(f"{len(places)} of {len(steps)} {kind} models (evenly spread over the regions)")
            steps = [steps[i] for i in places]
        else:
            notes.append(f"all {len(steps)} {kind} models" if len(steps) > 1 else f"the {kind} model")
        chosen += [part() for part in steps]
    return chosen, f"{release.mechanism}: {', '.join(notes)}"


def steps_of(release: Release) -> Sequence[Step]:
    """The steps of a release; those of a large one have their problems made from the measurements again.

    Raises `InputError` if the release is large, and hierdp does not know its mechanism.
    """
    if release.steps.in_memory:
        return release.steps
    mechanism = released_by(release.mechanism)
    if mechanism is None:
        raise InputError(
            "a large release does not keep its problems, and hierdp cannot make those of "
            f"{release.mechanism!r} again"
        )
    manifest: dict[str, Any] = {"mechanism": release.mechanism, "settings": release.settings}
    manifest |= {"budget": release.ledger.as_dict(), "solved": [line.line for line in release.proved]}
    written = ReleaseFolder(manifest, release.counts, dict(release.regions), release.measurements)
    steps: list[Step] = []

    def prove(saved: SavedStep, model: Model, problems: Sequence[str]) -> Certificate:
        proof = model.certificate(saved.x, saved.witness)
        answer = SavedAnswer(saved.x, proof.objective, proof.bound, proof, saved.witness)
        steps.append(Step(saved.name, model, answer, tuple(problems)))
        return proof

    Rerun(mechanism.checking, written)(Replay(release.steps.saved(), prove))
    return steps


def _description(model: Any) -> str:
    """A description of an instance: its kind, and a digest of its data."""
    return f"{type(model).__name__} {hashlib.sha256(pickle.dumps(model)).hexdigest()}"


def _tried(*case: Any) -> list[dict[str, Any]]:
    """`_rows` as plain values, which can be sent to other processes and saved."""
    return [asdict(row) for row in _rows(*case)]


def _rows(
    name: str, model: Any, chosen: Sequence[str | Backend], time_limit: float, exact_up_to: int | None
) -> list[Row]:
    kind = type(model).__name__
    progress.doing(f"{kind} by the fast path")
    reference = solve(model)
    if reference.status == "optimal":
        reference = solve(model)  # warm up before timing: the first call may load compiled code
    small = exact_up_to is None or reference.x is None or np.size(reference.x) <= exact_up_to
    found = []
    for backend in chosen if small else ():
        progress.doing(f"{kind} by {find(backend).name}")
        found.append(solve(model, backend, time_limit=time_limit))
    proved_by = [reference] if reference.certificate is not None else found
    known, _ = known_bounds(model, proved_by)
    for one in (reference, *found):
        known = known.including(one)
    verdict = judge(reference, known)
    if verdict == "inaccurate" and fast.exact(model):
        verdict = "failed"  # the fast path must prove its answers to this model
    rows = [_row(name, model, reference, reference, known, verdict)]
    return rows + [
        _row(name, model, one, reference, known, judge(one, known, time_limit=time_limit)) for one in found
    ]


def _row(
    name: str, model: Any, found: Solution, reference: Solution, known: KnownBounds, verdict: Verdict
) -> Row:
    def number(value: Any) -> float | None:
        return None if value is None else float(value)

    size = reference.x if reference.x is not None else found.x
    kind = type(model).__name__ + ("" if getattr(model, "integer", True) else " (relaxed)")
    seconds = found.build_seconds + found.solve_seconds
    fast = reference.solve_seconds
    return Row(
        name,
        kind,
        0 if size is None else int(np.size(size)),
        found.backend,
        found.status,
        number(found.objective),
        number(found.bound),
        number(found.gap),
        found.build_seconds,
        found.solve_seconds,
        seconds / fast if fast > 0 and found.status != "unsupported" else None,
        known.proved,
        verdict,
        "; ".join(why for why in (refuted(found, known), found.message) if why),
    )
