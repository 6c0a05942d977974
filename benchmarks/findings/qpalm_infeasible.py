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
one, none = np.eye(3), np.zeros((2, 3))
rising = np.array([[-1.0, 1, 0], [0, -1, 1]])


def solved(z, tolerance):
    rows = np.block([[rising, none], [-one, one], [one, one]])
    data = qpalm.Data(6, 8)
    data.A, data.Q = sp.csc_matrix(rows), sp.csc_matrix((6, 6))
    data.q = np.array([0.0, 0, 0, 1, 1, 1])
    data.bmin, data.bmax = np.concatenate([[0, 0], -z, z]), np.full(8, np.inf)
    settings = qpalm.Settings()
    settings.verbose = False
    settings.eps_prim_inf = settings.eps_dual_inf = tolerance
    solver = qpalm.Solver(data, settings)
    solver.solve()
    return solver.info.status


def still():
    return solved(np.array([7.0, 6, 2]), 1e-5) == "primal infeasible"


if __name__ == "__main__":
    for z in (np.array([7.0, 6, 2]), np.array([2.0, 6, 7])):
        for tolerance in (1e-5, 1e-9):
            print(f"z = {z}, eps_prim_inf {tolerance:g}: {solved(z, tolerance)}; v = (6, 6, 6) is feasible")
