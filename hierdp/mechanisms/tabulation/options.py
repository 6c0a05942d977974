"""The methods' options that follow from a plan, and what each method needs of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hierdp.errors import InputError
from hierdp.mechanisms.tabulation import methods
from hierdp.mechanisms.tabulation.budget import Share
from hierdp.mechanisms.tabulation.joint import refuse_large
from hierdp.mechanisms.tabulation.methods import Settings
from hierdp.mechanisms.tabulation.plan import TOTAL
from hierdp.mechanisms.tabulation.queries import Queries
from models import Workload


@dataclass(frozen=True)
class TabulationMethod:
    """A method, with the options of the solver that it takes."""

    name: str
    takes: tuple[str, ...] = ("backend", "time_limit")


METHODS = {name: TabulationMethod(name) for name in methods.METHODS}

UNBIASED = ("GLS",)
"""The methods that take neither bounds nor structural zeros, and give standard errors."""

OVER_THE_TREE = ("BlueDown", "GLS")
"""The methods that begin with least squares over all regions."""

LAST_LEVEL = (*OVER_THE_TREE, "Joint")
"""The methods for which only the last level must measure every cell."""


def settings_for(
    method: str,
    queries: Queries,
    levels: Sequence[str],
    measured: Sequence[Share],
    regions: int | None = None,
) -> Settings:
    """The options of a method; by default, the total has a first pass of its own, as in the 2020 Census.

    The number of regions, of all levels, is None as long as it is not known.

    Raises `InputError` if the method cannot work with the plan. This is known before noise is drawn.
    """
    plan = queries.plan
    if method == "Joint" and regions is not None:
        refuse_large(regions, queries.workload.cells)
    if method in UNBIASED and (plan.bounds or plan.zeros):
        raise InputError(
            f"{method} takes no bounds and no structural zeros, which no unbiased estimate keeps; choose "
            "another method, or leave them out"
        )
    if plan.weights and method != "TopDown":
        raise InputError(
            f"{method} takes no weights: it weights all answers by the inverse of their variance"
        )
    detailed = np.flatnonzero(queries.workload.detailed).tolist()
    for level in range(len(levels) - 1 if method in LAST_LEVEL else 0, len(levels)):
        if not any(one.level == level and one.query in detailed for one in measured):
            raise InputError(
                f"level {levels[level]!r} does not measure every cell, which {method} needs: give the query "
                "'detailed' a share there"
            )
    named = plan.passes
    if named is None:
        rest = tuple(query for query in plan.queries if query != TOTAL)
        named = ((TOTAL,), rest) if TOTAL in plan.queries and rest else (plan.queries,)
    passes = tuple(tuple(plan.queries.index(query) for query in one) for one in named)
    for at, query in enumerate(plan.queries):
        if sum(one.count(at) for one in passes) != 1:
            raise InputError(f"query {query!r} must be in one of the passes, and in no more")
    if not set(detailed) & set(passes[-1]):
        raise InputError("the last pass needs a query of every cell, such as 'detailed'")
    rounding = None if plan.rounding is None else tuple(map(plan.queries.index, plan.rounding))
    if rounding is not None and not set(rounding) & set(detailed):
        raise InputError("rounding needs a query of every cell, such as 'detailed', besides others")
    weights = tuple(float(plan.weights.get(query, 1)) for query in plan.queries)
    return Settings(passes, rounding, weights if plan.weights else None)


def refuse_unused(method: str, queries: Queries, measured: Sequence[Share]) -> None:
    """Refuse queries that are measured and that the method does not use.

    Least squares over all regions takes marginals, which are diagonal in one basis. A recode is not: its
    coarse categories hold different numbers of categories.

    Raises `InputError` if a recoded query is measured; the message names it.
    """
    if method not in OVER_THE_TREE:
        return
    for one in measured:
        name, query = queries.plan.queries[one.query], queries.workload.queries[one.query]
        if not Workload(queries.shape, [query]).is_marginal:
            raise InputError(
                f"{method} does not use answers to the recoded query {name!r}, so its share of the "
                "budget would be wasted; leave it out, or choose TopDown or Joint, which use it"
            )
