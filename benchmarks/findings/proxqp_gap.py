"""ProxQP's answers are wrong in the third digit with default settings, as it does not look at the duality gap.

minimize (x − 5)² + (y − 1)² + (z − 4)² with x ≤ y ≤ z, x + y + z = 6, x ≤ 4: the optimum is at (5/3, 5/3, 8/3).
"""

import numpy as np
import proxsuite
from proxsuite import proxqp

target = np.array([5.0, 1, 4])
rows = np.vstack([[[1.0, -1, 0], [0, 1, -1]], np.eye(3)])
most = np.array([0.0, 0, 4, np.inf, np.inf])
least = np.array([-np.inf, -np.inf, 0, 0, 0])
for settings in ({}, {"check_duality_gap": True}):
    found = proxqp.dense.solve(
        2 * np.eye(3), -2 * target, np.ones((1, 3)), np.array([6.0]), rows, least, most, **settings
    )
    print(
        f"ProxQP {proxsuite.__version__}, {settings}: {found.info.status}, x = {found.x.round(4)}; optimum at 5/3"
    )
