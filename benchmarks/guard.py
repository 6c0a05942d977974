"""The headline ratios, side by side with their anchors, against the committed ones; ends with 1 if one fell.

A few minutes. Each row is our work, with its proof, and an anchor's on the same instance in one process: CPU
seconds, the least of several turns, in turns, with kernels compiled. `ratio` is theirs over ours. One that is
a quarter below its committed value (`benchmarks/results/guard.parquet`) is measured once more; if it stays,
it is printed at the end. An anchor that is not installed is skipped. To commit new ratios: ``--out
benchmarks/results/guard.parquet``.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from benchmarks import top_down
from benchmarks.child import needed
from benchmarks.instances import elements
from benchmarks.measuring import compiled, on_cpu, version
from benchmarks.peers.contests import CONTESTS
from hierdp.bench.problems import fresh
from hierdp.privacy.noise import ExactNoise
from hierdp.privacy.tabulated import TabulatedNoise
from models import (
    Chebyshev,
    CumulativeQIP,
    HierarchyQIP,
    Isotonic,
    NonNegativeInference,
    TreeChebyshev,
    TreeMatching,
    WorkloadLeastSquares,
)
from solvers import solve

if TYPE_CHECKING:
    from pandas import DataFrame

RESULTS = Path(__file__).parent / "results" / "guard.parquet"
FALL = 0.75
"""The part of a committed ratio below which it has fallen."""

ENOUGH = 0.02
"""CPU seconds of a turn: shorter work is repeated."""

TURNS = 5
"""Of each, or as many as take `SECONDS`."""

SECONDS = 15.0


@dataclass(frozen=True)
class Pair:
    """Our work and an anchor's. A job returns the CPU seconds of doing it once."""

    what: str
    anchor: str
    elements: int
    ours: Callable[[], float]
    theirs: Callable[[], float]


def repeated(job: Callable[[], Any], units: int = 1) -> float:
    """CPU seconds of a job, for each of its units; a short job is done several times."""
    spent, times = 0.0, 0
    while spent < ENOUGH:
        spent, times = spent + on_cpu(job)[0], times + 1
    return spent / times / units


def proved(model: Any) -> None:
    """Our fast path, and its certificate."""
    assert solve(fresh(model)).status == "optimal"


def by_backend(model: Any, backend: str) -> float:
    """CPU seconds of a backend, without its process's start; to the optimum that we prove."""
    found = solve(fresh(model), backend, time_limit=60)
    assert found.status in ("optimal", "feasible"), found
    return float(found.cpu_seconds)


def contest(name: str, size: int, anchor: str, package: str) -> tuple[str, Callable[[], Pair]]:
    """A pair of `peers`."""

    def make() -> Pair:
        one = next(one for one in CONTESTS if one.name == name)
        model, job = one.make(np.random.default_rng(1), size), one.entrants(0)[anchor]
        return Pair(name, anchor, elements(model), partial(repeated, partial(proved, model)),
                    partial(repeated, partial(job, model)))  # fmt: skip

    return package, make


def solver(
    model: Any, size: int, backend: str, package: str, **options: Any
) -> tuple[str, Callable[[], Pair]]:
    """A fast path and a backend."""

    def make() -> Pair:
        made = model.typical(np.random.default_rng(1), size, **options)
        return Pair(model.__name__, backend, elements(made), partial(repeated, partial(proved, made)),
                    partial(by_backend, made, backend))  # fmt: skip

    return package, make


def noise(law: str) -> tuple[str, Callable[[], Pair]]:
    """A draw from tables, and by OpenDP."""

    def drawn(source: Any, many: int) -> float:
        zeros = np.zeros(many, np.int64)
        if law == "geometric":
            return repeated(lambda: source.geometric(zeros, "guard", 1, 0.1), many)
        return repeated(lambda: source.gaussian(zeros, "guard", 1.0, 5e-5), many)

    def make() -> Pair:
        return Pair(f"exact noise, {law}, a draw", "OpenDP", 1, partial(drawn, TabulatedNoise(), 1_000_000),
                    partial(drawn, ExactNoise(), 2_000))  # fmt: skip

    return "opendp", make


