"""Other definitions of the divergence and of a released histogram, tried for the published KLDs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hierdp.execution.resume import Row, runs
from hierdp.mechanisms.clustering import METHODS
from hierdp.metrics.histogram import kld
from hierdp.reproduce.runs import noise_for
from hierdp.reproduce.study import Part
from hierdp.reproduce.zhang2014.experiments import Sets, usual
from hierdp.reproduce.zhang2014.settings import COUNTERPARTS, PUBLISHED_METHODS, TABLES, Settings
from models.arithmetic.arrays import Floats


def divergence(p: ArrayLike, q: ArrayLike) -> float:
    """Σ p ln(p/q) of two histograms divided by their sums, where p is positive."""
    one, other = np.asarray(p, np.float64), np.asarray(q, np.float64)
    there = one > 0
    one, other = one / one.sum(), other / other.sum()
    return float(one[there] @ np.log(one[there] / other[there]))


def definitions(true: ArrayLike, released: ArrayLike) -> dict[str, float]:
    """The divergence by each definition; the first is the study's."""
    before, after = np.asarray(true, np.float64), np.asarray(released, np.float64)
    least = 1 / before.size
    raised: Floats = np.maximum(after, least)
    both = (before > 0) & (after > 0)
    ours = kld(np.asarray(true), after)
    return {
        "ours": ours,
        "floor of 1": kld(np.asarray(true), after, 1.0),
        "floor of 1e-6": kld(np.asarray(true), after, 1e-6),
        "1 added to every bin": divergence(before + 1, np.maximum(after, 0) + 1),
        "the other way round": divergence(raised, np.maximum(before, least)),
        "the same, floor of 1": divergence(np.maximum(after, 1), np.maximum(before, 1)),
        "positive bins alone": divergence(before[both], after[both]),
        "absolute values": divergence(before, np.maximum(np.abs(after), least)),
        "sorted after release": divergence(np.sort(before), np.sort(raised)),
        "in bits": ours / float(np.log(2)),
    }


def part(sets: Sets, settings: Settings, seed: int) -> Part | None:
    """Every published cell of the rebuilt sets by every definition, one run each; None without these sets."""
    import pandas as pd

    cases = [
        (name, epsilon, method)
        for name in sets
        if name.endswith("rebuilt")
        for epsilon in settings.epsilons
        if epsilon in TABLES
        for method in PUBLISHED_METHODS
    ]
    if not cases:
        return None
    found = runs(_definitions, cases, "other definitions", (sets, settings, seed))
    frame = pd.DataFrame([row for rows in found for row in rows])
    names = list(frame.columns[4:])
    near = {name: int(_agree(frame[name], frame.published).sum()) for name in names}
    texts = [
        "KLD of one run by other definitions, for the cells that are not explained. Cells within a factor of "
        f"1.5 of the published value, of {len(frame)}: "
        + ", ".join(f"{name} {count}" for name, count in near.items())
        + ". None reproduces the table."
    ]
    return Part("definitions", "Other definitions of the divergence", texts, {"definitions": frame})


def _agree(ours: ArrayLike, published: ArrayLike) -> np.ndarray:
    return np.asarray(np.abs(np.log(np.asarray(ours) / np.asarray(published))) <= np.log(1.5))


def _definitions(
    sets: Sets, settings: Settings, seed: int, name: str, epsilon: float, method: str
) -> list[Row]:
    counts = sets[name]
    noise = noise_for(seed, name, epsilon, 0)
    made = METHODS[method].publish(counts, epsilon, noise, **usual(method, counts.size, settings))
    published = TABLES[epsilon][COUNTERPARTS[name]][PUBLISHED_METHODS.index(method)]
    row: Row = {"data": name, "epsilon": epsilon, "method": method, "published": published}
    return [row | definitions(counts, made.counts)]
