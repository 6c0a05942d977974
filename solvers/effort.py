"""The names by which `hierdp.bench` asks for an effort and a solver's tolerances."""

from __future__ import annotations

from solvers.backends.cvxpy_any import SOLVERS
from solvers.solution import Effort as Effort


def tolerances(solver: str, tolerance: float) -> dict[str, float]:
    """A solver's own options for a tolerance, by its name in capitals."""
    known = SOLVERS[solver.lower()]
    chosen = known.options(Effort(tolerance=tolerance))
    return {name: chosen[name] for name in known.tolerances}
