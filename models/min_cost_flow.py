"""Whole flows of least cost through a network: assignments, transport, shortest paths."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import exact
from models.arithmetic.answers import answer_of, fractional
from models.arithmetic.arrays import Array, Ints
from models.arithmetic.exact import Number
from models.certificate import Certificate, Witness, infeasible, judge, judge_exactly
from models.programs.program import Program
from models.programs.terms import Block, Term, rows_of
from models.witnesses.arrays import entry, exact_array, whole_array
from models.witnesses.scaled import gathered, minus, over_one_unit, plus, times

GAP = "other flows may cost less"


@dataclass(frozen=True, eq=False)
class MinCostFlow:
    """A whole flow of least cost through a network.

        minimize    Σ_a cost_a·x_a                                      Ahuja, Magnanti & Orlin 1993, (1.1)
        subject to  Σ_{a leaves v} x_a − Σ_{a enters v} x_a = supply_v  for each node v
                    0 ≤ x_a ≤ capacity_a,  x whole

    An assignment is a flow of one unit from each row to a column, a transport one from many sources to many
    sinks, and a shortest path one of a single unit.

    Parameters
    ----------
    tail, head : int arrays, shape (arcs,)
        The nodes that each arc joins, from 0 on. Several arcs may join the same two.
    cost : array, shape (arcs,)
        The cost of a unit, of either sign; int64 or `Fraction` (exact throughout), or float64.
    supply : int array, shape (nodes,)
        What leaves each node, less what enters it; they sum to 0.
    capacity : int array, shape (arcs,), optional
        At least 0. Without it no cost may be negative, and no arc of a best flow carries more than all
        supplies together, which is then the capacity.

    Raises
    ------
    ValueError
        If an argument is malformed, an arc joins no nodes, or the supplies do not sum to 0. (Whether any flow
        exists is not checked.)

    Examples
    --------
    Two units go from node 0 to node 2. At most one takes the cheap way through node 1.

    >>> model = MinCostFlow([0, 1, 0], [1, 2, 2], cost=[1, 1, 5], supply=[2, 0, -2], capacity=[1, 9, 9])
    >>> proof = model.certificate([1, 1, 1], {"potentials": [5, 1, 0]})
    >>> proof.optimal, proof.objective
    (True, 7)
    >>> model.certificate([0, 0, 2], {"potentials": [5, 1, 0]}).gap
    3
    """

    tail: ArrayLike
    head: ArrayLike
    cost: ArrayLike
    supply: ArrayLike
    capacity: ArrayLike | None = None
    random_up_to: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        cost = exact.as_data("cost", self.cost)
        whole = {name: _whole(name, getattr(self, name)) for name in ("tail", "head", "supply")}
        supply = whole["supply"]
        if supply.size == 0:
            raise ValueError("supply is empty: there must be at least one node")
        for name in ("tail", "head"):
            ends = whole[name]
            if ends.shape != cost.shape:
                raise ValueError(f"{name} has shape {ends.shape}, cost {cost.shape}: one entry for each arc")
            wrong = np.flatnonzero((ends < 0) | (ends >= supply.size))
            if wrong.size:
                raise ValueError(
                    f"{name}[{wrong[0]}] is {ends[wrong[0]]}: nodes are numbered 0 … {supply.size - 1}"
                )
        if not exact.fits(exact.reach(supply) * supply.size):
            raise ValueError(f"supplies of up to {exact.reach(supply)} at {supply.size} nodes pass 62 bits")
        if supply.sum() != 0:
            raise ValueError(f"supply sums to {supply.sum()}, not 0: what leaves must enter somewhere")
        if self.capacity is None:
            negative = np.flatnonzero(cost < 0)
            if negative.size:
                raise ValueError(
                    f"cost[{negative[0]}] is {cost[negative[0]]}: costs below 0 need a capacity for each arc"
                )
            capacity = np.full(cost.size, supply[supply > 0].sum(), np.int64)
        else:
            capacity = _whole("capacity", self.capacity)
            if capacity.shape != cost.shape:
                raise ValueError(f"capacity has shape {capacity.shape}, cost {cost.shape}")
            wrong = np.flatnonzero(capacity < 0)
            if wrong.size:
                raise ValueError(f"capacity[{wrong[0]}] is {capacity[wrong[0]]}: it must be at least 0")
        capacity.flags.writeable = False
        for name, value in {**whole, "cost": cost, "capacity": capacity}.items():
            object.__setattr__(self, name, value)

    @property
    def arcs(self) -> tuple[Ints, Ints]:
        """``(tail, head)``."""
        return np.asarray(self.tail), np.asarray(self.head)

    @property
    def room(self) -> Ints:
        """The capacity of each arc."""
        return np.asarray(self.capacity)

    @property
    def supplies(self) -> Ints:
        """The supply of each node."""
        return np.asarray(self.supply)

    @property
    def costs(self) -> Array:
        """The cost of a unit on each arc."""
        return np.asarray(self.cost)

    def program(self) -> Program:
        """The program above."""
        (tail, head), arcs = self.arcs, np.arange(self.room.size)
        entries = (np.concatenate([tail, head]), np.tile(arcs, 2), np.repeat([1.0, -1.0], arcs.size))
        shape = self.supplies.size, arcs.size
        return Program(
            "MinCostFlow",
            [Block("x", (arcs.size,), 0, self.room, True)],
            [rows_of("balance", shape, entries, self.supplies, self.supplies)],
            [Term("linear", arcs, self.costs)],
        )

    def row_prices(self, witness: Witness) -> Array:
        """The witness as prices of the program's rows: the potentials."""
        return np.asarray(witness["potentials"])

    def from_row_prices(self, x: Any, prices: Array) -> Witness:  # noqa: ARG002
        """The reverse of `row_prices`."""
        return {"potentials": prices}

    def variables(self, x: Any) -> Array:
        """An answer as all variables of the program."""
        return self._answer(x)

    def objective(self, x: Any) -> Number:
        """Σ cost·x; exact for exact costs."""
        return exact.dot(self.costs, self._answer(x))

    def violations(self, x: Any) -> list[str]:
        """Flows that are not whole, or not between 0 and the capacity; nodes whose supply does not leave."""
        x, room = self._answer(x), self.room
        found = list(fractional(x))
        found += [f"capacity: x[{a}] = {x[a]}, not in 0 … {room[a]}" for a in _outside(x, room)]
        tail, head = self.arcs
        nodes = self.supplies.size
        leaves = minus(gathered(tail, x, nodes), gathered(head, x, nodes))
        for v in np.flatnonzero(leaves != self.supplies):
            found.append(f"balance: {leaves[v]} leaves node {v}, not {self.supplies[v]}")
        return found

    def certificate(self, x: Any, witness: Witness | None = None) -> Certificate:
        """Potentials π of the nodes; linear time, exact.

        For any potentials, every flow costs at least

            Σ_v π_v·supply_v  +  Σ_a capacity_a · min(0, cost_a − π_tail(a) + π_head(a)),

        as the reduced costs of its arcs and the potentials of its supplies add up to its cost. Some
        potentials, the distances in the residual network, reach the least cost (Ahuja, Magnanti & Orlin 1993,
        §9.3). Everything is computed in whole numbers over one unit, floats too: a float is a fraction. If
        costs are floats, a gap of 10⁻⁷ of the cost counts as 0.

        Without a witness all potentials are 0; `solvers.prove` finds others.

        Parameters
        ----------
        x : int array, shape (arcs,)
        witness : mapping, optional
            ``potentials``, shape (nodes,): int, `Fraction` or float.
        """
        x = self._answer(x)
        objective, broken = self.objective(x), self.violations(x)
        if broken:
            return infeasible(objective, broken)
        supply, (tail, head) = self.supplies, self.arcs
        given = _potentials(witness, supply.shape)
        potentials = np.zeros(supply.size, np.int64) if given is None else given
        (cost, price), unit = over_one_unit(self.costs, potentials)
        reduced = plus(minus(cost, price[tail]), price[head])
        least = exact.total(times(np.minimum(reduced, 0), self.room))
        bound = Fraction(int(exact.total(times(price, supply)) + least), unit)
        proof = {"potentials": potentials}
        if exact.is_exact(self.costs):
            exactly = bound.numerator if bound.denominator == 1 else bound
            return judge(objective, objective - exactly, True, proof, GAP)
        paid = Fraction(int(exact.total(times(cost, x))), unit)
        size = float(exact.reach(cost) / Fraction(unit)) * max(1, exact.reach(supply))
        return judge_exactly(paid, bound, False, proof, GAP, min(1.0, size))

    def _answer(self, x: Any) -> Array:
        return answer_of(x, self.room.shape, integer=True)

    @classmethod
    def random(cls, rng: np.random.Generator, size: int) -> Self:
        """Any arcs, loops and parallel ones included; costs of either sign, many ties; a flow exists."""
        nodes, arcs = 1 + int(rng.integers(0, 1 + max(1, size // 2))), max(1, size)
        tail, head = rng.integers(0, nodes, (2, arcs))
        capacity = rng.integers(0, rng.choice([2, 4, 1000]), arcs)
        cost = rng.integers(-2 if rng.random() < 0.5 else 0, rng.choice([2, 10, 10**6]), arcs)
        held = rng.integers(0, capacity + 1)
        supply = np.zeros(nodes, np.int64)
        np.add.at(supply, tail, held)
        np.subtract.at(supply, head, held)
        return cls(tail, head, cost, supply, capacity)

    @classmethod
    def typical(cls, rng: np.random.Generator, size: int, **options: Any) -> Self:
        """Sources and sinks in the plane, each source joined to 16 sinks; costs are distances."""
        many = max(2, size // 16)
        near = min(16, many)
        places = rng.integers(0, 10_000, (2, many, 2))
        tail = np.repeat(np.arange(many), near)
        head = (tail + np.tile(np.arange(near), many) * (many // near)) % many
        cost = np.abs(places[0, tail] - places[1, head]).sum(axis=1)
        supply = np.repeat([1, -1], many) * 10
        return cls(tail, many + head, cost, supply, np.full(cost.size, 10), **options)


def _whole(name: str, values: Any) -> Ints:
    array = exact.as_data(name, values)
    if array.dtype != np.int64:
        raise ValueError(f"{name} must be integers")
    return array


def _outside(x: Array, room: Ints) -> Ints:
    return np.flatnonzero((x < 0) | (x > room))


def _potentials(witness: Witness | None, shape: tuple[int, ...]) -> Array | None:
    value = entry(witness, "potentials")
    if isinstance(value, np.ndarray) and value.dtype == np.int64:  # without a loop
        return whole_array(witness, "potentials", shape)
    return exact_array(witness, "potentials", shape)
