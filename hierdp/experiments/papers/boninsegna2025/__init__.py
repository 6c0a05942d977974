"""Boninsegna & Silvestri 2025, repeated: Figures 3–6, the utility theorem, and a release for planners."""

from __future__ import annotations

from pathlib import Path

from hierdp.data.commuting import FILE, commuting
from hierdp.data.italy import italy
from hierdp.data.trips import SHARES, binary_areas, published, random_areas, trips
from hierdp.experiments.papers.boninsegna2025 import diagonal, experiments, parts
from hierdp.experiments.papers.boninsegna2025.planner import planner
from hierdp.experiments.papers.boninsegna2025.settings import QUICK, QUICK_NOTE, Settings
from hierdp.experiments.run import noise_for, present, said
from hierdp.experiments.study import Part, Study
from hierdp.mechanisms.top_down import top_down, true_table
from hierdp.privacy.conversion import PAPERS
from hierdp.tables import Flows

__all__ = ["QUICK", "QUICK_NOTE", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``us-commuting-2009-2013.parquet`` (see `hierdp.data.commuting`), or the paper's
    own file (see `hierdp.data.italy`); without either, the last synthetic set is used instead. The same seed
    gives the same numbers, except times.
    """
    sets: dict[str, Flows] = {name: published(name) for name in settings.sets}
    sets |= {f"{name}, drawn": drawn(name, seed) for name in settings.drawn}
    sparse = {name: flows for name, flows in sets.items() if "sparse" in name}
    real = real_data(data)
    sets |= real
    sparse |= real
    runs = experiments.accuracy(sets, settings, seed)
    known = {name: sets[name] for name in settings.sets} | real
    same = experiments.as_the_authors(known, settings, seed)
    shown = list(sets)[-1]
    made = [
        parts.about(sets),
        *parts.figures(runs, settings, real),
        parts.figure_6(runs, experiments.exact_seconds(sets, settings), settings),
        parts.finest(runs, same),
        *([parts.italy(same)] if "commuting" in real else []),
        parts.utility(runs, settings),
        parts.fewest(experiments.fewest(sparse, settings, seed)),
        diagonal.part(diagonal.rows(sparse, settings, seed)),
        *planned(shown, sets[shown], settings, seed),
    ]
    return Study("Boninsegna & Silvestri 2025, reproduced", made, said(settings, seed, sets))


def real_data(data: Path | None) -> dict[str, Flows]:
    """Italy's commuters if `data` is a file, those of the United States if it is a folder that has them."""
    if data is not None and data.is_file():
        return {"Italy": italy(data)}
    there = present(data, FILE)
    return {"commuting": commuting(there)} if there else {}


def drawn(name: str, seed: int) -> Flows:
    """Draw a data set of one kind from a seed, with the paper's numbers of levels and Pareto(1) flows."""
    partition, filled = name.split()
    areas = binary_areas() if partition == "binary" else random_areas(seed)
    return trips(areas, SHARES[filled], seed)


def planned(name: str, data: Flows, settings: Settings, seed: int) -> list[Part]:
    """Tables for planners, from one release by InfTDA at the middle ε."""
    epsilon = settings.epsilons[len(settings.epsilons) // 2]
    noise = noise_for(seed, name, epsilon, 0)
    made = top_down(data, epsilon, settings.delta, noise, "InfTDA", conversion=PAPERS)
    caption = f"InfTDA on {name}, ε = {epsilon:g}, δ = {settings.delta:g}, one run."
    return planner(data, true_table(data), made.table, settings.largest, caption)
