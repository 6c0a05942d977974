"""Least squares over all regions: the Census Bureau's published code and ours, on the same measurements.

``--bureau`` is a checkout of the repository ``uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation`` (public
domain), which is not part of hierdp. Its two passes are functions of one region or one parent, which Spark
maps over the regions. Here they are called in a loop instead, so Spark and its costs play no part; if PySpark
is missing, empty modules take its place. As in the Bureau's own runs, all regions of the last level share one
covariance matrix.

The measurements are made up: discrete Gaussian noise on marginals of heavy-tailed counts, in two of the
Bureau's schemas: households, 2 × 24 = 48 cells, and the redistricting data, 8 × 2 × 2 × 63 = 2,016 cells.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import reduce
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any
from unittest.mock import MagicMock

import numpy as np

from benchmarks.measuring import on_cpu
from models import BlockInference, Workload
from models.arithmetic.arrays import Floats
from models.synthetic import heavy_tailed, noise
from models.tree import Tree
from solvers import solve

SPARK = ("pyspark", "pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types", "pyspark.errors")
SCHEMAS: dict[str, tuple[tuple[int, ...], dict[str, tuple[int, ...]]]] = {
    "HOUSEHOLDSMALL_SCHEMA": ((2, 24), {"total": (), "hhsex": (0,), "hhtype": (1,), "detailed": (0, 1)}),
    "PL94_SCHEMA": (
        (8, 2, 2, 63),
        {
            "total": (), "hhgq": (0,), "votingage * hispanic": (1, 2), "cenrace": (3,),
            "detailed": (0, 1, 2, 3),
        },
    ),
}  # fmt: skip
"""For each of the Bureau's schemas, its categories, and the queries measured: name, attributes kept."""

CASES = (("HOUSEHOLDSMALL_SCHEMA", (3, 10)), ("HOUSEHOLDSMALL_SCHEMA", (3, 10, 30)), ("PL94_SCHEMA", (3,)))
"""The schema, and the number of children of a region on each level."""


def passes(folder: Path) -> Any:
    """The module with the Bureau's two passes."""
    if not (folder / "GLS" / "main_two_pass_alg.py").exists():
        raise SystemExit(
            f"{folder} is no checkout of uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation: "
            "nothing is compared"
        )
    sys.path.insert(0, str(folder))
    if importlib.util.find_spec("pyspark") is None:
        sys.modules.update({name: MagicMock() for name in SPARK})
        sys.modules["pyspark.sql"].Row = type("Row", (dict,), {})
    return importlib.import_module("GLS.main_two_pass_alg")


def made(schema: str, children: Sequence[int], rng: np.random.Generator) -> BlockInference:
    """Noisy answers of all queries of a schema in a tree of regions."""
    shape, queries = SCHEMAS[schema]
    above, levels = 1, []
    for number in children:
        levels.append(np.repeat(np.arange(above), number))
        above *= number
    tree, workload = Tree(levels), Workload.marginals(shape, list(queries.values()))
    true = workload.answers(np.asarray(tree.sum_up(heavy_tailed(rng, (above, workload.cells)))))
    weights = rng.choice([0.05, 0.2, 1.0], size=(tree.depth + 1, len(queries)))
    return BlockInference(tree, workload, true + noise(rng, true.shape), weights)


def codes_of(tree: Tree) -> list[str]:
    """A code for each region, longer on each level, that begins with its parent's."""
    codes = ["0"]
    for v in range(1, tree.size):
        codes.append(f"{codes[tree.parent[v]]}{v:06d}")
    return codes


