"""What is recorded of each design: its files, and what is said of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import hierdp
from hierdp import InputError, PublishedRelease
from hierdp.mechanisms import MECHANISMS
from hierdp.questions import bias
from tests.designs import DESIGNS, Design
from tests.golden.canonical import DIGITS, canonical
from tests.golden.record import Entries

APART = ("created", "versions", "budget", "solved")
"""Entries of the manifest that depend on time and machine, or have a part of their own."""

PROOF = ("step", "model", "variables", "objective", "bound", "proved_optimal")

EXACT = {"fast", "cost tables"}
"""Backends that give the same answer on every machine. Others choose among several optimal ones."""

ROUGH = 5
"""Digits of the costs by other backends."""

OF_ANSWERS = ("table", "finest", "intervals", "answers")
"""Parts that depend on which optimal answer a solver chooses."""


def entries() -> Entries:
    """An entry for each design."""
    return {name: partial(texts_of, design) for name, design in DESIGNS.items()}


def texts_of(design: Design) -> dict[str, str]:
    """The text of each part of a design's release, as it is written."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(bias, "TIMES", 1):
        release = design.release()
        exact = {step.solution.backend for step in release.steps} <= EXACT
        opened = hierdp.open(release.write(Path(folder, "release")))
        manifest = {name: value for name, value in opened.manifest.items() if name not in APART}
        if not exact:
            manifest.pop("simulated_errors", None)
        lines = [[one.check, one.verdict, *([one.why] if exact else [])] for one in opened.check()]
        solved = [[one[name] for name in PROOF] for one in opened.manifest["solved"]]
        questions = list(design.questions)
        texts = {
            "table": canonical(opened.table),
            "finest": _or_refusal(lambda: [] if opened.finest is None else opened.finest),
            "measurements": canonical([] if opened.measurements is None else opened.measurements.to_frame()),
            "ledger": canonical(opened.manifest["budget"] or {}),
            "manifest": canonical(manifest),
            "steps": canonical(solved, DIGITS if exact else ROUGH),
            "intervals": _or_refusal(lambda: opened.intervals()[["lower", "upper"]]),
            "answers": _or_refusal(lambda: opened.query(questions, unbiased=False)),
            "check": canonical(lines),
            "plan": _or_refusal(lambda: _planned(design)),
            "repair": canonical(_repaired(opened, design)),
        }
    return {part: text for part, text in texts.items() if exact or part not in OF_ANSWERS}


def _or_refusal(make: Callable[[], Any]) -> str:
    try:
        return canonical(make())
    except InputError as refused:
        return f"refused: {refused}"


def _planned(design: Design) -> Any:
    """The table of the plan, as text, with its notes."""
    if design.mechanism not in MECHANISMS:
        return []
    plan = hierdp.plan(design.mechanism, **design.planned)
    return [plan.method, *canonical(plan.table).splitlines(), *plan.notes]


def _repaired(opened: PublishedRelease, design: Design) -> dict[str, Any]:
    """The settings of a repair by each method from the same noise, or why there is none."""
    repaired: dict[str, Any] = {}
    for method in MECHANISMS[design.mechanism].methods if design.mechanism in MECHANISMS else ():
        try:
            release = opened.repair(method.name)
            repaired[method.name] = {"settings": release.settings, "rows": len(release.table)}
        except InputError as refused:
            repaired[method.name] = f"refused: {refused}"
    return repaired
