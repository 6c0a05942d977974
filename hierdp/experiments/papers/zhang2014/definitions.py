"""Other definitions of the divergence and of a released histogram, tried for the published KLDs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hierdp.execution.resume import Row
from hierdp.experiments.papers.zhang2014.experiments import Sets, publisher
from hierdp.experiments.papers.zhang2014.parts import published
from hierdp.experiments.papers.zhang2014.settings import PAPER_SIZED, PUBLISHED_METHODS, Settings
from hierdp.experiments.run import all_rows, noise_for
from hierdp.experiments.study import Part
from hierdp.metrics.histogram import kld
from models.arithmetic.arrays import Floats

if TYPE_CHECKING:
    from pandas import DataFrame

CLOSE = 1.5
"""Published and ours agree if one is at most this many times the other."""


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


def parts(sets: Sets, settings: Settings, seed: int) -> list[Part]:
    """Every published cell of sets of the paper's size by every definition, one run each."""
    cases = [
        {"data": name, "epsilon": epsilon, "method": method, "published": printed}
        for name in sets
        if name in PAPER_SIZED
        for epsilon in settings.epsilons
        for method, printed in published(name, epsilon).items()
    ]
    if not cases:
        return []
    frame = all_rows(_definitions, cases, "other definitions", (sets, settings, seed))
    texts = [f"One run: how many of {len(frame)} published cells are within a factor of {CLOSE:g}, and each."]
    frames = {"definitions_near": near(frame), "definitions": frame}
    return [Part("definitions", "Other definitions of the divergence", texts, frames)]


def near(frame: DataFrame) -> DataFrame:
    """How many cells of each definition are near the published ones, and whose."""
    import pandas as pd

    rows = []
    for name in frame.columns[4:]:
        close = frame.method[np.abs(np.log(frame[name] / frame.published)) <= np.log(CLOSE)].value_counts()
        which = ", ".join(f"{method} {close[method]}" for method in PUBLISHED_METHODS if method in close)
        rows.append({"definition": name, "cells": int(close.sum()), "which": which})
    return pd.DataFrame(rows)


def _definitions(
    sets: Sets, settings: Settings, seed: int, name: str, epsilon: float, method: str, _printed: float
) -> list[Row]:
    counts = sets[name]
    made = publisher(method, counts.size, settings)(counts, epsilon, noise_for(seed, name, epsilon, 0))
    return [{**definitions(counts, made.counts)}]