def theirs(bureau: Any, schema: str, model: BlockInference) -> tuple[Floats, Mapping[int, Floats]]:
    """Every region's estimate, and its covariance except on the last level, by the Bureau's functions."""
    tree, workload, names = model.tree, model.workload, list(SCHEMAS[schema][1])
    noisy, weights = model.data
    codes, (start, child) = codes_of(tree), tree.children
    last, top = len(codes[-1]), len(codes[0])

    def measured(v: int) -> dict[str, Any]:
        answers = pairwise(workload.start.tolist())
        return {"geocode": codes[v]} | {
            name: {
                "value": noisy[v, first:end],
                "variance": 1 / weights[tree.level[v], q],
                "levels": None,
                bureau.FROM_ZERO_CONSTR: False,
            }
            for q, (name, (first, end)) in enumerate(zip(names, answers, strict=True))
        }

    def first_estimate(v: int, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = bureau.init_bottom_up_pass(schema, measured(v), last, None, **more)
        return found

    leaves, inner = tree.leaves.tolist(), tree.internal.tolist()
    one = SimpleNamespace(value=first_estimate(leaves[0])["covar_cond_g_minus"])
    inverse = bureau.inv(one.value)
    number = SimpleNamespace(value={codes[v]: int(start[v + 1] - start[v]) for v in tree.parent[leaves]})
    rows = {
        v: first_estimate(v, skip_matrix_save=True, bg_fanout_values=number, covar_cond_g_minus_block=one)
        for v in leaves
    }

    def added(v: int) -> dict[str, Any]:
        below = child[start[v] : start[v + 1]].tolist()
        total = deepcopy(rows[below[0]])
        return reduce(bureau.sum_cond_g_minus, (rows[c] for c in below[1:]), total)

    for v in reversed(inner):
        rows[v] = bureau.bottom_up_pass((first_estimate(v), added(v)), top, one, inverse)[1]
    estimates = {0: rows[0]["beta_tilde"]}
    for v in inner:
        total = added(v)
        sums = {"sum_beta_hat_cond_g_minus": total["beta_hat_cond_g_minus"]}
        at_the_end = total["covar_cond_g_minus"] is None
        if not at_the_end:
            sums["sum_covar_cond_g_minus_inv"] = bureau.inv(total["covar_cond_g_minus"])
        for c in child[start[v] : start[v + 1]].tolist():
            bureau.create_top_down_child_est(rows[c], sums, rows[v], at_the_end)
            estimates[c] = rows[c]["beta_tilde"]
    return np.array([estimates[v] for v in range(tree.size)]), {v: rows[v]["covar_tilde"] for v in inner}


def compare(bureau: Any, schema: str, children: Sequence[int], seed: int = 0) -> dict[str, Any]:
    """Time of both, and the largest differences between their estimates and their variances.

    Variances are compared of the total, a cell, and a sum of random cells, for all but the last level.
    """
    rng = np.random.default_rng(seed)
    model = made(schema, children, rng)
    solve(made(schema, (2, 2), rng))  # compiled, not timed
    mine, found = on_cpu(lambda: solve(model))
    assert found.certificate is not None
    assert found.certificate.optimal
    spent, (estimates, covariance) = on_cpu(lambda: theirs(bureau, schema, model))
    cells = model.workload.cells
    sums = [np.ones(cells), np.eye(1, cells).ravel(), rng.integers(0, 2, cells).astype(float)]
    held = np.array([[q @ matrix @ q for q in sums] for matrix in covariance.values()])
    ours = np.stack([model.variance(q) for q in sums], axis=1)[list(covariance)]
    x = np.asarray(found.x, float)
    return {
        "cells": cells, "regions": model.tree.size, "estimates apart": float(np.abs(estimates - x).max()),
        "largest estimate": float(np.abs(x).max()), "variances apart": float(np.abs(held / ours - 1).max()),
        "ours, CPU s": mine, "theirs, CPU s": spent, "ratio": spent / mine,
    }  # fmt: skip


def run(*, bureau: Annotated[Path, "a checkout of the Bureau's repository"]) -> Iterator[dict[str, Any]]:
    found = passes(bureau)
    for schema, children in CASES:
        yield compare(found, schema, children)
