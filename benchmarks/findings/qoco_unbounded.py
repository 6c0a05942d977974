"""QOCO calls an answer of 10¹⁶ to an unbounded linear program optimal: minimize −v with v = w ≥ 0."""

from importlib import metadata

import numpy as np
import qoco
import scipy.sparse as sp

solver = qoco.QOCO()
equal, below = sp.csc_matrix([[1.0, -1.0]]), sp.csc_matrix(-np.eye(2))
cost, zero = np.array([-1.0, 0.0]), np.zeros(2)
solver.setup(2, 2, 1, None, cost, equal, np.zeros(1), below, zero, 2, 0, None)
found = solver.solve()
print(f"QOCO {metadata.version('qoco')}: {found.status}, v = {found.x[0]:g}; there is no optimum")
