"""Prices along a tree, read off non-negative counts, and the gap that they leave."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arithmetic.arrays import Floats, Ints
from models.arithmetic.kernels import kernel
from models.arithmetic.rounding import BLOCK
from models.witnesses.node_prices import Siblings, by_levels


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


@by_levels(named_prices)
def _named_prices_in_arrays(
    levels: list[slice], parent: Ints, x: Floats, noisy: Floats, weight: Floats, near: float, price: Floats
) -> Any:
    last, following = np.full(x.size, -np.inf), np.full(x.size, np.inf)
    slope, held, measured = 2 * weight * (x - noisy), x > near, weight != 0
    for level in reversed(levels[1:]):
        inner = following[level] != np.inf
        costly = np.where(held[level], slope[level] + np.where(inner, last[level], 0), -np.inf)
        cheap = slope[level] + np.where(inner, following[level], 0)
        siblings = Siblings(parent[level])
        siblings.gather(np.fmax, costly, last)
        siblings.gather(np.fmin, cheap, following)
    charge = np.zeros(x.size)
    for level in levels:
        inner = following[level] != np.inf
        low, high = last[level], following[level]
        above: Any = price[parent[level]] if level.start else np.zeros(1)
        below = np.where(low > high, (low + high) / 2, np.fmin(np.fmax(above - slope[level], low), high))
        below = np.where(inner, np.where(measured[level], below, above), 0)
        np.copyto(price[level], below, where=inner)
        charge[level] = below - above
    z = np.maximum(0, noisy - charge / np.where(measured, 2 * weight, 1))
    miss = (x - z) * (weight * (x + z - 2 * noisy) + charge)
    off = slope + charge
    off = np.abs(np.where(held, off, np.fmin(off, 0)))
    off[np.isnan(off)] = 0
    worst = int(off.argmax())
    return float(np.where(measured, miss, charge * x).sum()), worst if off[worst] else 0, float(off[worst])


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


@by_levels(named_whole_prices)
def _named_whole_prices_in_arrays(
    levels: list[slice], parent: Ints, x: Ints, noisy: Ints, weight: Ints, never: int, price: Ints
) -> None:
    last, following = np.full(x.size, -never), np.full(x.size, never)
    slope, held = 2 * weight * (x - noisy), x > 0
    for level in reversed(levels[1:]):
        inner = following[level] < never
        costly = slope[level] - weight[level]
        costly = np.where(inner, np.maximum(costly + last[level], -never), costly)
        cheap = slope[level] + weight[level] + np.where(inner, following[level], 0)
        siblings = Siblings(parent[level])
        siblings.gather(np.maximum, np.where(held[level], costly, -never), last)
        siblings.gather(np.minimum, cheap, following)
    for level in levels:
        above: Any = price[parent[level]] if level.start else np.zeros(1, np.int64)
        wanted = above - slope[level]
        low, high = np.maximum(last[level], wanted - weight[level]), following[level]
        inner = high < never
        high = np.where(held[level], np.minimum(high, wanted + weight[level]), high)
        least = np.where(weight[level] == 0, above, -never)
        np.copyto(price[level], np.maximum(np.minimum(np.maximum(above, low), high), least), where=inner)
    return


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


@by_levels(charges)
def _charges_in_arrays(levels: list[slice], parent: Ints, weight: Any, price: Any, charge: Any) -> None:
    for level in levels:
        above: Any = price[parent[level]] if level.start else np.zeros(1, price.dtype)
        held = price[level]
        np.copyto(held, above, where=(weight[level] == 0) & (held < above))
        charge[level] = held - above
