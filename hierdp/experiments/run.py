"""Helpers for the runs of every reproduction: reproducible independent noise, timing, settings."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hierdp.execution.resume import Row, runs
from hierdp.privacy.noise import SimulatedNoise
from hierdp.versions import versions

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")


def seed_for(seed: int, *what: Any) -> int:
    """A seed for each use: independent of others, and reproducible."""
    digest = hashlib.sha256(repr((seed, what)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def noise_for(seed: int, *what: Any) -> SimulatedNoise:
    """Noise from `seed_for`."""
    return SimulatedNoise(seed_for(seed, *what))


def crossed(**values: Iterable[Any]) -> list[Row]:
    """All combinations of some values, by name."""
    return [dict(zip(values, case, strict=True)) for case in product(*values.values())]


def all_rows(
    measure: Callable[..., list[Row]], cases: Sequence[Row], what: str, given: tuple[Any, ...]
) -> DataFrame:
    """The rows that `measure` returns for all cases, in one table, each behind its case.

    Finished cases can be saved: see `hierdp.execution.resume.runs`.
    """
    import pandas as pd

    values = [tuple(case.values()) for case in cases]
    found = runs(measure, values, what, given, [f"{what}: {value!r}" for value in values])
    return pd.DataFrame([case | row for case, rows in zip(cases, found, strict=True) for row in rows])


def summed_up(
    rows: DataFrame, by: Sequence[str], summary: Callable[[DataFrame], Mapping[str, Any]]
) -> DataFrame:
    """One row for each group of rows: its values of the columns `by`, and what `summary` makes of it."""
    import pandas as pd

    groups = rows.groupby(list(by), sort=False)
    return pd.DataFrame([dict(zip(by, key, strict=True)) | dict(summary(mine)) for key, mine in groups])


def by_level(values: Any, level: Any, name: str = "level_{}", spread: str = "std_{}") -> Row:
    """The mean and the standard deviation over runs at each level."""
    found: Row = {}
    for one, here in values.groupby(level, sort=False):
        found |= {name.format(one): here.mean(), spread.format(one): here.std()}
    return found


def present(folder: Path | None, name: str) -> Path | None:
    """A file or folder in a folder of data, if both are there."""
    found = folder / name if folder else None
    return found if found and found.exists() else None


def timed(job: Callable[..., T], *given: Any) -> tuple[float, T]:
    """Elapsed seconds, and the job's result."""
    started = time.perf_counter()
    done = job(*given)
    return time.perf_counter() - started, done


def said(settings: Any, seed: int, sets: Iterable[str]) -> dict[str, Any]:
    """Everything needed to repeat a study: its settings (a dataclass), seed, data sets, date, versions."""
    saved = {name: str(value) for name, value in asdict(settings).items()}
    library = ", ".join(f"{name} {version}" for name, version in versions())
    day = time.strftime("%Y-%m-%d")
    return {**saved, "seed": seed, "data": ", ".join(sets), "date": day, "versions": library}
