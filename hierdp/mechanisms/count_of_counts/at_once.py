"""All levels of estimates made consistent at once, beyond Kuo et al. 2018: see `models.TreeMatching`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.record import Step, Steps
from hierdp.size_runs import Runs
from models import Tree, TreeMatching


def at_once(tree: Tree, estimates: Runs, steps: Steps | None = None) -> Runs:
    """The consistent groups by size that are nearest, by earth mover's distance, to all estimates together.

    Parameters
    ----------
    tree : Tree
        Of up to three levels.
    estimates : Runs
        A row a node; its groups are as many as those of its children together.
    steps : Steps, optional
        Where the problem solved goes.
    """
    model = TreeMatching(tree, [estimates.of(r) for r in range(tree.size)])
    step = Step.solve("matching: all levels at once", model)
    if steps is not None:
        steps.add(step)
    return runs_of(model, step.solution.x)


def runs_of(model: TreeMatching, x: Any) -> Runs:
    """An answer, how many groups of each node are of each size or less, as runs."""
    held = np.diff(np.asarray(x), axis=1, prepend=0)
    return Runs.from_rows((model.points[row > 0], row[row > 0]) for row in held)
