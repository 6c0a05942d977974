"""The headline ratios, side by side with their anchors, against the committed ones; ends with 1 if one fell.

A few minutes. Each row is our work, with its proof, and an anchor's on the same instance in one process: CPU
seconds, the least of several turns, in turns, with kernels compiled. `ratio` is theirs over ours. One that is
a quarter below its committed value (`benchmarks/results/guard.parquet`) is measured once more; if it stays,
it is printed at the end. An anchor that is not installed is skipped. Nothing is written without ``--out``;
new ratios to commit: ``--out benchmarks/results/guard.parquet``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from benchmarks.instances import elements
from benchmarks.measuring import compiled, in_turns, on_cpu, version
from benchmarks.peers.contests import CONTESTS
from hierdp.bench.problems import fresh
from hierdp.mechanisms.top_down import top_down
from hierdp.privacy.noise import ExactNoise, gaussian, geometric
from hierdp.privacy.tabulated import TabulatedNoise
from hierdp.tables import flows
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
PRIVACY = (1.0, 1e-8)
"""ε and δ of the release of flows."""


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
            return repeated(lambda: source.draw(geometric("guard", 1, 0.1), zeros), many)
        return repeated(lambda: source.draw(gaussian("guard", 1.0, 5e-5), zeros), many)

    def make() -> Pair:
        return Pair(f"exact noise, {law}, a draw", "OpenDP", 1, partial(drawn, TabulatedNoise(), 1_000_000),
                    partial(drawn, ExactNoise(), 2_000))  # fmt: skip

    return "opendp", make


def release(counties: int) -> tuple[str, Callable[[], Pair]]:
    """InfTDA on made-up flows: ours from the table, with noise from tables; the authors' from all pairs."""

    def make() -> Pair:
        import pandas as pd
        from InfTDA import mechanism as authors

        noise_of, every = authors.make_gaussian_noise, counties**2

        def of_lists(**options: Any) -> Any:
            """Their noise, which in OpenDP 0.16 takes lists, but not the arrays that they pass."""
            return lambda counts: noise_of(**options)(np.asarray(counts).tolist())

        rng = np.random.default_rng(0)
        workers = np.zeros(every, np.int64)
        workers[rng.choice(every, 10 * counties, replace=False)] = rng.geometric(0.02, 10 * counties)
        county = np.array([f"c{k:05d}" for k in range(counties)])
        state = np.array([f"s{k // 60:03d}" for k in range(counties)])
        to, start = np.divmod(np.arange(every), counties)
        names = {"to_state": state[to], "from_state": state[start], "to": county[to], "from": county[start]}
        pairs = pd.DataFrame({**names, "workers": workers})
        series = pairs.set_index(list(names))["workers"].sort_index()
        axes = {"origin": ["from_state", "from"], "destination": ["to_state", "to"]}

        def ours() -> None:
            data = flows(pairs[workers > 0], axes=axes, count="workers")
            made = top_down(data, *PRIVACY, TabulatedNoise())
            assert all(step.solution.certificate for step in made.steps)

        def theirs() -> None:
            authors.make_gaussian_noise = of_lists
            authors.inf_tda(series, PRIVACY, 1)
            authors.make_gaussian_noise = noise_of

        return Pair("a release of flows, InfTDA", "inf-tda", every, partial(repeated, ours),
                    partial(repeated, theirs))  # fmt: skip

    return "inf-tda", make


PAIRS = (
    release(300),
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


def run(
    *,
    only: Annotated[str, "rows with this in their name or anchor"] = "",
    turns: Annotated[int, "of each, at most"] = TURNS,
) -> Iterator[dict[str, Any]]:
    compiled()
    known = ratios(RESULTS)
    for package, make in PAIRS:
        if not version(package):
            print(f"skipped: {package} is not installed")
            continue
        pair = make()
        if only.lower() not in f"{pair.what}, {pair.anchor}".lower():
            continue
        before = known.get((pair.what, pair.anchor))
        for _ in range(2):
            ours, theirs = map(min, in_turns(turns, pair.ours, pair.theirs, enough=SECONDS))
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
