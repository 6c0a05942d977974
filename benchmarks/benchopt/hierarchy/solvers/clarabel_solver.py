"""Clarabel, with rows as cones."""

import clarabel
import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "Clarabel"
    requirements = ["pip::clarabel"]

    def set_objective(self, diagonal, slope, rows, lower, upper, size, **_):
        same = lower == upper
        below, above = np.isfinite(lower) & ~same, np.isfinite(upper) & ~same
        rows = rows.tocsr()
        matrix = sp.vstack([rows[same], -rows[below], rows[above]], format="csc")
        right = np.concatenate([lower[same], -lower[below], upper[above]])
        cones = [
            clarabel.ZeroConeT(int(same.sum())),
            clarabel.NonnegativeConeT(int(below.sum() + above.sum())),
        ]
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        self.size = size
        self.given = sp.diags(diagonal, format="csc"), slope, matrix, right, cones, settings

    def run(self, _):
        self.found = clarabel.DefaultSolver(*self.given).solve()

    def get_result(self):
        return {"x": np.array(self.found.x)[: self.size]}
