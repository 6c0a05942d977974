"""ECOS calls a program infeasible that has an answer: two numbers in the wrong order, and their squares.

minimize (x − 1000000)² + y² with x ≤ y. The optimum is 5 · 10¹¹, at x = y = 500000. Squares are a cone, as
cvxpy states them: s with |(2x − 2000000, 2y, 1 − s)| ≤ 1 + s.
"""

import ecos
import numpy as np
import scipy.sparse as sp

FINDING = {
    "solver": "ECOS", "package": "ecos", "first seen": "2.0.14",
    "says": "primal infeasible; the optimum is 5 · 10¹¹",
    "option": "feastol=1e-8, its own; with 1e-10 it says “close to primal infeasible”",
    "workaround": "numbers in millions",
}  # fmt: skip
ROWS = [[1.0, -1.0, 0.0], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0], [-2.0, 0.0, 0.0], [0.0, -2.0, 0.0]]


def solved(first, **options):
    sides = np.array([0.0, 1.0, 1.0, -2 * first, 0.0])
    cost, cones = np.array([0.0, 0.0, 1.0]), {"l": 1, "q": [4]}
    found = ecos.solve(cost, sp.csc_matrix(ROWS), sides, cones, verbose=False, **options)
    return found["info"]["infostring"]


def still():
    return solved(1e6) == "Primal infeasible"


if __name__ == "__main__":
    print(f"x − 1000000: {solved(1e6)}; with feastol=1e-10: {solved(1e6, feastol=1e-10)}")
    print(f"in millions: {solved(1.0)}")
