"""Options of the solver: backend, time limit, truncated domains."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from hierdp import execution
from hierdp.errors import InputError, options_listed, unknown_name
from hierdp.record.step import NotSolved, solved
from models import Model, Program

if TYPE_CHECKING:
    from solvers import Solution


@dataclass(frozen=True)
class SolverOptions:
    """Options of the solver, for the methods that support them.

    Attributes
    ----------
    backend : str, optional
        See `solvers.backends`; each method has its default.
    time_limit : float, optional
        Seconds for each step, for all its solves together; see `Deadline`.
    window : int, optional
        The truncated domains {ñ − window … ñ + window} of Fioretto & Van Hentenryck 2019; see
        `hierdp.mechanisms.group_size.post_processing.paper_window`. Default: no truncation.
    """

    backend: str | None = None
    time_limit: float | None = None
    window: int | None = None


class Takes(Protocol):
    """A method with its supported options."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The supported options of `SolverOptions`."""


M = TypeVar("M", bound=Takes)


def checked(name: str, solver: SolverOptions, methods: Mapping[str, M]) -> M:
    """The method of that name, if it supports these options.

    Raises `InputError` if there is no such method, it does not support an option, or a value is out of range.
    """
    if name not in methods:
        raise InputError(unknown_name(name, methods, "no method"))
    method = methods[name]
    for option in ("backend", "time_limit", "window"):
        if getattr(solver, option) is not None and option not in method.takes:
            more = f"; it takes {options_listed(method.takes)}" if method.takes else ""
            raise InputError(f"{name} takes no `{option}`{more}")
    if solver.window is not None and solver.window < 0:
        raise InputError(f"`window` is {solver.window}: it must be a whole number, 0 or more")
    if solver.time_limit is not None and not solver.time_limit > 0:
        raise InputError(f"`time_limit` is {solver.time_limit}: give seconds, more than 0")
    if solver.backend is not None:
        from solvers.backends.table import find

        try:
            find(solver.backend)
        except ValueError as unknown:
            raise InputError(str(unknown)) from None
    return method


clock = time.time
"""The time of day, on which processes agree, and machines with synchronized clocks."""


@dataclass(frozen=True)
class Deadline:
    """The time limit of a step, shared by all its solves in any process.

    A backend that exceeds it is stopped some seconds later, or, while it is still stating the program, half a
    minute later (`GRACE_SECONDS` and `STARTING_SECONDS` of `solvers.worker`).

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
