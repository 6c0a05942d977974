"""Private decisions down a tree: which nodes are split, at a loss that does not grow with the depth.

PrivTree (Zhang, Xiao & Xie 2016): a node at depth d whose count is c is split if its biased count
max(c − d·δ, −δ), plus double-geometric noise of scale λ, is above 0. Only the decisions are published.

The loss, with whole counts and a whole δ ≥ 1. One person is in one node of each level, whose counts fall from
the root. Let a = e^(−1/λ). A person less lowers a biased count x by 1 or, at −δ, not at all. The ratio of the
probabilities of x + noise > 0 is then

    at most 1/a for x ≤ 1;    1 + a^(x−1)·(1 − a)/(1 + a − a^(x−1)) for x > 1,

so its logarithm is at most 1/λ, and at most a^(x−1)/λ if x ≥ 1, since 1 − a ≤ 1/λ. Among the nodes that are
split and whose biased counts differ, the last has x ≥ 1 − δ, the one above it at least 1, the next at least
1 + δ, and so on. So their logarithms add up to at most

    (1 + 1 + e^(−δ/λ) + e^(−2δ/λ) + …)/λ  =  (1 + 1/(1 − e^(−δ/λ)))/λ.

The one node of the path that is not split has a ratio between e^(−1/λ) and 1, in the other direction. With
δ = λ ln β this is the paper's (2β − 1)/((β − 1)λ). Here δ is that, rounded up to a whole number, and λ is the
least scale of which the loss is within the budget.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hierdp.privacy.budget import Spend
from hierdp.privacy.noise import Noise, geometric
from models import Tree
from models.arithmetic.arrays import Ints

DECAYING = "decaying threshold by "
"""The name of the law in a budget, before δ."""

UPWARDS = 1 + 2**-40
"""Enlarges a loss by more than all roundings of `loss_of`."""


class Decay(NamedTuple):
    """The scale λ of the noise of decisions, and δ, by which a biased count falls for each level."""

    scale: float
    step: int


def loss_of(scale: float, step: int) -> float:
    """ε of all decisions together, rounded up.

    >>> round(loss_of(3.0, 3), 6)  # for β = e, the paper's (2e − 1)/(e − 1)/3
    0.860659
    """
    return (1 - 1 / math.expm1(-step / scale)) / scale * UPWARDS


def decay_of(epsilon: float, children: int) -> Decay:
    """The least noise for a budget, for nodes with up to so many children.

    >>> decay_of(0.5, 2)
    Decay(scale=5.26..., step=5)
    """
    paper = (2 * children - 1) / ((children - 1) * epsilon)
    step = max(1, math.ceil(paper * math.log(children)))
    low, high = paper / 3, paper * 2  # the first term alone costs 1/λ, and twice the paper's λ halves its ε
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if loss_of(middle, step) <= epsilon / UPWARDS else (middle, high)
    return Decay(high, step)


def decided(tree: Tree, counts: Ints, query: str, noise: Noise, decay: Decay) -> tuple[Ints, Spend]:
    """Which nodes are split, and the record of the loss.

    Noise is drawn for the children of split nodes only, level by level, and forgotten.

    - tree: with at least one level below the root.
    - counts, int64 array, shape (nodes,): the true count of each node.

    Returns:
    - split, int64 array, shape (nodes,): 1 if all nodes above are split, too, and the node has children.
    """
    scale, step = decay
    split = np.zeros(tree.size, dtype=np.int64)
    parents, has_children = tree.parent, np.diff(tree.children[0]) > 0
    for level in range(tree.depth):
        nodes = np.arange(tree.size)[tree.nodes_of(level)]
        nodes = nodes[has_children[nodes] & (split[parents[nodes]] > 0 if level else True)]
        if not nodes.size:
            break
        biased = np.maximum(counts[nodes] - level * step, -step)
        drawn = noise.draw(geometric(query, 1, 1 / scale), biased)
        split[nodes] = drawn.answers > 0
    return split, replace(drawn.spend, noise=f"{DECAYING}{step}", epsilon=loss_of(scale, step))


def step_of(law: str) -> int | None:
    """δ, from the name of the law; None for other laws.

    >>> step_of("decaying threshold by 5"), step_of("double-geometric")
    (5, None)
    """
    return int(law.removeprefix(DECAYING)) if law.startswith(DECAYING) else None
