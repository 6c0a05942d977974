"""DAQP calls a feasible linear program infeasible whose costs are large: the cuts of three values into runs.

Nine variables between 0 and 1, seven equations. With costs a million times smaller it is solved.
"""

import daqp
import numpy as np

FINDING = {
    "solver": "DAQP", "package": "daqp", "first seen": "0.11.0",
    "says": "infeasible; an answer is (1, 0, 0, 0, 0, 1, 0, 0, 0)",
    "option": "primal_tol=1e-6, its own; tighter ones make it worse",
    "workaround": "costs a million times smaller",
}  # fmt: skip

# Marks where runs begin, then the runs 0, 0–1, 0–2, 1, 1–2, 2.
rows = np.array([[-1, 0, 0, 1, 1, 1, 0, 0, 0], [0, -1, 0, 0, 0, 0, 1, 1, 0], [0, 0, -1, 0, 0, 0, 0, 0, 1],
                 [-1, 0, 0, 0, 0, 1, 0, 1, 1], [0, -1, 0, 1, 0, 0, 0, 0, 0], [0, 0, -1, 0, 1, 0, 1, 0, 0],
                 [1, 1, 1, 0, 0, 0, 0, 0, 0]], float)  # fmt: skip
cost = np.array([0, 0, 0, 1_000_000, 1_000_002, 1_000_002, 1_000_000, 1_000_000.5, 1_000_000])
least, most, sides = np.array([1.0] + [0.0] * 8), np.ones(9), np.array([0.0] * 6 + [1.0])
answer, sense = np.array([1.0, 0, 0, 0, 0, 1, 0, 0, 0]), np.array([0] * 9 + [5] * 7, np.int32)
feasible = bool((rows @ answer == sides).all() and (answer >= least).all())


def flag(scale):
    upper, lower = np.concatenate([most, sides]), np.concatenate([least, sides])
    return daqp.solve(np.zeros((9, 9)), cost * scale, rows, upper, lower, sense)[2]


def still():
    return feasible and flag(1.0) == -1


if __name__ == "__main__":
    print(f"exit flag {flag(1.0)}, with smaller costs {flag(1e-6)} (1: optimal, −1: infeasible); {feasible=}")
