"""Options of the solver: backend, time limit, truncated domains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hierdp.errors import InputError, options_listed, unknown_name


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
