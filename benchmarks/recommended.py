"""How often the recommended method is within 10 % of the best, on the settings of `which_wins`.

A setting's table is not seen. Errors are predicted:

- ``shape``: from made-up tables of its shape: regions, totals, the number of groups or of cells that are not
  empty, the largest size.
- ``other``: from a public table of the same kind that has none of them (`OTHERS`), where there is one.

The best is that of the committed rows of `which_wins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from benchmarks.measuring import DATA
from benchmarks.which_wins import KINDS, read
from benchmarks.which_wins.flows import DELTA, FLOWS, within
from benchmarks.which_wins.histograms import BOUND, HISTOGRAMS
from benchmarks.which_wins.rows import means
from benchmarks.which_wins.sizes import SIZES
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import SizeRuns
from hierdp.data import AIRPORTS
from hierdp.data.commuting import FILE, STATES
from hierdp.demo import MAX_SIZE, UNKNOWN
from hierdp.experiments.choosing import Shape, errors, scaled
from hierdp.experiments.choosing.made_up import made_up_bins, made_up_flows, made_up_groups
from hierdp.tables import GroupSizes, flows, group_sizes

CLOSE = 1.1
"""How far from the best a good recommendation may be."""

TINY = 1e-9
"""Errors below this count as this: some methods invent no cells."""


def by_shape(kind: str, case: Any) -> Shape:
    """A made-up table of the shape of a case."""
    if kind == "flows":
        cells = case.table.counts.size
        return Shape(kind, lambda run: made_up_flows(case.table, case.table.total, cells, run))
    if kind == "sizes":
        runs = case.counts.runs
        largest = min(int(runs.sizes.max()), case.max_size)
        groups, entities = int(runs.groups[0]), int(runs.capped(case.max_size).people[0])
        places, most = case.counts.hierarchy, max(entities, groups)
        return Shape("groups", lambda run: made_up_groups(places, groups, most, largest, run), case.max_size)
    shape, total, filled = case.counts.shape, int(case.counts.sum()), int((case.counts > 0).sum())
    return Shape("bins", lambda run: made_up_bins(shape, total, filled, run))


OTHERS = {
    "flights": "flights-2014.parquet",
    "New England": slice(6, 9),
    "Northeast": slice(9, 14),
    "HEPTH": "PATENT.n4096.npy",
    "INCOME": "GrossCompenMDSalary1.npy",
    "GOWALLA-2D": "twitter_256_256.npy",
}
"""A table of the same kind for some: the flights from Portland and Seattle in 2014 (the R package
pnwflights14: `aircraft`, `origin`, `destination`, `flights`), the commuters of the Middle Atlantic and the
East North Central states, and others of DPBench: citations of patents, salaries in Maryland, tweets."""


def by_other(kind: str, case: Any, data: Path, elsewhere: Path) -> Shape | None:
    """Another table of the same kind, if there is one; bins are brought to the table's total."""
    other = OTHERS.get(case.data)
    if other is None:
        return None
    if isinstance(other, slice):
        commuters = within(data / FILE, tuple(STATES)[other])
        return Shape(kind, lambda _: commuters)
    if kind == "flows":
        axes = {"origin": ["origin"], "destination": ["destination"]}
        flights = flows(elsewhere / other, axes=axes, count="flights")
        return Shape(kind, lambda _: flights)
    if kind == "sizes":
        aircraft = SizeRuns.of(by_aircraft(elsewhere / other))
        return Shape("groups", lambda _: aircraft, case.max_size)
    counts = scaled(np.load(elsewhere / other).astype(np.int64), int(case.counts.sum()))
    return Shape("bins", lambda _: counts)


def by_aircraft(path: Path) -> GroupSizes:
    """Aircraft by their number of flights to each airport, as in the demo."""
    import pandas as pd

    airports = pd.read_parquet(AIRPORTS)
    served = airports[airports.airport.isin(pd.read_parquet(path, columns=["destination"])["destination"])]
    places = Hierarchy.from_columns(served, ["zone", "airport"], "USA", "nation")
    return group_sizes(
        path, regions=places, region="destination", group=["aircraft", "destination"], entities="flights",
        max_size=MAX_SIZE, unknown=UNKNOWN,
    )  # fmt: skip


