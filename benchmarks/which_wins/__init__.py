"""Which method wins where: all comparisons, a file for each kind of table; the page is filled from these.

``--only sizes --out benchmarks/results/which_wins/sizes.parquet`` adds the cases that the file lacks.

``--pages docs`` fills and draws from the committed files without runs, ``--table epsilon`` prints one of
their tables, and ``--table names`` lists these. Seeded; all noise is simulated and independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from benchmarks.measuring import DATA, timed
from benchmarks.which_wins import anonymized, factorizations, flows, histograms, page, sizes, stability, zcdp
from benchmarks.which_wins.figures import FIGURES, drawn
from benchmarks.which_wins.rows import SETTING
from hierdp.experiments.choosing.methods import EMD

RESULTS = Path(__file__).parents[1] / "results" / "which_wins"
PAGE = "which-wins-where.md"

ORDER = (
    "taxi", "flights", "households", "census", "64 leaves", "New England", "Northeast",
    *histograms.SETS, histograms.MAP,
)  # fmt: skip
"""The data sets, in the order of the tables."""

KINDS: dict[str, tuple[Callable[[Path, int], list[Any]], Callable[..., Any]]] = {
    "sizes": (sizes.cases, sizes.errors),
    "flows": (lambda data, _: flows.cases(data), flows.errors),
    "histograms": (histograms.cases, histograms.errors),
    "zcdp": (zcdp.cases, zcdp.errors),
    "anonymized": (anonymized.cases, anonymized.errors),
    "stability": (lambda data, _: stability.cases(data), stability.errors),
    "factorizations": (lambda *_: factorizations.cases(), factorizations.errors),
}


KEY = (*SETTING, "method", "run")
"""What identifies a row of a file."""


def measure(kind: str, data: Path, runs: int, seed: int, share: str, known: Any) -> Iterator[Any]:
    """The rows of a share of the cases of a kind of table, case by case, without those that are known.

    The first row of a case has its seconds.
    """
    import pandas as pd

    cases, errors = KINDS[kind]
    first, step = (int(part) for part in share.split("/"))
    last = known.groupby(["figure", "data", "at", "epsilon"], dropna=False).run.max()
    done = [(*key, most) for key, most in last.items()]
    for case in cases(data, seed)[first::step]:
        figure, at = getattr(case, "figure", ""), float(getattr(case, "at", math.nan))
        if any(_same(one, (figure, case.data, at, case.epsilon, runs - 1)) for one in done):
            continue
        seconds, rows = timed(lambda: list(errors(case, runs, seed)), 1)  # noqa: B023
        print(f"{kind} {figure} {case.data}, ε = {case.epsilon}: {seconds:.1f} s", flush=True)
        yield pd.DataFrame([{**one, "seconds": 0.0 if k else seconds} for k, one in enumerate(rows)])


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


def run(
    *,
    known: Any,
    data: Annotated[Path, "a folder with the data"] = DATA,
    runs: int = 10,
    seed: int = 0,
    only: Annotated[tuple[str, ...], f"of: {', '.join(KINDS)}"] = tuple(KINDS),
    share: Annotated[str, "measure every n-th case from the i-th on: i/n"] = "0/1",
    pages: Annotated[Path | None, "the folder of the page to fill from the results, without runs"] = None,
    table: Annotated[str, "print a table of the results, without runs"] = "",
) -> Iterator[Any]:
    if table:
        print(page.table(table, read()) if table in page.TABLES else "\n".join(page.TABLES))
    elif pages:
        fill(pages, read())
    else:
        for kind in only:
            yield from measure(kind, data, runs, seed, share, known)


def fill(folder: Path, rows: Any) -> None:
    """Fill the page and draw its figures."""
    file = folder / PAGE
    file.write_text(page.filled(file.read_text(encoding="utf-8"), rows), encoding="utf-8")
    for name, x in FIGURES.items():
        here = rows[(rows.kind == sizes.SIZES) & (rows.figure == name) & (rows.metric == EMD)]
        drawn(here, name, x).savefig(folder / f"which-wins-{name}.png", dpi=110)
