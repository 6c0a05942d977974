"""Growth of cost: every fast path from 10² to 10⁸ elements, and the best exact backend until it times out.

Each point is measured in a separate process, with 20 GB of memory and 60 s (``--seconds``). After compiling
the kernels on small instances, it times the fast path, its certificate (both without cached results), and
summing all input once: medians of up to nine turns, or one turn if it takes two seconds. Ten times as many
elements are tried if time and memory suffice in proportion.

An exact backend has 20 s (``--limit``) for each size, stating included in its time. All of `EXACT` are run at
the smallest size. A backend continues with the next size if it reached the proved optimum in time, and no
other was five times as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from benchmarks import instances as i
from benchmarks.child import apart, peak
from benchmarks.measuring import compiled, guarded, ratio_in_words, seconds_in_words, timed
from hierdp.bench.problems import fresh

if TYPE_CHECKING:
    from pandas import DataFrame

KEY = ["model", "size", "program"]
MEASURED = ["elements", "seconds", "certificate_seconds", "reading_seconds", "mb", "verdict"]
COLUMNS = [*KEY, *MEASURED, "failed", "python", "versions", "machine", "load"]
SIZES = tuple(10**k for k in range(2, 9))
SECONDS, LIMIT = 60.0, 20.0
GIGABYTES = 20.0
TURNS = (9, 2.0)
EXACT = ("highs", "cp-sat", "min-cost-flow", "glop", "clarabel", "scs")
"""The exact backends that do best on some model (`hierdp bench`); all are run at the smallest size."""
FIVE_TIMES = 5
"""An exact backend slower than another by this factor does not continue with larger instances."""
LATER = 2_000
"""Exact backends run after fast paths with this many times as many elements, so that a short run has both."""
MARGIN = 12
"""Ten times as many elements are assumed to take this many times the time and the memory."""


FAMILIES = i.families()


def alone(name: str, size: int, program: str, limit: float) -> dict[str, Any]:
    """One point, in a process of its own."""
    from solvers import fast

    guarded(GIGABYTES)
    compiled()
    family = next(one for one in FAMILIES if one.name == name)
    model = family.make(np.random.default_rng(size), size)
    for small in (20, 2_000):  # kernels
        other = family.make(np.random.default_rng(0), small)
        other.certificate(*fast.answer(other))
    if program != "fast":
        exact(family.make(np.random.default_rng(0), 20), program, limit)  # its process, its imports
        return {"elements": i.elements(model), **exact(model, program, limit)}
    held = peak(reset=True)
    seconds, (x, witness) = timed(lambda: fast.answer(fresh(model)), *TURNS)
    mb = max(0.0, peak() - held)
    proving, proof = timed(lambda: fresh(model).certificate(x, witness), *TURNS)
    reading, _ = timed(lambda: i.read(model), *TURNS)
    return {
        "elements": i.elements(model), "seconds": seconds, "certificate_seconds": proving,
        "reading_seconds": reading, "mb": mb,
        "verdict": "proved" if proof.optimal else f"not proved: {proof.reason}",
    }  # fmt: skip


def exact(model: Any, backend: str, limit: float) -> dict[str, Any]:
    """An exact backend's time, and its verdict against the fast path's proved optimum."""
    from hierdp.verification.judge import judge, known_bounds
    from solvers import solve

    known, _ = known_bounds(model, [solve(model)])
    found = solve(fresh(model), backend, limit)
    return {
        "seconds": found.build_seconds + found.solve_seconds,
        "verdict": judge(found, known, time_limit=limit),
    }


def points(only: str, most: int, given: tuple[float, float], known: list[dict[str, Any]]) -> Iterator[Any]:
    """Rows to measure, from small to large, with exact backends after larger fast paths."""
    seconds, limit = given
    rows = {tuple(row[name] for name in KEY): row for row in known}
    families = [family for family in FAMILIES if only.lower() in family.name.lower()]
    sizes = [size for size in SIZES if size <= most]
    turns = sorted(product((True, False), sizes), key=lambda turn: turn[1] * (1 if turn[0] else LATER))
    for (ours, size), family in product(turns, families):
        before = {p: rows.get((family.name, size // 10, p)) for p in ("fast", *EXACT)}
        for program in ("fast",) if ours else EXACT:
            key = (family.name, size, program)
            if key in rows or not _goes_on(program, before, size, given):
                continue
            least = seconds if ours else seconds + limit
            found = apart(alone, family.name, size, program, limit, seconds=least)
            row = {**dict(zip(KEY, key, strict=True)), **found}
            rows[key] = {column: row.get(column) for column in [*KEY, *MEASURED, "failed"]}
            yield rows[key]


def _goes_on(program: str, before: dict[str, Any], size: int, given: tuple[float, float]) -> bool:
    """Whether ten times as many elements are worth a try."""
    if size == SIZES[0]:
        return True
    last = before[program]
    if last is None or last["failed"]:
        return False
    if program == "fast":
        return _fits(last, given[0])
    if last["verdict"] != "solved" or last["seconds"] > given[1]:  # not all stop at their limit
        return False
    others = [row for name, row in before.items() if name != "fast" and row and row["verdict"] == "solved"]
    return bool(last["seconds"] <= FIVE_TIMES * min(row["seconds"] for row in others))


def _fits(row: dict[str, Any], seconds: float) -> bool:
    """Whether time and memory suffice for ten times as many elements."""
    taken = row["seconds"] + row["certificate_seconds"]
    return bool(MARGIN * row["mb"] <= 1000 * GIGABYTES and MARGIN * taken <= seconds)


def run(
    *,
    known: Any,
    seconds: Annotated[float, "for each point's process"] = SECONDS,
    limit: Annotated[float, "seconds for an exact backend"] = LIMIT,
    most: Annotated[int, "elements"] = SIZES[-1],
    only: Annotated[str, "models with this in their name"] = "",
) -> Iterator[dict[str, Any]]:
    yield from points(only, most, (seconds, limit), known.to_dict("records"))


def summary(rows: DataFrame) -> DataFrame:
    """What is proved and how fast: a row for each model.

    First the most elements that an exact backend solved to the proved optimum in time; “×” is its time over
    that of the fast path and its certificate. Then the most elements that the fast path was run on, and
    whether all its answers are proved.
    """
    import pandas as pd

    solved = rows[(rows["program"] != "fast") & (rows["verdict"] == "solved")].sort_values("seconds")
    fast = rows[(rows["program"] == "fast") & (rows["failed"] == "")].sort_values("size")
    shown = []
    for model in dict.fromkeys(rows["model"]):
        ours = fast[fast["model"] == model].set_index("size")
        best = solved[(solved["model"] == model) & solved["size"].isin(ours.index)]
        if ours.empty:
            continue
        row: dict[str, Any] = {"model": model}
        row |= dict.fromkeys(("elements", "fast path", "certificate", "best exact backend", "×"), "")
        if not best.empty:
            peer = best[best["size"] == best["size"].max()].iloc[0]
            here = ours.loc[peer["size"]]
            ratio = peer["seconds"] / (here["seconds"] + here["certificate_seconds"])
            row |= {
                "elements": f"{int(here['elements']):,}",
                "fast path": seconds_in_words(here["seconds"]),
                "certificate": seconds_in_words(here["certificate_seconds"]),
                "best exact backend": f"{peer['program']}, {seconds_in_words(peer['seconds'])}",
                "×": ratio_in_words(ratio),
            }
        proved = (ours["verdict"] == "proved").all()
        row["up to"] = f"{int(ours['elements'].iloc[-1]):,}" + ("" if proved else ", not all proved")
        shown.append(row)
    return pd.DataFrame(shown)
