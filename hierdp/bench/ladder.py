"""The ladder: problems of four models from a thousand to ten million variables, each with a proved optimum.

Beyond some hundred thousand variables no exact solver ends in minutes. The optimum is that of the fast path,
and its certificate proves it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hierdp.bench.problems import Problem
from models import HierarchyQIP, Isotonic, NonNegativeInference, TreeMatching

SIZES = tuple(10**k for k in range(3, 8))

TEXTS_UP_TO = 100_000
"""Larger problems are written as ``.npz`` only, unless texts are requested."""


class Rung(NamedTuple):
    """A model of the ladder, its options, and its form in solvers' terms."""

    model: Any
    options: dict[str, Any]
    form: str


RUNGS = {
    "Isotonic-L1": Rung(Isotonic, {"p": 1}, "LP"),
    "NonNegativeInference": Rung(NonNegativeInference, {}, "QP"),
    "HierarchyQIP": Rung(HierarchyQIP, {}, "MIQP"),
    "TreeMatching": Rung(TreeMatching, {}, "MILP"),
}
"""A linear program, a quadratic one, an integer quadratic one, and a network of whole numbers."""


@dataclass(frozen=True)
class Ladder(Collection[Problem]):
    """The problems of up to about so many variables, from small to large, each made when it is its turn."""

    up_to: int = SIZES[-1]

    def __len__(self) -> int:
        return len(RUNGS) * len([size for size in SIZES if size <= self.up_to])

    def __iter__(self) -> Iterator[Problem]:
        for size in SIZES:
            for name, (model, options, form) in RUNGS.items():
                if size <= self.up_to:
                    made = model.typical(np.random.default_rng(size), size, **options)
                    yield Problem(f"ladder-{name}-{size}", made, "ladder", form)

    def __contains__(self, problem: object) -> bool:
        return any(problem is one for one in self)
