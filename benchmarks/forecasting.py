"""Reconciled forecasts: `hierdp.forecasting` beside hierarchicalforecast; accuracy, objective, time.

After ``pip install hierarchicalforecast statsforecast`` in an environment of its own beside hierdp's. Part
"tourism" reconciles forecasts of Australian overnight trips (8 states, 76 regions, 4 purposes) eight quarters
ahead, by a seasonal naive method and by ETS of statsforecast, along the tree of regions and along regions
crossed with purposes. Part "trees" reconciles made-up forecasts of 28 days along trees of three levels, of
whose series at the bottom 80 % are mostly 0, the shape of retail.

``objective`` is Σ w (x − y)² with the base forecasts y as they are, and ``over hierdp`` its ratio to
that of hierdp (empty if the base forecasts add up already). ``incoherent`` is the
largest difference between an aggregate and the sum of its series of the bottom. CPU times are of one call
without reading tables; methods that take longer than ``--limit`` are stopped.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np

from benchmarks.child import apart
from benchmarks.measuring import DATA, data_file, on_cpu
from hierdp.forecasting import Reconciler, aggregate

AHEAD = 8
COHERENT = 1e-9
"""Objectives below this are rounding."""

PAST = ("TopDown", "ERM")
"""Methods that need past values."""

SPECS = {
    "regions": [["country"], ["country", "state"], ["country", "state", "region"]],
    "regions × purposes": [
        ["country"], ["country", "state"], ["country", "purpose"], ["country", "state", "region"],
        ["country", "state", "purpose"], ["country", "state", "region", "purpose"],
    ],
}  # fmt: skip

Problem = dict[str, Any]


def theirs(name: str, *given: Any, **options: Any) -> Callable[[Problem], Any]:
    """A method of hierarchicalforecast, as its `reconcile` calls it."""

    def job(problem: Problem) -> Any:
        method = getattr(import_module("hierarchicalforecast.methods"), name)(*given, **options)
        matrix, series = problem["S"], problem["S"].shape[0]
        known = {
            "S": matrix if method.is_sparse_method else matrix.toarray(),
            "y_hat": problem["y_hat"],
            "tags": problem["tags"],
        }
        known |= {key: problem[key] for key in ("y_insample", "y_hat_insample") if key in problem}
        known["idx_bottom"] = np.arange(series - matrix.shape[1], series)
        taken = inspect.signature(method.fit_predict).parameters
        return method.fit_predict(**{key: value for key, value in known.items() if key in taken})["mean"]

    return job


def ours(*given: Any, **options: Any) -> Callable[[Problem], Any]:
    """Our reconciler, proofs included."""

    def job(problem: Problem) -> Any:
        reconciler = Reconciler(*given, **options)
        past = {key: problem[key] for key in ("y_insample", "y_hat_insample") if key in problem}
        made = reconciler.fit_predict(problem["S"], problem["y_hat"], **past)["mean"]
        proved = sum(proof.optimal for proof in reconciler.certificates)
        gap = max(float(proof.gap) / max(1.0, float(proof.objective)) for proof in reconciler.certificates)
        return made, f"{proved} of {len(reconciler.certificates)}", gap

    return job


def methods(weights: str) -> dict[str, Callable[[Problem], Any]]:
    """All methods whose objective has these weights, and those without one."""
    return {
        "hierdp": ours(weights), "hierdp whole": ours(weights, whole=True),
        "hierdp any sign": ours(weights, nonnegative=False), "MinTrace": theirs("MinTrace", weights),
        "MinTrace nonnegative": theirs("MinTrace", weights, nonnegative=True),
        "MinTraceSparse": theirs("MinTraceSparse", weights),
        "MinTraceSparse nonnegative": theirs("MinTraceSparse", weights, nonnegative=True),
        "BottomUp": theirs("BottomUp"), "TopDown": theirs("TopDown", "average_proportions"),
        "ERM": theirs("ERM", "closed"),
    }  # fmt: skip


def run(
    parts: Annotated[tuple[str, ...], "tourism, trees"] = ("tourism", "trees"),
    data: Annotated[Path, "folder with australian-tourism.parquet"] = DATA,
    sizes: Annotated[tuple[int, ...], "nodes of the made-up trees"] = (1_000, 10_000, 100_000),
    only: Annotated[tuple[str, ...], "methods; all by default"] = (),
    limit: Annotated[int, "seconds for a method"] = 300,
) -> Iterator[dict[str, Any]]:
    problems = [*(tourism(data) if "tourism" in parts else ()), *(trees(sizes) if "trees" in parts else ())]
    for problem in problems:
        least = None
        with TemporaryDirectory() as folder:
            file = Path(folder, "problem.pickle")
            file.write_bytes(pickle.dumps(problem))
            for name in methods(problem["weights"]):
                if (only and name not in only) or (name in PAST and "y_insample" not in problem):
                    continue
                row = {key: problem[key] for key in ("data", "base", "series", "dates", "weights")}
                found = apart(measured, name, file, seconds=limit)
                least = found.get("objective") if name == "hierdp" else least
                more = found.get("objective") if least and least > COHERENT else None
                found["over hierdp"] = more and more / least
                yield row | {"method": name} | found


def measured(name: str, file: str) -> dict[str, Any]:
    """What a method's forecasts of a problem are worth, and what they took."""
    problem = pickle.loads(Path(file).read_bytes())  # written by `run`
    job = methods(problem["weights"])[name]
    warnings.simplefilter("ignore")
    first = problem if "actual" in problem else next(trees((100,)))
    job(first)  # compiles and imports
    seconds, found = on_cpu(lambda: job(problem))
    made, proved, gap = found if isinstance(found, tuple) else (found, None, None)
    made = np.asarray(made)
    bottom = problem["S"].shape[1]
    away = problem["w"][:, None] * (made - problem["y_hat"]) ** 2
    row = {
        "cpu": seconds, "objective": float(away.sum()),
        "incoherent": float(np.abs(made - problem["S"] @ made[-bottom:]).max()),
        "negative": int((made < 0).sum()), "proved": proved, "gap": gap,
    }  # fmt: skip
    if "actual" in problem:
        error = made - problem["actual"]
        row |= {
            "RMSSE": float(np.sqrt((error**2).mean(axis=1) / problem["scale"]).mean()),
            "MAE": float(np.abs(error).mean()),
        }
    return row


