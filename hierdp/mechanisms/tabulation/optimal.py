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

BlueDown and GLS learn nothing from recoded queries, but their errors are named by targets. For other methods,
if a query recodes an attribute, no basis makes all queries diagonal, as coarser categories may be of unequal
sizes. Then a part is a matrix. Along each attribute, categories that no recode tells apart count as one, and
the deviations within it are diagonal, as effects are.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.mechanisms.tabulation.budget import shares
from hierdp.mechanisms.tabulation.options import LAST_LEVEL, OVER_THE_TREE
from hierdp.mechanisms.tabulation.plan import DETAILED, query_name
from hierdp.mechanisms.tabulation.queries import Queries
from hierdp.mechanisms.unit import PrivacyUnit
from models import BudgetSplit, Certificate
from models.arithmetic.arrays import Flags, Floats
from solvers import solve

LEAST = 1e-3
"""The least share of every cell where a method needs it."""

PARTS = 1_000_000
"""Shares are multiples of this part of ρ."""

ROUNDING = 1e-10
"""Eigenvalues and weights below this part of the largest are 0, but for rounding."""

MOST_VECTORS = 128
"""The largest matrices of recoded queries: a step takes their cube, for each measurement."""


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
    unit: PrivacyUnit,
    rho: float,
    targets: Sequence[str],
    largest: bool,
) -> Optimal:
    """The split of ρ among the plan's queries on all levels.

    - places: its root, and its numbers of regions by level.
    - targets: ``LEVEL:QUERY`` or ``LEVEL:QUERY=WEIGHT``: errors that count, by this weight of their variance.
    - largest: whether the largest weighted variance is minimized, in place of their sum.

    Raises `InputError` if a target names no level or query, has no weight above 0, or all answers of it
    are public; or the recodes distinguish too many categories.
    """
    names, levels = queries.plan.queries, places.levels
    wanted = [_target(one, queries, levels) for one in targets]
    invariants = queries.invariants(levels[0], unit.replaced)
    asked = {*names, *(each[1] for each in wanted), *(each[1] for each in invariants)}
    marginal = {name: queries.workload_of([name]).is_marginal for name in asked}
    diagonal = method in OVER_THE_TREE or all(marginal.values())  # they learn nothing from recoded queries
    products, repeated = (_traces if diagonal else _matrices)(queries, asked)
    sizes = np.asarray(places.tree.level_sizes, dtype=float)
    place = np.arange(sizes.size)

    def asked_by(level: int, query: str, up: bool = True) -> Floats:
        """The information of a query on a level, without ρ; shape (levels, effects) or (levels, n, n)."""
        above = place <= level if up else place == level
        return np.asarray(np.multiply.outer(above * (sizes[-1] / sizes[level]), products[query]))

    def learned(level: int, query: str, up: bool = True) -> Floats:
        return np.asarray(asked_by(level, query, up) * (marginal[query] or not diagonal))

    measured = [
        (level, q)
        for level in range(len(levels))
        for q, name in enumerate(names)
        if not queries.are_public(name, level, levels, unit.replaced)
    ]
    up = method != "TopDown"
    information = np.stack([learned(k, names[q], up) for k, q in measured], axis=1)
    differences = np.diff(sizes, prepend=0.0)
    differences[0] = 1
    weights = np.stack([
        number * np.moveaxis(np.moveaxis(asked_by(at, query) * repeated, 0, -1) * differences, -1, 0)
        / (sizes[at] * queries.workload_of([query]).size)
        for at, query, number in wanted
    ])  # fmt: skip
    known = np.zeros_like(weights[0])
    for where, query in invariants:
        known = known + learned(levels.index(where), query)
    if diagonal:
        weights = weights * (known == 0)
        lost = weights.any(axis=0) & ~information.any(axis=1)
        used = (weights.any(axis=0) & ~lost).ravel()
        # Each effect of each level is a part.
        weights, information = weights.reshape(len(weights), -1), _flat(information)
    else:
        information, weights, lost = _without(known, information, weights)
        used = weights.any(axis=(0, 2, 3))
    for one, row in zip(targets, weights, strict=True):
        if not row.any():
            raise InputError(f"{one!r}: these answers are public, and have no error")
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
    scale = 2 / unit.squared_sensitivity()
    together = np.moveaxis(np.tensordot(information[used], mixed, (1, 0)), -1, 1)
    found = solve(BudgetSplit(weights, rho, scale * together))
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


