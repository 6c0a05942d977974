"""All levels of estimates made consistent at once, beyond Kuo et al. 2018: see `models.TreeMatching`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.counts.size_runs import Runs
from hierdp.record.step import Solving, Step
from models import Tree, TreeMatching


def at_once(tree: Tree, estimates: Runs, solving: Solving = Step.solve) -> Runs:
    """The consistent groups by size that are nearest, by earth mover's distance, to all estimates together.

    Parameters
    ----------
    tree : Tree
        Of up to three levels.
    estimates : Runs
        A row a node; its groups are as many as those of its children together.
    solving : callable
        What solves the problem.
    """
    model = TreeMatching(tree, [estimates.of(r) for r in range(tree.size)])
    return runs_of(model, solving("matching: all levels at once", model).solution.x)


def runs_of(model: TreeMatching, x: Any) -> Runs:
    """An answer, how many groups of each node are of each size or less, as runs."""
    held = np.diff(np.asarray(x), axis=1, prepend=0)
    return Runs.from_rows((model.points[row > 0], row[row > 0]) for row in held)
