"""PIQP calls an answer solved that costs 865 times the optimum: its gap is relative to a large constant.

minimize (x − 48435139)² + (y − 8932)² with x + y = 48444072 and x, y ≥ 0. The optimum is 1/2: each number
grows by a half. The terms of its objective, such as xᵀPx/2, are 2.3 · 10¹⁵, and so its relative gap is small.
"""

import numpy as np
import piqp

FINDING = {
    "solver": "PIQP", "package": "piqp", "first seen": "0.7.0",
    "says": "solved, with an answer that costs 432; the optimum is 1/2",
    "option": "eps_duality_gap_rel=1e-9, its own; the objective has terms of 2.3 · 10¹⁵",
    "workaround": "eps_duality_gap_rel=1e-14, or variables x − 48435139 and y − 8932",
}  # fmt: skip
TARGET, TOTAL = np.array([48_435_139.0, 8_932.0]), np.array([48_444_072.0])


def solved(gap):
    solver = piqp.DenseSolver()
    solver.settings.eps_duality_gap_rel = gap
    square, row = np.asfortranarray(2 * np.eye(2)), np.ones((1, 2), order="F")
    solver.setup(square, -2 * TARGET, row, TOTAL, None, None, None, np.zeros(2), np.full(2, np.inf))
    status = solver.solve()
    return status, float(np.sum((solver.result.x - TARGET) ** 2))


def still():
    status, cost = solved(1e-9)
    return status == piqp.PIQP_SOLVED and cost > 1


if __name__ == "__main__":
    for gap in (1e-9, 1e-14):
        status, cost = solved(gap)
        print(f"eps_duality_gap_rel={gap:g}: {status}, cost {cost:.6f}; optimum 0.5")
