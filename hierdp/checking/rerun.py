"""Run a mechanism's function again, on its recorded measurements and saved answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hierdp.checking.budget import budget_of_one_row
from hierdp.checking.manifest import differences
from hierdp.checking.result import FAILS, HOLDS, OPEN, CheckResult
from hierdp.counts.size_table import ENDS, covering
from hierdp.errors import listed
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.measuring import Differs, OtherQuery, ReplayRecorded
from hierdp.measurements.rows import Piece
from hierdp.mechanisms.checking import Checking
from hierdp.mechanisms.registry import released_by
from hierdp.privacy.budget import spends_of
from hierdp.record.cautions import FROM_DATA
from hierdp.record.compare import compare
from hierdp.record.replay import Replay
from hierdp.record.written import ReleaseFolder

QUERIES = "budget: queries"


class Rerun:
    """Runs a mechanism's function with recorded measurements, and compares what it gives with the release."""

    def __init__(self, checking: Checking, release: ReleaseFolder) -> None:
        assert checking.rerun is not None
        self._rerun, self.recorded, self._wrong = checking.rerun, ReplayRecorded(Measurements(())), ""
        self._release = replace(release, manifest=budget_of_one_row(release.manifest))
        self._measures = checking.measures

    def __call__(self, saved: Replay) -> str:
        """Say in words how the table follows.

        Raises `Differs` if the table or the settings do not follow from the measurements and the saved steps,
        or an answer is wrong.
        """
        release = self._release
        try:
            found = ClaimedMeasurements(release) if self._measures else Measurements(())
            self.recorded = ReplayRecorded(found)
            table, settings = self._rerun(
                self.recorded, saved.solve, release.table, release.manifest, release.regions
            )
            self.recorded.end()
            compare(release.table, table)
            if "intervals" in release.manifest:
                self._compare_intervals(release, saved)
        except OtherQuery as other:
            self._wrong = str(other)
            raise
        saved.end()
        self._compare_settings(settings)
        given = "measurements" if self._measures else "given counts"
        what = "this table and its intervals" if "intervals" in release.manifest else "this table"
        return f"the mechanism gives {what} for these {given} and steps"

    def _compare_settings(self, due: Mapping[str, Any]) -> None:
        """Check that the settings follow, but for what was taken from the data."""
        stated = self._release.manifest["settings"]
        if any(stated.get(name, True) is not True for name in FROM_DATA):
            raise Differs(f"the settings {' and '.join(FROM_DATA)} must be true or absent")
        seen = {name: True for name in FROM_DATA if name in stated}
        if wrong := next(differences(stated, {**due, **seen}, "the settings"), ""):
            raise Differs(wrong)

    def _compare_intervals(self, release: ReleaseFolder, saved: Replay) -> None:
        """Check that the intervals are those of the measurements, at the confidence in the manifest."""
        from hierdp.mechanisms.intervals import checked_confidence  # it needs SciPy

        claim, mechanism = release.manifest["intervals"], released_by(release.manifest["mechanism"])
        assert mechanism is not None
        if release.ends is None:
            raise Differs(f"the manifest claims intervals, but the table has no columns {listed(ENDS)}")
        miss = 1 - checked_confidence(claim["confidence"])
        if claim["covers"] != (said := covering(claim["confidence"], claim["simultaneous"])):
            raise Differs(f"the manifest says of the intervals that {claim['covers']}, but {said}")
        due = mechanism.intervals_of(release).rows(miss, claim["simultaneous"], saved.solve)
        wrong = due.wrong(release.ends)
        if wrong.any():
            raise Differs(f"row {int(np.argmax(wrong)) + 1} of the table has another interval than is due")

    def queries(self) -> CheckResult:
        """Whether the mechanism asks the queries of the budget, after it was run."""
        if self._wrong:
            return CheckResult(QUERIES, FAILS, self._wrong)
        if self.recorded.ended:
            return CheckResult(QUERIES, HOLDS, "the mechanism's queries and sensitivities")
        measured, listed = self.recorded.measured, len(self._release.manifest["budget"]["spends"])
        if measured == listed:
            known = f"all {listed} are the mechanism's; whether it asks more depends"
        else:
            known = f"the first {measured} of {listed} are the mechanism's; the others depend"
        return CheckResult(QUERIES, OPEN, f"{known} on steps that are missing or wrong")


class ClaimedMeasurements:
    """The measurements of a release, with the noise that its manifest claims.

    Raises `OtherQuery` if there are none; while reading, if the file is broken, or claims other noise.
    """

    def __init__(self, release: ReleaseFolder) -> None:
        if release.measurements is None:
            raise OtherQuery("there is no file of measurements")
        self.spends, self._found = spends_of(release.manifest["budget"]), release.measurements

    def pieces(self) -> Iterator[Piece]:
        """See `Measurements.pieces`."""
        try:
            for number, found, position in self._found.pieces():
                if number < len(self.spends):
                    yield number, replace(found, spend=self.spends[number]), position
            if self._found.spends != self.spends:
                raise ValueError("its metadata do not have the spends of the budget")
        except ValueError as wrong:
            raise OtherQuery(f"measurements.parquet: {wrong}") from None
