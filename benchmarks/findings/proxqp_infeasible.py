"""ProxQP calls a feasible linear program infeasible if its rows are written as Gx ≤ h instead of −Gx ≥ −h.

The least absolute changes of (3, 1, 4) to increasing numbers v: minimize t₀ + t₁ + t₂ with v₀ ≤ v₁ ≤ v₂ and
|v − z| ≤ t. The optimum is 2, at v = (1, 1, 4) for example.
"""

import numpy as np
from proxsuite import proxqp

FINDING = {
    "solver": "ProxQP", "package": "proxsuite", "first seen": "0.8.0",
    "says": "primal infeasible, if the rows are written as −Gx ≤ −g; the optimum is 2",
    "option": "eps_primal_inf=1e-4, its own",
    "workaround": "eps_primal_inf=1e-9 and eps_dual_inf=1e-9",
}  # fmt: skip
one, none = np.eye(3), np.zeros((2, 3))
rising = np.array([[-1.0, 1, 0], [0, -1, 1]])
z = np.array([3.0, 1, 4])
rows = np.block([[rising, none], [-one, one], [one, one]])
least = np.concatenate([[0, 0], -z, z])
cost = np.array([0.0, 0, 0, 1, 1, 1])
infinite = np.full(8, np.inf)


GIVEN = {"rows ≥ least": (rows, least, infinite), "-rows ≤ -least": (-rows, -infinite, -least)}


def solved(given, tolerance):
    solver = proxqp.dense.QP(6, 0, 8)
    solver.settings.eps_primal_inf = solver.settings.eps_dual_inf = tolerance
    solver.init(np.zeros((6, 6)), cost, None, None, *given)
    solver.solve()
    return solver.results.info.status, cost @ solver.results.x


def still():
    return "INFEASIBLE" in str(solved(GIVEN["-rows ≤ -least"], 1e-4)[0])


if __name__ == "__main__":
    for name, given in GIVEN.items():
        for tolerance in (1e-4, 1e-9):
            status, value = solved(given, tolerance)
            print(f"{name}, eps_primal_inf {tolerance:g}: {status}, objective {value:.6f}; optimum 2")
