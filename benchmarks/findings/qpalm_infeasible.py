"""QPALM calls a feasible linear program infeasible: six variables, eight rows.

The least absolute changes of (7, 6, 2) to increasing numbers v: minimize t₀ + t₁ + t₂ with v₀ ≤ v₁ ≤ v₂ and
|v − z| ≤ t. The optimum is 5, at v = (6, 6, 6) for example.
"""

import numpy as np
import qpalm
import scipy.sparse as sp

one, none = np.eye(3), np.zeros((2, 3))
rising = np.array([[-1.0, 1, 0], [0, -1, 1]])
for z in (np.array([7.0, 6, 2]), np.array([2.0, 6, 7])):
    rows = np.block([[rising, none], [-one, one], [one, one]])
    data = qpalm.Data(6, 8)
    data.A, data.Q = sp.csc_matrix(rows), sp.csc_matrix((6, 6))
    data.q = np.array([0.0, 0, 0, 1, 1, 1])
    data.bmin, data.bmax = np.concatenate([[0, 0], -z, z]), np.full(8, np.inf)
    settings = qpalm.Settings()
    settings.verbose = False
    solver = qpalm.Solver(data, settings)
    solver.solve()
    answer = np.concatenate([np.full(3, 6.0), np.abs(6 - z)])
    feasible = bool((rows @ answer >= data.bmin).all())
    print(f"QPALM, z = {z}: {solver.info.status}; v = (6, 6, 6) is feasible: {feasible}")
