"""Reference implementations: by enumeration, or as the papers write it. Slow, but easy to verify."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import numpy as np

from models import Tree


def monotone(n: int, low: int, high: int, last: int | None = None) -> list[tuple[int, ...]]:
    """Every non-decreasing vector of whole numbers in a box, in lexicographic order."""
    found = combinations_with_replacement(range(low, high + 1), n)
    return [x for x in found if last is None or x[-1] == last]


def isotonic_cost(x, y, w, p):
    return sum(b * abs(Fraction(a) - Fraction(c)) ** p for a, c, b in zip(x, y, w, strict=True))


def blocks(n: int) -> Iterator[list[slice]]:
    """Every way to cut n ordered entries into runs."""
    for cuts in product([False, True], repeat=n - 1):
        ends = [i + 1 for i in range(n - 1) if cuts[i]] + [n]
        yield [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def isotonic_real(y, w, p, lower=None, upper=None, last=None) -> Fraction:
    """The real optimum: over all cuts into runs, the best with each run at its own best value in the bounds.

    Some optimal answer is constant on runs: at a run's (clipped) mean or median, or at the pinned end.
    """
    n, best = len(y), None
    if last is not None:
        upper = last
    for cut in blocks(n):
        values: list[list[Fraction]] = []
        for run in cut:
            if last is not None and run.stop == n:
                values.append([Fraction(last)])
                continue
            if p == 2:
                free = [Fraction(sum(a * b for a, b in zip(y[run], w[run], strict=True)), sum(w[run]))]
            else:
                free = [Fraction(v) for v in y[run]]
            clipped = [f if lower is None else max(f, Fraction(lower)) for f in free]
            values.append(sorted({f if upper is None else min(f, Fraction(upper)) for f in clipped}))
        for chosen in product(*values):
            if all(a <= b for a, b in pairwise(chosen)):
                x = [v for v, run in zip(chosen, cut, strict=True) for _ in range(run.stop - run.start)]
                cost = isotonic_cost(x, y, w, p)
                best = cost if best is None else min(best, cost)
    return best


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every vector of `parts` whole numbers ≥ 0 with this sum, in decreasing lexicographic order."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def intopt(y: list[int], c: int, large_first: bool = False) -> list[int]:
    """The loop of IntOpt (InfTDA), as in mechanisms.md §D; it lowers small counts first, or large ones."""
    g = len(y)
    if g == 0:
        return []
    s = c - sum(y)
    z = [max(-((-s) // g), -v) for v in y]
    t = max(abs(v) for v in z)
    order = sorted(range(g), key=lambda i: (-y[i] if large_first else y[i], i))
    while True:
        for i in order:
            excess = sum(z) - s
            z[i] = min(z[i], max(z[i] - excess, -y[i], -t))
        excess = sum(z) - s
        if excess == 0:
            return [a + b for a, b in zip(y, z, strict=True)]
        can_fall = sum(1 for i in range(g) if z[i] > -y[i])
        t += max(1, excess // can_fall)


def tiny_trees(nodes: int) -> list[Tree]:
    """Every tree of depth 0 to 2 with up to this many nodes, with parents in any order."""
    found = [Tree([])]
    for first in range(1, nodes):
        found.append(Tree([[0] * first]))
        for second in range(1, nodes - first):
            found += [Tree([[0] * first, list(p)]) for p in product(range(first), repeat=second)]
    return found


def all_answers(tree: Tree, sizes: int, total: int) -> list[np.ndarray]:
    """Every feasible answer of the hierarchy QIP without windows."""
    cells = [(r, s) for r in tree.leaves.tolist() for s in range(sizes)]
    answers = []
    for held in compositions(total, len(cells)):
        leaves = np.array(held, dtype=np.int64).reshape(tree.leaves.size, sizes)
        answers.append(tree.sum_up(leaves))
    return answers


def top_down_key(tree: Tree, x: np.ndarray) -> tuple[int, ...]:
    """The key of the tie rule, larger first: the root's sizes, then each size's families, in order."""
    start, child = tree.children
    return (*x[0].tolist(), *(int(x[c, s]) for s in range(x.shape[1]) for r in range(tree.size)
                              for c in child[start[r] : start[r + 1]]))  # fmt: skip
