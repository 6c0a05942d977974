"""Whole flows of least cost through a network: assignments, transport, shortest paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from models.arithmetic import door, exact
from models.arithmetic.arrays import Array, Ints
from models.model import ByProgram
from models.programs.costs import Linear
from models.programs.operators import Incidence
from models.programs.program import Program
from models.programs.terms import Block, Rows


@dataclass(frozen=True, eq=False)
class MinCostFlow(ByProgram):
    """A whole flow of least cost through a network.

        minimize    Σ_a cost_a·x_a                                      Ahuja, Magnanti & Orlin 1993, (1.1)
        subject to  Σ_{a leaves v} x_a − Σ_{a enters v} x_a = supply_v  for each node v
                    0 ≤ x_a ≤ capacity_a,  x whole

    An assignment is a flow of one unit from each row to a column, a transport one from many sources to many
    sinks, and a shortest path one of a single unit.

    Prices of the balances are potentials of the nodes. Some, the distances in the residual network, prove a
    flow of least cost (Ahuja, Magnanti & Orlin 1993, §9.3). Without a witness all are 0; `solvers.prove`
    finds others.

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
    >>> proof = model.certificate([1, 1, 1], {"balance": [5, 1, 0]})
    >>> proof.optimal, proof.objective
    (True, 7)
    >>> model.certificate([0, 0, 2], {"balance": [5, 1, 0]}).gap
    3
    """

    tail: ArrayLike
    head: ArrayLike
    cost: ArrayLike
    supply: ArrayLike
    capacity: ArrayLike | None = None
    random_up_to: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        cost = door.data("cost", self.cost)
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
        tail, head = self.arcs
        leaves = Incidence(tail, head, self.supplies.size)
        return Program(
            "MinCostFlow",
            [Block("x", self.room.shape, 0, self.room, True, Linear(self.costs))],
            [Rows("balance", {"x": leaves}, self.supplies, self.supplies)],
        )

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
    array = door.data(name, values)
    if array.dtype != np.int64:
        raise ValueError(f"{name} must be integers")
    return array
