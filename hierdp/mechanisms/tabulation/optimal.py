"""The split of ρ over levels and queries that makes named errors least, with a proof.

The errors are variances of least squares in a tree whose regions have equally many children on each level,
before counts become non-negative and whole. There everything is diagonal in one basis: the effects of the
attributes (`models.arithmetic.effects`), between the root's mean and the siblings of each level. A marginal
Q_q on level l, of n_l regions, with a noise variance of Δ²/2ρ adds

    2ρ/Δ² · (n_L/n_l) · (the eigenvalue of Q_qᵀQ_q for the effect)

to the information about an effect between the siblings of each level k ≤ l; of TopDown, whose upper levels
learn nothing from those below, of k = l only. The mean variance of an answer is a sum of the inverses. So the
best split is `models.BudgetSplit` with `information`. (Xiao et al. 2023, ResidualPlanner, measure each effect
by itself.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.mechanisms.tabulation.budget import Unit, shares
from hierdp.mechanisms.tabulation.options import LAST_LEVEL
from hierdp.mechanisms.tabulation.plan import DETAILED, query_name
from hierdp.mechanisms.tabulation.queries import Queries
from models import BudgetSplit, Certificate
from models.arithmetic import effects
from models.arithmetic.arrays import Floats
from solvers import solve

LEAST = 1e-3
"""The least share of every cell where a method needs it."""

PARTS = 1_000_000
"""Shares are multiples of this part of ρ."""


@dataclass(frozen=True)
class Optimal:
    """The best split.

    - shares: the entries `level_shares` and `query_shares` of a plan.
    - proof: of these shares: they are rounded to `PARTS`, so the gap is small, and not 0.
    - given: the same error with the plan's own shares.
    """

    shares: dict[str, Any]
    proof: Certificate
    given: float

    @property
    def note(self) -> str:
        """What is proved, in words."""
        bound, cost = float(self.proof.bound or 0), float(self.proof.objective)
        return (
            f"Optimized: the variance that is minimized is {cost:.6g}, at most {cost / bound - 1:.1e} above "
            f"that of any split (proved); with the shares before, it is {self.given:.6g}."
        )


def optimal(
    method: str,
    queries: Queries,
    places: Hierarchy,
    unit: Unit,
    rho: float,
    targets: Sequence[str],
    largest: bool,
) -> Optimal:
    """The split of ρ among the plan's queries on all levels.

    - queries: with marginals only.
    - places: its root, and its numbers of regions by level.
    - targets: ``LEVEL:QUERY`` or ``LEVEL:QUERY=WEIGHT``: errors that count, by this weight of their variance.
    - largest: whether the largest weighted variance is minimized, in place of their sum.

    Raises `InputError` if a target names no level or marginal, has no weight above 0, or all answers of it
    are public; or a query recodes an attribute.
    """
    names, levels = queries.plan.queries, places.levels
    for name in names:
        if not queries.workload_of([name]).is_marginal:
            raise InputError(f"query {name!r} recodes an attribute: only shares of marginals are optimized")
    sizes = np.asarray(places.tree.level_sizes, dtype=float)
    measured = [
        (level, q)
        for level in range(len(levels))
        for q, name in enumerate(names)
        if not queries.are_public(name, level, levels, unit.bounded)
    ]
    up = method != "TopDown"
    information = np.stack([_part(queries, sizes, k, names[q], up).ravel() for k, q in measured], axis=1)
    known = _known(queries, levels, sizes, unit.bounded)
    weights = np.stack([_target(one, queries, levels, sizes).ravel() for one in targets])
    weights[:, known.ravel()] = 0
    for one, row in zip(targets, weights, strict=True):
        if not row.any():
            raise InputError(f"{one!r}: these answers are public, and have no error")
    used = weights.any(axis=0)
    lost = used & ~information.any(axis=1)
    if lost.any():
        raise InputError("the queries of the plan do not determine all errors that are named: add 'detailed'")
    weights = weights[:, used] if largest else weights[:, used].sum(axis=0, keepdims=True)
    # With the least share f of each measurement m of some, ρ = ((1 − Σf)·1 + f·Σ e_m 1ᵀ)·y for any split y.
    last = len(levels) - 1
    needed = [
        i
        for i, (level, q) in enumerate(measured)
        if names[q] == DETAILED and (level == last or method not in LAST_LEVEL)
    ]
    mixed = (1 - LEAST * len(needed)) * np.eye(len(measured))
    mixed[needed] += LEAST
    scale = 2 / unit.squared_sensitivity
    found = solve(BudgetSplit(weights, rho, scale * information[used] @ mixed))
    if found.x is None:
        raise InputError(f"no optimal split was found: {found.message}")
    parts = np.floor(mixed @ np.asarray(found.x) / rho * PARTS).astype(int)
    parts[np.argmax(parts)] += PARTS - parts.sum()
    before = np.zeros(len(measured))
    for level, q, part in shares(queries, levels, unit):
        if (level, q) in measured:
            before[measured.index((level, q))] = float(part)
    model = BudgetSplit(weights, rho, scale * information[used])
    given = float(model.objective(before / before.sum() * rho))
    proof = model.certificate(parts / PARTS * rho, found.witness)
    return Optimal(_shares(parts.tolist(), measured, levels, names), proof, given)


def _part(queries: Queries, sizes: Floats, level: int, query: str, up: bool = True) -> Floats:
    """The information of a marginal on a level, without ρ; shape (levels, effects)."""
    workload = queries.workload_of([query])
    values = effects.eigenvalues(queries.shape, workload.summed, np.ones(1))
    place = np.arange(sizes.size)[:, None]
    above = place <= level if up else place == level
    return np.asarray(above * (sizes[-1] / sizes[level]) * values * effects.exists(queries.shape))


def _known(queries: Queries, levels: Sequence[str], sizes: Floats, bounded: bool) -> Floats:
    found = np.zeros((sizes.size, 1 << len(queries.shape)), dtype=bool)
    for level, query in queries.invariants(levels[0], bounded):
        if queries.workload_of([query]).is_marginal:
            found |= _part(queries, sizes, levels.index(level), query) > 0
    return found


def _target(text: str, queries: Queries, levels: Sequence[str], sizes: Floats) -> Floats:
    """The weight of each part's variance in a target's; shape (levels, effects)."""
    named, _, weight = text.partition("=")
    level, colon, query = named.partition(":")
    query = query_name(query)
    if not colon or level not in levels:
        raise InputError(
            f"{text!r}: write LEVEL:QUERY or LEVEL:QUERY=WEIGHT; the levels are {listed(levels)}"
        )
    try:
        number = float(weight or 1)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e12:
        raise InputError(f"{text!r}: the weight must be a number above 0")
    workload = queries.workload_of([query])
    if not workload.is_marginal:
        raise InputError(
            f"{text!r}: query {query!r} recodes an attribute; only errors of marginals are known"
        )
    at = levels.index(level)
    regions = np.diff(sizes, prepend=0.0)
    regions[0] = 1
    each = [
        np.prod([n - 1 for a, n in enumerate(queries.shape) if e >> a & 1])
        for e in range(1 << len(queries.shape))
    ]
    count = sizes[at] * workload.size
    return np.asarray(number * _part(queries, sizes, at, query) * regions[:, None] * np.array(each) / count)


def _shares(
    parts: list[int], measured: list[tuple[int, int]], levels: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    """Whole parts of ρ as shares of the levels, and of their queries."""
    by_level = dict.fromkeys(levels, 0)
    for (level, _), part in zip(measured, parts, strict=True):
        by_level[levels[level]] += part
    found: dict[str, dict[str, str]] = {}
    for name, whole in by_level.items():
        if whole:
            found[name] = dict.fromkeys(names, "0")
    for (level, q), part in zip(measured, parts, strict=True):
        if part:
            found[levels[level]][names[q]] = str(Fraction(part, by_level[levels[level]]))
    return {
        "level_shares": {name: str(Fraction(whole, PARTS)) for name, whole in by_level.items()},
        "query_shares": found,
    }
