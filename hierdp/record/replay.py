"""Repeat a release's post-processing, with its saved answers in place of a solver's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.measurements.measuring import Differs
from hierdp.record.proofs import SavedStep
from hierdp.record.step import Step
from models import Model, Tree
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.instances import packed


class NotKept(Differs):
    """A step was not saved, which is allowed if it was too large.

    Attributes
    ----------
    name : str
        How the step's name begins.
    most : int
        The most variables that it can have.
    """

    def __init__(self, name: str, most: int, found: SavedStep | None) -> None:
        there = f"there is no step {name!r}"
        super().__init__(there if found is None else f"step {found.step!r} is where {name!r} should be")
        self.name, self.most = name, most


@dataclass(frozen=True, eq=False)
class SavedAnswer:
    """A saved answer, in place of a solver's solution. Its certificate is checked elsewhere."""

    x: NDArray[Any]
    objective: Number
    bound: Number | None = None
    certificate: Certificate | None = None
    witness: Witness | None = None
    solve_seconds: float = 0.0


class Replay:
    """The saved steps in order; each is accepted only as the answer to the problem that comes next.

    A mechanism's post-processing is run with `solve` in place of a solver. It gives the released table, or
    raises `Differs` if the saved steps answer other problems.
    """

    def __init__(self, steps: Iterator[SavedStep]) -> None:
        self._steps = steps
        self._next: SavedStep | None = None

    def solve(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """Return the saved answer to a problem, in place of solving it.

        Raises
        ------
        NotKept
            If the next step has another name.
        Differs
            If the next step answers another problem.
        """
        saved = self._peek()  # taken only if it is the answer: a mechanism may go on without one
        if saved is None or saved.step != name:
            raise NotKept(name, _most_variables(model), saved)
        if not same(saved.model, model):
            raise Differs(f"step {name!r} answers a problem other than the one that the steps before it give")
        if saved.problems != tuple(problems):
            raise Differs(f"step {name!r} has regions other than those that the steps before it give")
        self._next = None
        return Step(name, model, SavedAnswer(saved.x, model.objective(saved.x)), saved.problems)

    def end(self) -> None:
        """Check that no step is left.

        Raises
        ------
        Differs
            If one is left; the message names the first.
        """
        left = self._peek()
        if left is not None:
            raise Differs(f"step {left.step!r} is not part of the post-processing")

    def _peek(self) -> SavedStep | None:
        """The next step, which is read when it is needed: it may be large."""
        if self._next is None:
            self._next = next(self._steps, None)
        return self._next


def same(one: Model, other: Model) -> bool:
    """Whether two models are of one kind, with the same data."""
    if type(one) is not type(other):
        return False
    ours, theirs = packed(one), packed(other)
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _most_variables(model: Model) -> int:
    """An upper bound on the size of an answer: the model's own, or the number of all its data."""
    size: int | None = getattr(model, "answer_size", None)
    data: Any = model
    return sum(_numbers(getattr(model, one.name)) for one in fields(data)) if size is None else size


def _numbers(data: Any) -> int:
    """The number of numbers in a field of a model."""
    if isinstance(data, Tree):
        return data.size
    return sum(map(_numbers, data)) if isinstance(data, tuple) else int(np.size(data))
