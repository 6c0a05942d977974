"""Consistent non-negative counts of a tree's nodes, nearest to noisy ones in weighted squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact, rounding
from models.arithmetic.answers import answer_of, fractional, tolerance_for, too_far
from models.arithmetic.arrays import Array, Floats, Ints
from models.arithmetic.distance import distance
from models.arithmetic.exact import Number
from models.arithmetic.rounding import Rounding
from models.certificate import LEFT, Certificate, Witness, infeasible, judge
from models.programs.program import Program
from models.programs.terms import INFINITY, Block, Term
from models.programs.trees import children_sums
from models.synthetic import binary_counts, random_noisy
from models.tree import Tree
from models.witnesses.arrays import real_array, whole_array
from models.witnesses.node_prices import NEVER
from models.witnesses.non_negative_prices import charges, named_prices, named_whole_prices
from models.witnesses.tree_sums import SMALL, charged_sums, consistent


@dataclass(frozen=True, eq=False)
class NonNegativeInference:
    """Consistent and non-negative counts, nearest to noisy ones in weighted squares.

        minimize    Σ_v w[v] (x[v] − n[v])²              Qardaji, Yang & Li 2013, §3.3, with w = 1/variance
        subject to  Σ_{u child of v} x[u] = x[v]         for every v with children
                    x ≥ 0, and whole if `integer`

    Without the last line this is `ConstrainedInference`, which has a closed form; with it, it is a
    quadratic program, or an integer one. `HierarchyQIP` of one size is the integer program with the root's
    count fixed. Without a fixed count it would still lack the real data, and the weights of 0 under which
    optima are not unique: its prices are differences of whole squares. Its fast path takes a third of the
    time (binary trees of 2,047 and 131,071 nodes), because it needs no others.

    Parameters
    ----------
    tree : Tree
    noisy : array, shape (nodes,)
        Noisy counts n in level order; whole if `integer`.
    weights : array, shape (nodes,), optional
        Positive; 0 for inner nodes that were not measured, such as the paper's root. Only their ratios
        matter; whole numbers if `integer`. Default: 1 for all but the root, 0 for the root if it has
        children.
    integer : bool

    Raises
    ------
    ValueError
        If a shape does not fit the tree, a weight is negative, or 0 at a leaf; with `integer`, also if
        a noisy count or a weight is not whole, or costs pass 60 bits.

    Examples
    --------
    >>> model = NonNegativeInference(Tree([[0, 0], [0, 0]]), [0, 4, 3, 5, -3])
    >>> model.objective([7.5, 4.5, 3, 4.5, 0])
    9.5
    >>> model.certificate([7.5, 4.5, 3, 4.5, 0]).optimal
    True
    """

    tree: Tree
    noisy: ArrayLike
    weights: ArrayLike | None = None
    integer: bool = False
    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}, "integer": {"integer": True}}

    def __post_init__(self) -> None:
        noisy = exact.as_data("noisy", self.noisy)
        nodes = self.tree.size
        if noisy.shape != (nodes,):
            raise ValueError(
                f"noisy has shape {noisy.shape}; it needs an entry for each of the {nodes} nodes"
            )
        weights = np.ones(nodes, np.int64) if self.weights is None else exact.as_data("weights", self.weights)
        if self.weights is None and self.tree.depth:
            weights[0] = 0
        if weights.shape != (nodes,):
            raise ValueError(f"weights have shape {weights.shape}; there are {nodes} nodes")
        least = np.zeros(nodes)
        least[self.tree.leaves] = np.finfo(float).tiny
        wrong = np.flatnonzero(weights < least)
        if wrong.size:
            raise ValueError(
                f"weights[{wrong[0]}] is {weights[wrong[0]]}: they are positive, or 0 for an inner node"
            )
        if object in (noisy.dtype, weights.dtype):
            raise ValueError("noisy and weights are numbers of 64 bits, not objects")
        if self.integer:
            if noisy.dtype != np.int64 or weights.dtype != np.int64:
                raise ValueError("over whole numbers, noisy counts and weights must be whole: scale weights")
            # Every count of an optimal answer is at most the sum of the positive noisy counts.
            largest = int(exact.total(np.abs(exact.widened(noisy)))) + exact.reach(noisy)
            if 4 * largest * _heaviest(self.tree, weights) >= NEVER:
                raise ValueError(f"counts of up to {largest}: their unit costs along the tree pass 60 bits")
        weights.flags.writeable = False
        object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "weights", weights)

    @property
    def data(self) -> tuple[Array, Array]:
        """``(noisy, weights)``, shape (nodes,) each."""
        return np.asarray(self.noisy), np.asarray(self.weights)

    def program(self) -> Program:
        """The program above; nodes of weight 0 cost nothing."""
        noisy, weights = self.data
        tree = self.tree
        measured = np.flatnonzero(weights)
        return Program(
            "NonNegativeInference",
            [Block("x", (tree.size,), 0, INFINITY, self.integer)],
            [children_sums("consistency", tree)],
            [Term("quadratic", measured, weights[measured], noisy[measured])],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the prices of inner nodes, negated."""
        return exact.negated(np.asarray(witness["prices"])[self.tree.internal])

    def objective(self, x: Any) -> Number:
        """Σ w·(x − n)²; an `int` if data and answer are whole."""
        return self._cost(answer_of(x, (self.tree.size,), self.integer))

    def _cost(self, x: Array) -> Number:
        noisy, weights = self.data
        cost = distance(x, noisy, 2, weights)
        if cost != cost:  # 0 times a square that passes what floats hold
            measured = weights > 0
            return distance(x[measured], noisy[measured], 2, weights[measured])
        return cost

    def violations(self, x: Any) -> list[str]:
        """Negative and fractional counts, and nodes whose children (in floats: leaves) do not sum to them."""
        x = answer_of(x, (self.tree.size,), self.integer)
        return self._broken(x, self._near(x))

    def _near(self, x: Array) -> Array:
        """The feasible answer that x stands for: of floats over the reals, the sums of its leaves."""
        return x if self.integer or exact.is_exact(x) else consistent(self.tree, x, least=0.0)

    def _broken(self, x: Array, near: Array) -> list[str]:
        tree = self.tree
        slack = 0 if self.integer else tolerance_for(x, self.data[0])
        far = [] if near is x else too_far(x, near, slack)
        if near is not x and not far:
            return []
        found = [*fractional(x)] if self.integer else []
        found += [f"domain: x[{v}] = {x[v]}, under 0" for v in np.flatnonzero(x < -slack)]
        x = exact.widened(x, tree.size)
        sums = tree.child_sums(x) if tree.internal.size else x[:0]
        for i in np.flatnonzero(np.abs(sums - x[tree.internal]) > slack):
            v = tree.internal[i]
            found.append(f"consistency: node {v}: children sum to {sums[i]}, not {x[v]}")
        return found or far

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """A price λ[v] for the units of every node's children; linear time.

        With the prices as multipliers of the consistency rows, λ = 0 for leaves and above the root, and the
        charge s[v] = λ[v] − λ[parent of v] on each unit of v,

            bound  =  Σ_v min over z ≥ 0 (whole if `integer`) of ( w[v] (z − n[v])² + s[v] z ).

        It holds for any prices (Lagrangian duality) if nodes of weight 0 have s ≥ 0; prices that break this
        are raised. Over the reals some prices reach the optimum, as for any convex program. Over whole
        numbers, too: sums along a tree are a laminar family, so the matrix is totally unimodular. With the
        squares made linear between whole numbers, the linear program has whole optima, and its duals are such
        prices (Schrijver 1986, §19.3; Murota 2003, ch. 6).

        Without a witness, prices are read off x: a node's lies between the cost of its children's last units
        and of their next ones. These prove optimal whole counts; for other counts the gap is an upper bound.

        Parameters
        ----------
        x : array, shape (nodes,)
            In floats, it stands for the sums of its leaves, if these are nearby: theirs is the objective.
        witness : mapping, optional
            ``prices``, shape (nodes,): λ; entries for leaves are ignored.
        """
        noisy, weights = self.data
        x = answer_of(x, noisy.shape, self.integer)
        near = self._near(x)
        if broken := self._broken(x, near):
            return infeasible(self._cost(x), broken)
        x = near
        objective = self._cost(x)
        if self.integer:
            price: Any = whole_array(witness, "prices", x.shape)
            if price is None:
                price = np.zeros(x.size, np.int64)
                # Without prices in 64 bits, 0 is used: no answer as large is optimal.
                if 4 * exact.reach(x) * _heaviest(self.tree, weights) < NEVER // 2:
                    named_whole_prices(self.tree.parent, x, noisy, weights, NEVER, price)
            return judge(objective, self._gap(x, price), True, {"prices": price}, LEFT)
        given = [np.ascontiguousarray(part, float) for part in (x, noisy, weights)]
        price = real_array(witness, "prices", x.shape)
        if price is None:
            price = np.zeros(noisy.size)
            gap, worst, most = named_prices(self.tree.parent, *given, tolerance_for(*given[:2]), price)
            reason = f"a unit of node {worst} costs {most:.6g} off its price"
        else:
            gap, reason = self._gap(given[0], price), LEFT
        rounded = self._rounding(given[0], price, float(objective), float(gap))
        inner, small = self.tree.internal, SMALL * max(rounded.unit, float(objective))
        gained, error = charged_sums(self.tree, price[inner], given[0], small)
        return judge(objective, gap + gained, False, {"prices": price}, reason, rounded.plus(error))

    def _rounding(self, x: Floats, price: Floats, objective: float, gap: float) -> Rounding:
        """Rounding of the certificate in floats; see `models.arithmetic.rounding`."""
        noisy, weights = self.data
        light, heavy = float(weights.min()), float(weights.max())
        if not light:
            light = float(weights[weights > 0].min())
        largest, steepest = rounding.reach(x, noisy), rounding.reach(price)
        return rounding.of_squares(gap, objective, x.size, (light, heavy), largest, steepest)

    def _gap(self, x: Array, price: Array) -> Number:
        """Objective minus bound at these prices, made valid in place: 0 at leaves, s ≥ 0 at weight 0."""
        weights: Any
        noisy, weights = self.data
        noisy = noisy if self.integer else noisy.astype(float)
        price[self.tree.leaves] = 0
        charge = np.empty_like(price)
        charges(self.tree.parent, weights, price, charge)
        if self.integer:
            heavy, steep = exact.reach(weights), exact.reach(charge)
            largest = exact.reach(x) + 2 * exact.reach(noisy) + steep + heavy
            if not exact.fits(2 * (heavy + 1) * largest + steep):
                x, noisy, weights, charge = (part.astype(object) for part in (x, noisy, weights, charge))
        w: Any = np.maximum(weights, 1) if self.integer else np.where(weights > 0, weights, 1.0)
        z: Any = noisy - charge / (2 * w) if not self.integer else (2 * w * noisy - charge + w) // (2 * w)
        z = np.where(weights > 0, np.maximum(z, 0), 0)
        return exact.dot(x - z, weights * (x + z - 2 * noisy) + charge)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Trees of any shape; one weight, one per level, or one per node; some inner nodes not measured."""
        depth = int(rng.integers(0, 5))
        branching = max(1, round(2 * size ** (1 / max(1, depth))) - 1)  # on average, half as many children
        tree = Tree.random(rng, depth, branching, ragged=bool(rng.random() < 0.5))
        integer = bool(rng.random() < 0.5)
        kinds: list[Any] = [
            np.ones(tree.size, np.int64),
            rng.integers(1, 9, size=depth + 1)[tree.level],
            rng.integers(1, 9, size=tree.size),
        ]
        if not integer:
            kinds.append(rng.choice([0.05, 1.0, 7.5, 100.0], size=tree.size))
        weights = kinds[rng.integers(0, len(kinds))]
        if rng.random() < 0.7:
            weights[tree.internal[rng.random(tree.internal.size) < rng.choice([0.0, 0.3])]] = 0
            weights[0] = 0 if depth else weights[0]
        return cls(tree, random_noisy(rng, (tree.size,)), weights, integer)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Noisy counts of a binary tree, over the reals."""
        tree, noisy, _ = binary_counts(rng, size)
        return cls(tree, noisy, **options)


def _heaviest(tree: Tree, weights: Ints) -> int:
    """The sum of each level's largest weight, an upper bound on the weight of a path from the root."""
    return sum(int(weights[tree.nodes_of(level)].max()) for level in range(tree.depth + 1))
