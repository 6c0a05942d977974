"""The prices that non-negative counts name along a tree, and the gap that they leave: what proves them."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.kernels import kernel


@kernel()
def named_prices(parent: Any, x: Any, noisy: Any, weight: Any, near: float, price: Any) -> Any:
    """The prices that x names, written to `price` for each node's children; the gap they leave.

    Up the tree: between the dearest unit held (`last`) and the cheapest one to be had (`following`) the price
    of a family must lie. Down it: the price nearest to what the node asks; a node that costs nothing passes
    on its own family's. Returns the gap, and the node that is furthest from its price, and how far.
    """
    n = parent.size
    last, following = np.full(n, -np.inf), np.full(n, np.inf)
    for i in range(n - 1, 0, -1):
        slope, p = 2 * weight[i] * (x[i] - noisy[i]), parent[i]
        leaf = following[i] == np.inf
        dear, cheap = slope, slope
        if not leaf:
            dear, cheap = slope + last[i], slope + following[i]
        if x[i] > near:
            last[p] = max(last[p], dear)
        following[p] = min(following[p], cheap)
    gap, worst, most = 0.0, 0, 0.0
    for i in range(n):
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
        # f(x) + s x less its least value over z ≥ 0, f(z) = w (z − n)² at a charge of s for a unit.
        s = below - above
        if weight[i] == 0:
            miss = s * x[i]
        else:
            z = max(0.0, noisy[i] - s / (2 * weight[i]))
            miss = (x[i] - z) * (weight[i] * (x[i] + z - 2 * noisy[i]) + s)
        gap += miss
        off = slope + s
        if x[i] <= near:
            off = min(off, 0.0)
        if abs(off) > most:
            worst, most = i, abs(off)
    return gap, worst, most


@kernel()
def named_whole_prices(parent: Any, x: Any, noisy: Any, weight: Any, never: int, price: Any) -> None:
    """The prices that whole counts x name, written to `price` for each node's children.

    Up the tree: the cost of each subtree's last unit and of its next one, the costliest and the cheapest
    among siblings. Down it: a price between these two that suits the node's own last and next unit as well;
    if there is none, one near. True costs are under `never`, which stands for infinity.
    """
    n = parent.size
    last, following = np.full(n, -never), np.full(n, never)
    for i in range(n - 1, 0, -1):
        slope, p = 2 * weight[i] * (x[i] - noisy[i]), parent[i]
        dear, cheap = slope - weight[i], slope + weight[i]
        if following[i] < never:
            dear, cheap = max(dear + last[i], -never), cheap + following[i]
        if x[i] > 0:
            last[p] = max(last[p], dear)
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
    """What a unit of each node pays: the price of its children's family less that of its own, to `charge`.

    A node that costs nothing itself must not be paid for its units: its family's price is raised to that.
    """
    for i in range(parent.size):
        above = price[parent[i]] if i > 0 else 0
        if weight[i] == 0 and price[i] < above:
            price[i] = above
        charge[i] = price[i] - above
