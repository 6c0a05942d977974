"""The choice of AHP's defaults: shares ε₁/ε and thresholds η on synthetic histograms. Nothing is timed.

Run as ``python -m benchmarks.ahp_defaults [--runs 2]`` (half a minute). Histograms of eight shapes, in 1,024
and 4,096 bins, with 0.1 to 1,000 people per bin and unit of noise (ε·N/n); no real data are used. A cell is
the mean over histograms of ln(squared error / that of the histogram's best pair): 0.1 is about 10 % above.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
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


def regrets(runs: int) -> dict[float, list[NDArray[np.float64]]]:
    """By people per bin: ln of the squared error of each pair over the best, one array per histogram."""
    rng = np.random.default_rng(1)
    found: dict[float, list[NDArray[np.float64]]] = {people: [] for people in PEOPLE}
    for bins in SIZES:
        for shape in shapes(rng, bins):
            for people in PEOPLE:
                counts = rng.multinomial(int(people * bins / EPSILON), shape / shape.sum())
                errors = np.array([[_error(counts, share, eta, runs) for eta in ETAS] for share in SHARES])
                found[people].append(np.log(errors / errors.min()))
    return found


def _error(counts: NDArray[np.int64], share: float, eta: float, runs: int) -> float:
    method = METHODS["AHP"]
    released = [
        method.publish(counts, EPSILON, SimulatedNoise(run), share=share, eta=eta) for run in range(runs)
    ]
    return float(np.mean([np.mean((one.counts - counts) ** 2) for one in released]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=2)
    found = regrets(parser.parse_args().runs)
    everything = np.mean([one for held in found.values() for one in held], axis=0)
    heads = "".join(f"{f'η {eta}':>9}" for eta in ETAS)
    print(f"{'ε₁/ε':>6}{heads}")
    for share, row in zip(SHARES, everything, strict=True):
        print(f"{share:6}" + "".join(f"{value:9.2f}" for value in row))
    at = SHARES.index(SHARE), ETAS.index(ETA)
    print(f"\n{'people':>8} {'best share, η':>16} {'its mean':>9} {'mean of the defaults':>21}")
    for people, held in found.items():
        mean = np.mean(held, axis=0)
        i, j = np.unravel_index(mean.argmin(), mean.shape)
        print(f"{people:8} {f'{SHARES[i]}, {ETAS[j]}':>16} {mean.min():9.2f} {mean[at]:21.2f}")


if __name__ == "__main__":
    main()
