"""Clarabel calls a cone program whose cost is at least 0 dual infeasible, that is, unbounded or infeasible.

Minimize 10¹⁰·t with e = 1, u·e ≥ 1 and t ≥ u², whose only best answer is e = u = t = 1. As cvxpy states it,
with y ≥ ‖(√2, u − e/2)‖, y ≤ u + e/2 and z ≥ ‖(√2·u, t − 1/2)‖, z ≤ t + 1/2.
"""

import clarabel
import numpy as np
import scipy.sparse as sp

FINDING = {
    "solver": "Clarabel", "package": "clarabel", "first seen": "0.11.1",
    "says": "dual infeasible; the optimum is 10¹⁰",
    "option": "tol_infeas_rel=1e-8, its own; with 1e-14 it says “almost primal infeasible”",
    "workaround": "the costs divided by 10¹⁰",
}  # fmt: skip
# Variables e, u, t, y, z.
rows = sp.csc_matrix([[1, 0, 0, 0, 0], [-0.5, -1, 0, 1, 0], [0, 0, -1, 0, 1], [0, 0, 0, -1, 0],
                      [0] * 5, [0.5, -1, 0, 0, 0], [0, 0, 0, 0, -1], [0, -(2**0.5), 0, 0, 0],
                      [0, 0, -1, 0, 0]])  # fmt: skip
sides = np.array([1, 0, 0.5, 0, 2**0.5, 0, 0, 0, -0.5])
cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2), *[clarabel.SecondOrderConeT(3)] * 2]


def solved(cost, tolerance=1e-8):
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.tol_infeas_rel = False, tolerance
    costs, none = np.array([0, 0, cost, 0, 0]), sp.csc_matrix((5, 5))
    return clarabel.DefaultSolver(none, costs, rows, sides, cones, settings).solve().status


def still():
    return str(solved(1e10)) == "DualInfeasible"


if __name__ == "__main__":
    print(f"{solved(1e10)}; with tol_infeas_rel=1e-14: {solved(1e10, 1e-14)}; with the cost 1: {solved(1.0)}")
