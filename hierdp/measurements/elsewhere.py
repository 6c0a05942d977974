"""Other programs' noisy counts as measurements, and measurements as those of mbi.

None of these programs is needed: their results are read by the attributes and columns that they have.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hierdp.errors import InputError, listed
from hierdp.measurements.rows import Measurement
from hierdp.measurements.table import LAPLACE, NORMAL, UNKNOWN, measurement_of, of_frame
from hierdp.privacy.budget import GAUSSIAN, GEOMETRIC

TUMULT = {"GEOMETRIC": GEOMETRIC, "LAPLACE": LAPLACE, "DISCRETE_GAUSSIAN": GAUSSIAN, "GAUSSIAN": NORMAL}
OPENDP = {
    "Integer Laplace": GEOMETRIC,
    "Float Laplace": LAPLACE,
    "Integer Gaussian": GAUSSIAN,
    "Float Gaussian": NORMAL,
}
NO_ATTRIBUTES = "sign", "plb", "State", "County"
"""Columns of the Census Bureau's files that are neither needed nor attributes of persons or units."""


@dataclass(frozen=True, eq=False)
class Picked:
    """A query of mbi: some entries of a margin's vector."""

    positions: NDArray[np.int64]

    def __call__(self, factor: Any) -> Any:
        """The entries."""
        return factor.datavector()[self.positions]

    def op_norm_sq(self) -> float:
        """The squared operator norm, which mbi takes step lengths from."""
        return 1.0


def of_mbi(measurements: Sequence[Any], domain: Any) -> tuple[Measurement, ...]:
    """Noisy margins from a list of `mbi.LinearMeasurement` (mbi 2.0).

    Each has `noisy_measurement`, `clique` (attributes, the last one fastest), `stddev` and `query`, which
    picks entries of the margin's `datavector()` (``mbi/marginal_loss.py``). It does not say the law.

    - domain: with `attributes`, `shape`, and `labels` or None: then categories are called 0, 1, …

    Raises `InputError` if an attribute is unknown, or a query is not of single counts; the message names the
    measurement.
    """
    names = domain.labels or [range(size) for size in domain.shape]
    labels = {name: [str(one) for one in each] for name, each in zip(domain.attributes, names, strict=True)}
    found, row = list[Measurement](), 0
    for number, one in enumerate(measurements):
        if strange := [name for name in one.clique if name not in labels]:
            raise InputError(f"measurement {number}: {strange[0]!r} is not an attribute of the domain")
        every = list(product(*(labels[name] for name in one.clique)))
        cells = np.array(every, object).reshape(len(every), len(one.clique))
        answers = np.asarray(one.noisy_measurement).ravel()
        picked = _picked(one.query, len(cells))
        if picked is None or picked.size != answers.size:
            raise InputError(
                f"measurement {number}, of {listed(one.clique)}: its query does not pick single counts of "
                "the margin, one for each noisy value; only such measurements can be taken"
            )
        stddev = float(one.stddev)
        if not (np.isfinite(answers).all() and 0 < stddev < np.inf):
            raise InputError(
                f"measurement {number}, of {listed(one.clique)}: its values are not all finite, or its "
                "stddev is not positive"
            )
        keys = {str(name): cells[picked, k] for k, name in enumerate(one.clique)}
        errors = np.full(answers.size, stddev)
        rows = np.arange(row, row + answers.size)
        found.append(measurement_of(keys, answers, UNKNOWN, np.nan, errors, rows))
        row += answers.size
    return tuple(found)


def _picked(query: Any, cells: int) -> NDArray[np.int64] | None:
    """Which entries of a margin a query returns, from its answer to distinct ones; None if it adds or scales.

    The entries are random whole numbers below 2²³, exact in 32 bits, so that sums are hardly ever one.
    """
    entries = np.random.default_rng(1).choice(2**22, cells, replace=False) + 2**22

    class Margin:
        """In place of an `mbi.Factor`."""

        def datavector(self) -> NDArray[np.float64]:
            """The entries."""
            return entries.astype(np.float64)

    returned = np.asarray(query(Margin()), np.float64).ravel()
    order = np.argsort(entries)
    at = order[np.minimum(np.searchsorted(entries[order], returned), cells - 1)]
    return at if (entries[at] == returned).all() and np.unique(at).size == at.size else None


