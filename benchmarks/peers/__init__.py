"""hierdp's fast paths against other programs: time, memory, and what each gets wrong.

After ``pip install "hierdp[bench,all]"``. Every program solves the same instance in a separate process.
Stating the program is timed; imports and making the instance are not, and hierdp's kernels are compiled
beforehand. A time is the median of three turns (one, of what takes over five seconds); memory is the peak
over what was resident before. ``gap`` is what an answer costs above the proved optimum, in parts of it;
``breaks`` is the first constraint that it breaks, by more than one part in a million or by not being whole.
The benchmark `top_down` compares InfTDA as a whole with the package inf-tda.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from benchmarks.child import apart, peak
from benchmarks.instances import elements, read
from benchmarks.measuring import compiled, guarded, ratio_in_words, seconds_in_words, timed
from benchmarks.peers.contests import CONTESTS
from hierdp.bench.problems import fresh

if TYPE_CHECKING:
    from pandas import DataFrame

KEY = ["contest", "size", "program"]
MEASURED = ["elements", "seconds", "reading_seconds", "mb", "gap", "breaks"]
COLUMNS = [*KEY, *MEASURED, "failed", "python", "versions", "machine", "load"]
GIGABYTES = 20.0


def alone(name: str, size: int, entrant: str) -> dict[str, Any]:
    """Measure one program on one instance, in a process of its own."""
    guarded(GIGABYTES)
    compiled()
    contest = next(one for one in CONTESTS if one.name == name)
    model = contest.make(np.random.default_rng(1), size)
    job = contest.entrants(size)[entrant]
    job(contest.make(np.random.default_rng(2), 20))  # imports, kernels
    reading, _ = timed(lambda: read(model))
    held = peak(reset=True)
    seconds, x = timed(lambda: job(fresh(model)))
    mb = max(0.0, peak() - held)
    timings = {"elements": elements(model), "seconds": seconds, "reading_seconds": reading, "mb": mb}
    return {**timings, **judged(model, x)}


def judged(model: Any, x: Any) -> dict[str, Any]:
    """The answer's excess cost over the optimum, and the first violated constraint."""
    from solvers import solve

    if x is None:
        return {"gap": None, "breaks": "gives no answer"}
    best = solve(model)
    assert best.status == "optimal", best
    x = np.asarray(x)
    whole = x.dtype.names is None and getattr(model, "integer", True)
    near = np.rint(x) if whole and np.abs(x - np.rint(x)).max() < 1e-5 else x
    broken = model.violations(near)
    gap = float(model.objective(near) - best.objective) / max(1.0, abs(float(best.objective)))
    return {"gap": gap, "breaks": broken[0] if broken else ""}


def run(
    *,
    known: Any,
    limit: Annotated[float, "seconds for each process"] = 60,
    only: Annotated[str, "contests with this in their name"] = "",
) -> Iterator[dict[str, Any]]:
    """Rows to measure, one per program: the smallest instances of all models, then the next, …"""
    done = set(known[KEY].itertuples(index=False, name=None))
    chosen = [contest for contest in CONTESTS if only.lower() in contest.name.lower()]
    for turn, contest in product(range(max(len(one.sizes) for one in CONTESTS)), chosen):
        if turn >= len(contest.sizes):
            continue
        size = contest.sizes[turn]
        for name in (*contest.entrants(size), *(contest.cannot if turn == 0 else ())):
            if (contest.name, size, name) in done:
                continue
            why = contest.cannot.get(name)
            found = {"failed": why} if why else apart(alone, contest.name, size, name, seconds=limit)
            row = {"contest": contest.name, "size": size, "program": name, **found}
            yield {column: row.get(column) for column in [*KEY, *MEASURED, "failed"]}


def summary(frame: DataFrame) -> DataFrame:
    """The rows as a table, with the ratios to hierdp's time and to reading the input once."""
    import pandas as pd

    order = {contest.name: k for k, contest in enumerate(CONTESTS)}
    frame = frame.assign(order=frame["contest"].map(order)).sort_values(["order", "size"], kind="stable")
    ours = frame[frame["program"] == "hierdp"].set_index(["contest", "size"])["seconds"]
    made = []
    for row in frame.to_dict("records"):
        seconds, failed = row["seconds"], row["failed"]
        mine = ours.get((row["contest"], row["size"]), float("nan"))
        gap = (
            ""
            if row["gap"] is None or row["gap"] != row["gap"]
            else f"{row['gap']:.1e}".replace("0.0e+00", "0")
        )
        made.append(
            {
                "model": row["contest"],
                "elements": f"{int(row['size'] if failed else row['elements']):,}",
                "program": row["program"],
                "time": "" if failed else seconds_in_words(seconds),
                "× hierdp": "" if failed else ratio_in_words(seconds / mine),
                "× reading": "" if failed else ratio_in_words(seconds / row["reading_seconds"]),
                "MB more": "" if failed else f"{row['mb']:,.0f}",
                "gap": gap,
                "breaks, or fails by": (failed.removeprefix("RuntimeError: ") or str(row["breaks"] or ""))[
                    :80
                ].replace("|", r"\|"),
            }
        )
    return pd.DataFrame(made)
