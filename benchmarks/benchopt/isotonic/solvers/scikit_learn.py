"""scikit-learn's isotonic regression."""

import numpy as np
from benchopt import BaseSolver
from sklearn.isotonic import isotonic_regression


class Solver(BaseSolver):
    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]

    def skip(self, p, **_):
        return (True, "only squares") if p == 1 else (False, None)

    def set_objective(self, y, **_):
        self.y = y.astype(np.float64)

    def run(self, _):
        self.x = isotonic_regression(self.y)

    def get_result(self):
        return {"x": self.x}
