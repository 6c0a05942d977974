"""A copy of a written release's table: names beside codes, and blanks in place of small counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.counts.labels import Labels
from hierdp.counts.rows import Rows, frame_of
from hierdp.counts.size_table import ENDS, covering
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.privacy.budget import Ledger
from hierdp.record import files, written
from hierdp.tables.labels import codes_in, labels_for

if TYPE_CHECKING:
    from pandas import DataFrame

SUPPRESSED = "suppressed"
"""A column that marks blanks."""

BLANKS = (
    "Suppressed: {blank:,} counts other than 0 and under {least:,} are blank in this copy. The release "
    "itself is whole: its sums, proofs and fingerprint are those with all counts, so a sum may be larger "
    "than the counts shown below it. Blanks are for readers and protect nobody further: a blank may follow "
    "from sums and other counts, and the protection is that of the noise."
)


@dataclass(frozen=True, eq=False)
class Copy:
    """A copy of a release's table, and what to say about it.

    Attributes
    ----------
    table : DataFrame
        The released table, with a column of names after each column of codes that have some. Suppressed
        counts are missing values, and the column ``suppressed`` marks them.
    value : str
        The column of counts.
    name_of : mapping of str to str
        For each column with names, the column of codes that it is for.
    about : mapping of str to str
        Title, mechanism, budget, protected unit, date, and so on, in words.
    manifest : mapping
        Of the release.
    """

    table: DataFrame
    value: str
    name_of: Mapping[str, str]
    about: Mapping[str, str]
    manifest: Mapping[str, Any]


def copy_of(
    release: str | Path,
    labels: Any = None,
    suppress_below: int | None = None,
    finest: bool = False,
    limit: int | None = None,
) -> Copy:
    """A copy of a written release's table, which is left as it is.

    Parameters
    ----------
    release : path
        A folder made by `hierdp release` or `hierdp repair`.
    labels : path, DataFrame, Arrow or Ibis table, optional
        Names of codes; see `hierdp.tables.read_labels`. Those in the manifest are used anyway.
    suppress_below : int, optional
        Counts other than 0 and under this number become blank. This is post-processing: the guarantee of the
        release is unchanged.
    finest : bool
        Only the last level, with a column for each level of regions, as in the data.
    limit : int, optional
        Memory limit for reading, in bytes. Default: what its size justifies.

    Raises
    ------
    InputError
        If there is no such release, it has more than 20 million rows or no regions for `finest`, the labels
        are for other codes, or the bound is under 1.
    """
    if suppress_below is not None and suppress_below < 1:
        raise InputError(f"`suppress_below` is {suppress_below}: it must be 1 or more")
    folder = Path(release)
    found = written.read(folder, limit)
    if not files.as_csv(found.table):
        raise InputError(
            f"{folder} has more than 20 million rows: its Parquet files are for other programs as they are"
        )
    whole = frame_of(found.with_ends)
    if finest and not found.regions:
        raise InputError(f"{folder} has no regions, so all its rows are of one level: leave out `finest`")
    table = next(Rows(whole).finest(found.regions)) if finest else whole
    names = labels_for(labels, found.manifest, codes_in(whole, found.regions))
    value = "groups" if "groups" in table else "count"
    named, name_of = _with_names(table, names)
    about = dict(_about(folder, found.manifest))
    if suppress_below is not None:
        named = _suppressed(named, value, suppress_below)
        blank = int(named[SUPPRESSED].sum())
        about["Suppression"] = BLANKS.format(blank=blank, least=suppress_below)
    return Copy(named, value, name_of, about, found.manifest)


def _with_names(table: DataFrame, labels: Labels) -> tuple[DataFrame, dict[str, str]]:
    from pandas.api.types import is_numeric_dtype

    made, name_of = table.copy(), dict[str, str]()
    for column in table.columns:
        if is_numeric_dtype(table[column].dtype) or column == "level_name" or column.endswith("_level"):
            continue
        names = table[column].map(lambda code: labels.get(str(code)))
        if names.notna().any():
            called = f"{column}_name"
            if called in made:
                raise InputError(f"the release has a column {called!r}: it has no place for names")
            made.insert(list(made.columns).index(column) + 1, called, names)
            name_of[called] = column
    return made, name_of


def _suppressed(table: DataFrame, value: str, least: int) -> DataFrame:
    counts = table[value]
    small = (counts != 0) & (counts < least)
    others = [name for name in (value, "noisy", "given", "standard_error", *ENDS) if name in table]
    kinds = {name: "Int64" for name in others if table[name].dtype.kind in "iu"}
    made = table.astype(kinds)
    made[others] = made[others].mask(small)
    return made.assign(**{SUPPRESSED: small})


def _about(folder: Path, manifest: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    budget = manifest["budget"]
    rows = [("Title", str(manifest["title"] or folder.name))]
    if manifest["note"]:
        rows.append(("Note", str(manifest["note"])))
    if manifest["warning"]:
        rows.append(("Warning", str(manifest["warning"])))
    rows += [("Method", str(manifest["mechanism"])), ("Date of release", str(manifest["created"]))]
    if budget is None:
        rows.append(("Privacy", "No noise was added and no privacy is claimed: this is a repair."))
    else:
        ledger = Ledger.from_dict(budget)
        delta = f", δ = {ledger.delta:g}" if ledger.delta else ""
        rows += [
            ("Privacy budget", f"ε = {ledger.epsilon:g}{delta}"),
            ("Neighbouring tables", ledger.neighbours),
            *([("Unit of privacy", str(ledger.person))] if ledger.person else []),
        ]
    public = manifest["taken_as_public"]
    rows += [(f"Taken as public: {name.replace('_', ' ')}", str(words)) for name, words in public.items()]
    rows.append(("Standard errors", str(manifest["standard_errors"])))
    if (known := manifest.get("intervals")) is not None:
        rows.append(("Intervals", covering(known["confidence"], known["simultaneous"])))
    proved = "every post-processing step" if manifest["all_proved_optimal"] else "not every step"
    rows.append(("Proved optimal", f"{proved}; see `hierdp check`"))
    rows += [(f"Warning {number}", text) for number, text in enumerate(manifest.get("cautions", []), start=1)]
    if (folder / seal.SUMS).is_file():
        rows.append(("Fingerprint of the release", seal.digest(folder / seal.SUMS)))
    rows.append(("Made with", f"hierdp {manifest['versions']['hierdp']}"))
    return rows
