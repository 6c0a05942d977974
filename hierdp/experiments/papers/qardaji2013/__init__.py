"""Qardaji, Yang & Li 2013, repeated: Tables 1–3, Figures 2–4, and the cells that the paper leaves empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hierdp.data.dpbench import dpbench, names
from hierdp.data.snap import histogram
from hierdp.execution import progress
from hierdp.experiments.papers.qardaji2013 import checks, counted, dimensions, figures, tables
from hierdp.experiments.papers.qardaji2013.settings import QUICK, QUICK_NOTE, Settings
from hierdp.experiments.run import said
from hierdp.experiments.study import Part, Study
from models.arithmetic.arrays import Ints

__all__ = ["QUICK", "QUICK_NOTE", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    `data` is a folder with ``dpbench/``, the histograms for Figure 3, or one of the paper's own, a file of
    `hierdp.data.snap.histogram`. Without it there is no Figure 3; all else is computed from formulas.
    """
    formulas: list[Callable[[], Sequence[Part]]] = [
        partial(tables.parts, settings),
        partial(checks.parts, settings),
        counted.parts,
        figures.parts,
        partial(dimensions.parts, settings),
    ]
    shown = progress.steps(formulas, "sections of formulas", len(formulas))
    made = [part for parts in shown for part in parts()]
    sets = histograms(data)
    if sets:
        from hierdp.experiments.papers.qardaji2013 import curves

        made += curves.parts(settings, sets, seed)
    return Study("Qardaji, Yang & Li 2013, reproduced", made, said(settings, seed, sets or [LEFT_OUT]))


LEFT_OUT = "none: Figure 3 is left out"


def histograms(data: Path | None) -> dict[str, Ints]:
    """The histograms of Figure 3: those of a folder with ``dpbench/``, or that of one file."""
    if data is None:
        return {}
    if data.is_file():
        return {data.name.partition(".")[0]: histogram(data)}
    return {name: dpbench(data / "dpbench", name) for name in names(data / "dpbench")}
