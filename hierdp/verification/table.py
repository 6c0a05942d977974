"""The table of a verification: one row for each model and backend."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from hierdp.execution.progress import plural
from hierdp.verification.judge import Verdict, broken

if TYPE_CHECKING:
    from pandas import DataFrame

OURS = ("fast", "failed")
"""A failure of the fast path, which is ours."""


@dataclass(frozen=True)
class Row:
    """One model on one backend, compared with the fast path.

    `verdict`: see `hierdp.verification.judge`; the fast path has ``failed`` if it does not prove its answer
    to a model whose answers it always proves. `proved`: whether the optimum is proved, by a certificate, or
    by the bound of the fast answer together with a backend's answer that meets it. `ratio`: the backend's
    build and solve time over the fast path's.
    """

    step: str
    model: str
    variables: int
    backend: str
    status: str
    objective: float | None
    bound: float | None
    gap: float | None
    build_seconds: float
    solve_seconds: float
    ratio: float | None
    proved: bool
    verdict: Verdict
    message: str


@dataclass(frozen=True)
class Verification:
    """The table of a cross-verification."""

    rows: tuple[Row, ...]
    note: str = ""

    @property
    def agree(self) -> bool:
        """Whether no answer is wrong, and the fast path proves its own."""
        return not self.disagreements

    @property
    def disagreements(self) -> list[Row]:
        """The rows with wrong answers, or with a fast answer that is not proved."""
        return [row for row in self.rows if row.verdict == "wrong" or (row.backend, row.verdict) == OURS]

    @property
    def broken(self) -> list[str]:
        """What shows that backends do not work on this machine; see `hierdp.verification.judge.broken`."""
        return broken((row.backend, row.status) for row in self.rows if row.backend != "fast")

    def frame(self) -> DataFrame:
        """The table as a DataFrame, one row for each model and backend."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def __repr__(self) -> str:
        verdicts = [row.verdict for row in self.rows]
        each = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        proved = sum(row.proved for row in self.rows if row.backend == "fast")
        models = sum(row.backend == "fast" for row in self.rows)
        return f"Verification({plural(models, 'model')}, {proved} proved optimal; {each})"
