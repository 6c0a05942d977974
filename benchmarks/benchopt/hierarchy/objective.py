"""Hierarchical counts: consistent and non-negative numbers of a tree, nearest to noisy ones in squares."""

from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from benchopt import BaseObjective

from models import NonNegativeInference, Tree
from models.programs.texts import stated
from solvers import solve


class Objective(BaseObjective):
    name = "Hierarchical counts"
    min_benchopt_version = "1.7"
    requirements = ["pip::hierdp"]
    sampling_strategy = "run_once"

    def set_data(self, parents, noisy):
        """Parents of each level's nodes in the level above; noisy counts in level order, the root first."""
        self.model = NonNegativeInference(Tree(parents), noisy, np.ones(noisy.size, int))
        best = solve(self.model)
        assert best.status == "optimal", best.message
        self.made = stated(self.model.program())
        self.noisy, self.optimum = noisy, cost(noisy, best.x)

    def get_objective(self):
        made = self.made
        return {
            "model": self.model, "size": self.noisy.size, "diagonal": 2 * made.square, "slope": made.cost,
            "rows": sp.vstack([made.matrix, sp.eye(len(made.columns))], format="csc"),
            "lower": np.concatenate([made.least, made.lower]),
            "upper": np.concatenate([made.most, made.upper]),
        }  # fmt: skip

    def evaluate_result(self, x):
        found, off = cost(self.noisy, x), self.made.matrix @ x - self.made.least
        return {
            "value": float(found),
            "gap": float((found - self.optimum) / max(1, self.optimum)),
            "violation": float(max(np.abs(off).max(initial=0.0), -np.min(x), 0.0)),
        }

    def get_one_result(self):
        return {"x": np.zeros(self.noisy.size)}


def cost(noisy, x):
    """Exactly."""
    pairs = zip(noisy.tolist(), x.tolist(), strict=True)
    return sum(((Fraction(value) - target) ** 2 for target, value in pairs), Fraction(0))
