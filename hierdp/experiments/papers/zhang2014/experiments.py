"""The runs, as rows of measurements that are not averaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.execution.resume import Row
from hierdp.experiments.papers.zhang2014.settings import NO_THRESHOLD, Settings
from hierdp.experiments.run import all_rows, crossed, noise_for, timed
from hierdp.mechanisms.clustering import METHODS
from hierdp.metrics.histogram import kld
from hierdp.metrics.ranges import range_error
from hierdp.privacy.noise import SimulatedNoise
from models.arithmetic.arrays import Ints

if TYPE_CHECKING:
    from pandas import DataFrame

Sets = Mapping[str, Ints]


def sizes_of(bins: int, many: int) -> list[int]:
    """Sizes of ranges, evenly spaced in logarithms from 1 to half of the bins."""
    return sorted({int(size) for size in np.rint(np.geomspace(1, max(1, bins // 2), many))})


def publisher(name: str, bins: int, settings: Settings) -> Callable[..., Any]:
    """A method with the paper's parameters, where it states them."""
    method = name.partition(" ")[0]
    options: dict[str, Any] = {}
    if method.startswith("AHP"):
        options["share"] = settings.share
    if name == NO_THRESHOLD:
        options["eta"] = 0.0
    if name == "GS":
        options["width"] = min(settings.width, bins)
    if name == "SF" and bins > settings.many_bins:
        options["clusters"] = settings.few_runs
    return partial(METHODS[method].publish, **options)


def accuracy(sets: Sets, settings: Settings, seed: int) -> tuple[DataFrame, DataFrame]:
    """KLD, squared error by bin and seconds of every run; and its squared error by size of range.

    The methods of a run draw from the same seed: the AHP variants cluster the same noisy counts.
    """
    cases = crossed(data=sets, epsilon=settings.epsilons, run=range(settings.runs))
    found = all_rows(_accuracy, cases, "error of every method", (sets, settings, seed))
    ranges = found[["data", "epsilon", "run", "method", "size", "mse"]]
    return found[found["size"] == 1].drop(columns="size").reset_index(drop=True), ranges


def _accuracy(sets: Sets, settings: Settings, seed: int, name: str, epsilon: float, run: int) -> list[Row]:
    """One row for each method and size of range."""
    warm_up(settings.methods)
    counts, rows = sets[name], []
    sizes = sizes_of(counts.size, settings.range_sizes)
    for method in settings.methods:
        if method == "SF" and run >= settings.sf_runs:
            continue
        publish = publisher(method, counts.size, settings)
        seconds, made = timed(publish, counts, epsilon, noise_for(seed, name, epsilon, run))
        found: Row = {
            "method": method, "kld": kld(counts, made.counts),
            **{f"kld_{floor:g}": kld(counts, made.counts, floor) for floor in settings.floors},
            "clusters": int(made.clusters.max()) + 1, "seconds": seconds,
        }  # fmt: skip
        errors = range_error(counts, made.counts, sizes).tolist()
        rows += [{**found, "size": size, "mse": error} for size, error in zip(sizes, errors, strict=True)]
    return rows


def tuned(sets: Sets, settings: Settings, seed: int) -> DataFrame:
    """Squared error per bin for values of each parameter, with the others at their defaults."""
    cases = [
        {"data": name, "epsilon": epsilon, "method": method, "parameter": option, "value": value}
        for name, counts in sets.items()
        if counts.size <= settings.many_bins
        for epsilon in settings.epsilons
        for method, option in PARAMETERS
        if method in settings.methods
        for value in (None, *values_of(option, counts.size))
    ]
    return all_rows(_tuned, cases, "parameters", (sets, settings, seed))


def _tuned(
    sets: Sets, settings: Settings, seed: int,
    name: str, epsilon: float, method: str, option: str, value: float | None,
) -> list[Row]:  # fmt: skip
    given: dict[str, Any] = {} if value is None else {option: value}
    errors = []
    for run in range(settings.tuned_runs):
        noise = noise_for(seed, "tuned", name, epsilon, run)
        made = METHODS[method].publish(sets[name], epsilon, noise, **given)
        errors.append(((made.counts - sets[name]) ** 2).mean())
    return [{"mse": np.mean(errors)}]


PARAMETERS = (("AHP", "eta"), ("AHP", "share"), ("SF", "clusters"), ("PHP", "share"), ("GS", "width"))
"""The parameters that are tuned, one at a time."""


def values_of(option: str, bins: int) -> list[float] | list[int]:
    """The values to try."""
    if option == "eta":
        return [0.0, 0.2, 0.5, 1.0, 2.0]
    if option == "share":
        return [0.1, 0.25, 0.5, 0.75, 0.9]
    return sorted({max(1, bins // part) for part in (4, 16, 64, 256, 1024)})


@cache
def warm_up(methods: tuple[str, ...]) -> None:
    """Compile the kernels before anything is timed."""
    counts = np.arange(64) ** 2
    for method in methods:
        publisher(method, counts.size, Settings())(counts, 1.0, SimulatedNoise(0))
