"""QOCO calls an answer of 10¹⁶ to an unbounded linear program optimal: minimize −v with v = w ≥ 0."""

import numpy as np
import qoco
import scipy.sparse as sp

FINDING = {
    "solver": "QOCO", "package": "qoco", "first seen": "0.3.2",
    "says": "solved, with v = 5.7 · 10¹⁶; there is no optimum",
    "option": "none: it does not detect unbounded programs",
    "workaround": "bounds on all variables",
}  # fmt: skip


def solved():
    solver = qoco.QOCO()
    equal, below = sp.csc_matrix([[1.0, -1.0]]), sp.csc_matrix(-np.eye(2))
    cost, zero = np.array([-1.0, 0.0]), np.zeros(2)
    solver.setup(2, 2, 1, None, cost, equal, np.zeros(1), below, zero, 2, 0, None)
    return solver.solve()


def still():
    return "SOLVED" in str(solved().status)


if __name__ == "__main__":
    found = solved()
    print(f"{found.status}, v = {found.x[0]:g}; there is no optimum")
