"""A release's post-processing done again, with the answers that it saved in place of solving."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.privacy.twice import Twice
from hierdp.record.proofs import SavedStep
from hierdp.record.step import Step
from models import Model, Tree
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness
from models.instances import packed


class Differs(Exception):
    """Says how a release differs from what its saved steps give."""


class NotKept(Differs):
    """Says which step is not among the saved ones. That is no fault if it was too large to be saved.

    Attributes
    ----------
    name : str
        The beginning of the step's name.
    most : int
        The most variables that it can have.
    """

    def __init__(self, name: str, most: int, found: SavedStep | None) -> None:
        there = f"there is no step {name!r}"
        super().__init__(there if found is None else f"step {found.step!r} is where {name!r} should be")
        self.name, self.most = name, most


@dataclass(frozen=True, eq=False)
class Answer:
    """A saved answer, in place of a solver's solution. Its certificate is checked elsewhere."""

    x: NDArray[Any]
    objective: Number
    bound: Number | None = None
    certificate: Certificate | None = None
    witness: Witness | None = None
    solve_seconds: float = 0.0


class Replay:
    """Saved steps in their order; each is accepted only as the answer to the problem that comes up.

    A mechanism's post-processing, run with `solve` in place of a solver, ends in the released table, or in
    `Differs`: then the proofs are of other problems. What was measured twice on the way is collected in
    `twice`.
    """

    def __init__(self, steps: Iterator[SavedStep]) -> None:
        self.twice: list[Twice] = []
        self._steps = steps
        self._ahead: deque[SavedStep] = deque()

    @property
    def side_by_side(self) -> bool:
        """Whether the next step has many problems side by side."""
        step = self._step(0)
        return step is not None and bool(step.problems)

    def peek(self, name: str, most: int, ahead: int = 0) -> SavedStep:
        """A step to come: the next, or the one that many steps `ahead` of it.

        Parameters
        ----------
        name : str
            The beginning of its name.
        most : int
            The most variables that it can have.
        ahead : int

        Raises
        ------
        NotKept
            If it has another name, or there is none.
        """
        step = self._step(ahead)
        if step is None or not step.step.startswith(name):
            raise NotKept(name, most, step)
        return step

    def peek_noisy(self, name: str, shape: tuple[int, ...], ahead: int = 0) -> NDArray[Any]:
        """The noisy counts from which a step to come starts; see `peek`.

        Raises
        ------
        Differs
            If they are not of that shape.
        """
        step = self.peek(name, int(np.prod(shape, dtype=object)), ahead)
        noisy = np.asarray(getattr(step.model, "noisy", ()))
        if noisy.shape != shape:
            raise Differs(f"step {name!r} starts from other than {' × '.join(map(str, shape))} noisy counts")
        return noisy

    def solve(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """The saved answer to a problem, in place of solving it.

        Raises
        ------
        NotKept
            If the next step has another name.
        Differs
            If it is of another problem.
        """
        saved = self._step(0)
        if saved is None or saved.step != name:
            raise NotKept(name, _most_variables(model), saved)
        if not same(saved.model, model):
            raise Differs(f"step {name!r} is of another problem than what comes before it leads to")
        if saved.problems != tuple(problems):
            raise Differs(f"step {name!r} is of other regions than what comes before it leads to")
        self._ahead.popleft()
        return Step(name, model, Answer(saved.x, model.objective(saved.x)), saved.problems)

    def end(self) -> None:
        """Check that no step is left.

        Raises
        ------
        Differs
            Naming the first that is.
        """
        left = self._step(0)
        if left is not None:
            raise Differs(f"step {left.step!r} is one too many")

    def _step(self, ahead: int) -> SavedStep | None:
        while len(self._ahead) <= ahead:
            step = next(self._steps, None)
            if step is None:
                return None
            self._ahead.append(step)
        return self._ahead[ahead]


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