def release(counties: int) -> tuple[str, Callable[[], Pair]]:
    """A whole release of made-up flows, from the file, in processes of their own: ours, and the authors'."""

    def made(job: Any, *more: str) -> float:
        import pandas as pd

        rng = np.random.default_rng(0)
        flow = rng.choice(counties**2, 10 * counties, replace=False)
        codes = {"dest": flow // counties, "origin": flow % counties}
        table = {f"{end}_county": [f"c{code:05d}" for code in code_of] for end, code_of in codes.items()}
        table |= {
            f"{end}_state": [f"s{code // 60:03d}" for code in code_of] for end, code_of in codes.items()
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "flows.parquet"
            pd.DataFrame({**table, "workers": rng.geometric(0.02, flow.size)}).to_parquet(path)
            return float(needed(job, path, *more)["cpu"])

    def make() -> Pair:
        ours, theirs = partial(made, top_down.ours, "TabulatedNoise"), partial(made, top_down.theirs)
        return Pair("a release of flows, InfTDA", "inf-tda", counties**2, ours, theirs)

    return "inf-tda", make


PAIRS = (
    release(600),
    contest("Chebyshev", 2_000, "inf-tda", "inf-tda"),
    noise("gaussian"),
    noise("geometric"),
    contest("ConstrainedInference", 100_000, "OpenDP", "opendp"),
    contest("Isotonic, L2", 1_000_000, "scikit-learn", "scikit-learn"),
    contest("Isotonic, L2", 1_000_000, "SciPy", "scipy"),
    contest("NonNegativeInference", 2_000, "SciPy, NNLS", "scipy"),
    contest("GroupMatching", 200, "SciPy, linprog", "scipy"),
    solver(WorkloadLeastSquares, 30_000, "clarabel", "clarabel"),
    solver(NonNegativeInference, 10_000, "clarabel", "clarabel"),
    solver(CumulativeQIP, 10_000, "clarabel", "clarabel", integer=False),
    solver(Isotonic, 5_000, "highs", "highspy", p=1),
    solver(Chebyshev, 10_000, "highs", "highspy"),
    solver(TreeMatching, 10_000, "highs", "highspy"),
    solver(TreeChebyshev, 30_000, "highs", "highspy"),
    solver(HierarchyQIP, 2_000, "highs", "highspy"),
)
"""The package of each anchor, and how its pair is made."""


def measured(pair: Pair, turns: int) -> tuple[float, float]:
    """The least CPU seconds of both, after one warm-up; they take turns."""
    pair.ours(), pair.theirs()
    times, until = [], time.monotonic() + SECONDS
    while len(times) < turns and (len(times) < 2 or time.monotonic() < until):
        times.append((pair.ours(), pair.theirs()))
    ours, theirs = zip(*times, strict=True)
    return min(ours), min(theirs)


def run(
    *,
    only: Annotated[str, "rows with this in their name or anchor"] = "",
    turns: Annotated[int, "of each, at most"] = TURNS,
    committed: Annotated[Path, "the ratios to compare with"] = RESULTS,
) -> Iterator[dict[str, Any]]:
    compiled()
    known = ratios(committed)
    for package, make in PAIRS:
        if not version(package):
            print(f"skipped: {package} is not installed")
            continue
        pair = make()
        if only.lower() not in f"{pair.what}, {pair.anchor}".lower():
            continue
        before = known.get((pair.what, pair.anchor))
        for _ in range(2):
            ours, theirs = measured(pair, turns)
            if before is None or theirs / ours >= FALL * before:
                break
        yield {"what": pair.what, "anchor": pair.anchor, "elements": pair.elements, "ours": ours,
               "theirs": theirs, "ratio": theirs / ours, "committed": before}  # fmt: skip


def ratios(path: Path) -> dict[tuple[str, str], float]:
    """The committed ratios; none if there is no file."""
    import pandas as pd

    if not path.exists():
        return {}
    return pd.read_parquet(path).set_index(["what", "anchor"])["ratio"].to_dict()


def summary(rows: DataFrame) -> str:
    """What has fallen.

    Raises `SystemExit` if something has.
    """
    fallen = rows[rows["ratio"] < FALL * rows["committed"].astype(float)]
    if not fallen.empty:
        said = (
            f"- {row['what']} against {row['anchor']}: {row['ratio']:.3g}, not {row['committed']:.3g}"
            for row in fallen.to_dict("records")
        )
        raise SystemExit("\nThese ratios fell by a quarter or more:\n" + "\n".join(said))
    return "No ratio fell by a quarter."
