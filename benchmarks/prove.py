"""Proofs of other libraries' answers to problems of a million numbers, beside the time that these took.

Medians of the CPU seconds of several turns of both, in one process, with kernels compiled. A proof begins
with the library's answer and ends with the certificate, without a search. The libraries: ``pip install
scikit-learn kmeans1d``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import compiled, interleaved, version
from models import Certificate, adapters

Solve = Callable[[], Any]
Claim = Callable[[Any], adapters.Claim]


def problems(rng: Any, size: int) -> Iterator[tuple[str, str, str, Solve, Claim]]:
    """Library, function, data; how it answers, and the claim of an answer."""
    rising = np.arange(size) + rng.normal(0, size / 10, size)
    weights, counts = rng.uniform(1, 2, size), np.rint(rising).astype(np.int64)
    kinds = (("floats", rising, None), ("floats, weights", rising, weights), ("whole", counts, None))
    for data, y, w in kinds:

        def scipy(y: Any = y, w: Any = w) -> Any:
            from scipy.optimize import isotonic_regression

            return isotonic_regression(y, weights=w).x

        def sklearn(y: Any = y, w: Any = w) -> Any:
            from sklearn.isotonic import isotonic_regression

            return isotonic_regression(y, sample_weight=w)

        def monotone(x: Any, y: Any = y, w: Any = w) -> adapters.Claim:
            return adapters.isotonic_regression(x, y, w)

        yield "scipy", "optimize.isotonic_regression", data, scipy, monotone
        yield "scikit-learn", "isotonic.isotonic_regression", data, sklearn, monotone
    values = rng.normal(0, 10, size)

    def cluster() -> Any:
        import kmeans1d

        return kmeans1d.cluster(values.tolist(), 4).clusters

    yield "kmeans1d", "cluster", "floats, k = 4", cluster, lambda x: adapters.kmeans1d(x, values, 4)
    others = rng.normal(1, 12, size)
    for data, w in (("floats", None), ("floats, weights", weights)):

        def distance(w: Any = w) -> Any:
            from scipy.stats import wasserstein_distance

            return wasserstein_distance(values, others, w)

        def transport(x: Any, w: Any = w) -> adapters.Claim:
            return adapters.wasserstein_distance(x, values, others, w)

        yield "scipy", "stats.wasserstein_distance", data, distance, transport


def proof_of(claim: Claim, x: Any) -> Certificate:
    """The proof of a library's answer, from what the library returned."""
    return claim(x).certificate()


def run(
    size: Annotated[int, "numbers of each problem"] = 1_000_000,
    runs: Annotated[int, "turns of which the medians are taken"] = 5,
    seed: int = 0,
) -> Iterator[dict[str, Any]]:
    """One row a function and kind of data."""
    compiled()
    for library, function, data, solve, claim in problems(np.random.default_rng(seed), size):
        if not version(library):
            continue
        x = solve()
        proof = proof_of(claim, x)
        theirs, ours = interleaved(runs, solve, partial(proof_of, claim, x), clock=time.process_time)
        yield {
            "library": library, "version": version(library), "function": function, "data": data, "size": size,
            "proved": proof.optimal, "CPU s": theirs, "proof, CPU s": ours, "ratio": ours / theirs,
        }  # fmt: skip
