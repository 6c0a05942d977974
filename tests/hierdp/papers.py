"""The papers' reproductions in small: settings, made-up data, and what each shows."""

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hierdp.data.blocks import FILE as BLOCKS
from hierdp.data.commuting import FILE as COMMUTERS
from hierdp.experiments.papers import boninsegna2025, fioretto2019, kuo2018, qardaji2013, zhang2014


@dataclass(frozen=True)
class Small:
    """A reproduction of seconds.

    - data: writes its data into a folder.
    - tables: those that are always there; figures: the parts with one.
    - timed: tables that depend on the time, besides columns of seconds.
    """

    settings: Any
    data: Callable[[Path], None]
    tables: str
    figures: str
    timed: str = ""


def taxis(folder, most, sizes):
    (folder / "taxi").mkdir()
    hoods = np.random.default_rng(0).integers(0, most, (28, sizes))
    levels = {3: hoods, 2: np.stack([hoods[:18].sum(0), hoods[18:].sum(0)]), 1: hoods.sum(0)}
    for level, counts in levels.items():
        np.save(folder / "taxi" / f"taxi_level{level}.npy", counts)


def taxis_and_blocks(folder):
    taxis(folder, 9, 40)
    (folder / "hawaiian").mkdir()
    np.save(folder / "hawaiian" / BLOCKS, np.array([5_000, 60, 20, 4, 0, 1]))


def commuters(folder):
    """Three states, seven counties."""
    counties = [("01", "01001"), ("01", "01003"), ("06", "06001"), ("06", "06037"), ("36", "36005"),
                ("36", "36047"), ("36", "36061")]  # fmt: skip
    rng = np.random.default_rng(0)
    pairs = itertools.product(counties, counties)
    rows = [(*o, *d, int(rng.integers(1, 3_000))) for o, d in pairs if rng.random() < 0.5]
    columns = ["origin_state", "origin_county", "dest_state", "dest_county", "workers"]
    pd.DataFrame(rows, columns=columns).to_parquet(folder / COMMUTERS)


def histograms(folder, **counts):
    (folder / "dpbench").mkdir()
    for name, held in counts.items():
        np.save(folder / "dpbench" / f"{name.replace('_', '-')}.npy", held)


def of_zhang(folder):
    little = zhang2014.drawn(3, 48)
    plane = little["drawn, by time"].reshape(6, 8).astype(float)
    histograms(folder, NETTRACE=little["drawn, sorted"], **{"GOWALLA-2D": plane})


def of_qardaji(folder):
    rng = np.random.default_rng(0)
    sparse = rng.integers(1, 9, 128) * (rng.random(128) < 0.1)
    histograms(folder, SPARSE=sparse, FULL=rng.integers(50, 90, 128), PLANE=rng.integers(0, 9, (16, 16)))


PAPERS = {
    "fioretto2019": Small(
        fioretto2019.Settings(
            runs=2, epsilons=(0.5, 1.0), leaves=52, sizes=12, groups=20_000, city_sizes=12, taxi_sizes=10,
            small_sizes=(2,), small_runs=2, time_limit=1.0, joint_sizes=(2,), joint_runs=1, window_runs=1,
            total_leaves=(52,), float_leaves=52, float_sizes=10, float_runs=1,
        ),
        lambda folder: taxis(folder, 30, 9),
        "data census_totals table1_census table1_taxis_made_up table1_taxi taxi_bound float_solvers "
        "float_solvers_runs without_total without_total_levels figure8 figure8_runs figure9 figure10 joint "
        "joint_runs window cells",
        "float-solvers figure8 figure9 figure10",
        "figure8 figure8_runs figure9 cells",
    ),
    "kuo2018": Small(
        kuo2018.Settings(
            runs=2, table_runs=2, coast_runs=1, nation_runs=0, epsilons=(0.5, 1.0), max_size=300,
            housing_groups=20_000, sized_groups=10_000, joint_runs=2, vertices=False,
        ),
        taxis_and_blocks,
        "data bottom_up coherence readme one_region naive_answers figure1 figure4 omniscient4 figure5 "
        "omniscient5 figure6 omniscient6 matching joint",
        "figure1 figure4 figure5 figure6",
    ),
    "boninsegna2025": Small(
        boninsegna2025.Settings(
            runs=2, epsilons=(1.0, 10.0), sets=("binary sparse",), drawn=(), exact_runs=0, solver_runs=1,
            time_limit=20.0, sparse_runs=1, sparse_epsilons=(1.0,), largest=5,
        ),
        commuters,
        "data figure3_max_error figure3_false_discovery_rate figure3_false_negative_rate "
        "figure4_binary_sparse figure5_binary_sparse_false_discovery_rate "
        "figure5_binary_sparse_false_negative_rate figure6 finest agreement italy utility proposition fewest "
        "fewest_by_level diagonal largest_within largest_between region_by_size region_largest",
        "figure3 figure4 figure5 figure6 matrix",
        "figure6",
    ),
    "zhang2014": Small(
        zhang2014.Settings(
            runs=2, epsilons=(1.0, 0.1), range_sizes=3, floors=(1.0,), sets=("NETTRACE", "GOWALLA-2D"),
            tuned_runs=1, hierarchy_runs=1, hierarchy_epsilons=(1.0,),
        ),
        of_zhang,
        "data kld orderings bound sampling gaps ranges_nettrace ranges_nettrace_spread ranges_gowalla_2d "
        "ranges_gowalla_2d_spread claims optimum tuning seconds",
        "ranges_nettrace ranges_gowalla_2d optimum",
        "seconds",
    ),
    "qardaji2013": Small(
        replace(
            qardaji2013.QUICK, runs=2, matrix_bins=16, steps=20, sampled_bins=2**9, break_even_bins=45,
            curve_queries=20, curve_sizes=3,
        ),
        of_qardaji,
        "table1 table2 table2_1024 table3 sampled algorithms ragged wavelet figure2 figure2_best budgets "
        "figure4 figure4_best propositions break_even until_45 figure3 profiles figure3_boxes repairs "
        "repairs_spread",
        "figure2 figure4 figure3 figure3-profiles figure3-boxes repairs",
    ),
}  # fmt: skip


@cache
def folder_of(paper):
    """A folder with its data, for this process."""
    held = tempfile.TemporaryDirectory(prefix="hierdp-")
    PAPERS[paper].data(Path(held.name))
    _HELD.append(held)
    return Path(held.name)


_HELD = []


@cache
def made(paper, seed=0):
    """The study in small on its data."""
    return import_module(f"hierdp.experiments.papers.{paper}").study(
        PAPERS[paper].settings, folder_of(paper), seed
    )


def frames(study):
    """All tables by name."""
    return {name: frame for part in study.parts for name, frame in part.frames.items()}