def of_tumult(table: Any, noise_info: Sequence[Mapping[str, Any]], count: str) -> tuple[Measurement, ...]:
    """Counts of a query of Tumult Analytics 0.21: all columns but the count are keys.

    - table: what `Session.evaluate` returned for a count.
    - noise_info: what ``Session._noise_info(query, budget)`` returns before the query is evaluated: a
      ``noise_mechanism`` and a ``noise_parameter``. The parameter is a scale for LAPLACE and GEOMETRIC, and a
      variance σ² for both Gaussian laws (``tmlt/analytics/_noise_info.py``).

    Raises `InputError` if the query has another number of mechanisms than one, or one whose noise is not
    added to counts.
    """
    mechanisms = list(noise_info)
    if len(mechanisms) != 1:
        raise InputError(f"noise_info has {len(mechanisms)} mechanisms; give that of one query of one count")
    mechanism = mechanisms[0]["noise_mechanism"]
    name, parameter = str(getattr(mechanism, "name", mechanism)), float(mechanisms[0]["noise_parameter"])
    if name not in TUMULT:
        raise InputError(f"{name} is not noise on counts; its laws are {listed(TUMULT)}")
    scale = parameter**0.5 if "GAUSSIAN" in name else parameter
    keys = [column for column in table.columns if column != count]
    return of_frame(table, keys, count, scale=scale, law=TUMULT[name])


def of_opendp(table: Any, summary: Any, count: str = "len") -> tuple[Measurement, ...]:
    """Counts of OpenDP's Polars queries (0.16): all columns that `summary` does not list are keys.

    Counts in a list (`then_laplace`, `then_gaussian`) go through `from_frame`: of whole numbers their law is
    "double-geometric" or "discrete Gaussian", of floats "Laplace" or "Gaussian", with OpenDP's own scale.

    - table: ``query.release().collect()``.
    - summary: ``query.summarize()``, with the columns `column`, `aggregate`, `distribution` and `scale`
      (``opendp/extras/polars/__init__.py``).
    - count: the column of noisy counts.

    Raises `InputError` if the summary does not list the count, or says that its noise has another law.
    """
    columns = {name: list(summary[name]) for name in ("column", "distribution", "scale")}
    if count not in columns["column"]:
        raise InputError(f"the summary has no column {count!r}; it has {listed(columns['column'])}")
    at = columns["column"].index(count)
    if (law := columns["distribution"][at]) not in OPENDP:
        raise InputError(f"{law!r} is not noise on counts; the laws are {listed(OPENDP)}")
    keys = [column for column in table.columns if column not in columns["column"]]
    if "threshold" in summary.columns and summary["threshold"][at] is not None:
        raise InputError(
            "counts under a threshold were left out: those that are there are too large on average, so no "
            "law describes their noise. Release them with public keys"
        )
    return of_frame(table, keys, count, scale=float(columns["scale"][at]), law=OPENDP[law])


