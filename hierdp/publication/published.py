"""`hierdp.open`: a written release as an object."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.counts.rows import frame_of, laid_out
from hierdp.counts.size_table import plain
from hierdp.record import files, written

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.checking import CheckResult
    from hierdp.counts.hierarchy import Hierarchy
    from hierdp.measurements.measurement import Measurements
    from hierdp.record.release import Release


@dataclass(frozen=True)
class PublishedRelease:
    """A release's folder. Its files are read when they are first needed, and not checked: see `check`.

    Attributes
    ----------
    path : Path
        The folder.
    limit : int, optional
        Limit on the memory for reading it, in bytes. Default: what its size justifies.
    """

    path: Path
    limit: int | None = None

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """What the release says of itself: mechanism, settings, budget, versions."""
        return written.read_manifest(self.path, self.limit)

    @cached_property
    def _read(self) -> written.ReleaseFolder:
        return written.read(self.path, self.limit)

    @cached_property
    def table(self) -> DataFrame:
        """The released counts and intervals; `parts` takes less memory if they are many."""
        return frame_of(self._read.with_ends)

    def parts(self) -> Iterable[DataFrame]:
        """The rows of the table, in parts of about a million rows if the counts are groups by size."""
        return map(plain, laid_out(self._read.with_ends).parts())

    @cached_property
    def finest(self) -> DataFrame | None:
        """The cells of the finest level, with their regions at all levels; None if there is no such table."""
        path = self.path / f"{files.FINEST}.parquet"
        return written.read_table(path, written.limit_for(self.path, self.limit)) if path.exists() else None

    @property
    def regions(self) -> Mapping[str, Hierarchy]:
        """The regions by axis; a single hierarchy has the name "region"."""
        return self._read.regions

    @property
    def measurements(self) -> Measurements | None:
        """The noisy answers that it was made from; None in releases that do not have them."""
        return self._read.measurements

    @property
    def ledger(self) -> DataFrame:
        """The lines of the budget: a row for each measurement, with its noise, scale and privacy loss.

        Without rows if nothing was measured, as in a repair of counts from elsewhere.
        """
        import pandas as pd

        return pd.DataFrame((self.manifest["budget"] or {}).get("spends", []))

    def query(
        self,
        questions: str | Sequence[str],
        *,
        confidence: float | None = None,
        simultaneous: bool = False,
        method: str = "estimate",
        unbiased: bool = False,
        labels: str | Path | None = None,
    ) -> DataFrame:
        """Answer questions; see `hierdp.query`."""
        from hierdp.questions.query import query

        more: dict[str, Any] = {"confidence": confidence, "simultaneous": simultaneous, "method": method}
        return query(self.path, questions, labels=labels, limit=self.limit, unbiased=unbiased, **more)

    def intervals(self, confidence: float = 0.9, simultaneous: bool = False) -> DataFrame:
        """The table with an interval for each count, in columns `lower` and `upper`; see docs/intervals.md.

        Parameters
        ----------
        confidence : float
            The least probability with which a count's interval covers the true count, whatever the data.
        simultaneous : bool
            The least probability with which all intervals do.

        Raises
        ------
        InputError
            If no intervals are known for the release; the message says why.
        """
        from hierdp.questions.intervals import table_of

        return table_of(self._read, confidence, simultaneous)

    def check(
        self,
        fingerprint: str | None = None,
        *,
        public_key: str | Path | None = None,
        account: str | Path | None = None,
    ) -> list[CheckResult]:
        """Check it from its files alone; see `hierdp.checking.check`."""
        from hierdp.checking import check

        return check(self.path, fingerprint, self.limit, public_key, account)

    def repair(self, method: str, **options: Any) -> Release:
        """Post-process its measurements by another method, at no further budget.

        See `hierdp.checking.same_noise`.

        Parameters
        ----------
        method : str
            Another method of its mechanism that measures the same, or its own with other options.
        **options
            Those of the post-processing, such as ``repair`` of range-query.

        Returns
        -------
        Release
            To be written like any other; its manifest names this release.

        Raises
        ------
        InputError
            If the method needs other measurements, or takes no such option.
        """
        from hierdp.checking.same_noise import repaired

        return repaired(self.path, method, self.limit, **options)

    def __repr__(self) -> str:
        """A summary in one line."""
        private = "; simulated noise: NOT private" if self.manifest.get("warning") else ""
        return f"PublishedRelease({self.manifest['mechanism']}: {self.path}, {self._budget}{private})"

    @property
    def _budget(self) -> str:
        budget = self.manifest["budget"]
        if budget is None:
            return "no budget: nothing was measured"
        delta = f", δ = {budget['delta']:g}" if budget.get("delta") else ""
        return f"ε = {budget['epsilon']:g}{delta}"

    def _repr_html_(self) -> str:
        """The same with the first rows of its table, for notebooks."""
        warning = self.manifest.get("warning")
        said = [
            f"<p><b>{html.escape(str(self.manifest['mechanism']))}</b>: {html.escape(str(self.path))}, "
            f"{self._budget}</p>",
            *([f"<p><b>{html.escape(str(warning))}</b></p>"] if warning else []),
        ]
        first = next(iter(self.parts())).head()
        said += [first.to_html(index=False, border=0), f"<p>{len(self._read.table):,} rows</p>"]
        return "\n".join(said)


def open(path: str | Path, limit: int | None = None) -> PublishedRelease:
    """Open a written release.

    Parameters
    ----------
    path : path
        The folder that `hierdp release`, `hierdp repair` or `Release.write` made.
    limit : int, optional
        Limit on the memory for reading it, in bytes. Default: what its size justifies.

    Raises
    ------
    InputError
        If there is no release, or its manifest is broken.

    Examples
    --------
    >>> import tempfile, hierdp, pandas as pd
    >>> ages = pd.DataFrame({"age": [3, 17, 17, 40, 41]})
    >>> made = hierdp.release(ages, "clustering", epsilon=1, axes=[hierdp.Numbers("age", 0, 100, 4)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ages = hierdp.open(made.write(f"{folder}/out"))
    ...     len(ages.table), len(ages.measurements), list(ages.query("0:50")["query"])
    (4, 2, ['0:50'])
    """
    opened = PublishedRelease(Path(path), limit)
    written.names_in(opened.path)
    opened.manifest  # noqa: B018
    return opened
