"""Audit cases of the samplers of exact noise: all their blocks, of which some numbers are seen.

The other cases draw simulated noise by default. These always draw exact noise, in several blocks as a large
release does, the last of one count. A block without noise, or two blocks with the same noise, tell apart two
tables that differ in one count: if all other counts of two blocks are equal, so is their noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import combinations

import numpy as np

from hierdp.audit.analytic_events import ZeroNoise
from hierdp.mechanisms.relations import PERSON
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import BLOCK, ExactNoise, Noise, geometric
from hierdp.record.case import EPSILON, Case
from hierdp.record.release import Release
from hierdp.record.spool import Spool

Counts = tuple[int, int, tuple[int, ...]]
"""The number of counts in a block, how many whole blocks there are before one of a single count, and the
blocks whose first count is 21, not 20."""


def _run(data: Counts, noise: Noise, source: Callable[[], Noise]) -> Release:
    """The first noisy counts of all blocks, and the differences of those that are equal otherwise."""
    import pandas as pd

    at_once, blocks, larger = data
    firsts = np.arange(blocks + 1) * at_once
    counts = np.zeros(blocks * at_once + 1, dtype=np.int64)
    counts[firsts] = 20
    counts[firsts[list(larger)]] += 1
    drawn = noise if isinstance(noise, ZeroNoise) else source()
    made = drawn.draw(geometric("counts", 1, EPSILON), counts)
    shown = np.sort(np.concatenate([firsts, firsts[:-1] + 1]))  # also counts of 0
    table = pd.DataFrame({"place": shown, "count": made.answers[shown]})
    whole = made.answers[:-1].reshape(blocks, at_once)
    same = {
        f"difference of equal blocks[{i} {j}]": int(whole[i, 0] - whole[j, 0])
        for i, j in combinations(range(blocks), 2)
        if np.array_equal(whole[i, 1:], whole[j, 1:])
    }
    return Release("noise", table, Ledger(EPSILON, 0.0, PERSON, (made.spend,)), Spool(), same)


def _from_tables() -> Noise:
    from hierdp.privacy.tabulated import TabulatedNoise

    return TabulatedNoise()


def _cases() -> Iterator[Case]:
    sources: list[tuple[str, int, int, Callable[[], Noise], int]] = [("opendp", BLOCK, 2, ExactNoise, 4)]
    if find_spec("flint") and find_spec("cryptography"):  # hierdp[noise]
        sources.append(("tables", 1 << 15, 5, _from_tables, 2))
    for name, at_once, blocks, source, fewer in sources:
        run = partial(_run, source=source)
        for block, where in ((1, "the second block"), (blocks, "the last block, which has no other")):
            tables = (at_once, blocks, ()), (at_once, blocks, (block,))
            change = f"one more in the first count of {where}"
            yield Case("noise", name, change, tables, ("place",), run, fewer=fewer)


SAMPLERS = tuple(_cases())
