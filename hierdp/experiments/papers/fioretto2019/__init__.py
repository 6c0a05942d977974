"""Fioretto & Van Hentenryck 2019, repeated: Table 1, Figures 8–10, and what the paper could not measure."""

from __future__ import annotations

from pathlib import Path

from hierdp.data.census import census
from hierdp.data.commuting import FILE
from hierdp.data.taxi import made_up_taxis, taxi
from hierdp.errors import InputError
from hierdp.experiments.papers.fioretto2019 import experiments, float_solvers, parts, without_total
from hierdp.experiments.papers.fioretto2019.parts import taxi_bound
from hierdp.experiments.papers.fioretto2019.settings import QUICK, QUICK_NOTE, Settings
from hierdp.experiments.run import present, said
from hierdp.experiments.study import Study

__all__ = ["QUICK", "QUICK_NOTE", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``taxi/`` (see `hierdp.data.taxi`) and ``us-commuting-2009-2013.parquet``. Without
    them there are no taxis, and the states' shares are synthetic. The same seed gives the same numbers,
    except times.
    """
    if data and data.is_file():
        raise InputError(f"{data} is a file; fioretto2019 takes a folder, since its data are not published")
    homes, taxis = present(data, FILE), present(data, "taxi")
    sets = {"census": census(seed, settings.groups, settings.leaves, settings.sizes, homes)}
    if settings.city_sizes:
        sets["taxis, made up"] = made_up_taxis(seed, settings.city_sizes)
    if taxis:
        sets["taxi"] = taxi(taxis, settings.taxi_sizes)
    # A few dozen regions, so that solvers can finish.
    small = sets.get("taxi") or census(seed, 100_000, 52, max(50, *settings.joint_sizes))
    runs = experiments.accuracy(sets, settings, seed)
    made = [
        parts.about(sets, homes is not None),
        *(parts.table_1(runs, name) for name in sets),
        taxi_bound(),
        float_solvers.floats(float_solvers.rows(settings, seed)),
        without_total.without_total_part(without_total.rows(settings, homes, seed)),
        parts.figure_8(experiments.scalability(small, settings, seed), settings.time_limit),
        parts.figure_9(runs),
        parts.figure_10(runs),
        parts.joint(experiments.joint(small, settings, seed)),
        parts.window(experiments.windows(small, settings, seed)),
        parts.cells(experiments.cells(small, settings, seed)),
    ]
    return Study("Fioretto & Van Hentenryck 2019, reproduced", made, said(settings, seed, sets))
