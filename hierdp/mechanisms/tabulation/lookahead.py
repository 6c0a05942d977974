"""Whether tables that are decided level by level can always be continued: known before noise is drawn.

A region's table keeps the bounds of the region, and those of its children added up. Its children then need
tables that keep theirs, and add up to it. They have such tables

- if the bounded sums are disjoint: each is divided among the children on its own;
- if the bounded sums nest, and any sum of cells T that the region's bounds allow is between the least and the
  most that the children's allow, added up (`hierdp.mechanisms.tabulation.nesting`). The children's tables are
  then whole, too.

Otherwise a method that decides level by level could draw noise and then find no tables. Such constraints are
refused; so are those whose sums cross below the root.
"""

from __future__ import annotations

import numpy as np

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError, listed
from hierdp.mechanisms.tabulation.contradiction import refuse_contradictions
from hierdp.mechanisms.tabulation.joint import joint_model
from hierdp.mechanisms.tabulation.methods import JOINT, named_nodes
from hierdp.mechanisms.tabulation.nesting import NestedSums
from hierdp.mechanisms.tabulation.passes import Family
from hierdp.mechanisms.tabulation.problem import Constraints, Measured, by_parent
from models import Workload
from models.arithmetic.arrays import Flags, Floats, Ints

MOST_PARTS = 10
"""Up to this number of parts of a sum, all sets of them are tried."""

INSTEAD = (
    "Change the bounds; or choose Joint, which decides all levels at once, if there are few regions and "
    "cells. Nothing is released"
)


def refuse_dead_ends(method: str, workload: Workload, constraints: Constraints, regions: Hierarchy) -> None:
    """Refuse constraints with which a method might find no tables.

    - method: GLS takes only sums that are fixed, which are those of a table, so nothing is refused. Joint
      decides all levels at once, and needs tables that satisfy all constraints.
    - constraints: with those that they imply for the levels above.

    Raises `InputError` if no tables satisfy the constraints. Level by level, also if bounded sums cross below
    the root, or a region may get a table that cannot be divided among its children. The message names the
    sums and the region.
    """
    if method == "Joint":
        _refuse_joint(workload, constraints, regions)
    elif method != "GLS" and constraints.sums is not None:
        _refuse_at_root(method, workload, constraints, regions)
        _refuse_below(method, constraints, regions)


def _refuse_at_root(method: str, workload: Workload, constraints: Constraints, regions: Hierarchy) -> None:
    """Refuse contradicting constraints of the root, and those that rounding might not keep.

    Rounding keeps them if they are of two kinds, and those of a kind nest: the rows of such a program are
    totally unimodular.
    """
    sums, zeros = constraints.sums, constraints.zeros
    assert sums is not None
    lower, upper = (np.asarray(side[0], float) for side in (constraints.lower, constraints.upper))
    chosen = ((lower > 0) | (upper < np.inf))[0]
    found = NestedSums.of(sums, chosen, zeros)
    if isinstance(found, NestedSums):
        constraints.refuse_parts(regions, 0, found, *found.added_up(lower, upper))
        return
    kinds = np.repeat(np.arange(len(sums.queries)), sums.sizes)
    rest = (NestedSums.of(sums, chosen & (kinds != q), zeros) for q in range(len(sums.queries)))
    if not any(isinstance(one, NestedSums) for one in rest):
        one, other = (constraints.names[i] for i in found)
        raise InputError(
            f"bounds or invariants of {regions.levels[0]} are on sums of three or more kinds that cross, "
            f"such as {one!r} and {other!r}: {method} might find no table that keeps them. {INSTEAD}"
        )
    name = f"{regions.levels[0]} {regions.names[0][0]}"
    root = Family(workload, np.zeros((1, 0)), np.zeros(0), None, zeros, sums, lower, upper)
    refuse_contradictions(name, root, ((str(regions.names[0][0]),), constraints.names))


def _refuse_below(method: str, constraints: Constraints, regions: Hierarchy) -> None:
    """Refuse bounds below the root that cross, or that a region's table might not leave room for."""
    nested = constraints.nested
    if isinstance(nested, tuple):
        one, other = (constraints.names[i] for i in nested)
        raise InputError(
            f"{method} decides level by level, and bounds or invariants below the root are on {one!r} and "
            f"{other!r}, which overlap without one containing the other: a region's table might have no "
            "tables of its children. Fix or bound the combination of both queries instead of one of them. "
            + INSTEAD
        )
    if nested.are_disjoint:
        return
    above = _tight(nested, constraints, regions.tree.depth)
    for level, parents in reversed(list(enumerate(regions.tree.levels))):
        above, below = _tight(nested, constraints, level), above
        for k in _components(nested, len(nested.parts) - 1, *below):
            stuck = _stuck(nested, k, above, below, np.asarray(parents))
            if stuck is None:
                continue
            region, chosen = stuck
            named = [j for j in (*chosen, *nested.leaves(k), k) if nested.answers[j].size]
            names = [constraints.names[int(nested.answers[j][0])] for j in named[: len(chosen)]]
            raise InputError(
                f"{method} decides level by level, and {regions.levels[level]} "
                f"{regions.names[level][region]!r} might get a table that cannot be divided among its "
                f"regions: their bounds on {listed(names, most=8)} differ such that, together with those on "
                f"sums of these, they do not add up. {INSTEAD}"
            )


