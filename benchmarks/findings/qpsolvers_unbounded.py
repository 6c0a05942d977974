"""qpsolvers calls a strictly convex program without constraints unbounded: a sum of ten squares.

For solvers without such a case of their own, it uses SciPy's LSQR, which stops at a relative accuracy of
1e-6, and then requires an absolute one of 1e-8.
"""

import numpy as np
import qpsolvers
import scipy.sparse as sp

FINDING = {
    "solver": "qpsolvers", "package": "qpsolvers", "first seen": "4.13.0",
    "says": "unbounded below; a sum of ten squares has an optimum",
    "option": "none: LSQR's accuracy is fixed where there are no constraints",
    "workaround": "a constraint that changes nothing, or OSQP, which solves the program itself",
}  # fmt: skip
weights = np.array([21.0, 30, 80, 60, 23, 5, 44, 41, 8, 46])
linear = np.array([-64.0, -96, -222, 0, -28, 8, 88, 14, 4, -112])
program = qpsolvers.Problem(sp.diags(2 * weights, format="csc"), linear)


def solved(solver):
    try:
        return str(np.round(qpsolvers.solve_problem(program, solver).x, 3))
    except qpsolvers.ProblemError as failure:
        return str(failure)


def still():
    return "unbounded" in solved("clarabel")


if __name__ == "__main__":
    print(f"the optimum is at {np.round(-linear / (2 * weights), 3)}")
    print(f"clarabel: {solved('clarabel')}, osqp: {solved('osqp')}")
