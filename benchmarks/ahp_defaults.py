"""The choice of AHP's defaults: shares ε₁/ε and thresholds η on synthetic histograms. Nothing is timed.

Half a minute. Histograms of eight shapes, in 1,024 and 4,096 bins, with 0.1 to 1,000 people per bin and unit
of noise (ε·N/n); no real data are used. A cell is the mean over histograms of ln(squared error / that of the
histogram's best pair): 0.1 is about 10 % above.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hierdp.mechanisms.clustering import METHODS
from hierdp.mechanisms.clustering.ahp import ETA, SHARE
from hierdp.privacy.noise import SimulatedNoise

SHARES = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
ETAS = (0.0, 0.1, 0.35, 0.6, 1.0, 1.5)
SIZES = (1_024, 4_096)
PEOPLE = (0.1, 1.0, 10.0, 100.0, 1_000.0)
EPSILON = 0.1


def shapes(rng: np.random.Generator, bins: int) -> Iterator[NDArray[np.float64]]:
    """Zipf laws in random order, a bell, a few non-empty bins, steps, a lognormal, equal bins."""
    ranks = np.arange(1, bins + 1)
    for power in (0.5, 1.0, 1.5):
        yield rng.permutation(ranks**-power)
    yield np.exp(-(np.linspace(-4, 4, bins) ** 2) / 2)
    few = np.zeros(bins)
    few[rng.choice(bins, bins // 20, replace=False)] = rng.pareto(1, bins // 20) + 0.1
    yield few
    yield np.repeat(rng.pareto(1, bins // 32), 32)
    yield rng.lognormal(0, 1, bins)
    yield np.ones(bins)


def run(*, runs: int = 2) -> Iterator[pd.DataFrame]:
    """By histogram and pair: ln of the squared error over that of the best pair."""
    rng = np.random.default_rng(1)
    for bins in SIZES:
        for shape in shapes(rng, bins):
            for people in PEOPLE:
                counts = rng.multinomial(int(people * bins / EPSILON), shape / shape.sum())
                rows = pd.DataFrame(product(SHARES, ETAS), columns=["share", "eta"])
                errors = np.array([_error(counts, share, eta, runs) for share, eta in rows.to_numpy()])
                yield rows.assign(bins=bins, people=people, regret=np.log(errors / errors.min()))


def _error(counts: NDArray[np.int64], share: float, eta: float, runs: int) -> float:
    method = METHODS["AHP"]
    released = [
        method.publish(counts, EPSILON, SimulatedNoise(run), share=share, eta=eta) for run in range(runs)
    ]
    return float(np.mean([np.mean((one.counts - counts) ** 2) for one in released]))


def summary(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    mean = rows.pivot_table("regret", "share", "eta")
    by = rows.groupby(["people", "share", "eta"]).regret.mean().unstack(["share", "eta"])
    best = pd.DataFrame({
        "people": by.index,
        "best share, η": [f"{share}, {eta}" for share, eta in by.idxmin(axis=1)],
        "its mean": by.min(axis=1).round(2),
        "mean of the defaults": by[SHARE, ETA].round(2),
    })  # fmt: skip
    return {"ε₁/ε by η": mean.round(2).add_prefix("η ").reset_index(names="ε₁/ε"), "the best pairs": best}
