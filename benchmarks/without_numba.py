"""Certificates in plain NumPy, beside the same with compiled kernels, of each kind of instance.

Medians of the CPU seconds of several turns of both, in one process: one fast answer and its witness, which a
fresh model checks.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from statistics import median
from typing import Annotated, Any

import numpy as np

from benchmarks.instances import elements, families
from benchmarks.measuring import compiled
from hierdp.bench.problems import fresh
from models import Certificate
from models.arithmetic.kernels import Kernel, _interpreted
from solvers import fast


def both(runs: int, job: Callable[[], Any]) -> tuple[float, float]:
    """Median CPU seconds of a job with compiled kernels and as if Numba were not installed, in turns."""
    job()  # all its kernels exist now
    kernels = [one for one in gc.get_objects() if type(one) is Kernel]
    ways = [one.compiled() for one in kernels], [_interpreted(one._arrays) for one in kernels]
    taken: tuple[list[float], list[float]] = [], []
    for turn, (way, seconds) in product(range(runs + 1), zip(ways, taken, strict=True)):
        for one, run in zip(kernels, way, strict=True):
            one._compiled = run
        began = time.process_time()
        job()
        if turn:
            seconds.append(time.process_time() - began)
    for one, run in zip(kernels, ways[0], strict=True):
        one._compiled = run
    return median(taken[0]), median(taken[1])


def proof(model: Any, x: Any, witness: Any) -> Certificate:
    """The certificate of an answer, by a model that has computed nothing before."""
    found: Certificate = fresh(model).certificate(x, witness)
    return found


def run(
    sizes: Annotated[tuple[int, ...], "elements of each problem"] = (100_000,),
    runs: Annotated[int, "turns of which the medians are taken"] = 5,
    only: Annotated[str, "families whose name contains this"] = "",
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """One row a family and size."""
    compiled()
    for size in sizes:
        for family in families():
            if only not in family.name:
                continue
            model = family.make(np.random.default_rng(seed), size)
            if (most := getattr(model, "random_up_to", size)) < size:
                model = family.make(np.random.default_rng(seed), most)
            x, witness = fast.answer(model)
            certify = partial(proof, model, x, witness)
            with_numba, without = both(runs, certify)
            yield {
                "family": family.name, "elements": elements(model), "proved": certify().optimal,
                "compiled, CPU s": with_numba, "NumPy, CPU s": without, "ratio": without / with_numba,
            }  # fmt: skip
