"""A solver-neutral mathematical program, in which models are stated and which backends read."""

from __future__ import annotations

from pathlib import Path

from models.programs.algebra import algebra
from models.programs.terms import Formulation
from models.programs.write import write


class Program(Formulation):
    """Minimize a separable objective over bounded variables, some of them integer, and sparse rows.

    Printing it gives its algebra (the first rows of each block, if there are many); `write` saves it
    as `.mps`, `.lp` or `.nl`.

    Parameters
    ----------
    name : str
    blocks : sequence of Block
        The variables, in order; the first block is the model's own answer, the others are auxiliary.
    rows : sequence of Rows
    objective : sequence of Term

    Examples
    --------
    >>> from models import Chebyshev
    >>> print(Chebyshev([3, -1], total=1).program())
    Chebyshev: 3 variables (3 integer), 5 rows
    minimize
      distance_0
    subject to
      below:
        x_0 - distance_0 <= 3
        x_1 - distance_0 <= -1
      above:
        x_0 + distance_0 >= 3
        x_1 + distance_0 >= -1
      total:
        x_0 + x_1 = 1
    with
      x (2): 0 <= x <= 1, integer
      distance (1): 0 <= distance <= 3, integer
    """

    def write(self, path: str | Path) -> Path:
        """Save as `.mps`, `.lp` or `.nl`, by the suffix of the path.

        Absolute values are written as their epigraph (exact). Integer quadratics stay quadratic: HiGHS
        reads the file but cannot solve it; SCIP, Gurobi and CPLEX can.
        """
        return write(self, Path(path))

    def __str__(self) -> str:
        return algebra(self)