Sides = tuple[Floats, Floats]
"""The least and the most of each sum; shape (sums, regions)."""


def _tight(nested: NestedSums, constraints: Constraints, level: int) -> Sides:
    sides = (np.asarray(side[level], float) for side in (constraints.lower, constraints.upper))
    return nested.tight(*nested.added_up(*sides))


def _components(nested: NestedSums, k: int, low: Floats, high: Floats) -> list[int]:
    """The largest sums whose bounds are not implied by those of their parts, in some region."""
    parts = nested.parts[k]
    if not parts.size:
        return []
    if np.array_equal(low[k], low[parts].sum(axis=0)) and np.array_equal(high[k], high[parts].sum(axis=0)):
        return [one for part in parts.tolist() for one in _components(nested, part, low, high)]
    return [k]


def _stuck(
    nested: NestedSums, k: int, above: Sides, below: Sides, parents: Ints
) -> tuple[int, list[int]] | None:
    """A region whose table might have no tables of its children, with the sums of cells that show it."""
    leaves = nested.leaves(k)
    doubtful = np.flatnonzero(~_alike(nested, k, above, below, parents))
    if not doubtful.size:
        return None
    if len(leaves) > MOST_PARTS:
        return int(doubtful[0]), leaves
    children = np.flatnonzero(np.isin(parents, doubtful))
    above = above[0][:, doubtful], above[1][:, doubtful]
    below = below[0][:, children], below[1][:, children]
    parents = np.searchsorted(doubtful, parents[children])
    for number in range(1, 2 ** len(leaves) - 1):
        these = [leaf for at, leaf in enumerate(leaves) if number >> at & 1]
        chosen = np.isin(np.arange(len(nested.parts)), these)
        least, most = nested.extremes(k, chosen, *above)
        low, high = (by_parent(side, parents) for side in nested.extremes(k, chosen, *below))
        wrong = np.flatnonzero((least < low) | (most > high))
        if wrong.size:
            return int(doubtful[wrong[0]]), these
    return None


def _alike(nested: NestedSums, k: int, above: Sides, below: Sides, parents: Ints) -> Flags:
    """Whether the children's bounds on a sum and on its undivided parts add up, for a reason that all share.

    Write l ≤ x ≤ h for the parts and L ≤ Σ x ≤ H for the sum. A set T of parts can have at most
    min(h(T), H − l(others)), and at least max(l(T), L − h(others)). These add up over the children if in all
    of them the same of the two counts: if each h is H − l(others), if each l is L − h(others), or if L and H
    are implied by the parts.
    """
    (least, most), (low, high), parts = above, below, nested.parts[k]
    one = [k, *parts.tolist()]
    added = np.all(by_parent(low[one].T, parents) <= least[one].T, axis=1)
    added &= np.all(by_parent(high[one].T, parents) >= most[one].T, axis=1)
    if any(nested.parts[part].size for part in parts.tolist()):
        return np.zeros(len(added), bool)
    lows, highs = low[parts], high[parts]
    finite = np.where(np.isinf(highs), 0, highs)
    infinite = np.isinf(highs).sum(axis=0) - np.isinf(highs) > 0
    only_most = np.all(highs == high[k] - (lows.sum(axis=0) - lows), axis=0)
    only_least = np.all(~infinite & (lows == low[k] - (finite.sum(axis=0) - finite)), axis=0)
    only_parts = (high[k] == highs.sum(axis=0)) & (low[k] == lows.sum(axis=0))
    others = by_parent(1.0 - np.stack([only_most, only_least, only_parts], axis=1), parents)
    return np.asarray(added & np.any(others == 0, axis=1))


def _refuse_joint(workload: Workload, constraints: Constraints, regions: Hierarchy) -> None:
    """Refuse a program that is too large, or whose constraints contradict each other."""
    noisy = [np.zeros((len(names), workload.size), np.int64) for names in regions.names]
    none = np.full((len(noisy), len(workload.queries)), np.inf)
    model = joint_model(Measured(regions, workload, noisy, none), constraints)
    if constraints.sums is not None:
        refuse_contradictions(JOINT, model, (named_nodes(regions), constraints.names))
