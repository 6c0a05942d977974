"""A release's post-processing done again, with the answers that it keeps in place of solving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.check.noise import Twice
from hierdp.record.proofs import Kept
from hierdp.record.step import Step
from models import Model, Tree
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.instances import packed


class Differs(Exception):
    """Says how a release is not what its kept steps give."""


class NotKept(Differs):
    """Says which step is not among the kept ones; where it was too large, that is no fault.

    Attributes
    ----------
    name : str
        What the step's name begins with.
    most : int
        It has no more variables.
    """

    def __init__(self, name: str, most: int, found: Kept | None) -> None:
        there = f"there is no step {name!r}"
        super().__init__(there if found is None else f"step {found.step!r} is where {name!r} should be")
        self.name, self.most = name, most


@dataclass(frozen=True, eq=False)
class Answer:
    """A kept answer, in place of a solver's solution; its certificate is checked elsewhere."""

    x: NDArray[Any]
    objective: Number
    bound: Number | None = None
    certificate: Certificate | None = None
    witness: Witness | None = None
    solve_seconds: float = 0.0


class Replay:
    """Kept steps, one after the other, each taken only as the answer to the problem that comes up.

    What is done again with it ends in the released table, or `Differs`: the proofs are of other problems.
    On the way it is noted, in `twice`, what was measured twice.
    """

    def __init__(self, steps: Iterator[Kept]) -> None:
        self.twice: list[Twice] = []
        self._steps = steps
        self._next = next(steps, None)

    @property
    def side_by_side(self) -> bool:
        """Whether the next step has many problems side by side."""
        return self._next is not None and bool(self._next.problems)

    def peek(self, name: str, most: int) -> Kept:
        """The next step, which is to stay: its name begins so, and it has no more than so many variables."""
        if self._next is None or not self._next.step.startswith(name):
            raise NotKept(name, most, self._next)
        return self._next

    def solve(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """The kept answer to a problem, in place of solving it."""
        kept = self._next
        if kept is None or kept.step != name:
            raise NotKept(name, _most_variables(model), kept)
        if not same(kept.model, model):
            raise Differs(f"step {name!r} is of another problem than what comes before it leads to")
        if kept.problems != tuple(problems):
            raise Differs(f"step {name!r} is of other regions than what comes before it leads to")
        self._next = next(self._steps, None)
        return Step(name, model, Answer(kept.x, model.objective(kept.x)), kept.problems)

    def end(self) -> None:
        """That there are no more."""
        if self._next is not None:
            raise Differs(f"step {self._next.step!r} is one too many")


def same(one: Model, other: Model) -> bool:
    """Whether two models are of one kind, with the same data."""
    if type(one) is not type(other):
        return False
    ours, theirs = packed(one), packed(other)
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _most_variables(model: Model) -> int:
    """An upper bound on the numbers of an answer: what the model says, or all numbers of its data."""
    size: int | None = getattr(model, "answer_size", None)
    data: Any = model
    return sum(_numbers(getattr(model, one.name)) for one in fields(data)) if size is None else size


def _numbers(data: Any) -> int:
    """How many numbers a field of a model holds."""
    if isinstance(data, Tree):
        return data.size
    return sum(map(_numbers, data)) if isinstance(data, tuple) else int(np.size(data))
