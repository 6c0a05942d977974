"""Qardaji, Yang & Li 2013, repeated: Tables 1–3, Figures 2–4, and the cells that the paper leaves empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from hierdp.execution import progress
from hierdp.reproduce.qardaji2013 import checks, counted, dimensions, figures, tables
from hierdp.reproduce.qardaji2013.settings import QUICK, Settings
from hierdp.reproduce.runs import said
from hierdp.reproduce.study import Part, Study

__all__ = ["QUICK", "Settings", "study"]


def study(settings: Settings, data: Path | None, seed: int = 0) -> Study:
    """Run the whole reproduction.

    Parameters
    ----------
    settings : Settings
    data : path, optional
        A folder with ``dpbench/``, the histograms for Figure 3. Without it there is no Figure 3; everything
        else is computed from formulas.
    seed : int
        Seed of the noise of Figure 3.
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
    there = data is not None and (data / "dpbench").is_dir()
    if data is not None and there:
        from hierdp.reproduce.qardaji2013 import curves

        made += curves.parts(settings, data, seed)
    made.append(counted.differences({name: frame for part in made for name, frame in part.frames.items()}))
    sets = ["dpbench"] if there else ["none: Figure 3 is left out"]
    return Study("Qardaji, Yang & Li 2013, reproduced", made, said(settings, seed, sets))
