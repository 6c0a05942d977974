"""What commercial solvers say about their licences, as statuses.

The community licences of CPLEX, Xpress, COPT and Gurobi limit the size of a program; MOSEK has none. Neither
a program that is too large nor a missing licence is a failure of the solver.
"""

from __future__ import annotations

from typing import Any

from solvers.solution import NoAnswer, Status

_SAID: tuple[tuple[str, Status], ...] = (
    ("size-limited license", "size_limit"),  # Gurobi
    ("problem size limits exceeded", "size_limit"),  # CPLEX
    ("problem has too many rows and columns", "size_limit"),  # Xpress
    ("(license) fail to solve", "size_limit"),  # COPT, which solves small programs without a licence
    ("license cannot be located", "unsupported"),  # MOSEK
    ("no license", "unsupported"),
    ("license has expired", "unsupported"),
    ("license error", "unsupported"),
    ("no gurobi license", "unsupported"),
)
"""Parts of the vendors' messages, in lower case."""


def status_of(message: str) -> Status | None:
    """The status that a message about a licence stands for; None if it is about something else.

    >>> status_of("CPLEX Error  1016: Community Edition. Problem size limits exceeded.")
    'size_limit'
    >>> status_of("out of memory") is None
    True
    """
    return next((status for words, status in _SAID if words in message.lower()), None)


def named(solver: str, failure: Exception) -> NoAnswer:
    """A solver's exception, with the status of its message."""
    status = status_of(str(failure))
    prefix = f"there is no licence for {solver}: " if status == "unsupported" else f"{solver}: "
    return NoAnswer(status or "error", f"{prefix}{failure}".strip())


def noting(kind: Any) -> list[str]:
    """Note the texts of the exceptions of a class's method ``solve``, for a library that drops them."""
    solve, notes = getattr(kind.solve, "plain", kind.solve), []

    def noted(self: Any, *given: Any, **options: Any) -> Any:
        try:
            return solve(self, *given, **options)
        except Exception as failure:
            notes.append(str(failure))
            raise

    noted.plain = solve  # type: ignore[attr-defined]
    kind.solve = noted
    return notes
