"""mbi's estimate of a region's table beside ours, from the same noisy margins: errors, loss and time.

Where mbi 2.0 is installed. The table is Vermont's persons by county, group and age (224 cells); all margins
are measured with the same noise. mbi's `MirrorDescent` and our `WorkloadLeastSquares` minimize the same
squares over tables without negative counts; mbi estimates its total beforehand. It computes in float64, as it
advises, with its default of 1,000 iterations and with 20,000. Each draw is given to one after the other, in
turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from benchmarks.measuring import DATA, data_file
from hierdp import Measurements
from models import Workload, WorkloadLeastSquares
from solvers import solve

KEYS = ("county", "group", "age")
MARGINS = [axes for size in range(4) for axes in combinations(range(3), size)]
SHOWN = {"total": (), "counties": (0,), "group x age": (1, 2), "cells": (0, 1, 2)}


def measured(
    true: np.ndarray, names: list[list[Any]], sd: float, seed: int
) -> tuple[Measurements, np.ndarray]:
    """Noisy margins as measurements, and as one row of answers in the order of `MARGINS`."""
    rng, frames, answers = np.random.default_rng(seed), [], []
    for axes in MARGINS:
        sums = true.sum(axis=tuple({0, 1, 2} - set(axes))).ravel()
        noisy = sums + np.rint(rng.normal(0, sd, sums.size)).astype(int)
        keys = pd.DataFrame(product(*(names[axis] for axis in axes)), columns=[KEYS[axis] for axis in axes])
        frames.append(keys.assign(persons=noisy) if axes else pd.DataFrame({"persons": noisy}))
        answers.append(noisy)
    table = pd.concat([frames[-1], *frames[:-1]], ignore_index=True)  # the first names all categories
    return Measurements.from_frame(table, list(KEYS), "persons", standard_error=sd), np.concatenate(answers)


def by_mbi(found: Measurements, shape: tuple[int, ...], iterations: int) -> np.ndarray:
    """mbi's estimate."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import mbi

    domain = mbi.Domain.fromdict({key: len(names) for key, names in found.categories.items()})
    estimate = mbi.estimation.MirrorDescent().estimate(domain, found.to_mbi(), iters=iterations)
    return np.asarray(estimate.project(KEYS).datavector()).reshape(shape)


def by_hierdp(answers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Ours, proved."""
    workload = Workload.marginals(shape, MARGINS)
    found = solve(WorkloadLeastSquares(workload, [answers], np.ones(len(MARGINS))))
    assert found.status == "optimal", found
    return np.asarray(found.x, float).reshape(shape)


def run(
    *,
    data: Annotated[Path, "a folder with us-precincts-2020.parquet"] = DATA,
    runs: int = 10,
    sd: Annotated[float, "standard error of the noise"] = 10.0,
) -> Iterator[dict[str, Any]]:
    people = pd.read_parquet(data_file(data, "us-precincts-2020.parquet")).query("state == 'VT'")
    names = [sorted(people[key].unique()) for key in KEYS]
    cells = pd.MultiIndex.from_product(names, names=KEYS)
    true = people.groupby(list(KEYS)).persons.sum().reindex(cells, fill_value=0).to_numpy()
    true = true.reshape([len(each) for each in names])
    workload = Workload.marginals(true.shape, MARGINS)
    for number in range(runs + 1):  # the first, in which both compile, is not kept
        found, answers = measured(true, names, sd, number)
        ways = {
            f"mbi, {iterations} iterations": partial(by_mbi, found, true.shape, iterations)
            for iterations in (1_000, 20_000)
        }
        ways["hierdp"] = partial(by_hierdp, answers, true.shape)
        for name in list(ways)[:: 1 if number % 2 else -1]:
            start = time.perf_counter(), time.process_time()
            table = ways[name]()
            seconds, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
            away = table - true
            errors = {
                of: float(np.sqrt((away.sum(axis=tuple({0, 1, 2} - set(axes))) ** 2).mean()))
                for of, axes in SHOWN.items()
            }
            loss = float(((workload.answers(table.ravel()) - answers) ** 2).sum())
            if number:
                yield {"run": number, "by": name, **errors, "loss": loss, "seconds": seconds, "cpu": cpu}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby("by")[[*SHOWN, "loss", "seconds", "cpu"]].median().round(3).reset_index()