def tourism(folder: Path) -> Iterator[Problem]:
    """Forecasts of the last eight quarters, with in-sample forecasts of the others."""
    import pandas as pd

    statsforecast, models = import_module("statsforecast"), import_module("statsforecast.models")
    table = pd.read_parquet(data_file(folder, "australian-tourism.parquet"))
    table = table.assign(ds=pd.PeriodIndex(table.quarter, freq="Q").to_timestamp(), country="Australia")
    for name, spec in SPECS.items():
        long, summing, tags = aggregate(table.rename(columns={"trips": "y"}), spec)
        dates = np.sort(long.ds.unique())
        train = long[long.ds < dates[-AHEAD]]
        fit = statsforecast.StatsForecast([models.SeasonalNaive(4), models.AutoETS(4)], freq="QS", n_jobs=1)
        future, past = fit.forecast(df=train, h=AHEAD, fitted=True), fit.forecast_fitted_values()
        place = {one: i for i, one in enumerate(summing.ids)}

        def shaped(frame: Any, column: str, ids: Any = summing.ids) -> Any:
            return frame.pivot(index="unique_id", columns="ds", values=column).loc[ids].to_numpy()

        actual = shaped(long[long.ds >= dates[-AHEAD]], "y")
        seen = shaped(train, "y")
        for base in ("SeasonalNaive", "AutoETS"):
            fitted = shaped(past, base)[:, 4:]  # the naive method has none for the first year
            variance = ((seen[:, 4:] - fitted) ** 2).mean(axis=1)
            yield {
                "data": f"tourism, {name}", "base": base, "series": len(summing.ids), "dates": AHEAD,
                "weights": "wls_var", "w": 1 / variance, "S": summing.matrix, "y_hat": shaped(future, base),
                "tags": {level: np.array([place[one] for one in names]) for level, names in tags.items()},
                "y_insample": seen[:, 4:], "y_hat_insample": fitted, "actual": actual,
                "scale": ((seen[:, 4:] - seen[:, :-4]) ** 2).mean(axis=1),
            }  # fmt: skip


def trees(sizes: tuple[int, ...]) -> Iterator[Problem]:
    """Stores, departments and items; forecasts of items are noisy, and often below 0."""
    import scipy

    for size in sizes:
        rng = np.random.default_rng(size)
        stores = round((size / 10) ** (1 / 2))
        items = size - 1 - stores - 3 * stores
        store = np.sort(rng.integers(0, stores, items))
        department = 3 * store + rng.integers(0, 3, items)
        each = np.arange(items)
        groups = np.zeros(items), store, department, each
        used = [np.unique(group, return_inverse=True)[1] for group in groups]
        parts = [scipy.sparse.csr_matrix((np.ones(items), (group, each))) for group in used]
        matrix = scipy.sparse.vstack(parts, "csr")
        mean = rng.lognormal(0, 1, (items, 1)) * np.where(rng.random((items, 1)) < 0.8, 0.1, 3.0)
        true = matrix @ rng.poisson(mean, (items, 28))
        noisy = true + rng.normal(size=true.shape) * np.sqrt(1 + true.mean(axis=1, keepdims=True))
        starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        yield {
            "data": "made-up tree", "base": "made up", "series": matrix.shape[0], "dates": 28,
            "weights": "wls_struct", "w": 1 / np.asarray(matrix.sum(axis=1)).ravel(), "S": matrix,
            "y_hat": noisy, "tags": {str(k): np.arange(a, b) for k, (a, b) in enumerate(pairwise(starts))},
        }  # fmt: skip
