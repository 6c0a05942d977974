"""Make the estimates of all levels consistent at once, which is not in Kuo et al.

2018: see `models.TreeMatching`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hierdp.counts.size_runs import Runs
from hierdp.record.step import Solving, Step
from models import Tree, TreeMatching


def at_once(tree: Tree, estimates: Runs, solving: Solving = Step.solve) -> Runs:
    """The consistent groups by size with the least total earth mover's distance to all estimates.

    - tree: a tree of up to three levels.
    - estimates: one row for each node, with as many groups as its children together.
    """
    model = TreeMatching(tree, [estimates.of(r) for r in range(tree.size)])
    return runs_of(model, solving("matching: all levels at once", model).solution.x)


def runs_of(model: TreeMatching, x: Any) -> Runs:
    """Convert an answer, the number of groups of at most each size at each node, to runs."""
    held = np.diff(np.asarray(x), axis=1, prepend=0)
    return Runs.from_rows((model.points[row > 0], row[row > 0]) for row in held)
