"""How to solve what a method leaves open: which solver, for how long, in which domains."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from hierdp import execution
from hierdp.errors import InputError, listed
from hierdp.record.step import NotSolved, solved
from models import Model, Program

if TYPE_CHECKING:
    from solvers import Solution


@dataclass(frozen=True)
class How:
    """How to solve: for the methods that leave it open.

    Attributes
    ----------
    backend : str, optional
        See `solvers.backends`; each method has its default.
    time_limit : float, optional
        Seconds for each step, with all of its solves together; see `Deadline`.
    window : int, optional
        The truncated domains {ñ − window … ñ + window} of Fioretto & Van Hentenryck 2019; see
        `hierdp.mechanisms.group_size.repairs.paper_window`. Default: untruncated.
    """

    backend: str | None = None
    time_limit: float | None = None
    window: int | None = None


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


class Takes(Protocol):
    """A method that says which options it leaves open."""

    @property
    def takes(self) -> tuple[str, ...]:
        """What of `How`."""


M = TypeVar("M", bound=Takes)


def checked(name: str, how: How, methods: Mapping[str, M]) -> M:
    """The method of that name, if it takes these options.

    Raises
    ------
    InputError
        If there is no such method, it does not take an option, or the option's value is none.
    """
    if name not in methods:
        raise InputError(f"no method {name!r}; there are {listed(list(methods), most=len(methods))}")
    method = methods[name]
    for option in ("backend", "time_limit", "window"):
        if getattr(how, option) is not None and option not in method.takes:
            more = f"; it takes {listed(list(method.takes))}" if method.takes else ""
            raise InputError(f"{name} takes no {option}{more}")
    if how.window is not None and how.window < 0:
        raise InputError(f"window is {how.window}: it must be a whole number, 0 or more")
    if how.time_limit is not None and not how.time_limit > 0:
        raise InputError(f"time_limit is {how.time_limit}: give seconds, more than 0")
    if how.backend is not None:
        from solvers.backends.table import find

        try:
            find(how.backend)
        except ValueError as unknown:
            raise InputError(str(unknown)) from None
    return method
