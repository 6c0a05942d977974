"""Run all comparisons; fill the pages from them.

    python -m benchmarks.which_wins --data ../shared/data                # all, into benchmarks/results
    python -m benchmarks.which_wins --only histograms --runs 2           # one kind of table, fewer runs
    python -m benchmarks.which_wins --pages docs                         # fill and draw from the results
    python -m benchmarks.which_wins --table epsilon                      # print a table of the results

Seeded; all noise is simulated and independent.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.which_wins import flows, histograms, sizes
from benchmarks.which_wins.figures import FIGURES, drawn
from benchmarks.which_wins.page import TABLES, filled, table
from benchmarks.which_wins.rows import COLUMNS

RESULTS = Path(__file__).parents[1] / "results" / "which_wins"
PAGES = ("which-wins-where.md", "guide/choose.md")

ORDER = (
    "taxi", "flights", "households", "census", "64 leaves", "New England", "Northeast",
    *histograms.SETS, histograms.MAP,
)  # fmt: skip
"""The data sets, in the order of the tables."""

KINDS: dict[str, tuple[Callable[[Path, int], list[Any]], Callable[..., Any]]] = {
    "sizes": (sizes.cases, sizes.errors),
    "flows": (lambda data, _: flows.cases(data), flows.errors),
    "histograms": (histograms.cases, histograms.errors),
}


def measure(kind: str, data: Path, runs: int, seed: int, share: tuple[int, int], file: Path) -> None:
    """Measure a share of the cases of a kind of table, into a file that grows; cases in it are not repeated.

    The first row of a case has its seconds.
    """
    import pandas as pd

    cases, errors = KINDS[kind]
    done = pd.read_parquet(file) if file.exists() else pd.DataFrame(columns=[*COLUMNS, "seconds"])
    last = done.groupby(["figure", "data", "at", "epsilon"], dropna=False).run.max()
    known = [(*key, most) for key, most in last.items()]
    for case in cases(data, seed)[share[0] :: share[1]]:
        figure, at = getattr(case, "figure", ""), float(getattr(case, "at", math.nan))
        started = time.perf_counter()
        if any(_same(one, (figure, case.data, at, case.epsilon, runs - 1)) for one in known):
            continue
        rows = list(errors(case, runs, seed))
        seconds = time.perf_counter() - started
        here = pd.DataFrame([{**one, "seconds": 0.0 if k else seconds} for k, one in enumerate(rows)])
        done = here if done.empty else pd.concat([done, here], ignore_index=True)
        done.to_parquet(file, index=False)
        print(f"{kind}: {figure} {case.data}, ε = {case.epsilon:g}: {seconds:.0f} s", flush=True)


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two cases are the same; a missing number is equal to itself."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def read(results: Path = RESULTS) -> Any:
    """All rows in the folder, in the order of the tables, whatever the order in which they were measured."""
    import pandas as pd

    rows = pd.concat([pd.read_parquet(path) for path in sorted(results.glob("*.parquet"))], ignore_index=True)
    rank = {name: k for k, name in enumerate(ORDER)}
    down = rows["at"].where(rows.figure != "density", -rows["at"])  # from dense to sparse
    keys = {
        "kind": rows.kind,
        "rank": rows.data.map(rank).fillna(len(rank)),
        "at": down,
        "epsilon": rows.epsilon,
    }
    order = pd.DataFrame(keys).sort_values(list(keys), kind="stable").index
    return rows.loc[order].reset_index(drop=True)


def main() -> None:
    """Run, write, fill, draw."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--data", type=Path, default=Path("../shared/data"))
    asked.add_argument("--results", type=Path, default=RESULTS)
    asked.add_argument("--runs", type=int, default=10)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--only", choices=list(KINDS), action="append")
    asked.add_argument("--share", default="0/1", help="measure every n-th case from the i-th on: i/n")
    asked.add_argument("--pages", type=Path, help="a folder of pages to fill and draw, without runs")
    asked.add_argument(
        "--table", nargs="?", const="", help="print a table from the results; without a name: the names"
    )
    given = asked.parse_args()
    if given.table is not None:
        print(table(given.table, read(given.results)) if given.table in TABLES else "\n".join(TABLES))
        return
    first, many = (int(part) for part in given.share.split("/"))
    if given.pages is None:
        given.results.mkdir(parents=True, exist_ok=True)
        for kind in given.only or KINDS:
            part = "" if many == 1 else f"-{first}-of-{many}"
            file = given.results / f"{kind}{part}.parquet"
            measure(kind, given.data, given.runs, given.seed, (first, many), file)
        return
    rows = read(given.results)
    for name in PAGES:
        page = given.pages / name
        page.write_text(filled(page.read_text(encoding="utf-8"), rows), encoding="utf-8")
    for name, x in FIGURES.items():
        drawn(rows[(rows.figure == name) & (rows.metric == sizes.EMD)], name, x).savefig(
            given.pages / f"which-wins-{name}.png", dpi=110
        )


if __name__ == "__main__":
    main()
