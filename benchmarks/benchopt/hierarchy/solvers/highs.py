"""HiGHS, with the program as a linear or quadratic one."""

import highspy
import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "HiGHS"
    requirements = ["pip::highspy"]

    def set_objective(self, diagonal, slope, rows, lower, upper, size, **_):
        model, n = highspy.HighsModel(), slope.size
        lp, rows = model.lp_, rows[:-n]  # the last are bounds
        lp.num_col_, lp.num_row_ = n, rows.shape[0]
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = slope, lower[-n:], upper[-n:]
        lp.row_lower_, lp.row_upper_ = lower[:-n], upper[:-n]
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
        if diagonal.any():
            held = np.flatnonzero(diagonal)
            hessian = model.hessian_
            hessian.dim_, hessian.format_ = n, highspy.HessianFormat.kTriangular
            hessian.start_ = np.searchsorted(held, np.arange(n + 1))
            hessian.index_, hessian.value_ = held, diagonal[held]
        self.size, self.highs = size, highspy.Highs()
        self.highs.silent()
        self.highs.passModel(model)

    def run(self, _):
        self.highs.clearSolver()
        self.highs.run()

    def get_result(self):
        return {"x": np.array(self.highs.getSolution().col_value)[: self.size]}
