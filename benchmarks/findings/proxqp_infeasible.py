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
one, rising = np.eye(3), [[-1.0, 1, 0, 0, 0, 0], [0, -1, 1, 0, 0, 0]]
rows = np.vstack([rising, np.block([[-one, one], [one, one]])])
least = np.array([0.0, 0, -3, -1, -4, 3, 1, 4])
cost, infinite = np.array([0.0, 0, 0, 1, 1, 1]), np.full(8, np.inf)


def solved(tolerance, *given):
    solver = proxqp.dense.QP(6, 0, 8)
    solver.settings.eps_primal_inf = solver.settings.eps_dual_inf = tolerance
    solver.init(np.zeros((6, 6)), cost, None, None, *given)
    solver.solve()
    return str(solver.results.info.status)


def still():
    return "INFEASIBLE" in solved(1e-4, -rows, -infinite, -least)


if __name__ == "__main__":
    print(f"rows ≥ least: {solved(1e-4, rows, least, infinite)}; an answer costs 2")
    print(f"−rows ≤ −least: {[solved(eps, -rows, -infinite, -least) for eps in (1e-4, 1e-9)]}")
