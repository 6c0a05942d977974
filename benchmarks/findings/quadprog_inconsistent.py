"""quadprog calls constraints inconsistent that hold at 0: three numbers between 0 and 0 whose sum is 0."""

import numpy as np
import quadprog

one = np.eye(3)
rows = np.vstack([np.ones((1, 3)), one, -one])
for linear in ([-15.0, -12, -4], [0.0, 0, 0]):
    try:
        found = quadprog.solve_qp(one, np.array(linear), rows.T.copy(), np.zeros(7), 1)
        print(f"quadprog, linear terms {linear}: x = {found[0]}; the only answer is 0")
    except ValueError as failure:
        print(f"quadprog, linear terms {linear}: {failure}; the only answer is 0")
