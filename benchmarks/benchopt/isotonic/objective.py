"""Isotonic regression: increasing numbers nearest to given whole ones."""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from benchopt import BaseObjective

from models import Isotonic
from models.programs.texts import stated
from solvers import solve


class Objective(BaseObjective):
    name = "Isotonic regression"
    min_benchopt_version = "1.7"
    requirements = ["pip::hierdp"]
    parameters = {"p": [1, 2]}
    sampling_strategy = "run_once"

    def set_data(self, y):
        """The optimum is proved by hierdp's certificate; least absolute changes have a whole one."""
        self.y, self.model = y, Isotonic(y, p=self.p, integer=self.p == 1)
        best = solve(self.model)
        assert best.status == "optimal", best.message
        self.optimum = cost(self.y, best.x, self.p)

    def get_objective(self):
        made = stated(self.model.program())
        return {
            "y": self.y, "p": self.p, "model": self.model, "size": self.y.size,
            "diagonal": 2 * made.square, "slope": made.cost,
            "rows": sp.vstack([made.matrix, sp.eye(len(made.columns))], format="csc"),
            "lower": np.concatenate([made.least, made.lower]),
            "upper": np.concatenate([made.most, made.upper]),
        }  # fmt: skip

    def evaluate_result(self, x):
        found = cost(self.y, x, self.p)
        return {
            "value": float(found),
            "gap": float((found - self.optimum) / max(1, self.optimum)),
            "violation": float(max(0.0, -np.diff(np.asarray(x, float)).min(initial=0.0))),
        }

    def get_one_result(self):
        return {"x": np.full(self.y.size, np.median(self.y))}


def cost(y, x, p):
    """Exactly."""
    pairs = zip(y.tolist(), x.tolist(), strict=True)
    return sum((abs(Fraction(value) - target) ** p for target, value in pairs), Fraction(0))
