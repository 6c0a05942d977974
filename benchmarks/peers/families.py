"""Non-negative least squares, a parent at a time: cvxpy with Clarabel and ours, on the same families.

The families are those of TopDown in one pass: noisy answers to all four marginals, the parent's table as the
constraint, non-negative cells. The parents' tables are the true ones, so that the families do not depend on
the solver.

cvxpy gets the program as its users would write it, built anew for each parent; Clarabel has its default
tolerances. Its answer's cells below 0 are as the solver left them. private-pgm, which estimates consistent
marginals from the same measurements, is not on the package index; it is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import cvxpy as cp
import numpy as np
import pandas as pd

from benchmarks.measuring import DATA, on_cpu
from benchmarks.tabulation import DELTA, EPSILON, FILE, Nation, measured
from hierdp.mechanisms.tabulation.problem import Measured
from hierdp.privacy.conversion import rho_of
from models import WorkloadLeastSquares
from models.arithmetic.arrays import Floats
from solvers import solve


def families(nation: Nation, measurements: Measured) -> Iterator[tuple[str, WorkloadLeastSquares]]:
    """Each parent's problem, by the level of its children."""
    regions, tree = nation.regions, nation.regions.tree
    for level in range(tree.depth):
        for v, children in enumerate(measurements.children(level)):
            weights = measurements.weights[level + 1]
            noisy, parent = measurements.noisy[level + 1][children], nation.true[level][v]
            yield (regions.levels[level + 1], WorkloadLeastSquares(nation.workload, noisy, weights, parent))


def by_cvxpy(model: WorkloadLeastSquares) -> Floats:
    """The program in cvxpy, solved by Clarabel."""
    noisy, weights = model.data
    x = cp.Variable(model.shape, nonneg=True)
    scale = np.sqrt(model.workload.by_answer(weights).astype(float))
    away = x @ model.workload.matrix.T - noisy
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(cp.multiply(scale, away))), [cp.sum(x, axis=0) == np.asarray(model.parent)]
    )
    problem.solve("CLARABEL")
    return np.asarray(x.value)


def compare(nation: Nation, seed: int = 0) -> Iterator[dict[str, Any]]:
    """A row for each parent: CPU seconds of both, and what Clarabel's answer costs and violates."""
    measurements, _ = measured(nation, 0, rho_of(EPSILON, DELTA), seed)
    for level, model in families(nation, measurements):
        own, mine = on_cpu(lambda: solve(model))  # noqa: B023
        peer, theirs = on_cpu(lambda: by_cvxpy(model))  # noqa: B023
        assert mine.objective is not None
        assert mine.certificate is not None
        best = float(mine.objective)
        yield {
            "children": level, "cells": model.answer_size, "proved": mine.certificate.optimal,
            "objective apart": (float(model.objective(theirs)) - best) / max(best, 1.0),
            "lowest cell": float(theirs.min()),
            "sums apart": float(np.abs(theirs.sum(axis=0) - np.asarray(model.parent)).max()), "ours": own,
            "theirs": peer,
        }  # fmt: skip


def run(
    *,
    states: Annotated[tuple[str, ...], "postal codes"] = ("VT",),
    data: Annotated[Path, f"a folder with {FILE}"] = DATA,
) -> Iterator[pd.DataFrame]:
    list(compare(Nation.read(data, states[:1])))  # compiled, not timed
    yield pd.DataFrame(compare(Nation.read(data, states)))


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    by = rows.groupby("children", sort=False)
    found = pd.DataFrame(
        {
            "parents": by.size(), "cells, median": by.cells.median(), "proved": by.proved.sum(),
            "objective apart, most": by["objective apart"].agg(lambda one: one.abs().max()),
            "lowest cell": by["lowest cell"].min(), "sums apart, most": by["sums apart"].max(),
            "ours, CPU ms": 1e3 * by.ours.median(), "cvxpy, CPU ms": 1e3 * by.theirs.median(),
            "ratio, median": (rows.theirs / rows.ours).groupby(rows.children, sort=False).median(),
        }
    )  # fmt: skip
    return found.reset_index()
