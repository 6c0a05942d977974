"""Workloads of equally likely queries: one `Axis` per dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from models.arithmetic.arrays import Floats


@dataclass(frozen=True)
class Axis:
    """The queries along one dimension of n bins, numbered from 1: all ranges, all prefixes, or the whole.

    They enter only through K[s, t], the number of queries that contain both s and t:
    min(s, t)·(n + 1 − max(s, t)), n + 1 − max(s, t), or 1.
    """

    kind: Literal["range", "prefix", "whole"]

    def queries(self, n: int) -> int:
        """Number of queries."""
        return {"range": n * (n + 1) // 2, "prefix": n, "whole": 1}[self.kind]

    def length(self, n: int) -> float:
        """Mean number of bins of a query."""
        return {"range": (n + 2) / 3, "prefix": (n + 1) / 2, "whole": float(n)}[self.kind]

    def holding(self, n: int, first: int, last: int) -> int:
        """Number of queries that contain the bins first … last."""
        return {"range": first * (n + 1 - last), "prefix": n + 1 - last, "whole": 1}[self.kind]

    def apart(self, n: int) -> float:
        """The coefficient of −Σ f[s] f[t] |s − t| in fᵀKf, for weights f that sum to 0."""
        return {"range": (n + 1) / 2, "prefix": 0.5, "whole": 0.0}[self.kind]

    @property
    def off(self) -> float:
        """The coefficient of −(Σ s f[s])² in fᵀKf."""
        return 1.0 if self.kind == "range" else 0.0

    def root(self, n: int, middle: Any, distance: Any) -> Any:
        """πᵀKπ for a distribution π with mean `middle` and mean distance `distance` between two draws."""
        if self.kind == "range":
            return (n + 1) * (middle - distance / 2) - middle * middle
        return n + 1 - middle - distance / 2 if self.kind == "prefix" else 1.0

    def gram(self, n: int) -> Floats:
        """K as a matrix; shape (n, n)."""
        s = np.arange(1.0, n + 1)
        low, high = np.minimum.outer(s, s), n + 1 - np.maximum.outer(s, s)
        return np.asarray({"range": low * high, "prefix": high, "whole": np.ones((n, n))}[self.kind])


RANGE, PREFIX, WHOLE = Axis("range"), Axis("prefix"), Axis("whole")
