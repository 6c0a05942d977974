"""Prices along a tree, read off non-negative counts, and the gap that they leave."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.kernels import kernel
from models.arithmetic.rounding import BLOCK


@kernel()
def named_prices(parent: Any, x: Any, noisy: Any, weight: Any, near: float, price: Any) -> Any:
    """Write the prices read off x, one for each node's children, to `price`.

    Up the tree: the price of a family must lie between the costliest unit held (`last`) and the cheapest next
    one (`following`). Down the tree: the price in this interval that fits the node's own cost best; a node
    without cost passes on its own family's price. Returns the gap; the node whose cost differs most from its
    price; and by how much.
    """
    n = parent.size
    last, following = np.full(n, -np.inf), np.full(n, np.inf)
    for i in range(n - 1, 0, -1):
        slope, p = 2 * weight[i] * (x[i] - noisy[i]), parent[i]
        leaf = following[i] == np.inf
        costly, cheap = slope, slope
        if not leaf:
            costly, cheap = slope + last[i], slope + following[i]
        if x[i] > near:
            last[p] = max(last[p], costly)
        following[p] = min(following[p], cheap)
    gap, worst, most = 0.0, 0, 0.0
    for start in range(0, n, BLOCK):
        part = 0.0
        for i in range(start, min(start + BLOCK, n)):
            above = price[parent[i]] if i > 0 else 0.0
            slope = 2 * weight[i] * (x[i] - noisy[i])
            below = 0.0
            if following[i] < np.inf:
                low, high = last[i], following[i]
                wanted = above - slope
                if weight[i] == 0:
                    below = above
                elif low > high:
                    below = (low + high) / 2
                else:
                    below = min(max(wanted, low), high)
                price[i] = below
            # f(x) + s·x minus its minimum over z ≥ 0, with f(z) = w (z − n)² and the charge s for each unit.
            s = below - above
            if weight[i] == 0:
                miss = s * x[i]
            else:
                z = max(0.0, noisy[i] - s / (2 * weight[i]))
                miss = (x[i] - z) * (weight[i] * (x[i] + z - 2 * noisy[i]) + s)
            part += miss
            off = slope + s
            if x[i] <= near:
                off = min(off, 0.0)
            if abs(off) > most:
                worst, most = i, abs(off)
        gap += part
    return gap, worst, most


@kernel()
def named_whole_prices(parent: Any, x: Any, noisy: Any, weight: Any, never: int, price: Any) -> None:
    """Write the prices read off whole counts x, one for each node's children, to `price`.

    Up the tree: the cost of each subtree's last unit and of its next one, the costliest and the cheapest
    among siblings. Down the tree: a price between these two that also fits the node's own last and next unit;
    if there is none, a near one. True costs are below `never`, which represents infinity.
    """
    n = parent.size
    last, following = np.full(n, -never), np.full(n, never)
    for i in range(n - 1, 0, -1):
        slope, p = 2 * weight[i] * (x[i] - noisy[i]), parent[i]
        costly, cheap = slope - weight[i], slope + weight[i]
        if following[i] < never:
            costly, cheap = max(costly + last[i], -never), cheap + following[i]
        if x[i] > 0:
            last[p] = max(last[p], costly)
        following[p] = min(following[p], cheap)
    for i in range(n):
        if following[i] == never:
            continue  # a leaf
        above = price[parent[i]] if i > 0 else 0
        slope = 2 * weight[i] * (x[i] - noisy[i])
        low, high = max(last[i], above - slope - weight[i]), following[i]
        if x[i] > 0:
            high = min(high, above - slope + weight[i])
        price[i] = max(min(max(above, low), high), above if weight[i] == 0 else -never)


@kernel()
def charges(parent: Any, weight: Any, price: Any, charge: Any) -> None:
    """Write each node's charge per unit to `charge`: the price of its children minus that of its siblings.

    The charge of a node without its own cost must not be negative, so the price of its children is raised.
    """
    for i in range(parent.size):
        above = price[parent[i]] if i > 0 else 0
        if weight[i] == 0 and price[i] < above:
            price[i] = above
        charge[i] = price[i] - above
