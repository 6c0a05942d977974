"""Zhang et al. 2014, repeated: Tables 2–4, Figures 2–5, and the gain by optimal clustering."""

from __future__ import annotations

from pathlib import Path

from hierdp.experiments.papers.zhang2014 import (
    definitions,
    experiments,
    hierarchical,
    optimum,
    parts,
    theorems,
)
from hierdp.experiments.papers.zhang2014.bound import bound
from hierdp.experiments.papers.zhang2014.data import histograms
from hierdp.experiments.papers.zhang2014.settings import QUICK, QUICK_NOTE, Settings
from hierdp.experiments.run import said
from hierdp.experiments.study import Study

__all__ = ["QUICK", "QUICK_NOTE", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``dpbench/`` (see `hierdp.data.dpbench`), or a file of counts. Missing data sets
    are left out; if all are missing, two synthetic histograms are used. The same seed gives the same numbers,
    except times.
    """
    sets = histograms(data, settings.sets, seed)
    runs, ranges = experiments.accuracy(sets, settings, seed)
    made = [
        parts.about(sets),
        parts.tables(runs, settings),
        parts.orderings(runs, settings),
        bound(runs, sets, settings, seed),
        *definitions.parts(sets, settings, seed),
        theorems.part(sets, settings, seed),
        *parts.figures(ranges, settings),
        parts.claims(ranges),
        optimum.optimum(optimum.rules(sets, settings, seed), settings),
        *parts.tuning(experiments.tuned(sets, settings, seed), settings),
        *hierarchical.parts(settings, data, seed),
        parts.seconds(runs),
    ]
    return Study("Zhang et al. 2014, reproduced", made, said(settings, seed, sets))
