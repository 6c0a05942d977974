"""Another post-processing of a release's measurements: the same noise, at no further budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hierdp.checking.budget import budget_of_one_row
from hierdp.checking.rerun import ClaimedMeasurements
from hierdp.errors import InputError, options_listed
from hierdp.execution import seal
from hierdp.measurements.measurement import Measurement, Measurements
from hierdp.measurements.measuring import Differs, OtherQuery, ReplayRecorded
from hierdp.measurements.origin import SameNoise
from hierdp.measurements.query import Query
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.registry import released_by
from hierdp.privacy.budget import Ledger
from hierdp.record import written
from hierdp.record.cautions import FROM_DATA
from hierdp.record.release import Release
from hierdp.record.spool import Steps
from hierdp.record.step import Solving, Step
from hierdp.record.written import ReleaseFolder
from models import Model
from models.arithmetic.arrays import Ints


def repaired(path: Path, method: str, limit: int | None = None, **options: Any) -> Release:
    """A written release's measurements, post-processed by another method of its mechanism.

    Nothing is measured, so it costs no privacy budget beyond the release's own.

    Parameters
    ----------
    path : Path
        The folder of the release.
    method : str
        The method, or the release's own with other options.
    limit : int, optional
        Limit on the memory for reading the release, in bytes. Default: what its size justifies.
    **options
        Those of the post-processing: ``merge`` (count-of-counts), ``repair`` (range-query), ``window``
        (group-size), ``backend`` and ``time_limit`` (group-size, top-down,
        tabulation).

    Returns
    -------
    Release
        With the same budget and measurements. Its manifest has the release's ``SHA256SUMS``
        (`same_noise_as`), so that `hierdp check` shows whose measurements they are.

    Raises
    ------
    InputError
        If there is no release, it has no measurements, the method needs other ones, or it takes no such
        option.
    NotSolved
        If the chosen solver fails or runs out of time.
    """
    release = written.read(path, limit)
    if release.measurements is None:
        raise InputError(f"{path} has no measurements.parquet: only releases of measured counts have one")
    made = post_processed(release, method, **options)
    manifest = release.manifest
    of = SameNoise.of(manifest, (path / seal.SUMS).read_text(encoding="utf-8"))
    return replace(
        made,
        settings={**made.settings, **_from_data(manifest)},
        taken_as_public=manifest["taken_as_public"],
        without_account=manifest.get("without_account"),
        same_noise_as=of,
    )


def post_processed(release: ReleaseFolder, method: str, **options: Any) -> Release:
    """The same for a release in memory; its manifest needs `mechanism`, `settings` and `budget` only.

    Raises
    ------
    InputError, NotSolved
        As `repaired`.
    """
    name = str(release.manifest["mechanism"])
    mechanism = released_by(name)
    checking = None if mechanism is None else mechanism.checking
    if mechanism is None or checking is None or checking.other is None:
        raise InputError(f"no other method starts from the measurements of a release by {name}")
    if strange := [option for option in options if option not in checking.takes]:
        what = options_listed(checking.takes) if checking.takes else "none"
        raise InputError(
            f"`{strange[0]}` is not an option of {mechanism.name}'s post-processing; it takes {what}"
        )
    manifest = budget_of_one_row(release.manifest)
    queries = _queries(release, manifest, checking, mechanism.kind.of(manifest).solving)
    measure = _Same(release, queries)
    try:
        method, settings, solving = checking.other(method, manifest, **options)
        wanted = {key: value for key, value in manifest.items() if key != "solved"}
        wanted |= {"mechanism": method, "settings": settings}
        steps = Steps(solving)
        table, found = checking.rerun(measure, steps, release.table, wanted, release.regions)
        measure.end()
    except OtherQuery as other:
        raise InputError(
            f"{method} cannot start from the measurements of this release by {name}: {other}. It needs a "
            "release of its own, at a budget of its own"
        ) from None
    except Differs as differs:
        raise InputError(f"{method} cannot be used: {differs}") from None
    measurements = release.measurements
    assert measurements is not None
    return Release(
        method,
        table,
        Ledger.from_dict(release.manifest["budget"]),
        steps.kept,
        found,
        regions=release.regions,
        measurements=measurements,
    )


class _Measured(Exception):
    """A method has measured all, and reached a problem."""


def _queries(
    release: ReleaseFolder, manifest: Mapping[str, Any], checking: Checking, solving: Solving
) -> list[Query]:
    """What the release's own method measured; problems are solved if it measures more afterwards.

    - solving: solves the problems as that method does, which may choose among optimal answers, or round.

    Raises
    ------
    InputError
        If its measurements are not those of its method.
    """
    claimed = ClaimedMeasurements(release)
    recorded = ReplayRecorded(claimed)
    found: list[Query] = []

    class Noting:
        """Notes the queries."""

        def __call__(self, query: Query) -> Measurement:
            found.append(query)
            return recorded(query)

        def each(self, query: Query, sizes: Iterable[int]) -> Iterator[Ints]:
            found.append(query)
            return recorded.each(query, sizes)

        def end(self) -> None:
            recorded.end()

    def solve(name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        if recorded.measured == len(claimed.spends):
            raise _Measured
        return solving(name, model, problems)

    try:
        checking.rerun(Noting(), solve, release.table, manifest, release.regions)
    except _Measured:
        pass
    except Differs as differs:
        raise InputError(f"the release contradicts itself: {differs}; see `hierdp check`") from None
    return found


class _Same:
    """Gives recorded answers to the queries that they were given to, and to no others."""

    def __init__(self, release: ReleaseFolder, queries: Sequence[Query]) -> None:
        self._recorded, self._left = ReplayRecorded(ClaimedMeasurements(release)), iter(queries)

    def __call__(self, query: Query) -> Measurement:
        """The recorded answers.

        Raises
        ------
        OtherQuery
            If the release's method asked for other sums, or chose them by answers of its own.
        """
        found = self._recorded(query)
        self._compare(query)
        return found

    def each(self, query: Query, sizes: Iterable[int]) -> Iterator[Ints]:
        """The recorded answers in parts; raises as a call does."""
        found = self._recorded.each(query, sizes)
        self._compare(query)
        return found

    def _compare(self, query: Query) -> None:
        before = next(self._left, None)
        if before is None or not _alike(query, before):
            raise OtherQuery(f"its {query.name!r} are not the same sums of true counts")

    def end(self) -> None:
        """Check that no measurement is left."""
        self._recorded.end()


def _alike(one: Query, other: Query) -> bool:
    """Whether two queries of one name ask for the same sums: of groups, or of nodes of a tree."""
    if one.level is not None and other.level is not None:
        (tree, level), (known, at) = one.level, other.level
        same = tree is known or (
            tree.depth == known.depth and all(map(np.array_equal, tree.levels, known.levels))
        )
        parts = ((one.nodes, other.nodes), (one.cells, other.cells))
        return level == at and same and all(_equal(*pair) for pair in parts)
    if one.which is not None and other.which is not None:
        return all(map(np.array_equal, one.which, other.which))
    return one.groups is not None and _equal(one.groups, other.groups)


def _equal(one: Ints | None, other: Ints | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


def _from_data(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that say which public lists were taken from the data."""
    return {name: manifest["settings"][name] for name in FROM_DATA if name in manifest["settings"]}


def measured(made: Release) -> ReleaseFolder:
    """A release in memory, as `post_processed` takes it."""
    assert isinstance(made.measurements, Measurements)
    about = {"mechanism": made.mechanism, "settings": made.settings, "budget": made.ledger.as_dict()}
    return ReleaseFolder(about, made.counts, dict(made.regions), made.measurements)
