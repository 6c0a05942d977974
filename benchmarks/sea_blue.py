"""SEA BLUE's own code (Awan et al., arXiv 2409.04387) beside ours, on the same noisy answers.

Get AproxBLUE.py and the folder discretegauss from the repository JordanAwan/SeaBlue. The code runs in a
process of its own. It adds up no regions, so the counties of a state are an attribute of it: the same tree.
All answers of a table need one variance. docs/intervals.md has the coverage of SEA BLUE's intervals from
`python -m benchmarks intervals`, around the estimates and variances that are compared here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from benchmarks.measuring import DATA, data_file
from models import BlockInference, Tree, Workload
from solvers import fast

THEIRS = """
import json, sys, time, types
for name in ("pympler", "pympler.asizeof", "pympler.tracker"):  # measures memory
    sys.modules[name] = types.ModuleType(name)
sys.modules["pympler"].tracker = None
sys.modules["pympler.asizeof"].asizeof = lambda _: 0
sys.path.insert(0, sys.argv[1])
import AproxBLUE as code, numpy as np
sizes, answers, variance = json.load(sys.stdin)
held = code.Histogram(sizes, 0, len(sizes), 1, len(sizes))
keys = ["-".join(map(str, key)) for key in held.variables.tolist()]
held.noised_data = [answers[key] for key in keys]
held.true_data, held.variance = np.zeros(len(keys)), np.array([variance[key] for key in keys])
start = time.process_time()
means, variances, _ = code.run_aggregation_step(held)
found, _ = code.down_pass(held, means, variances)
table, held, _ = code.analysis(found, held)
errors, _, _ = code.variance_generation(held)
spent = time.process_time() - start
estimate = dict(zip((keys[i] for i in table.index), map(float, table["Final_Estimate"])))
json.dump([estimate, dict(zip(keys, map(float, errors))), spent], sys.stdout)
"""

WEIGHTS = {
    "equal": [[1, 1, 1, 1], [1, 1, 1, 1]],
    "by table": [[2, 1, 4, 1], [1, 0.5, 2, 1]],
    "no totals and ages by county": [[2, 1, 4, 1], [0, 0.5, 0, 1]],
}
"""Of the state's and the counties' answers: the total, groups, ages, all cells; in 1/100."""


def run(
    *,
    code: Annotated[Path, "a folder with AproxBLUE.py"],
    data: Annotated[Path, "a folder with the data"] = DATA,
    state: Annotated[str, "of the precincts"] = "RI",
    runs: Annotated[int, "draws of noise"] = 10,
) -> Iterator[dict[str, Any]]:
    if not (code / "AproxBLUE.py").is_file():
        raise SystemExit(f"{code} has no AproxBLUE.py: give the folder of SEA BLUE's code (--code)")
    rows = pd.read_parquet(data_file(data, "us-precincts-2020.parquet"))
    rows = rows[rows["state"] == state]
    cells = rows.pivot_table("persons", "county", ["group", "age"], "sum", fill_value=0, sort=True)
    counts = cells.to_numpy(np.int64)
    shape = tuple(level.size for level in cells.columns.levels)
    sizes = [len(counts), *shape]
    tree = Tree([np.zeros(len(counts), np.int64)])
    workload = Workload.marginals(shape, [(), (0,), (1,), (0, 1)])
    true = np.asarray(workload.answers(np.asarray(tree.sum_up(counts))), float)
    asked = [(0, 0), *product(range(1, sizes[1] + 1), [0]), *product([0], range(1, sizes[2] + 1))]
    asked += product(range(1, sizes[1] + 1), range(1, sizes[2] + 1))
    keys = [["-".join(map(str, (node, *one))) for one in asked] for node in range(tree.size)]
    for name, run_ in product(WEIGHTS, range(runs)):
        weights = np.array(WEIGHTS[name], float) / 100
        variance = np.asarray(workload.by_answer(1 / np.maximum(weights, 1e-9)), float)[tree.level]
        noise = np.random.default_rng(run_).normal(size=true.shape) * np.sqrt(np.minimum(variance, 1e4))
        noisy = np.rint(true + noise).astype(np.int64)
        model = BlockInference(tree, workload, noisy, weights)
        ours = np.asarray(workload.answers(np.asarray(fast.answer(model)[0], float)), float)
        exact = np.array([model.variance(row) for row in workload.matrix.toarray()]).T
        job = [
            dict(zip(np.ravel(keys), map(float, np.ravel(held)), strict=True)) for held in (noisy, variance)
        ]
        done = subprocess.run(
            [sys.executable, "-c", THEIRS, str(code)],
            input=json.dumps([sizes, *job]),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        estimate, errors, spent = json.loads(done.stdout)
        theirs, their_variance = (
            np.array([[of[key] for key in row] for row in keys]) for of in (estimate, errors)
        )
        half = float(ndtri(0.95)) * np.sqrt(their_variance)
        yield {
            "state": state,
            "weights": name,
            "run": run_,
            "answers": true.size,
            "estimates_differ": float(np.abs(ours - theirs).max()),
            "variances_differ": float(np.abs(their_variance / exact - 1).max()),
            "covered": float((np.abs(theirs - true) <= half).mean()),
            "their_seconds": round(spent, 3),
        }
