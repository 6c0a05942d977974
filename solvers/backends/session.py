"""What a backend's module provides: a session, which holds a program in the backend's own form."""

from __future__ import annotations

from models.programs.program import Program
from models.programs.terms import Rows
from solvers.solution import Answer, Effort


class Session:
    """A program in a backend's own form, ready to run, and to run again with more rows."""

    def __init__(self, program: Program, effort: Effort) -> None:
        raise NotImplementedError

    def add_rows(self, rows: Rows) -> None:
        """Append constraints; the next run starts from the last one's result if the backend can."""
        raise NotImplementedError

    def run(self, seconds: float | None) -> Answer:
        """Solve within a time limit."""
        raise NotImplementedError
