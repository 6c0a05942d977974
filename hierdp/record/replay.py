"""Repeat a release's post-processing, with its saved answers in place of a solver's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hierdp.measurements.measuring import Differs
from hierdp.record.proofs import SavedStep
from hierdp.record.step import Step
from models import Model
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness

Prove = Callable[[SavedStep, Model, Sequence[str]], Certificate]
"""Checks a saved answer to a model with these names of problems; may raise `Differs`."""


class NotKept(Differs):
    """There is no saved step of that name, or it is not the next one."""

    def __init__(self, name: str, found: SavedStep | None) -> None:
        there = f"there is no step {name!r}"
        super().__init__(there if found is None else f"step {found.name!r} is where {name!r} should be")
        self.name = name


@dataclass(frozen=True, eq=False)
class SavedAnswer:
    """A saved answer, in place of a solver's solution."""

    x: NDArray[Any]
    objective: Number
    bound: Number | None = None
    certificate: Certificate | None = None
    witness: Witness | None = None
    solve_seconds: float = 0.0


def proved(saved: SavedStep, model: Model, _: Sequence[str]) -> Certificate:
    """The certificate of a saved answer, whatever it says."""
    return model.certificate(saved.x, saved.witness)


class Replay:
    """The saved steps in order; each is the answer to the problem that comes next.

    A mechanism's post-processing is run with `solve` in place of a solver. It gives the released table, or
    raises `Differs` if these are the steps of another one.

    - prove: checks each answer before the mechanism has it.
    """

    def __init__(self, steps: Iterator[SavedStep], prove: Prove = proved) -> None:
        self._steps, self._prove = steps, prove
        self._next: SavedStep | None = None

    def solve(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """Return the saved answer to a problem, in place of solving it.

        Raises `NotKept` if the next step has another name; `Differs` (as `prove` does).
        """
        saved = self._peek()  # taken only if it is the answer: a mechanism may go on without one
        if saved is None or saved.name != name:
            raise NotKept(name, saved)
        self._next = None
        proof = self._prove(saved, model, problems)
        return Step(name, model, SavedAnswer(saved.x, proof.objective), tuple(problems))

    def end(self) -> None:
        """Check that no step is left.

        Raises `Differs` if one is left; the message names the first.
        """
        left = self._peek()
        if left is not None:
            raise Differs(f"step {left.name!r} is not part of the post-processing")

    def _peek(self) -> SavedStep | None:
        """The next step, which is read when it is needed: it may be large."""
        if self._next is None:
            self._next = next(self._steps, None)
        return self._next
