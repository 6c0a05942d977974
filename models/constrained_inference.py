"""Consistent counts of least variance from noisy counts of a tree's nodes (Qardaji, Yang & Li 2013, §3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import FEASIBILITY_TOLERANCE, answer_of, tolerance_for, too_far
from models.arithmetic.arrays import PIECE, Array, Ints, read_only
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.kernels import kernel
from models.arithmetic.rounding import BLOCK, Rounding
from models.certificate import Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.programs.trees import children_sums
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree
from models.witnesses.node_prices import Siblings, by_levels
from models.witnesses.tree_sums import SMALL, charged_sums, consistent


@dataclass(frozen=True, eq=False)
class ConstrainedInference:
    """The consistent counts of least variance: generalised least squares over a tree.

        minimize    Σ_v (x[v] − n[v])² / V[v]               Qardaji, Yang & Li 2013, §3.3
        subject to  Σ_{u child of v} x[u] = x[v]            for every v with children
                    x real

    n[v] is the noisy count of node v and V[v] its variance. The paper states the two passes that solve it
    for complete b-ary trees of one variance; here the tree may be ragged and every node has its own.

    `BlockInference` has this problem as its case of one cell, but not at this price: on binary trees of 2,047
    and 131,071 nodes its answer takes 23 and 15 times the CPU time, its exact certificate 180 and 900 times.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; int64 and objects (`int`, `Fraction`) are exact throughout.
    variance : number, or array of shape (nodes,)
        V > 0 of all nodes, or of each. Infinite for a node that was not measured, such as the paper's root;
        its noisy count is ignored.

    Raises
    ------
    ValueError
        If a shape does not fit the tree, a noisy count is not finite, or a variance is not positive.

    Examples
    --------
    >>> model = ConstrainedInference(Tree([[0, 0]]), [9, 2, 1], variance=1)
    >>> model.objective([7, 4, 3])
    Fraction(12, 1)
    >>> model.certificate([7, 4, 3]).optimal
    True
    >>> model.certificate([8, 4, 4]).reason
    'costs differ from the price by 2 at node 0'
    """

    tree: Tree
    noisy: ArrayLike
    variance: ArrayLike

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy)
        nodes = self.tree.size
        if noisy.shape != (nodes,):
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs an entry for each of the {nodes} nodes"
            )
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "variance", _variances(self.variance, nodes))

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, variance)``, shape (nodes,) each; noisy counts of infinite variance are 0 here."""
        noisy, variance = np.asarray(self.noisy), np.asarray(self.variance)
        ignored = variance == INFINITY
        return np.where(ignored, 0, noisy) if ignored.any() else noisy, variance

    @cached_property
    def level_variance(self) -> Array | None:
        """V of each level, shape (depth + 1,); None if nodes of one level differ."""
        variance, start = np.asarray(self.variance), self.tree.level_start
        each = variance[start[:-1]]
        one = variance.strides == (0,)  # one number, broadcast
        same = one or all(np.all(variance[self.tree.nodes_of(k)] == v) for k, v in enumerate(each))
        return each if same else None

    def program(self) -> Program:
        """The program above, a convex QP; nodes of infinite variance cost nothing."""
        variance = self.data[1]
        measured = np.flatnonzero(variance != INFINITY)
        weight = 1 / variance[measured].astype(float)
        halves = np.frexp(weight)[0] == 0.5 if measured.size else np.zeros(0)
        return self._program_with(measured, weight, bool(not np.all(halves)))

    def exact_program(self) -> Program:
        """The same program with weights in fractions; `program` rounds most of them to floats."""
        variance = self.data[1]
        measured = np.flatnonzero(variance != INFINITY)
        kinds, kind = np.unique(variance[measured], return_inverse=True)
        each = exact.objects((1 / Fraction(value) for value in kinds.tolist()), kinds.shape)
        return self._program_with(measured, each[kind], False)

    def _program_with(self, measured: Ints, weight: Array, rounded: bool) -> Program:
        tree, noisy = self.tree, self.data[0]
        return Program(
            "ConstrainedInference",
            [Block("x", (tree.size,), -INFINITY, INFINITY)],
            [children_sums("consistency", tree)],
            [Term("quadratic", measured, weight, noisy[measured])] if measured.size else [],
            rounded,
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the prices of inner nodes, negated."""
        return np.asarray(-np.asarray(witness["prices"])[self.tree.internal])

    def objective(self, x: Any) -> Number:
        """Σ (x − n)²/V; a `Fraction` if noisy counts and answer are exact (even if variances are floats)."""
        noisy, levels = np.asarray(self.noisy), self.level_variance
        x = answer_of(x, noisy.shape, integer=False)
        exactly = exact.is_exact(x) and exact.is_exact(noisy)
        if levels is not None:
            parts = [self.tree.nodes_of(k) for k in range(levels.size)]
            costs = [distance(x[part], noisy[part], 2) for part in parts]
        elif exactly:
            away = exact.difference(x, noisy)
            # Nodes are grouped by variance: few divisions, however large the sums of squares.
            levels, which = np.unique(np.asarray(self.variance), return_inverse=True)
            order = np.argsort(which, kind="stable")
            groups = np.split(away[order], np.flatnonzero(np.diff(which[order])) + 1)
            costs = [exact.dot(group, group) for group in groups]
        else:
            return float(_cost(*(np.asarray(part, float) for part in (x, *self.data))))
        kind: Any = Fraction if exactly else float
        shares = zip(costs, levels.tolist(), strict=True)
        cost: Number = sum((kind(cost) / kind(v) for cost, v in shares if v != INFINITY), kind(0))
        return cost

    def violations(self, x: Any) -> list[str]:
        """Nodes whose children do not sum to them; of floats, those whose leaves do not."""
        x = answer_of(x, (self.tree.size,), integer=False)
        return self._broken(x, x if exact.is_exact(x) else consistent(self.tree, x))

    def _broken(self, x: Array, near: Array) -> list[str]:
        """The violations; `near` is the consistent answer beside x, which of exact answers is x itself."""
        tree, slack = self.tree, tolerance_for(x, self.data[0])
        far = [] if near is x else too_far(x, near, slack)
        if near is not x and not far:
            return []
        sums = self._sums(exact.widened(x, tree.size))
        broken = tree.internal[np.abs(sums - x)[tree.internal] > slack]
        return [f"consistency: node {v}: children sum to {sums[v]}, not {x[v]}" for v in broken] or far

    def _sums(self, x: Array) -> Array:
        """For each node, the sum over its children; shape (nodes,)."""
        parent = self.tree.parent
        if x.dtype == np.float64:
            return np.bincount(parent[1:], weights=x[1:], minlength=parent.size)
        sums = np.zeros_like(x)
        np.add.at(sums, parent[1:], x[1:])
        return sums

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:  # noqa: ARG002
        """A price λ[v] for the units of every node's children; linear time.

        With λ = 0 at leaves and above the root, and s[v] = λ[v] − λ[parent of v],

            bound  =  Σ_v min over z of ( (z − n[v])²/V[v] + s[v] z )  =  Σ_v ( s[v] n[v] − V[v] s[v]²/4 ),

        for any prices (Lagrangian duality) with s = 0 wherever V is infinite. They leave the gap
        Σ V·(g + s)²/4 with g = 2(x − n)/V, a sum of squares without cancellation. If all squares are 0 (the
        normal equations), the bound is the optimum.

        The normal equations are linear, and two passes over the data solve them. So no witness is needed, a
        given one is not read, and the gap is exact. An answer in floats stands for the sums of its leaves, if
        these are nearby: theirs are the objective and the gap.

        Whole or `Fraction` answers to exact counts are judged in Fractions: slow for a million nodes. For
        floats on a regular tree, prices read off x are tried first; they prove an optimal x.
        """
        x = np.asarray(x)
        at_once = self._at_once(x)
        if at_once is not None:
            return at_once
        noisy, variance = self.data
        x = answer_of(x, noisy.shape, integer=False)
        exactly = exact.is_exact(x) and exact.is_exact(noisy)
        prove: Any = _prices
        zero: Any = 0.0
        if exact.is_exact(x) and (broken := self._broken(x, x)):
            return infeasible(self.objective(x), broken)
        if exactly:
            x, noisy, variance = (exact.fractions(part) for part in (x, noisy, variance))
            prove, zero = _prices.py_func, Fraction(0)
        else:
            noisy = noisy if noisy.dtype == np.int64 else np.asarray(noisy, float)
            x, variance = (read_only(np.ascontiguousarray(part, float)) for part in (x, variance))
            noisy = read_only(noisy)
        inner = int(self.tree.level_start[-2])
        price, near, below, spread = (np.full(n, zero) for n in (x.size, x.size, inner, inner))
        near[self.tree.leaves] = x[self.tree.leaves]
        found = prove(self.tree.parent, noisy, variance, price, near, below, spread, zero)
        if not exactly and (broken := self._broken(x, near)):
            return infeasible(self.objective(x), broken)
        x = near
        objective, gap, worst, most = found
        reason = f"costs differ from the price by {exact.as_float(most):.6g} at node {worst}"
        if exactly:
            return judge(objective, gap, True, {"prices": price}, reason)
        if not objective < INFINITY:
            return infeasible(objective, ["x: squares pass what floats hold"])
        squares = rounding.square(x), rounding.square(price)
        gap, rounded = self._with_sums(x, price, objective, gap, 0.0, squares)
        return judge(objective, gap, False, {"prices": price}, reason, rounded)

    def _with_sums(
        self,
        x: Array,
        price: Array,
        objective: float,
        gap: float,
        gained: float,
        squares: tuple[float, float],
    ) -> tuple[float, Rounding]:
        """The gap with what broken sums save at these prices, `gained` in floats; and the rounding of both.

        `squares` are the sums of the squares of x and of the prices.
        """
        lost = x.size * rounding.LEAST
        squares = squares[0] + lost, squares[1] + lost
        rounded = self._rounding(x, objective, gap, squares)
        small, children = SMALL * max(rounded.unit, objective), self.tree.most_children
        error = rounding.of_sums(squares[1], squares[0], children)
        if not error <= small:
            gained, error = charged_sums(self.tree, price[self.tree.internal], x, small)
        return gap + gained, rounded.plus(error)

    @cached_property
    def _ends(self) -> tuple[float, float] | None:
        """The least and the largest finite variance; None if there is none."""
        levels = self.level_variance
        if levels is None:
            variance = np.asarray(self.variance)
            finite = variance[variance != INFINITY]
            return (float(finite.min()), float(finite.max())) if finite.size else None
        each = [float(v) for v in levels.tolist() if v != INFINITY]
        return (min(each), max(each)) if each else None

    def _rounding(self, x: Array, objective: float, gap: float, squares: tuple[float, float]) -> Rounding:
        """Rounding of the certificate in floats; see `models.arithmetic.rounding`.

        An imbalance ``V (g + s) / 2`` has errors of a few units in the last place of x, n and V·λ.
        """
        count = x.size
        if self._ends is None:
            return Rounding()
        if not (objective or x.any() or self.data[0].any()):
            return Rounding(unit=0.0)
        least, most = self._ends
        typical, price = (math.sqrt(part / count) for part in squares)
        # (x − n)² / V adds up to the objective. Squares of at most LEAST, and of LEAST·V, may be missing.
        noisy = typical + math.sqrt(objective * most / count + rounding.LEAST * (1 + most))
        # The imbalance is weighed by 1/V: √(V λ²) is at most √(most) λ = √(1/least) · √(most · least) λ.
        # A node's price counts once for itself, and once for each of its children.
        price *= math.sqrt(most) * math.sqrt(least) * (1 + math.sqrt(self.tree.most_children))
        wrong = 8 * (rounding.UNIT * (typical + noisy + price) + rounding.LEAST * most)
        block = max(BLOCK, self.tree.most_children)
        weights = 1 / most, 1 / least
        return rounding.of_balance(gap, objective, count, weights, typical + noisy, wrong, block)

    def _at_once(self, x: Array) -> Certificate | None:
        """The proof of an optimal answer in floats, on a regular tree with one variance per level.

        At an optimum all children of a node have the same g + λ, which is the node's price; here it is their
        mean (0 for a root that was not measured). None: x is not optimal, or the model is not of this form.
        """
        tree, levels, noisy = self.tree, self.level_variance, np.asarray(self.noisy)
        if x.dtype != np.float64 or x.shape != noisy.shape or noisy.dtype == object:
            return None
        if tree.branching is None or levels is None or INFINITY in levels[1:]:
            return None
        price, variance, children = np.zeros(tree.size), levels.tolist(), tree.branching.tolist()
        objective = gap = gained = broken = 0.0
        families = _families.of_size(tree.size)
        counts = prices = 0.0
        nodes = tree.nodes_of(tree.depth)
        below, own = x[nodes], None  # prices of leaves: all 0
        for k in range(tree.depth, 0, -1):
            above = tree.nodes_of(k - 1)
            held, named = x[above], price[above]
            v, priced = float(variance[k]), k > 1 or variance[0] != INFINITY
            found = families(below, noisy[nodes], own, 2 / v, children[k - 1], priced, held, named)
            nodes, below, own = above, held, named
            objective += found[0] / v
            gap += found[1] * v / 4
            gained, broken = gained + found[2], broken + found[3]
            counts, prices = counts + found[4], prices + found[5]
        top = float(x[0])
        counts += top * top
        if variance[0] != INFINITY:
            away, v = top - float(noisy[0]), float(variance[0])
            objective += away * away / v
            missed = float(price[0]) + 2 * away / v
            gap += missed * missed * v / 4
        # The sums of x's leaves are the answer that x stands for. They differ at each node by what is off in
        # its subtree, so the squares of all differences add up to `moved` at most (Cauchy-Schwarz).
        moved, near = broken * float(tree.size) * (tree.depth + 1), FEASIBILITY_TOLERANCE * top
        if not (max(abs(top), objective) < INFINITY and moved <= near * near):
            return None
        # Their cost exceeds the bound by at most `apart`: the square of a distance (triangle inequality).
        root = math.sqrt(gap) + math.sqrt(moved / min(variance))
        apart = root * root
        gap, rounded = self._with_sums(x, price, objective, apart, gained, (counts, prices))
        proof = judge(objective, max(apart, gap), False, {"prices": price}, "", rounded)
        return proof if proof.optimal else None

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one variance, one per level, or one per node; some are infinite."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.5))
        kinds: list[Any] = [
            rng.integers(1, 9),
            rng.integers(1, 9, size=depth + 1)[tree.level],
            rng.integers(1, 9, size=tree.size),
            rng.choice([1e-3, 1.0, 7.5, 1e4], size=tree.size),
        ]
        variance = np.broadcast_to(np.asarray(kinds[rng.integers(0, 4)], dtype=float), (tree.size,)).copy()
        if tree.size > 1 and rng.random() < 0.5:
            variance[0] = INFINITY
            variance[1:][rng.random(tree.size - 1) < rng.choice([0.0, 0.3])] = INFINITY
        return cls(tree, random_noisy(rng, (tree.size,)), variance)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree, all of one variance."""
        tree, noisy, _ = binary_counts(rng, size)
        return cls(tree, noisy, **{"variance": 200, **options})


def _variances(given: Any, nodes: int) -> Array:
    values = np.array(given)
    if values.dtype == object:
        if not all(isinstance(v, int | Fraction | np.integer) or v == INFINITY for v in values.flat):
            raise ValueError("variance: an object array may hold only int, Fraction and infinity")
        if not all(v in (0, INFINITY) or 0 < abs(exact.as_float(v)) < INFINITY for v in values.flat):
            raise ValueError("variance: floats must be able to hold it, between 5e-324 and 1.8e308")
    elif np.issubdtype(values.dtype, np.integer) or np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64 if np.issubdtype(values.dtype, np.floating) else np.int64)
    else:
        raise ValueError(f"variance must be numbers, got dtype {values.dtype}")
    if values.ndim == 0:
        values = np.broadcast_to(values, (nodes,))
    if values.shape != (nodes,):
        raise ValueError(f"variance has shape {values.shape}; it needs one entry, or one for each of {nodes}")
    positive = values > 0
    if not positive.all():
        wrong = np.flatnonzero(~positive)
        raise ValueError(f"variance[{wrong[0]}] is {values[wrong[0]]}: variances must be positive")
    values.flags.writeable = False
    return values


