"""The ladder of `hierdp bench write`: CPU time and memory to make, solve and prove each rung.

Each rung has a process of its own, with 8 GB of memory, which compiles the kernels on a small instance first.
*certificate*: the proof as `hierdp bench verify` repeats it, from the stored answer and witness, on a model
without cached results.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.child import apart
from benchmarks.measuring import compiled, guarded, on_cpu
from hierdp.bench.ladder import RUNGS, SIZES

GIGABYTES = 8.0
SECONDS = 600.0


def alone(name: str, size: int) -> dict[str, Any]:
    """One rung, in this process."""
    from models.instances import load_instance, save
    from solvers import solve

    guarded(GIGABYTES)
    compiled()
    model, options, form = RUNGS[name]
    small = solve(model.typical(np.random.default_rng(0), 1_000, **options))
    model.typical(np.random.default_rng(0), 1_000, **options).certificate(small.x, small.witness)
    making, made = on_cpu(lambda: model.typical(np.random.default_rng(size), size, **options))
    found = solve(made)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rung.npz"
        saving, _ = on_cpu(lambda: save(made, path, found.x, found.witness))
        megabytes = path.stat().st_size / 1e6
        stored: Any = load_instance(path)
    proving, proof = on_cpu(lambda: stored.model.certificate(stored.answer, stored.witness))
    return {
        "variables": stored.answer.size, "form": form, "optimum": float(proof.objective),
        "proved": proof.optimal, "made, CPU": making, "solved, CPU": found.cpu_seconds,
        "certificate, CPU": proving, "saved, CPU": saving, "file MB": megabytes,
    }  # fmt: skip


def run(*, most: Annotated[int, "variables"] = SIZES[-1]) -> Iterator[dict[str, Any]]:
    for name in RUNGS:
        for size in (size for size in SIZES if size <= most):
            yield {"model": name, **apart(alone, name, size, seconds=SECONDS)}
