"""QPALM calls a feasible linear program infeasible: six variables, eight rows.

The least absolute changes of (7, 6, 2) to increasing numbers v: minimize t₀ + t₁ + t₂ with v₀ ≤ v₁ ≤ v₂ and
|v − z| ≤ t. The optimum is 5, at v = (6, 6, 6) for example.
"""

import numpy as np
import qpalm
import scipy.sparse as sp

FINDING = {
    "solver": "QPALM", "package": "qpalm", "first seen": "1.3.0",
    "says": "primal infeasible; the optimum is 5",
    "option": "eps_prim_inf=1e-5, its own",
    "workaround": "eps_prim_inf=1e-9 and eps_dual_inf=1e-9",
}  # fmt: skip
one, rising = np.eye(3), np.array([[-1.0, 1, 0, 0, 0, 0], [0, -1, 1, 0, 0, 0]])


def solved(tolerance):
    data, settings = qpalm.Data(6, 8), qpalm.Settings()
    data.A = sp.csc_matrix(np.vstack([rising, np.block([[-one, one], [one, one]])]))
    data.Q, data.q = sp.csc_matrix((6, 6)), np.array([0.0, 0, 0, 1, 1, 1])
    data.bmin, data.bmax = np.array([0.0, 0, -7, -6, -2, 7, 6, 2]), np.full(8, np.inf)
    settings.eps_prim_inf = settings.eps_dual_inf = tolerance
    solver = qpalm.Solver(data, settings)
    solver.solve()
    return solver.info.status


def still():
    return solved(1e-5) == "primal infeasible"


if __name__ == "__main__":
    print(f"at 1e-5: {solved(1e-5)}, at 1e-9: {solved(1e-9)}; v = (6, 6, 6) is feasible, and costs 5")
