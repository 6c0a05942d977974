"""The time limit of a step, shared by all of its solves."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hierdp import execution
from hierdp.record.step import NotSolved, solved
from models import Model, Program

if TYPE_CHECKING:
    from solvers import Solution

clock = time.time
"""The time of day, on which processes agree, and machines with synchronized clocks."""


@dataclass(frozen=True)
class Deadline:
    """The time limit of a step, shared by all its solves in any process.

    A backend that exceeds it is stopped some seconds later, or, while it is still stating the program, half a
    minute later (`GRACE_SECONDS` and `STARTING_SECONDS` of `solvers.worker`).

    - step: the step's name, for messages.
    - limit: seconds for the step; None for no limit.
    - end: the time at which the limit is reached, by `clock`.
    """

    step: str
    limit: float | None = None
    end: float | None = None

    @classmethod
    def of(cls, step: str, limit: float | None) -> Deadline:
        """The deadline of a step that begins now."""
        return cls(step, limit, None if limit is None else clock() + limit)

    def left(self) -> float | None:
        """Seconds left; None without a limit.

        Raises `NotSolved` if no time is left.
        """
        if self.end is None:
            return None
        left = self.end - clock()
        if left <= 0:
            raise self._over()
        return left

    def solve(self, model: Model | Program, backend: str) -> Solution:
        """Solve within the remaining time. (A fast path, which solves part of a step, is not stopped.)

        Raises `NotSolved` if no time is left, or no optimal answer is found in it.
        """
        from solvers import solve

        found = solve(model, backend, self.left(), stating_counts=True)
        return solved(self.step, found, self.limit)

    def fast(self, model: Model | Program) -> Solution:
        """The fast path's answer.

        With a limit, it runs in a separate process, because it does not observe limits.

        Raises `NotSolved` if it is not found in time.
        """
        from solvers import solve

        left = self.left()
        if left is None:
            return solve(model)
        try:
            return execution.within(left, solve, model)
        except TimeoutError:
            raise self._over() from None

    def _over(self) -> NotSolved:
        return NotSolved(
            "time_limit",
            f"{self.step}: stopped at its time limit of {self.limit:g} s; give it more time (time_limit, "
            "--time-limit), or choose another backend",
        )
