"""The solved steps of a written release, and the same release with other steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hierdp.checking.export import for_each_step
from hierdp.record import files, proofs
from hierdp.record.step import Step
from solvers import Solution


@dataclass(frozen=True)
class Solved:
    """A problem that the mechanism makes, and its saved answer."""

    name: str
    model: Any
    x: Any
    witness: Any = None


def solved_in(folder: Path) -> list[Solved]:
    """The steps of a release, whose problems its mechanism makes again."""
    steps: list[Solved] = []
    if (folder / files.PROOFS).exists():
        for_each_step(folder, lambda *step: steps.append(Solved(*step)))
    return steps


def save(steps: Iterable[Solved], folder: Path) -> None:
    """Write the file of proofs, with these answers."""
    again = [Step(s.name, s.model, Solution("", "", "optimal", s.x, witness=s.witness)) for s in steps]
    proofs.write(again, folder / files.PROOFS)