def _flat(information: Floats) -> Floats:
    """From (levels, measurements, effects) to (levels · effects, measurements)."""
    return np.asarray(information.swapaxes(1, 2).reshape(-1, information.shape[1]))


def _without(known: Floats, information: Floats, weights: Floats) -> tuple[Floats, Floats, Flags]:
    """Matrices without what is public or not measured, and whether a weight is on something not measured.

    Directions without information, that no weight needs, get some, so that every matrix can be inverted.
    """
    free = _unmeasured(known)
    information, weights = _within(free[:, None], information), _within(free, weights)
    none = _unmeasured(information.sum(axis=1))
    lost = np.einsum("epij,pij->ep", weights, none) > ROUNDING * np.einsum("epii->ep", weights)
    return information + (none * information.max())[:, None], weights, lost


def _within(projection: Floats, matrices: Floats) -> Floats:
    """Symmetric matrices in a subspace; those with nothing there but rounding are 0."""
    found = projection @ matrices @ projection
    found = (found + found.swapaxes(-1, -2)) / 2
    most = np.abs(found).max(axis=(-1, -2), keepdims=True)
    there = most > ROUNDING * np.abs(matrices).max(axis=(-1, -2), keepdims=True)
    return np.where(there, found, 0.0)


def _unmeasured(matrices: Floats) -> Floats:
    """The projection onto what positive semidefinite matrices do not measure."""
    values, vectors = np.linalg.eigh(matrices)
    lost = values <= ROUNDING * values[:, -1:]
    return np.asarray((vectors * lost[:, None]) @ vectors.swapaxes(-1, -2))


def _traces(queries: Queries, names: AbstractSet[str]) -> tuple[dict[str, Floats], Floats]:
    """The mean of QᵀQ over each effect, and the effects' dimensions; shape (effects,).

    It is the eigenvalue of a marginal, and all that the error of a recoded query needs.
    """
    found: dict[str, Floats] = dict.fromkeys(names, np.ones(1))
    repeated: Floats = np.ones(1)
    for axis, size in enumerate(queries.shape):
        for name in names:
            squares = float((np.bincount(queries.recodes(name)[axis]) ** 2).sum()) / size
            deviation = (size - squares) / (size - 1) if size > 1 else 0.0
            found[name] = np.asarray(np.kron([squares, deviation], found[name]), float)
        repeated = np.asarray(np.kron([1, size - 1], repeated), float)
    return found, repeated


def _matrices(queries: Queries, names: AbstractSet[str]) -> tuple[dict[str, Floats], Floats]:
    """QᵀQ of each query in one basis of the histograms, and how often each of its vectors is repeated.

    Shape (n, n): the Kronecker product of those of the attributes. Of an attribute, these have a vector for
    each set of categories that no recode distinguishes, and a last one for all deviations within them.

    Raises `InputError` if n is above `MOST_VECTORS`.
    """
    recodes = {name: queries.recodes(name) for name in names}
    matrices: dict[str, Floats] = {name: np.ones((1, 1)) for name in names}
    repeated: Floats = np.ones(1)
    for axis, size in enumerate(queries.shape):
        coarse = [parts[axis] for parts in recodes.values() if np.unique(parts[axis]).size < size]
        rows = np.stack([np.zeros(size, np.int64), *coarse])
        _, first, counts = np.unique(rows, axis=1, return_index=True, return_counts=True)
        within = size - first.size
        if (repeated.size * (first.size + (within > 0))) > MOST_VECTORS:
            raise InputError(
                f"the recodes distinguish too many categories to optimize for (above {MOST_VECTORS:,}): "
                "leave out some, or optimize for marginals"
            )
        for name, parts in recodes.items():
            codes = parts[axis]
            whole = np.unique(codes).size == size
            same = codes[first][:, None] == codes[first]
            inner = np.eye(first.size) if whole else same * np.sqrt(np.outer(counts, counts))
            if within:
                inner = np.block([
                    [inner, np.zeros((first.size, 1))], [np.zeros((1, first.size)), np.full((1, 1), whole)]
                ])  # fmt: skip
            matrices[name] = np.asarray(np.kron(matrices[name], inner), float)
        repeated = np.kron(repeated, np.append(np.ones(first.size), [within] * (within > 0)))
    return matrices, repeated


def _target(text: str, queries: Queries, levels: Sequence[str]) -> tuple[int, str, float]:
    """The level, the query and the weight of a target."""
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
    queries.workload_of([query])  # refuses unknown names
    return levels.index(level), query, number


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
