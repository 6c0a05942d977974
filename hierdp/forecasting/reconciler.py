"""`Reconciler`: base forecasts made coherent by a proved model, in the manner of hierarchicalforecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from hierdp import execution
from hierdp.errors import InputError, unknown_name
from hierdp.forecasting.structure import Structure, structure_of
from hierdp.forecasting.tables import QUANTILES, like, long_of, models_in, names_of, summing_of
from hierdp.mechanisms.weights import in_whole_numbers
from hierdp.record.step import NotSolved
from models import Certificate, ConstrainedInference, Model, NonNegativeInference, Reconciliation
from models.arithmetic.arrays import Flags, Floats
from solvers import prove, solve

NODES = 1 << 21
"""Nodes of the trees that are solved as one problem: enough for the speed, little enough for memory."""

BESIDE = 1 << 14
"""Series of dates with bounds, or whole, that are solved as one problem."""

LARGEST = 1 << 20
"""The largest weight of whole forecasts."""

LOSSES = {"squared": 2, "absolute": 1, "largest": math.inf}

WEIGHTS = ("ols", "wls_struct", "wls_var", "mint_shrink")


class Reconciler:
    """Coherent forecasts nearest to base forecasts, each proved optimal.

        minimize    Σ_i w_i (x_i − y_i)²                   Wickramasuriya, Turlach & Hyndman 2020
        subject to  each aggregate is the sum of its parts, x ≥ 0, whole or fixed where wanted

    A reconciler of `hierarchicalforecast`: ``HierarchicalReconciliation([Reconciler("wls_struct")])``. That
    package is not needed for `reconcile`. Within ``with hierdp.execution.using(workers=4):`` dates are solved
    in other processes, or on Dask.

    Negative base forecasts stay what they are in the objective. (`MinTrace(nonnegative=True)` of
    hierarchicalforecast 1.5.3 first sets them to 0, which is another problem.)

    Parameters
    ----------
    weights : "ols", "wls_struct", "wls_var", "mint_shrink", or array of shape (series,)
        Weights 1; 1/number of bottom series in it; 1/mean squared in-sample residual; the inverse of the
        residuals' covariance, shrunk to its diagonal (Schäfer & Strimmer 2005); or given ones.
    nonnegative : bool
    whole : bool
        Whole forecasts. Along a tree, or two that cross, they are optimal. Otherwise the relaxed ones are
        rounded, and the gap to the optimum is proved. Base forecasts are rounded to multiples of 2⁻¹⁰, or of
        more if they are large, and weights to whole numbers, with three digits if they are at most 1,000
        times apart.
    fixed : sequence of str
        Levels (keys of `tags`) or series whose base forecasts stay as they are.
    lower, upper : number or array of shape (series,), optional
        Bounds. Default: 0 if `nonnegative`, and no upper bound.
    loss : "squared", "absolute" or "largest"
        The sum of w (x − y)², the sum of w |x − y|, or the largest w |x − y|. The last two are linear
        programs, solved by HiGHS (sums of whole forecasts along trees are flows); for the largest change of
        whole forecasts, too, a gap is proved.

    Attributes
    ----------
    certificates : list of Certificate
        After a call: the proofs of all problems. Many dates are one problem.

    Raises
    ------
    InputError
        If an option is unknown, or options contradict each other.

    Examples
    --------
    >>> reconciler = Reconciler("ols")
    >>> summing = [[1, 1], [1, 0], [0, 1]]
    >>> reconciler.fit_predict(summing, np.array([[10.0], [4.0], [-3.0]]))["mean"].ravel().tolist()
    [7.0, 7.0, 0.0]
    >>> reconciler.certificates[0].optimal
    True
    """

    fitted = True
    is_sparse_method = True
    is_strictly_hierarchical = False
    sampler = None

    def __init__(
        self,
        weights: str | ArrayLike = "ols",
        *,
        nonnegative: bool = True,
        whole: bool = False,
        fixed: Sequence[str] = (),
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        loss: str = "squared",
    ) -> None:
        if isinstance(weights, str) and weights not in WEIGHTS:
            raise InputError(unknown_name(weights, WEIGHTS, "no weights"))
        if isinstance(weights, str) and weights == "mint_shrink" and (whole or loss != "squared"):
            raise InputError('"mint_shrink" needs squared losses, and forecasts that need not be whole')
        if loss not in LOSSES:
            raise InputError(unknown_name(str(loss), [*LOSSES], "no loss"))
        if isinstance(fixed, str):
            raise InputError(f"`fixed` must be a list of levels or series, got {fixed!r}")
        self.weights, self.nonnegative, self.whole = weights, nonnegative, whole
        self.fixed, self.lower, self.upper, self.loss = tuple(fixed), lower, upper, loss
        self.insample = isinstance(weights, str) and weights in ("wls_var", "mint_shrink")
        self.certificates: list[Certificate] = []
        name = weights if isinstance(weights, str) else "given"
        chosen = {"nonnegative": nonnegative, "whole": whole, "fixed": "+".join(self.fixed), "loss": loss}
        plain = {"nonnegative": True, "whole": False, "fixed": "", "loss": "squared"}
        # hierarchicalforecast names its columns by this.
        self._init_params = {"weights": name, **{k: v for k, v in chosen.items() if v != plain[k]}}

    @property
    def name(self) -> str:
        """The name of the method in columns of results, as hierarchicalforecast builds it."""
        return "_".join(["Reconciler", *(f"{key}-{value}" for key, value in self._init_params.items())])

    def fit_predict(
        self,
        S: Any,
        y_hat: NDArray[Any],
        y_insample: NDArray[Any] | None = None,
        y_hat_insample: NDArray[Any] | None = None,
        tags: Mapping[str, Any] | None = None,
        level: Any = None,
    ) -> dict[str, NDArray[Any]]:
        """Reconcile forecasts.

        Parameters
        ----------
        S : array or sparse matrix of 0 and 1, shape (series, bottom)
            The summing matrix; its last rows are the identity.
        y_hat : array, shape (series, dates)
            Base forecasts; dates and samples alike.
        y_insample, y_hat_insample : arrays, shape (series, observations), optional
            Past values and their in-sample forecasts, for "wls_var".
        tags : mapping of str to int arrays, optional
            The rows of each level, for `fixed`.

        Returns
        -------
        dict
            ``"mean"``: the reconciled forecasts, shape (series, dates); float64, or int64 if `whole`.

        Raises
        ------
        InputError
            If something in the input is wrong.
        NotSolved
            If bounds leave no answer, or a proof fails.
        """
        if level is not None:
            raise InputError(f"the ends of intervals (`level`) are not supported: {QUANTILES}")
        return {"mean": self._made(S, y_hat, y_insample, y_hat_insample, tags or {})}

    def _made(
        self, S: Any, y_hat: Any, past: Any, fitted: Any, tags: Mapping[str, Any], names: Any = None
    ) -> NDArray[Any]:
        """Reconciled forecasts; messages have the names of series, or their numbers."""
        structure = structure_of(S)
        names = range(structure.series) if names is None else names
        base = np.asarray(y_hat, float)
        if base.ndim != 2 or base.shape[0] != structure.series:
            raise InputError(f"the forecasts have shape {base.shape}; there are {structure.series} series")
        if not np.isfinite(base).all():
            raise InputError(
                f"a forecast of series {names[int(np.argwhere(~np.isfinite(base))[0, 0])]!r} is not finite"
            )
        weights, factors = self._weights(structure, past, fitted, names)
        fixed = np.zeros(structure.series, bool)
        for chosen in self.fixed:
            if chosen not in tags:
                raise InputError(unknown_name(str(chosen), [*tags], "no level"))
            fixed[np.asarray(tags[chosen], np.int64)] = True
        return self._solved(structure, base, weights, factors, fixed)

    __call__ = fit_predict

    def reconcile(
        self,
        Y_hat_df: Any,
        S_df: Any,
        tags: Mapping[str, Any] | None = None,
        Y_df: Any = None,
        *,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
    ) -> Any:
        """Reconcile every column of forecasts of a long table.

        Parameters
        ----------
        Y_hat_df : DataFrame of pandas or polars, or what else `hierdp.tables.read` takes
            `id_col`, `time_col`, and a column of numbers for each model or sample. Columns `target_col` and
            ``cutoff`` stay as they are.
        S_df : DataFrame, SummingMatrix, or hierarchicalforecast's SMatrix
            A summing matrix, or the parents of series (columns `id_col` and ``parent``).
        tags : mapping of str to arrays of names, optional
            The series of each level, for `fixed`.
        Y_df : DataFrame, optional
            Past values in `target_col`, and in-sample forecasts in the models' columns, for "wls_var", which
            takes series of unequal length, and "mint_shrink".

        Returns
        -------
        DataFrame
            As given, with a column ``model/name`` of reconciled forecasts for each one.

        Raises
        ------
        InputError, NotSolved
            As `fit_predict`.
        """
        summing = summing_of(S_df, id_col)
        given = long_of(Y_hat_df, summing.ids, id_col, time_col)
        models = models_in(given.frame, id_col, time_col, target_col)
        place = {name: i for i, name in enumerate(summing.ids)}
        rows = {}
        for level, names in (tags or {}).items():
            rows[level] = [place.get(name, -1) for name in names_of(names)]
            if -1 in rows[level]:
                strange = names_of(names)[rows[level].index(-1)]
                raise InputError(
                    f"level {level!r} of `tags`: " + unknown_name(strange, [*place], "no series")
                )
        rows |= {name: [i] for name, i in place.items() if name in self.fixed and name not in rows}
        known = None if Y_df is None else long_of(Y_df, summing.ids, id_col, time_col)
        made, proofs = given.frame.copy(), []
        for model in models:
            past = (None, None)
            if self.insample:
                if known is None or model not in known.frame:
                    raise InputError(
                        f'"{self.weights!s}" needs Y_df with the in-sample forecasts of {model!r}'
                    )
                past = known.wide(target_col, gaps=True), known.wide(model, gaps=True)
            found = self._made(summing.matrix, given.wide(model), *past, rows, summing.ids)
            made[f"{model}/{self.name}"] = found[given.series, given.date]
            proofs += self.certificates
        self.certificates = proofs
        return like(made, Y_hat_df)

    def transform(self, series: Any, residuals: Any = None) -> Any:
        """Reconcile a `TimeSeries` of darts, samples included, as its reconciliators do.

        Parameters
        ----------
        series : darts.TimeSeries
            Its ``hierarchy`` names the parents of its components.
        residuals : darts.TimeSeries, optional
            In-sample residuals of the same components, for "wls_var" and "mint_shrink".

        Raises
        ------
        InputError, NotSolved
            As `fit_predict`. `fixed` holds names of components.
        """
        components = list(series.components)
        pairs = [(one, above) for one in components for above in (series.hierarchy or {}).get(one) or [None]]
        summing = summing_of(pd.DataFrame(pairs, columns=["unique_id", "parent"]), "unique_id")
        order = [components.index(name) for name in summing.ids]
        tags = {name: [i] for i, name in enumerate(summing.ids)}
        base = series.all_values().swapaxes(0, 1)[order]
        past = {}
        if residuals is not None:
            held = residuals[components].values().T[order]
            past = {"y_insample": held, "y_hat_insample": np.zeros_like(held)}
        found = self.fit_predict(summing.matrix, base.reshape(len(order), -1), tags=tags, **past)["mean"]
        made = np.empty(base.shape)
        made[order] = found.reshape(base.shape)
        return series.with_values(made.swapaxes(0, 1))

    def _weights(
        self, structure: Structure, past: Any, fitted: Any, names: Any
    ) -> tuple[Floats, Floats | None]:
        """The weights, and with a full covariance its factors."""
        if not isinstance(self.weights, str):
            weights = np.asarray(self.weights, float)
            if weights.shape != (structure.series,) or not (np.isfinite(weights) & (weights > 0)).all():
                shape = "" if weights.shape == (structure.series,) else f"; they have shape {weights.shape}"
                raise InputError(f"weights must be {structure.series} positive numbers{shape}")
            return weights, None
        if self.weights == "ols":
            return np.ones(structure.series), None
        if self.weights == "wls_struct":
            return 1.0 / structure.counts, None
        if past is None or fitted is None:
            raise InputError(f'"{self.weights}" needs past values and their in-sample forecasts')
        residuals = np.asarray(past, float) - np.asarray(fitted, float)
        missing = np.isnan(residuals)
        residuals, missing = residuals[:, ~missing.all(axis=0)], missing[:, ~missing.all(axis=0)]
        shrunk = self.weights == "mint_shrink"
        if (lacking := missing.any(axis=1) if shrunk else missing.all(axis=1)).any():
            what = (
                "some past values or in-sample forecasts"
                if shrunk
                else "past values with in-sample forecasts"
            )
            advice = '"mint_shrink" needs those of all dates; "wls_var" does not' if shrunk else "give some"
            raise InputError(f"series {names[int(lacking.argmax())]!r} lacks {what}: {advice}")
        if shrunk:
            if residuals.shape[1] < 2:
                raise InputError('"mint_shrink" needs past values of at least two dates')
            share, residuals = shrinkage(residuals)
        variance = np.nanmean(residuals**2, axis=1)
        if not (variance > 0).all():
            name = names[int(np.argmin(variance > 0))]
            raise InputError(
                f"the in-sample forecasts of series {name!r} are exact: give weights of your own"
            )
        if not shrunk:
            return np.asarray(1.0 / variance), None
        count = residuals.shape[1]
        return 1.0 / (share * variance * count / (count - 1)), residuals * math.sqrt(
            (1 - share) / (count - 1)
        )

    def _solved(
        self, structure: Structure, base: Floats, weights: Floats, factors: Floats | None, fixed: Flags
    ) -> NDArray[Any]:
        free = self.lower is None and self.upper is None and not fixed.any() and self.loss == "squared"
        task: Callable[..., tuple[NDArray[Any], list[Certificate]]] = _in_bounds
        kept: Any = weights
        if structure.is_tree and free and not self.whole and factors is None:
            task, most = _along_trees, NODES // (structure.series + 1)
            shared: tuple[Any, ...] = (structure, weights, self.nonnegative)
        else:
            least = self.lower if self.lower is not None else (0.0 if self.nonnegative else -np.inf)
            bounds = (np.broadcast_to(np.asarray(side, float), structure.series)
                      for side in (least, np.inf if self.upper is None else self.upper))  # fmt: skip
            if self.whole:
                base, kept = _in_whole_numbers(structure, base, weights)
            joined = factors is None and self.loss != "largest"
            most = BESIDE // structure.series if joined else 1
            shared = (structure, kept, factors, *bounds, fixed, self.whole, LOSSES[self.loss])
        tasks = [(base[:, part],) for part in execution.chunks(base.shape[1], most)]
        made = list(execution.each(task, tasks, "reconciling", shared))
        self.certificates = [proof for _, proofs in made for proof in proofs]
        return np.concatenate([found for found, _ in made], axis=1) if made else base


def _along_trees(
    structure: Structure, weights: Floats, nonnegative: bool, base: Floats
) -> tuple[Floats, list[Certificate]]:
    """All dates as one problem: trees beside each other, below a root without a weight."""
    copies = base.shape[1]
    tree, noisy = structure.forest(copies), structure.spread(base)
    each = structure.spread(np.repeat(weights[:, None], copies, axis=1))
    if nonnegative:
        model: Model = NonNegativeInference(tree, noisy, each)
    else:
        with np.errstate(divide="ignore"):
            model = ConstrainedInference(tree, noisy, 1.0 / each)
    x, proof = _optimum(model)
    return structure.gathered(x, copies), [proof]


def _in_bounds(
    structure: Structure,
    weights: NDArray[Any],
    factors: Floats | None,
    lower: Floats,
    upper: Floats,
    fixed: Flags,
    whole: bool,
    p: float,
    base: Floats,
) -> tuple[NDArray[Any], list[Certificate]]:
    """Dates beside each other as one problem, with bounds, whole or crossed."""
    copies = base.shape[1]
    if whole and np.any(broken := fixed[:, None] & (base != np.rint(base))):
        series, date = np.argwhere(broken)[0]
        raise InputError(f"series {series} is fixed at {base[series, date]:g}, which is not whole")
    low, high = (np.where(fixed[:, None], base, side[:, None]).T.ravel() for side in (lower, upper))
    first = structure.series * np.arange(copies)[:, None]
    links = (first + structure.aggregate).ravel(), (first + structure.part).ravel()
    each = np.tile(weights, copies)
    try:
        model = Reconciliation(base.T.ravel(), *links, each, low, high, whole, p, factors)
    except ValueError as refused:
        raise InputError(str(refused)) from None
    x, proof = _optimum(model, whole and (model.network is None or p == math.inf))
    return x.reshape(copies, structure.series).T, [proof]


def shrinkage(residuals: Floats) -> tuple[float, Floats]:
    """How much to shrink residuals' covariance to its diagonal, at least 10⁻⁶; and residuals less means.

    The estimated variance of all correlations over their sum of squares (Schäfer & Strimmer 2005, target D),
    in linear time of the series, as sums over pairs of series are squares of sums over series.

    Parameters
    ----------
    residuals : array, shape (series, observations)

    Examples
    --------
    >>> float(shrinkage(np.array([[1.0, -1, 1, -1], [1, -1, 1, -1]]))[0])
    1e-06
    """
    count = residuals.shape[1]
    away = residuals - residuals.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        unit = np.nan_to_num(away / away.std(axis=1, ddof=1, keepdims=True), posinf=0, neginf=0)
    together, own = ((unit.T @ unit) ** 2).sum(), ((unit**2).sum(axis=1) ** 2).sum()
    products = ((unit**2).sum(axis=0) ** 2).sum() - (unit**4).sum()
    variance = count / (count - 1) ** 3 * (products - (together - own) / count)
    squares = (together - own) / (count - 1) ** 2
    return float(np.clip(variance / squares, 1e-6, 1)) if squares > 0 else 1.0, away


def _in_whole_numbers(
    structure: Structure, base: Floats, weights: Floats
) -> tuple[Floats, NDArray[np.int64]]:
    """Forecasts rounded to multiples of at most 2⁻¹⁰, and whole weights, so that costs of units fit 60 bits.

    Raises
    ------
    InputError
        If forecasts are too large for that.
    """
    nodes = (structure.series - structure.bottom.size) * max(1, BESIDE // structure.series)
    room = 2.0**56 / ((nodes + 2) * (np.abs(base).max(initial=0) + 1024))
    if room < 1:
        raise InputError(f"forecasts of {np.abs(base).max():.2g} are too large: count in larger units")
    weights = weights / weights.min()
    whole = in_whole_numbers(weights, min(LARGEST, room) / weights.max())
    unit = 2.0 ** min(10, math.floor(math.log2(room / whole.max())))
    return np.rint(base * unit) / unit, whole


def _optimum(model: Model, gap_allowed: bool = False) -> tuple[NDArray[Any], Certificate]:
    """The answer and its proof: by the fast path, else by HiGHS.

    Raises
    ------
    NotSolved
        If there is no answer, or it is not proved.
    """
    solution = solve(model, "fast")
    if solution.x is None:
        solution = solve(model, "highs")
    if solution.x is None:
        raise NotSolved(solution.status, f"no forecasts keep all bounds ({solution.status})")
    proof = solution.certificate or prove(model, solution.x)
    if not proof.optimal and not (gap_allowed and proof.gap is not None):
        raise NotSolved("not proved", f"the forecasts are not proved optimal: {proof.reason}")
    # Prices of every series would be kept for every date.
    return np.asarray(solution.x), replace(proof, witness={})
