"""ResidualPlanner's plans (Xiao et al. 2023) as budget splits: every effect is measured by itself.

Attributes of one size are alike, and the errors convex, so some optimum spends alike on sets of like
attributes: a part stands for all sets with the same sizes. That makes 100 attributes a small problem.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Annotated, Any

import numpy as np

from models import BudgetSplit
from solvers import solve

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
"""The sizes of the attributes of Adult in that paper."""


def plan(sizes: Sequence[int], ways: Sequence[int], largest: bool) -> BudgetSplit:
    """The split with the least sum, or the least maximum, of the variances of all marginals' counts.

    An effect A with σ² of noise costs p_A/σ², p_A = Π_{i in A} (1 − 1/n_i), and adds p_B σ_B² / Π n_i² (over
    the i in A, not in B) to each count of a marginal A that contains B. A unit of budget is a privacy cost of
    1, or 2ρ.
    """
    often = Counter(sizes)
    kinds = [
        Counter(kind)
        for k in range(max(ways) + 1)
        for kind in combinations_with_replacement(sorted(often), k)
        if all(often[n] >= many for n, many in Counter(kind).items())
    ]
    sets = np.array([_ways(often, kind) for kind in kinds], dtype=float)
    share = np.array([math.prod((1 - 1 / n) ** many for n, many in kind.items()) for kind in kinds])
    asked = [a for a, kind in enumerate(kinds) if kind.total() in ways]
    weights = np.zeros((len(asked), len(kinds)))
    for row, a in enumerate(asked):
        for b, part in enumerate(kinds):
            if part <= kinds[a]:
                rest = math.prod(n**-2.0 for n in (kinds[a] - part).elements())
                weights[row, b] = _ways(kinds[a], part) * share[b] ** 2 * rest
    if not largest:
        cells = [sets[a] * math.prod(kinds[a].elements()) for a in asked]
        weights = np.array([cells]) @ weights
    return BudgetSplit(weights, 1.0, 1 / sets)


def _ways(whole: Counter[int], part: Counter[int]) -> int:
    """In how many ways a set with some sizes contains one with others."""
    return math.prod(math.comb(whole[n], many) for n, many in part.items())


def run(
    *, ways: Annotated[tuple[int, ...], "marginals of up to so many attributes"] = (1, 2, 3)
) -> Iterator[dict[str, Any]]:
    mixed = [2, 3, 5, 8, 10, 15, 20, 50, 85, 100] * 10
    for name, sizes in (("Adult", ADULT), ("100 of 10", [10] * 100), ("100 of ten sizes", mixed)):
        for most in ways:
            for largest in (False, True):
                began = time.process_time()
                found = solve(plan(sizes, range(most + 1), largest))
                spent = time.process_time() - began
                assert found.objective is not None
                assert found.bound is not None
                yield {
                    "attributes": name, "ways": most, "minimized": "largest" if largest else "sum",
                    "variance": found.objective, "gap": 1 - found.bound / found.objective,
                    "CPU seconds": spent,
                }  # fmt: skip
