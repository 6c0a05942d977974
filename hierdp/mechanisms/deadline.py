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
"""Of the day, so that processes, and machines that keep the time, agree on it."""


@dataclass(frozen=True)
class Deadline:
    """The time limit of a step: one for all of its solves, wherever these are made.

    A backend that does not keep it is stopped: some seconds later, or where it is still stating the program
    half a minute later (`GRACE_SECONDS` and `STARTING_SECONDS` of `solvers.worker`).

    Attributes
    ----------
    step : str
        Its name, for messages.
    limit : float, optional
        Seconds for the step. None: as long as it takes.
    end : float, optional
        When it is over, by `clock`.
    """

    step: str
    limit: float | None = None
    end: float | None = None

    @classmethod
    def of(cls, step: str, limit: float | None) -> Deadline:
        """That of a step that begins now."""
        return cls(step, limit, None if limit is None else clock() + limit)

    def left(self) -> float | None:
        """Seconds left; None without a limit.

        Raises
        ------
        NotSolved
            If it is over.
        """
        if self.end is None:
            return None
        left = self.end - clock()
        if left <= 0:
            raise self._over()
        return left

    def solve(self, model: Model | Program, backend: str) -> Solution:
        """Solve in what time is left. (A fast path is not stopped: it is for a part of a step.)

        Raises
        ------
        NotSolved
            If no time is left, or there is no optimal answer in it.
        """
        from solvers import solve

        found = solve(model, backend, self.left(), stating_counts=True)
        return solved(self.step, found, self.limit)

    def fast(self, model: Model | Program) -> Solution:
        """The fast path's answer. It takes no notice of a limit: with one, it has a process of its own.

        Raises
        ------
        NotSolved
            If it is not there in time.
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
            f"{self.step}: stopped, for its time limit of {self.limit:g} s is over; give it more time "
            "(time_limit, --time-limit), or take another backend",
        )