def of_census(table: Any) -> tuple[Measurement, ...]:
    """A noisy measurement file of the 2020 Census, or some of its rows: the queries, without constraints.

    A row is a query of a geographic unit: `geocode`, `query_name`, a column for each attribute, `query_shape`
    (a size for each attribute), `value` (the noisy answers, the last attribute fastest), `variance` and `plb`
    (its privacy-loss budget, not used). An attribute's column says how its categories were counted: ``*`` for
    their sum, its own name or ``detailed`` for each of them, or the name of a recode such as
    ``hhinstlevels``, which is a key of its own. Constraints have a `sign`, which queries have not; `State`
    and `County` are folders of the file. So the Census Bureau's own program reads it
    (``GLS/main_two_pass_alg.py`` of uscensusbureau/DAS_2020_GLS_Uncertainty_Evaluation). The noise is
    discrete Gaussian (registry.opendata.aws/census-2020-pl94-nmf). Categories are numbered from 0.

    - table: ``pandas.read_parquet("US_Person_PL_PROD/County.parquet/DPQuery/State=50")``, of persons or
      units.

    Returns: one for each kind of query and variance, with all geographic units that it was asked of.

    Raises `InputError` if a column is missing, or a row's answers do not fit its shape or attributes; the
    message names it.
    """
    needed = ["geocode", "query_name", "query_shape", "value", "variance"]
    if missing := [name for name in needed if name not in table.columns]:
        raise InputError(f"no column {missing[0]!r}: the files of queries (DPQuery) have {listed(needed)}")
    attributes = [name for name in table.columns if name not in (*needed, *NO_ATTRIBUTES)]
    if "sign" in table.columns:
        table = table[table["sign"].isna()]
    kinds: dict[tuple[Any, ...], list[tuple[str, NDArray[Any], int]]] = {}
    start = 0
    columns = [table[column] for column in (*needed, *attributes)]
    for row, (code, name, shape, value, variance, *counted) in enumerate(zip(*columns, strict=True), 1):
        where = f"row {row}, {name!r} of geocode {code!r}"
        sizes, answers = tuple(int(size) for size in shape), np.asarray(value).ravel()
        if len(sizes) != len(attributes) or math.prod(sizes) != answers.size:
            raise InputError(
                f"{where}: {answers.size} answers do not fit the shape {list(sizes)} of {listed(attributes)}"
            )
        if not (variance > 0 and np.isfinite(variance)):
            raise InputError(f"{where}: its variance is not positive; leave the row out")
        if strange := [
            a for a, how, n in zip(attributes, counted, sizes, strict=True) if how == "*" and n > 1
        ]:
            raise InputError(f"{where}: {strange[0]!r} is summed, but has several sizes in {list(sizes)}")
        kinds.setdefault((*counted, sizes, float(variance)), []).append((str(code), answers, start))
        start += answers.size
    found = list[Measurement]()
    for (*counted, sizes, variance), rows in kinds.items():
        codes, values, starts = zip(*rows, strict=True)
        cells = np.indices(sizes).reshape(len(sizes), -1).astype(str).astype(object)
        keys = {"geocode": np.repeat(np.array(codes, object), cells.shape[1])}
        for attribute, how, cell in zip(attributes, counted, cells, strict=True):
            if how != "*":
                keys[attribute if how == "detailed" else how] = np.tile(cell, len(codes))
        answers = np.concatenate(values)
        at = np.add.outer(starts, np.arange(cells.shape[1])).ravel()
        errors = np.full(answers.size, variance**0.5)
        found.append(measurement_of(keys, answers, GAUSSIAN, np.nan, errors, at))
    return tuple(found)


def categories_of(parts: Sequence[Measurement]) -> dict[str, tuple[str, ...]]:
    """The values of each key, in the order of their first row."""
    found: dict[str, dict[str, None]] = {}
    for part in parts:
        for key, values in (part.keys or {}).items():
            found.setdefault(key, {}).update(dict.fromkeys(values.tolist()))
    return {key: tuple(values) for key, values in found.items()}


def linear_measurements(parts: Sequence[Measurement]) -> list[Any]:
    """A list of `mbi.LinearMeasurement`: one for each measurement and standard error."""
    try:
        made = importlib.import_module("mbi").LinearMeasurement
    except ImportError:
        raise InputError("this needs mbi, which is not installed: pip install mbi") from None
    codes = {
        key: {name: code for code, name in enumerate(names)} for key, names in categories_of(parts).items()
    }
    found = []
    for part in parts:
        if part.keys is None or part.errors is None:
            raise InputError("a release's measurements do not say which margins they are of")
        if np.isnan(part.errors).any():
            raise InputError(f"a standard error of {part.spend.query} is unknown; mbi needs all of them")
        clique, shape = tuple(part.keys), [len(codes[key]) for key in part.keys]
        cell: NDArray[np.int64] = np.zeros(part.answers.size, np.int64)
        for key, size in zip(clique, shape, strict=True):
            cell = cell * size + np.array([codes[key][name] for name in part.keys[key]], np.int64)
        for error in np.unique(part.errors):
            at = np.flatnonzero(part.errors == error)
            at = at[np.argsort(cell[at])]
            whole = np.array_equal(cell[at], np.arange(int(np.prod(shape))))
            query = {} if whole else {"query": Picked(cell[at])}
            found.append(made(part.answers[at].astype(float), clique, float(error), **query))
    return found
