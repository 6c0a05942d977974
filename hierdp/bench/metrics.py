"""How backends compare: success rates, shifted geometric means of times, performance profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.bench.runs import TOLERANCES, numbers
from hierdp.verification.judge import KnownBounds, judge
from models.arithmetic.arrays import Floats
from models.arithmetic.exact import Number
from solvers import Solution

if TYPE_CHECKING:
    from pandas import DataFrame

SHIFT = 0.01
"""Seconds added to each time before its logarithm, so that differences between much shorter times hardly
count."""

UNSOLVED = ("wrong", "inaccurate", "bound", "stopped", "failed")
"""The verdicts of problems that a backend accepts but does not solve; see `hierdp.verification.judge`."""

REFUSED = ("unsupported", "licence")
"""The verdicts of problems that a backend, or its licence, does not accept."""

UNCOUNTED = (*REFUSED, "unproved")
"""The verdicts that are neither for nor against a backend: also if nobody knows whether it is right."""


def seconds(rows: DataFrame, cpu: bool = False) -> Floats:
    """Time of each run: stating and solving, with the certificate of the fast path (others prove on the way).

    A run that does not solve its problem costs its time limit; one whose claim is neither proved nor refuted
    costs its time. With `cpu`: CPU time of all threads; NaN for a
    solved problem if it was not measured.
    """
    parts = rows[["cpu_seconds"] if cpu else ["build_seconds", "solve_seconds"]].astype(float)
    proving = rows["certificate_seconds"].astype(float).fillna(0.0)
    taken = (parts.sum(axis=1, skipna=not cpu) + proving).to_numpy()
    solved = rows["verdict"].isin(["solved", "unproved"]).to_numpy()
    limit = rows["time_limit"].to_numpy(float)
    return np.where(solved, taken, np.fmax(taken, limit))


def settled(rows: DataFrame) -> DataFrame:
    """Judge answers to problems without a proved optimum again, by what all rows of their problem know.

    An optimum that one row of a problem proves holds for all its rows. Otherwise the best feasible answer of
    any backend may refute a claim. All rows of other problems keep their verdicts.
    """
    frame = rows.copy()
    later = frame.index[~frame["proved"].astype(bool)]
    for problem in frame.loc[later, "problem"].unique():
        here = frame[frame["problem"] == problem]
        known = KnownBounds()
        if here["proved"].any():
            first = here[here["proved"].astype(bool)].iloc[0]
            optimum = _cost(first, "optimum")
            known = KnownBounds(optimum, optimum, optimal=True)
        for _, row in here.iterrows():
            known = known.including(_solution(row))
        for i in here.index.intersection(later):
            row = frame.loc[i]
            verdict = judge(_solution(row), known, TOLERANCES[row["tolerance"]])
            if verdict == "wrong" or row["verdict"] in ("solved", "unproved"):
                frame.loc[i, "verdict"] = verdict
            for column, value in numbers(_solution(row), known).items():
                frame.loc[i, column] = value
    return frame


def _solution(row: Any) -> Solution:
    """The answer of a row, as far as a judge needs it."""
    bound = None if row["bound"] != row["bound"] else float(row["bound"])
    return Solution(row["backend"], row["version"], row["status"], None, _cost(row, "objective"), bound)


def _cost(row: Any, column: str) -> Number | None:
    """A stored cost, which is exact for whole numbers of an integer program."""
    value = row[column]
    if value is None or value != value:
        return None
    whole = row["form"] in ("MILP", "MIQP", "tables") and float(value).is_integer()
    return int(value) if whole else float(value)


def shifted_geometric_mean(times: Floats, shift: float = SHIFT) -> float:
    """exp(mean log(t + shift)) − shift (Achterberg 2007; Mittelmann's benchmarks).

    Examples
    --------
    >>> round(shifted_geometric_mean(np.array([1.0, 100.0]), shift=0.0), 6)
    10.0
    """
    return float(np.exp(np.mean(np.log(times + shift))) - shift)


def by_backend(rows: DataFrame) -> DataFrame:
    """One row for each backend: how many problems it solves, how fast, and how it fails.

    All means are over all problems of the table: those that a backend, or its licence, does not accept count
    as unsolved. `times_best_exact` is `mean_seconds_all` divided by the same mean of the fastest exact
    backend for each problem. `solved` is a share of the problems that the backend accepts, `takes`, without
    its `unproved` claims, which nothing known proves or refutes. `licence` counts refusals by a licence.
    """
    import pandas as pd

    every = rows["problem"].nunique()
    best = best_exact(rows).reindex(rows["problem"].unique())
    virtual = shifted_geometric_mean(best.fillna(rows["time_limit"].max()).to_numpy(float))
    made = []
    for backend, here in rows.groupby("backend", sort=False):
        taken = here[~here["verdict"].isin(UNCOUNTED)]
        if here["verdict"].isin(REFUSED).all():
            continue
        verdicts = taken["verdict"]
        accepted, beyond = (here[here["verdict"].isin(REFUSED) == refused] for refused in (False, True))
        limits = beyond["time_limit"].to_numpy(float)
        all_times = np.concatenate([seconds(accepted), limits])
        made.append(
            {
                "backend": backend,
                "version": here["solver_version"].iloc[-1],
                "takes": f"{len(taken)} of {every}",
                **{name: int((here["verdict"] == name).sum()) for name in ("licence", "unproved")},
                "solved": float((verdicts == "solved").mean()),
                **{name: int((verdicts == name).sum()) for name in UNSOLVED},
                "times_best_exact": shifted_geometric_mean(all_times) / virtual,
                "mean_seconds_all": shifted_geometric_mean(all_times),
                "mean_cpu_seconds_all": shifted_geometric_mean(
                    np.concatenate([seconds(accepted, cpu=True), limits])
                ),
                "primal_residual": _worst(taken, "primal_residual"),
                "dual_residual": _worst(taken, "dual_residual"),
                "relative_gap": _worst(taken, "relative_gap"),
            }
        )
    return pd.DataFrame(made).sort_values("mean_seconds_all", kind="stable").reset_index(drop=True)


def best_exact(rows: DataFrame) -> Any:
    """By problem, the time of the fastest exact backend (the virtual best); the limit if none solves it."""
    exact = rows[(rows["backend"] != "fast") & ~rows["verdict"].isin(REFUSED)]
    return exact.assign(seconds=seconds(exact)).groupby("problem")["seconds"].min()


def against_exact(rows: DataFrame) -> DataFrame:
    """One row for each model: medians of the fast path, its certificate, and the best exact backend.

    The best backend solves most of the model's problems; ties go to the least shifted geometric mean.
    """
    import pandas as pd

    made = []
    for model, here in rows.groupby("model", sort=False):
        taken = here[~here["verdict"].isin(UNCOUNTED)]
        ours, exact = taken[taken["backend"] == "fast"], taken[taken["backend"] != "fast"]
        row: dict[str, Any] = {
            "model": model,
            "problems": here["problem"].nunique(),
            "cells": float(here.drop_duplicates("problem")["variables"].median()),
            "proved": int(ours["proved"].sum()),
            "fast_ms": 1e3 * float(ours["solve_seconds"].median()),
            "certificate_ms": 1e3 * float(ours["certificate_seconds"].median()),
        }
        if len(exact):
            of = exact.assign(seconds=seconds(exact), good=exact["verdict"] == "solved").groupby("backend")
            ranked = of.agg(good=("good", "sum"), mean=("seconds", lambda t: shifted_geometric_mean(t)),
                            median=("seconds", "median"))  # fmt: skip
            first = ranked.sort_values(["good", "mean"], ascending=[False, True]).iloc[0]
            row |= {
                "best_exact": first.name,
                "it_solves": int(first["good"]),
                "its_ms": 1e3 * float(first["median"]),
                "times_fast": 1e3 * float(first["median"]) / (row["fast_ms"] + row["certificate_ms"]),
            }
        made.append(row)
    return pd.DataFrame(made)


def shares(rows: DataFrame, by: str) -> DataFrame:
    """Share of the problems of each model (or form) that each backend solves; empty if it accepts none."""
    taken = rows[~rows["verdict"].isin(UNCOUNTED)].assign(solved=lambda f: (f["verdict"] == "solved") * 1.0)
    table = taken.pivot_table(index=by, columns="backend", values="solved", aggfunc="mean")
    order = [name for name in dict.fromkeys(rows["backend"]) if name in table.columns]
    counted = rows.groupby(by)["problem"].nunique()
    table.insert(0, "problems", counted.reindex(table.index))
    return table[["problems", *order]].reset_index().rename_axis(columns=None)


def profile(rows: DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """Dolan & Moré's performance profiles: by backend, factors τ and the share solved within τ × the best.

    Times are shifted by `SHIFT`. Problems that a backend does not accept are unsolved.
    """
    frame = rows.assign(seconds=seconds(rows) + SHIFT, good=rows["verdict"] == "solved")
    best = frame[frame["good"]].groupby("problem")["seconds"].min()
    every = rows["problem"].nunique()
    good = frame[frame["good"]]
    most = 1.5 * float((good["seconds"] / good["problem"].map(best)).max()) if len(good) else 1.5
    curves = {}
    for backend, here in frame.groupby("backend", sort=False):
        solved = here[here["good"]]
        ratios = np.sort(solved["seconds"].to_numpy(float) / best.loc[solved["problem"]].to_numpy(float))
        factors = np.concatenate([[1.0], ratios, [most]])
        share = np.concatenate([[0.0], np.arange(1, ratios.size + 1), [ratios.size]]) / every
        share[0] = np.sum(ratios <= 1.0) / every
        curves[str(backend)] = factors, share
    return curves


def _worst(rows: DataFrame, column: str) -> float:
    """The largest value of a column over the solved problems; NaN if nothing is known."""
    found = rows.loc[rows["verdict"] == "solved", column].astype(float)
    return float(found.abs().max()) if found.notna().any() else float("nan")
