"""Row 14: noisy counts of every node of a tree, made to agree (Hay et al.; Qardaji, Yang & Li 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from models import exact
from models.certificate import FLOAT_TOLERANCE, Certificate, infeasible, judge
from models.exact import Number
from models.model import answer_of, random_noisy, tolerance_for
from models.program import INFINITY, Block, Program, Rows, Term
from models.tree import Tree


@dataclass(frozen=True, eq=False)
class ConstrainedInference:
    """The consistent counts of least variance: generalised least squares over a tree.

    ::

        minimize    Σ_v (x[v] − n[v])² / V[v]               Qardaji, Yang & Li 2013, §3.3
        subject to  Σ_{u child of v} x[u] = x[v]            for every v with children
                    x real

    n[v] is the noisy count of node v and V[v] its variance. The paper states the two passes that solve it
    for complete b-ary trees of one variance; here the tree may be ragged and every node has its own.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; int64 and objects (`int`, `Fraction`) are exact throughout.
    variance : number, or array of shape (nodes,)
        V > 0 of all nodes, or of each. Infinite for a node that was not asked, such as the paper's root;
        its noisy count is then ignored.

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
    def data(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """``(noisy, variance)``, shape (nodes,) each; noisy counts of infinite variance are 0 here."""
        noisy, variance = np.asarray(self.noisy), np.asarray(self.variance)
        ignored = variance == INFINITY
        return np.where(ignored, 0, noisy) if ignored.any() else noisy, variance

    def program(self) -> Program:
        """The program above, a convex QP; nodes of infinite variance cost nothing."""
        noisy, variance = self.data
        tree = self.tree
        start, child = tree.children
        inner = tree.internal
        family = np.repeat(np.arange(inner.size), np.diff(start)[inner])
        below = sp.csr_matrix((-np.ones(child.size), (family, child)), shape=(inner.size, tree.size))
        above = sp.csr_matrix((np.ones(inner.size), (np.arange(inner.size), inner)), below.shape)
        asked = np.flatnonzero(variance != INFINITY)
        weight = 1 / variance[asked].astype(float)
        zero = np.zeros(inner.size)
        return Program(
            "ConstrainedInference",
            [Block("x", (tree.size,), -INFINITY, INFINITY)],
            [Rows("consistency", sp.csr_matrix(above + below), zero, zero)],
            [Term("quadratic", asked, weight, noisy[asked])] if asked.size else [],
        )

    def objective(self, x: Any) -> Number:
        """Σ (x − n)²/V; a `Fraction` where noisy counts and answer are exact (float variances are, too)."""
        noisy, variance = self.data
        x = answer_of(x, noisy.shape, integer=False)
        if not (exact.is_exact(x) and exact.is_exact(noisy)):
            miss = x.astype(float) - noisy.astype(float, copy=False)
            miss *= miss
            miss /= variance.astype(float, copy=False)
            return float(np.sum(miss))
        away = exact.difference(x, noisy)
        # Nodes of one variance together: few divisions, however large the sums of squares.
        values, which = np.unique(variance, return_inverse=True)
        order = np.argsort(which, kind="stable")
        groups = np.split(away[order], np.flatnonzero(np.diff(which[order])) + 1)
        cost = Fraction(0)
        for value, group in zip(values.tolist(), groups, strict=True):
            if value != INFINITY:
                cost += Fraction(exact.dot(group, group)) / Fraction(value)
        return cost

    def violations(self, x: Any) -> list[str]:
        """Nodes whose children do not sum to them."""
        tree = self.tree
        x = answer_of(x, (tree.size,), integer=False)
        slack = tolerance_for(x)
        sums = self._sums(exact.widened(x, tree.size))
        broken = tree.internal[np.abs(sums - x)[tree.internal] > slack]
        return [f"consistency: node {v}: children sum to {sums[v]}, not {x[v]}" for v in broken]

    def _sums(self, x: NDArray[Any]) -> NDArray[Any]:
        """For each node, the sum over its children; shape (nodes,)."""
        parent = self.tree.parent
        if x.dtype == np.float64:
            return np.bincount(parent[1:], weights=x[1:], minlength=parent.size)
        sums = np.zeros_like(x)
        np.add.at(sums, parent[1:], x[1:])
        return sums

    def certificate(self, x: Any) -> Certificate:
        """The prices λ of the consistency rows, found from the data alone; linear time.

        With g = 2(x − n)/V, the normal equations ask that g[v] + λ[v] equal the price of v's parent (0 for
        the root; λ is 0 at leaves). The bound is the Lagrangian dual at λ, so it holds whatever the prices,
        as long as a node of infinite variance has its parent's; for exact ones it is the optimum. The gap
        is Σ V·(g + λ − λ[parent])²/4, a sum of squares: nothing cancels.

        Answers in floats break sums a little, at these prices; one that gains by it is not feasible.
        Whole or `Fraction` answers to exact counts are judged in Fractions: slow for a million nodes.
        """
        noisy, variance = self.data
        x = answer_of(x, noisy.shape, integer=False)
        objective = self.objective(x)
        broken = self.violations(x)
        if broken:
            return infeasible(objective, broken)
        exactly = exact.is_exact(x) and exact.is_exact(noisy)
        zero: Any = Fraction(0) if exactly else 0.0
        if exactly:
            x, noisy, variance = (_fractions(part) for part in (x, noisy, variance))
        else:
            x, noisy, variance = (part.astype(float, copy=False) for part in (x, noisy, variance))
        prove = _prices.py_func if exactly else _prices
        price, gap, worst, most = prove(self.tree.parent, x, noisy, variance, zero)
        if not exactly:
            inner = self.tree.internal
            gap += exact.dot(price[inner], (self._sums(x) - x)[inner])
            # Next to large counts the tolerance for sums is wide: noisy counts themselves may keep it.
            if gap < -FLOAT_TOLERANCE * max(1.0, float(objective)):
                return infeasible(objective, [f"consistency: it costs {-gap:.6g} less than any true sums"])
            gap = max(gap, 0.0)
        reason = f"costs differ from the price by {float(most):.6g} at node {worst}"
        return judge(objective, gap, exactly, {"prices": price}, reason)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one variance, one a level, or one a node, some of them infinite."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # half of that, on average
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


def _variances(given: Any, nodes: int) -> NDArray[Any]:
    values = np.array(given)
    if values.dtype == object:
        if not all(isinstance(v, int | Fraction | np.integer) or v == INFINITY for v in values.flat):
            raise ValueError("variance: an object array may hold only int, Fraction and infinity")
    elif np.issubdtype(values.dtype, np.integer) or np.issubdtype(values.dtype, np.floating):
        values = values.astype(np.float64 if np.issubdtype(values.dtype, np.floating) else np.int64)
    else:
        raise ValueError(f"variance must be numbers, got dtype {values.dtype}")
    if values.ndim == 0:
        values = np.full(nodes, values[()], dtype=values.dtype)
    if values.shape != (nodes,):
        raise ValueError(f"variance has shape {values.shape}; it needs one entry, or one for each of {nodes}")
    wrong = np.flatnonzero(~(values > 0))
    if wrong.size:
        raise ValueError(f"variance[{wrong[0]}] is {values[wrong[0]]}: variances must be positive")
    values.flags.writeable = False
    return values


def _fractions(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as Fractions; infinity stays."""
    return np.array([v if v == INFINITY else Fraction(v) for v in values.tolist()] + [None], dtype=object)[
        :-1
    ]


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _prices(parent: Any, x: Any, noisy: Any, variance: Any, zero: Any) -> Any:
    """Prices of the nodes; the gap they leave; and the node that is furthest from its price, and how far.

    ``below`` and ``spread`` get the sum of the children's best estimates from their own subtrees and the
    sum of their variances. A node with children is one whose spread is not 0. `zero` says in which kind of
    number to count.
    """
    n = parent.size
    price, below, spread = np.full(n, zero), np.full(n, zero), np.full(n, zero)
    for i in range(n - 1, 0, -1):
        estimate, error = noisy[i], variance[i]
        if spread[i] > 0:
            if error == np.inf:
                estimate, error = below[i], spread[i]
            elif spread[i] != np.inf:
                share = spread[i] / (error + spread[i])
                estimate = below[i] + share * (estimate - below[i])
                error = error * share
        below[parent[i]] += estimate
        spread[parent[i]] += error
    gap, worst, most = zero, 0, zero
    for i in range(n):
        above = price[parent[i]] if i > 0 else zero
        if spread[i] > 0 and spread[i] != np.inf:
            if variance[i] == np.inf:
                price[i] = above
            else:
                both = variance[i] + spread[i]
                price[i] = 2 * (noisy[i] - below[i]) / both + above * (variance[i] / both)
        wrong = price[i] - above
        if variance[i] != np.inf:
            wrong += 2 * (x[i] - noisy[i]) / variance[i]
            gap += wrong * wrong * variance[i] / 4
        elif wrong != 0:
            gap += np.inf  # such prices would prove nothing
        if abs(wrong) > most:
            worst, most = i, abs(wrong)
    return price, gap, worst, most
