"""A release: tables to publish, with a record of the budget and of the solved and proved problems."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.labels import Labels
from hierdp.counts.rows import frame_of, laid_out, with_ends
from hierdp.counts.size_table import Ends, Table, plain
from hierdp.errors import InputError
from hierdp.execution import folder, seal
from hierdp.measurements.measurement import Measurements
from hierdp.measurements.origin import SameNoise
from hierdp.privacy.account import Entry
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import deviation_of
from hierdp.record import files
from hierdp.record.signature import name_of, private_key
from hierdp.record.signature import sign as sign_folder
from hierdp.record.spool import Spool
from hierdp.record.step import Proved
from hierdp.reports.solved import count_proved
from hierdp.versions import versions
from models.programs.layout import processors

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from pandas import DataFrame


ENTRIES = (
    *("format", "title", "note", "mechanism", "warning", "cautions", "created", "budget", "settings"),
    *("taken_as_public", "holds", "standard_errors", "solved", "all_proved_optimal", "csv_safe", "versions"),
)
"""The entries that every manifest has; it may also have those of `OPTIONAL`."""

OPTIONAL = (
    *("account", "without_account", "intervals", "labels", "same_noise_as", "signed_with"),
    *("simulated_errors", "left_out", "own_mechanism"),
)
"""Further entries that a manifest may have."""


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """The result of a mechanism. It contains no true counts, except those that are public.

    Attributes
    ----------
    mechanism : str
        Name of the method, as in the paper.
    counts : DataFrame or SizeTable
        The released counts, in a column `count` or, for groups by region and size, `groups`; see `table`.
    budget : Ledger, optional
        The budget, the neighbouring relation, every measurement; None if nothing was measured.
    steps : Spool
        Every post-processing problem with its proved answer, as a sequence of `Step`; a large release keeps
        only their number, their results and the file of answers.
    settings : mapping
        The mechanism's public parameters.
    regions : mapping of str to Hierarchy
        The regions, which are public, by axis; a single hierarchy has the name "region".
    taken_as_public : mapping of str to str
        The publisher's statement of where public facts such as the regions come from. Nothing in a release
        depends on it.
    charge : Entry, optional
        Its entry in the account that it was charged to.
    without_account : str, optional
        Why it was not charged to an account of the data, in the publisher's words.
    measurements : Measurements, optional
        All that it learned of the true counts.
    same_noise_as : SameNoise, optional
        The release that the measurements were made for; see `hierdp.checking.same_noise`.
    simulating : callable, optional
        Simulates the errors by size, for the manifest; see `hierdp.questions.bias`.
    ends : Ends, optional
        The intervals of the rows, and `intervals` what the manifest says of them: their `confidence`, and
        whether it is that of all of them, `simultaneous`; see `hierdp.questions.intervals`.
    own_mechanism : mapping, optional
        Where a mechanism outside of hierdp is from; see `hierdp.mechanisms.own`.
    """

    mechanism: str
    counts: Table
    budget: Ledger | None
    steps: Spool
    settings: Mapping[str, Any] = field(default_factory=dict)
    regions: Mapping[str, Hierarchy] = field(default_factory=dict)
    taken_as_public: Mapping[str, str] = field(default_factory=dict)
    charge: Entry | None = None
    without_account: str | None = None
    measurements: Measurements | None = None
    same_noise_as: SameNoise | None = None
    simulating: Callable[[Release], Mapping[str, Any] | None] | None = None
    ends: Ends | None = None
    intervals: Mapping[str, Any] | None = None
    own_mechanism: Mapping[str, str | None] | None = None

    @property
    def ledger(self) -> Ledger:
        """The budget.

        Raises `InputError` if nothing was measured.
        """
        if self.budget is None:
            raise InputError(f"{self.mechanism} has no budget: nothing was measured")
        return self.budget

    @property
    def with_ends(self) -> Table:
        """The counts, with the columns `lower` and `upper` if there are intervals."""
        return with_ends(self.counts, self.ends)

    @cached_property
    def table(self) -> DataFrame:
        """The released counts and intervals; `parts` takes less memory if they are many."""
        return plain(frame_of(self.with_ends))

    def parts(self) -> Iterable[DataFrame]:
        """The rows of the table, in parts of about a million rows if the counts are groups by size."""
        return map(plain, laid_out(self.with_ends).parts())

    def __repr__(self) -> str:
        budget, spent, private = self.budget, "nothing measured", ""
        if budget is not None:
            spent = f"ε = {budget.epsilon:g}" + (f", δ = {budget.delta:g}" if budget.delta else "")
            private = "" if budget.private else "; simulated noise: NOT private"
        proved, solved = count_proved(line.line for line in self.proved)
        steps = f"{proved:,} of {solved:,} steps proved optimal"
        return f"Release({self.mechanism}: {len(self.counts):,} rows, {spent}, {steps}{private})"

    @property
    def proved(self) -> tuple[Proved, ...]:
        """One line per post-processing problem."""
        return tuple(self.steps.proved)

    def taking_as_public(self, **words: str) -> Self:
        """The same release, with further entries under `taken_as_public` in its manifest."""
        return replace(self, taken_as_public={**self.taken_as_public, **words})

    def finest(self) -> DataFrame | None:
        """The counts of the last level, with a column for each level of regions, as in the data.

        None if the release has no regions.
        """
        import pandas as pd

        if not self.regions:
            return None
        parts = [plain(part) for part in laid_out(self.with_ends).finest(self.regions)]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def holds(self) -> dict[str, bool | None]:
        """The properties of the counts; see `hierdp.record.properties`."""
        from hierdp.record.properties import holds

        return holds(self.counts, self.settings, self.regions)

    @cached_property
    def simulated_errors(self) -> Mapping[str, Any] | None:
        """Mean errors by size of the count, from second releases of the released counts; None if unknown."""
        return None if self.simulating is None else self.simulating(self)

    @property
    def cautions(self) -> list[str]:
        """Warnings about numbers that promise little; see `hierdp.record.cautions`."""
        from hierdp.record.cautions import cautions

        return [] if self.budget is None else cautions(self.counts, self.budget, self.settings)

    def manifest(
        self,
        title: str | None = None,
        note: str | None = None,
        csv_safe: bool = False,
        labels: Labels | None = None,
    ) -> dict[str, Any]:
        """What a reader needs to judge the release, ready for JSON and safe to publish.

        `title` and `note` are the publisher's own words, for the report, and `labels` the names of codes;
        `csv_safe` says how the CSVs are written.
        """
        check_words(title=title, note=note)
        proved = all(line.proved_optimal for line in self.proved)
        given = {
            "format": files.FORMAT,
            "title": title,
            "note": note,
            "mechanism": self.mechanism,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "settings": dict(self.settings),
            "taken_as_public": dict(self.taken_as_public),
            "solved": [line.line for line in self.proved],
            "csv_safe": csv_safe,
            "versions": {"python": platform.python_version(), **dict(versions())},
        }
        entries = given | derived(self.counts, self.budget, self.settings, self.holds, proved)
        return {
            **{name: entries[name] for name in ENTRIES if name != "versions"},
            **({} if self.charge is None else {"account": self.charge.as_dict()}),
            **({} if self.without_account is None else {"without_account": self.without_account}),
            **({} if self.same_noise_as is None else {"same_noise_as": asdict(self.same_noise_as)}),
            **({} if self.intervals is None else {"intervals": dict(self.intervals)}),
            **({} if self.simulated_errors is None else {"simulated_errors": self.simulated_errors}),
            **({"labels": dict(labels)} if labels else {}),
            **({} if self.own_mechanism is None else {"own_mechanism": dict(self.own_mechanism)}),
            "versions": entries["versions"],
        }

    def write(
        self,
        path: str | Path,
        overwrite: bool = False,
        report: bool = True,
        proofs: bool = True,
        title: str | None = None,
        note: str | None = None,
        csv_safe: bool = False,
        sign: Path | str | None = None,
        large_csv: bool = False,
        labels: Labels | None = None,
    ) -> Path:
        """Write the tables, the manifest, the report, and what `hierdp check` needs to check them.

        ``released`` and, of the last level alone, ``finest``, both as Parquet and CSV; ``regions.csv``,
        ``manifest.json``, ``measurements.parquet``, ``proofs.zip``, ``report.html`` and ``SHA256SUMS``.
        Tables of more than 20 million rows have no CSV. Everything is written to a temporary folder beside
        the final one, which is then renamed. So a release is never half written under its name.

        Parameters
        ----------
        path : path
            The folder to make.
        overwrite : bool
            Replace a folder that exists; by default it is kept, and this is an error.
        report : bool
            Whether to draw the report.
        proofs : bool
            Whether to keep the answers of all steps, with what proves them: safe to publish, but large.
        title, note : str, optional
            The publisher's own words, kept in the manifest: a title for the report, and a note under it.
        csv_safe : bool
            Put an apostrophe before names in the CSVs that a spreadsheet would run as a formula, such as
            ``=cmd|…`` or ``@SUM``. The Parquet files have the names as they are.
        sign : path, optional
            An Ed25519 private key, in PEM format, to sign it with; see `hierdp.record.signature`.
        large_csv : bool
            Write tables of more than 20 million rows as CSV, too; smaller ones always are.
        labels : mapping of str to str, optional
            The names of codes of regions and categories, which are public: for the report, for `hierdp query`
            and for copies; see `hierdp.tables.read_labels`. The tables keep the codes.

        Raises
        ------
        InputError
            If the folder exists, or its parent does not, the title or note is not text, or the key cannot be
            used.
        OSError
            If a file cannot be written, such as on a full disk; nothing is left under the name.
        """
        check_words(title=title, note=note)
        key = None if sign is None else private_key(sign)
        with self.failing(), folder.appearing(Path(path), overwrite) as aside:
            self.fill(aside, report, proofs, title, note, csv_safe, key, large_csv, labels)
        return Path(path)

    def failing(self) -> AbstractContextManager[None]:
        """Record in the account, if there is one, that the block failed."""
        return nullcontext() if self.charge is None else self.charge.failing()

    def fill(
        self,
        into: Path,
        report: bool = True,
        proofs: bool = True,
        title: str | None = None,
        note: str | None = None,
        csv_safe: bool = False,
        key: Ed25519PrivateKey | None = None,
        large_csv: bool = False,
        labels: Labels | None = None,
    ) -> str:
        """Write the files of `write` into a folder that exists, seal and sign it, and return its fingerprint.

        If there is an account, the fingerprint is recorded there before the folder gets its name.
        """
        manifest = self.manifest(title, note, csv_safe, labels)
        if left_out := [name for name, kept in ((files.PROOFS, proofs), (files.REPORT, report)) if not kept]:
            manifest["left_out"] = left_out
        if key is not None:
            manifest["signed_with"] = name_of(key.public_key())
        if report:
            from hierdp.reports.release import release_report

            text = release_report(self.with_ends, manifest)
            (into / files.REPORT).write_text(text, encoding="utf-8", newline="\n")
        # In threads: most of the work, compression and text, needs no lock of Python's.
        with ThreadPoolExecutor(processors()) as pool:
            done = [pool.submit(write_proofs, self, into)] if proofs else []
            if self.measurements is not None:
                self.measurements.write(into / files.MEASUREMENTS)
            write_tables(self, manifest, into, large_csv)
            for one in done:
                one.result()
        fingerprint = seal.seal(into)
        if key is not None:
            sign_folder(into, key)
        if self.charge is not None:
            self.charge.written(fingerprint)
        return fingerprint


def check_words(**words: str | None) -> None:
    """Check that the publisher's words are text that can be written.

    Raises `InputError` if one is not text; the message names it.
    """
    for name, text in words.items():
        if text is not None and not isinstance(text, str):
            raise InputError(f"the {name} must be text, got {type(text).__name__}")
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"the {name} is not valid Unicode text: write it in UTF-8") from None


WARNING = "SIMULATED NOISE: this release is NOT private"
"""The warning in a manifest if not all noise was drawn exactly."""

KNOWN = "in the column standard_error"
NOT_KNOWN = "not known after post-processing; of each measurement, see standard_deviation in the budget"
NOT_KNOWN_AT_ALL = "not known after post-processing"


def standard_errors(table: Any, budget: Mapping[str, Any] | None) -> str:
    """What a manifest says of the standard errors of its table."""
    if "standard_error" in table:
        return KNOWN
    return NOT_KNOWN_AT_ALL if budget is None else NOT_KNOWN


def derived(
    table: Table,
    ledger: Ledger | None,
    settings: Mapping[str, Any],
    holds: Mapping[str, bool | None],
    proved: bool,
) -> dict[str, Any]:
    """The entries of a manifest that follow from the table and from the others.

    - ledger: None if nothing was measured.
    - holds: the properties of the counts.
    - proved: whether all steps are.
    """
    from hierdp.record.cautions import cautions

    budget = None if ledger is None else _with_deviations(ledger.as_dict(), ledger)
    return {
        "warning": None if ledger is None or ledger.private else WARNING,
        "cautions": [] if ledger is None else cautions(table, ledger, settings),
        "budget": budget,
        "holds": dict(holds),
        "standard_errors": standard_errors(table, budget),
        "all_proved_optimal": proved,
    }


def write_proofs(release: Release, into: Path) -> None:
    """Write the answers and witnesses of a release's steps into a folder that exists."""
    if release.steps:
        release.steps.write(into / files.PROOFS)


def write_tables(release: Release, manifest: Mapping[str, Any], into: Path, large_csv: bool = False) -> None:
    """Write the tables and the manifest of a release into a folder that exists."""
    safe = bool(manifest["csv_safe"])
    csv = files.as_csv(release.counts, large_csv)
    table = laid_out(release.with_ends)
    files.write_parts(table.parts(), into, files.TABLE, safe, csv)
    if release.regions:
        files.write_parts(table.finest(release.regions), into, files.FINEST, safe, csv)
    files.write_regions(release.regions, into, safe)
    if manifest["warning"]:
        (into / files.NOT_PRIVATE).write_text(f"{manifest['warning']}.\n", encoding="utf-8")
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (into / files.MANIFEST).write_text(text + "\n", encoding="utf-8")


def _with_deviations(budget: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    for line, spend in zip(budget["spends"], ledger.spends, strict=True):
        line["standard_deviation"] = deviation_of(spend)
    return budget