BY = ("shape", "other")


def shape_of(by: str, kind: str, case: Any, data: Path, elsewhere: Path | None) -> Shape | None:
    """What a case is predicted from; None if there is nothing of this kind."""
    if by == "other":
        return None if elsewhere is None else by_other(kind, case, data, elsewhere)
    return by_shape(kind, case)


def named(by: str, case: Any) -> dict[str, Any]:
    """What identifies a case."""
    at = float(getattr(case, "at", np.nan))
    return {"by": by, "figure": getattr(case, "figure", ""), "data": case.data, "at": at,
            "epsilon": case.epsilon}  # fmt: skip


def chosen(shape: Shape, about: dict[str, Any], runs: int) -> Iterator[dict[str, Any]]:
    """The predicted errors of a case's methods: a row for each level, metric and method."""
    import pandas as pd

    delta = DELTA if shape.kind == "flows" else None  # the rows of groups are those of ε-DP
    found = pd.DataFrame([each._asdict() for each in errors(shape, about["epsilon"], delta, runs)])
    each = found.groupby(["level", "metric", "method"], sort=False).error.agg(["mean", "count"])
    each = each["mean"][each["count"] == runs]  # a method may be too slow on some tables
    for (level, metric, method), error in each.items():
        yield about | {"level": level, "metric": metric, "method": method, "predicted": error}


KEYS = ["figure", "data", "at", "epsilon", "level", "metric"]
KEY = ("by", *KEYS, "method")


def measured() -> Any:
    """The errors of `which_wins`, with what each is over the least of its setting."""
    found = means(read())
    found = found[(found.method != BOUND) & found.kind.isin((SIZES, FLOWS, HISTOGRAMS))].copy()
    found["at"] = found["at"].fillna(-1)
    floor = found["mean"].clip(lower=TINY)
    found["times"] = floor / floor.groupby([found[name] for name in KEYS]).transform("min")
    return found[[*KEYS, "kind", "method", "times"]]


def hits(predicted: Any) -> Any:
    """For each prediction and setting: the recommended method, and its measured error over the least."""
    both = predicted.assign(at=predicted["at"].fillna(-1)).merge(measured(), on=[*KEYS, "method"])
    best = both.groupby(["by", *KEYS], sort=False).predicted.idxmin()
    return both.loc[best].reset_index(drop=True)


def run(
    *,
    known: Any,
    data: Annotated[Path, "a folder with the data"] = DATA,
    elsewhere: Annotated[Path | None, "a folder with public tables of the same kinds"] = None,
    runs: int = 5,
    by: Annotated[tuple[str, ...], f"of: {', '.join(BY)}"] = BY,
    only: Annotated[tuple[str, ...], "of: sizes, flows, histograms"] = ("sizes", "flows", "histograms"),
) -> Iterator[Any]:
    import pandas as pd

    cases = known[[*KEY[:5]]].astype({"at": float, "epsilon": float}).fillna({"at": -1.0})
    done = set(cases.itertuples(index=False, name=None))
    for way in by:
        for kind in only:
            for case in KINDS[kind][0](data, 0):
                about = named(way, case)
                at = -1.0 if np.isnan(about["at"]) else about["at"]
                shape = shape_of(way, kind, case, data, elsewhere)
                if shape is not None and tuple((about | {"at": at}).values()) not in done:
                    yield pd.DataFrame(list(chosen(shape, about, runs)))


def summary(rows: Any) -> Any:
    """How many settings there are, and the share whose method is within `CLOSE` of the best."""
    times = hits(rows).groupby(["by", "kind"], sort=False).times
    return times.agg(settings="size", within=lambda each: (each <= CLOSE).mean()).reset_index()