FEW = 8
"""Up to so many columns, array operations take less time on one after another than on all."""


@kernel(fastmath={"reassoc"})
def _cost(x: Any, noisy: Any, variance: Any) -> float:
    """Σ (x − n)²/V; nothing for infinite V."""
    cost = 0.0
    for i in range(x.size):
        away = x[i] - noisy[i]
        cost += away * away / variance[i]
    return cost


@_cost.without_numba
def _cost_in_arrays(x: Any, noisy: Any, variance: Any) -> float:
    away = x - noisy
    return float((away * away / variance).sum())


@kernel(fastmath={"reassoc"})
def _families(
    x: Any, noisy: Any, price: Any, slope: float, b: int, priced: bool, above: Any, named: Any
) -> Any:
    """Write the parents' prices to `named`: the mean of g + λ over each parent's b children, or 0.

    `price` is the children's λ (None: all 0), `above` their parents' x, `slope` 2/V of the children. Returns
    Σ (x − n)²; Σ (g + λ − mean)²; the gain Σ price · (sum of children − parent); Σ (sum of children −
    parent)²; and the sums of the squares of the children's x and of the prices. Sums over blocks keep
    rounding errors small; blocks are slices, so that the loop over families of two (the paper's case) is
    vectorized.
    """
    cost = apart = gained = broken = 0.0
    counts = prices = 0.0
    keep = 1.0 / b if priced else 0.0
    width = max(1, BLOCK // b)
    for start in range(0, named.size, width):
        parents, top = named[start : start + width], above[start : start + width]
        a, n = x[b * start : b * (start + width)], noisy[b * start : b * (start + width)]
        own = None if price is None else price[b * start : b * (start + width)]
        costs = aparts = gains = wrongs = held_x = held_p = 0.0
        if b == 2:
            for p in range(parents.size):
                first, second = a[2 * p] - n[2 * p], a[2 * p + 1] - n[2 * p + 1]
                one, two = slope * first, slope * second
                if own is not None:
                    one += own[2 * p]
                    two += own[2 * p + 1]
                mean = keep * (one + two)
                wrong = a[2 * p] + a[2 * p + 1] - top[p]
                parents[p] = mean
                costs += first * first + second * second
                aparts += (one - mean) ** 2 + (two - mean) ** 2
                gains += mean * wrong
                held_x += a[2 * p] * a[2 * p] + a[2 * p + 1] * a[2 * p + 1]
                held_p += mean * mean
                wrongs += wrong * wrong
        else:
            for p in range(parents.size):
                total, held = 0.0, 0.0
                for k in range(b):
                    c = np.uint64(b * p + k)  # unsigned: no check for positions from the end
                    total += slope * (a[c] - n[c]) + (0.0 if own is None else own[c])
                    held += a[c]
                mean, wrong = keep * total, held - top[p]
                for k in range(b):
                    c = np.uint64(b * p + k)
                    away = a[c] - n[c]
                    costs += away * away
                    held_x += a[c] * a[c]
                    aparts += (slope * away + (0.0 if own is None else own[c]) - mean) ** 2
                parents[p] = mean
                gains += mean * wrong
                wrongs += wrong * wrong
                held_p += mean * mean
        cost += costs
        apart += aparts
        gained += gains
        counts += held_x
        prices += held_p
        broken += wrongs
    return cost, apart, gained, broken, counts, prices


@_families.without_numba
def _families_in_arrays(
    x: Any, noisy: Any, price: Any, slope: float, b: int, priced: bool, above: Any, named: Any
) -> Any:
    sums, width = [0.0] * 6, max(1, PIECE // 4 // b)
    for start in range(0, named.size, width):
        parents, own = slice(start, start + width), slice(b * start, b * (start + width))
        a = x[own].reshape(-1, b)
        away = a - noisy[own].reshape(-1, b)
        total = slope * away
        if price is not None:
            total += price[own].reshape(-1, b)
        wrong = _columns(a) - above[parents]
        named[parents] = mean = _columns(total) / b if priced else np.zeros(len(a))
        if b <= FEW:
            for k in range(b):
                total[:, k] -= mean
        else:
            total -= mean[:, None]
        pairs = ((away, away), (total, total), (mean, wrong), (wrong, wrong), (a, a), (mean, mean))
        sums = [held + _in_blocks(u.ravel(), v.ravel()) for held, (u, v) in zip(sums, pairs, strict=True)]
    return tuple(sums)


def _in_blocks(u: Array, v: Array) -> float:
    """Σ u·v; partial sums have at most `BLOCK` terms."""
    if u.size <= BLOCK:
        return float(u @ v)
    whole = u.size // BLOCK * BLOCK
    held = np.matmul(u[:whole].reshape(-1, 1, BLOCK), v[:whole].reshape(-1, BLOCK, 1)).sum()
    return float(held + u[whole:] @ v[whole:])


def _columns(a: Any) -> Any:
    """The sum of each row: column by column if there are few, which is several times as fast."""
    return sum((a[:, k] for k in range(1, a.shape[1])), a[:, 0]) if a.shape[1] <= FEW else a.sum(axis=1)


@kernel(linear=True)
def _prices(
    parent: Any, noisy: Any, variance: Any, price: Any, near: Any, below: Any, spread: Any, zero: Any
) -> Any:
    """Write the nodes' prices to `price`, and sums over the leaves to `near`, which is 0 at inner nodes.

    Returns the objective of these sums; the gap that the prices leave; the node whose cost differs most from
    its price, and by how much.

    ``below`` and ``spread``, which end where the last level begins, receive the sums over the children of
    their best estimates from their own subtrees, and of the variances of these. A node has children if its
    spread is not 0. `zero` is the 0 of the kind of number to compute with.
    """
    n, inner = parent.size, below.size
    for i in range(n - 1, 0, -1):
        estimate, error = noisy[i] + zero, variance[i]
        if i < inner and spread[i] > 0:
            if error == np.inf:
                estimate, error = below[i], spread[i]
            elif spread[i] != np.inf:
                share = spread[i] / (error + spread[i])
                estimate = below[i] + share * (estimate - below[i])
                error = error * share
        p = parent[i]
        below[p] += estimate
        spread[p] += error
        near[p] += near[i]
    cost, gap, worst, most = zero, zero, 0, zero
    for start in range(0, n, BLOCK):
        costs, gaps = zero, zero
        for i in range(start, min(start + BLOCK, n)):
            above = price[parent[i]] if i > 0 else zero
            if i < inner and spread[i] > 0:
                if spread[i] != np.inf and variance[i] == np.inf:
                    price[i] = above
                elif spread[i] != np.inf:
                    both = variance[i] + spread[i]
                    price[i] = 2 * (noisy[i] - below[i]) / both + above * (variance[i] / both)
            wrong = price[i] - above
            if variance[i] != np.inf:
                away = near[i] - noisy[i]
                slope = 2 * away / variance[i]
                costs += away * slope / 2
                wrong += slope
                gaps += wrong * wrong * variance[i] / 4
            elif wrong != 0:
                gaps += np.inf  # such prices would prove nothing
            if abs(wrong) > most:
                worst, most = i, abs(wrong)
        cost += costs
        gap += gaps
    return cost, gap, worst, most


@by_levels(_prices)
def _prices_in_arrays(
    levels: list[slice],
    parent: Any,
    noisy: Any,
    variance: Any,
    price: Any,
    near: Any,
    below: Any,
    spread: Any,
    zero: Any,
) -> Any:
    measured = variance != np.inf
    for level in reversed(levels[1:]):
        estimate, error = noisy[level] + zero, variance[level]
        if level.stop <= below.size:
            under, apart = below[level], spread[level]
            unknown = ~measured[level] & (apart > 0)
            mixed = measured[level] & (apart > 0) & (apart != np.inf)
            share = apart / (error + apart)
            estimate = np.where(mixed, under + share * (estimate - under), np.where(unknown, under, estimate))
            error = np.where(mixed, error * share, np.where(unknown, apart, error))
        siblings = Siblings(parent[level])
        for values, into in ((estimate, below), (error, spread), (near[level], near)):
            siblings.gather(np.add, values, into)
    wrong = price.copy()
    for level in levels:
        above = price[parent[level]] if level.start else np.zeros(1)
        if level.stop <= below.size:
            both = variance[level] + spread[level]
            named = 2 * (noisy[level] - below[level]) / both + above * (variance[level] / both)
            named = np.where(measured[level], named, above)
            np.copyto(price[level], named, where=(spread[level] > 0) & (spread[level] != np.inf))
        wrong[level] = price[level] - above
    away = near - noisy
    slope = np.where(measured, 2 * away / variance, 0)
    off = wrong + slope
    gaps = np.where(measured, off * off * variance / 4, np.where(wrong != 0, np.inf, 0))
    costs = np.where(measured, away * slope / 2, 0)
    worst = int(np.nan_to_num(np.abs(off), posinf=np.inf).argmax())
    return float(costs.sum()), float(gaps.sum()), worst, float(abs(off[worst]))
