"""hierdp's fast paths against other programs: time, memory, and what each gets wrong.

Run as ``python -m benchmarks.peers [--out peers.parquet] [--minutes 10] [--only isotonic]``, after ``pip
install "hierdp[bench,all]"``; you can stop it at any time, and the same command continues; ``--report FILE``
prints its rows as Markdown. Every program solves the same instance in a separate process. Stating the program
is timed; imports and making the instance are not, and hierdp's kernels are compiled beforehand. A time is the
median of three turns (one, of what takes over five seconds); memory is the peak over what was resident
before. ``gap`` is what an answer costs above the proved optimum, in parts of it; ``breaks`` is the first
constraint that it breaks, by more than one part in a million or by not being whole. For InfTDA as a whole
against the package inf-tda see ``python -m benchmarks.top_down``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import measuring
from benchmarks.instances import elements, read
from benchmarks.measuring import ratio_in_words, seconds_in_words
from benchmarks.peers.contests import CONTESTS, Contest
from hierdp.bench.problems import fresh
from hierdp.execution import store

if TYPE_CHECKING:
    from pandas import DataFrame

KEY = ["contest", "size", "program"]
MEASURED = ["elements", "seconds", "reading_seconds", "mb", "gap", "breaks"]
COLUMNS = [*KEY, *MEASURED, "failed", "python", "versions", "machine", "load"]
GIGABYTES = 20.0


def alone(contest: Contest, size: int, entrant: str) -> dict[str, Any]:
    """Measure one program on one instance, in a separate process."""
    measuring.guarded(GIGABYTES)
    model = contest.make(np.random.default_rng(1), size)
    job = contest.entrants(size)[entrant]
    job(contest.make(np.random.default_rng(2), 20))  # imports, kernels
    reading, _ = measuring.timed(lambda: read(model))
    held = measuring.peak(reset=True)
    seconds, x = measuring.timed(lambda: job(fresh(model)))
    mb = max(0.0, measuring.peak() - held)
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


def rows(only: str, done: set[tuple[Any, ...]], seconds: float) -> Iterator[dict[str, Any]]:
    """Rows to measure, one per program: the smallest instances of all models, then the next, …"""
    chosen = [contest for contest in CONTESTS if only.lower() in contest.name.lower()]
    for turn, contest in product(range(max(len(one.sizes) for one in CONTESTS)), chosen):
        if turn >= len(contest.sizes):
            continue
        size = contest.sizes[turn]
        for name in (*contest.entrants(size), *(contest.cannot if turn == 0 else ())):
            if (contest.name, size, name) in done:
                continue
            why = contest.cannot.get(name)
            given = (contest.name, str(size), name)
            found = {"failed": why} if why else measuring.apart("benchmarks.peers", given, seconds)
            row = {"contest": contest.name, "size": size, "program": name, **found, **measuring.place()}
            yield {column: row.get(column) for column in COLUMNS}


def table(frame: DataFrame) -> DataFrame:
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


def line(row: dict[str, Any]) -> str:
    """A row as a line of text."""
    head = f"{row['contest']:<30} {row['size']:>9,} {row['program']:<18}"
    if row["failed"]:
        return f"{head} {row['failed']}"
    gap = "-" if row["gap"] is None else f"{row['gap']:.1e}"
    return f"{head} {seconds_in_words(row['seconds']):>8} {row['mb']:>8,.0f} MB {gap:>9} {row['breaks'][:60]}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("peers.parquet"), help="it grows and resumes")
    parser.add_argument("--minutes", type=float, help="begin nothing after so many")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each process")
    parser.add_argument("--only", default="", help="contests with this in their name")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="print a file's rows as Markdown, and end"
    )
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone:
        name, size, entrant = given.alone
        contest = next(one for one in CONTESTS if one.name == name)
        print(json.dumps(alone(contest, int(size), entrant)))
        return
    if given.report:
        from hierdp.reproduce.study import table_lines

        print("\n".join(table_lines(table(store.read(given.report, COLUMNS)))))
        return
    clock = measuring.Clock(given.minutes)
    with store.growing(given.out, COLUMNS, KEY) as kept:
        for row in rows(given.only, set(kept.done), given.limit):
            kept.add(row)
            print(line(row), flush=True)
            if clock.over:
                print(f"stopped after {given.minutes:g} minutes: the same command goes on")
                break


if __name__ == "__main__":
    main()
