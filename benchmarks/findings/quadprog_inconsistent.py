"""quadprog calls constraints inconsistent that hold at 0: three numbers between 0 and 0 whose sum is 0."""

import numpy as np
import quadprog

FINDING = {
    "solver": "quadprog", "package": "quadprog", "first seen": "0.1.14",
    "says": "constraints are inconsistent; the only answer is 0",
    "option": "none: it has no options",
    "workaround": "leave out rows that follow from others",
}  # fmt: skip


def solved(linear):
    one = np.eye(3)
    rows = np.vstack([np.ones((1, 3)), one, -one])
    try:
        return str(quadprog.solve_qp(one, np.array(linear), rows.T.copy(), np.zeros(7), 1)[0])
    except ValueError as failure:
        return str(failure)


def still():
    return "inconsistent" in solved([-15.0, -12, -4])


if __name__ == "__main__":
    for linear in ([-15.0, -12, -4], [0.0, 0, 0]):
        print(f"linear terms {linear}: {solved(linear)}; the only answer is 0")
