"""The report of a release, from its table and manifest only; `hierdp check` makes it again and compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hierdp.counts.layout import attributes_of, is_cells, is_sizes
from hierdp.counts.size_table import SizeTable, Table
from hierdp.privacy.budget import Ledger
from hierdp.reports import figures
from hierdp.reports.page import Section, budget_section, page, steps_section
from hierdp.reports.solved import counted

if TYPE_CHECKING:
    from pandas import DataFrame

LARGEST = 15
"""Number of cells drawn for a table over several axes."""

PROPERTIES = {
    "whole": "whole numbers",
    "non_negative": "not negative",
    "consistent": "adding up, level by level",
    "total": "of the public total",
}
ANSWERS = {True: "yes", False: "not claimed", None: "does not apply"}


def release_report(table: Table, manifest: Mapping[str, Any]) -> str:
    """A report that needs no true counts, with verdicts first and long tables last.

    Parameters
    ----------
    table : DataFrame
        The released counts.
    manifest : mapping
        As made by `Release.manifest`. The report depends on nothing else, not even the time.

    Returns
    -------
    str
        A page in HTML.
    """
    about = (repair_section if manifest["budget"] is None else about_section)(table, manifest)
    sections = [
        about,
        verdicts_section(manifest),
        counts_section(table, manifest["settings"]),
        *([] if manifest["budget"] is None else [budget_section(manifest)]),
        settings_section(manifest),
        steps_section(manifest),
    ]
    warning = manifest["warning"]
    title = manifest["title"] or about.title
    if title == about.title:
        sections[0] = Section("What was released", about.texts)
    return page(
        title, sections, [*([warning] if warning else []), *_cautions(manifest)], manifest["note"] or ""
    )


def _cautions(manifest: Mapping[str, Any]) -> list[str]:
    return [f"Warning: {text}." for text in manifest.get("cautions", [])]


def about_section(table: Table, manifest: Mapping[str, Any]) -> Section:
    """What was released and what is protected, in plain words."""
    ledger = Ledger.from_dict(manifest["budget"])
    what = _what(table, manifest["settings"])
    repaired = "; the noisy counts were then made to fit together" if manifest["solved"] else ""
    texts = [
        f"{what}: {len(table):,} rows, in {_where(table)}. {manifest['mechanism']} added "
        f"random noise to the true counts{repaired}. No true count is in any of the files.",
        f"Protected: {_protected(ledger)}. Whatever somebody concludes from this release, and whatever else "
        f"they know, such a change makes it at most {_factor(ledger.epsilon)} times as likely"
        + (f", but for a chance of {ledger.delta:g}" if ledger.delta else "")
        + f" (ε = {ledger.epsilon:g}; the smaller ε, the stronger the protection and the larger the noise).",
    ]
    public = manifest["taken_as_public"]
    if public:
        told = "; ".join(f"{name.replace('_', ' ')}: {words}" for name, words in public.items())
        texts.append(f"Taken as public, by the publisher's word: {told}.")
    return Section(what, texts)


def repair_section(table: Table, manifest: Mapping[str, Any]) -> Section:
    """What was repaired, and that nothing is claimed of its privacy, in plain words."""
    what = f"Repaired counts by {' and '.join(_named(manifest['settings']))}"
    options = manifest["settings"]
    kept = f" Counts of {', '.join(options['fixed'])} are as given." if options["fixed"] else ""
    texts = [
        "Somebody else noised or estimated these counts. hierdp made them consistent: "
        f"{len(table):,} rows, in {_where(table)}, with the given counts beside the repaired ones.{kept}",
        "This is a repair, not a private release: hierdp added no noise, and makes no claim of privacy. "
        "Whom the counts protect, if anybody, depends on how the given counts were made.",
    ]
    return Section(what, texts)


def _named(settings: Mapping[str, Any]) -> list[str]:
    """The levels below the root of a table over one axis."""
    (levels,) = settings["axes"].values()
    return list(levels[1:])


def _where(table: Table) -> str:
    if isinstance(table, SizeTable):
        return (
            "the Parquet files of the folder released.parquet; this report shows the whole table's sums only"
        )
    return "released.csv and released.parquet"


def _protected(ledger: Ledger) -> str:
    person = ledger.person
    if person is None:
        return ledger.neighbours
    return f"{person}; a row's change is that {ledger.neighbours}, and ε is that of all of a person's rows"


def verdicts_section(manifest: Mapping[str, Any]) -> Section:
    """The properties of counts, proofs, noise and budget, one line each."""
    import pandas as pd

    solved = manifest["solved"]
    proved, problems = counted(solved)
    steps = f"{proved:,} of {problems:,}" if solved else "nothing was to be solved"
    rows = [
        *_privacy(manifest["budget"]),
        ("post-processing proved optimal", steps),
        *((f"counts: {PROPERTIES[name]}", ANSWERS[holds]) for name, holds in manifest["holds"].items()),
        ("standard errors", manifest["standard_errors"]),
    ]
    text = (
        "Anybody can check this from the files alone: hierdp check FOLDER --fingerprint, with that published."
    )
    return Section("Verdicts", [text], frames=[pd.DataFrame(rows, columns=["claim", "verdict"])])


def _privacy(budget: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if budget is None:
        return [("privacy", "no claim: nothing was measured, no noise was added")]
    ledger = Ledger.from_dict(budget)
    return [
        ("noise drawn exactly", "yes" if ledger.private else "no"),
        ("budget spent", f"{ledger.spent:.6g} of {ledger.rho if ledger.zcdp else ledger.epsilon:.6g}"),
    ]


def counts_section(table: Table, settings: Mapping[str, Any]) -> Section:
    """A figure of the released counts."""
    figure = _draw(table, settings)
    return Section("Counts", [] if figure else ["There is nothing to draw."], figure)


def settings_section(manifest: Mapping[str, Any]) -> Section:
    """The public parameters, and the versions of the software."""
    import pandas as pd

    made = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    rows, but_for = list(_in_words(manifest["settings"])), _but_for(manifest["settings"])
    chosen = f"All of it is public, and taken as chosen without looking at the data{but_for}."
    texts = [
        *([] if manifest["budget"] is None else [chosen]),
        f"Made {manifest['created'].replace('T', ' ').removesuffix('+00:00')} UTC by {made}.",
    ]
    return Section("Settings", texts, frames=[pd.DataFrame(rows, columns=["setting", "value"])])


def _but_for(settings: Mapping[str, Any]) -> str:
    """The end of a sentence: what was taken from the data."""
    from_data = [name.removesuffix("_from_data") for name in settings if name.endswith("_from_data")]
    return f", but for the {' and '.join(from_data)}, which are those in the data" if from_data else ""


def _factor(epsilon: float) -> str:
    """e^ε with few digits, also if it overflows a float."""
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else f"e^{epsilon:g}"


def _what(table: Table, settings: Mapping[str, Any]) -> str:
    """The default title."""
    if is_sizes(table):
        return (
            f"How many groups have each size, by {', '.join(settings['levels'][1:]) or settings['levels'][0]}"
        )
    if is_cells(settings, table):
        return f"Counts by {' and '.join(settings['axes'])}"
    if names := attributes_of(table):
        return f"Counts by {', '.join(names)}, for every {', '.join(settings['levels'][1:])}"
    axes = _axes(settings)
    return f"Counts by {' and '.join(axis['name'] for axis in axes)}" if axes else "Private counts"


def _axes(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The axes of a table of bins."""
    return list(settings.get("range_query", settings).get("axes") or ())


def _in_words(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping) and not all(isinstance(part, list) for part in value.values()):
            yield from ((f"{name.replace('_', ' ')}: {more}", text) for more, text in _in_words(value))
        else:
            yield name.replace("_", " "), _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        if value.get("kind") == "numbers":
            return f"{value['name']} from {value['low']:g} to {value['high']:g} in {value['bins']:,} bins"
        if "kind" in value:
            return f"{value['name']} ({value['kind']})"
        return "; ".join(f"{name}: {_plain(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _draw(table: Any, settings: Mapping[str, Any]) -> str:
    """A figure that suits the table; empty if there is nothing to draw."""
    if not len(table):
        return ""
    if is_sizes(table):
        return _sizes(table, settings)
    if is_cells(settings, table):
        return _cells(table, list(settings["axes"]))
    if names := attributes_of(table):
        return _table(table, names)
    axes = _axes(settings)
    return _bins(table, [axis["name"] for axis in axes]) if axes else ""


def _sizes(table: Table, settings: Mapping[str, Any]) -> str:
    if isinstance(table, SizeTable):  # the root's rows
        table = next(table.parts())
    top = table[table["level"] == 0] if (table["level"] == 0).any() else table
    groups = top.groupby("size")["groups"].sum()
    groups = groups[groups > 0]
    if groups.empty:
        return ""
    last = f" ({settings['max_size']} means this or more)" if "max_size" in settings else ""
    x, y = groups.index.to_numpy(float), groups.to_numpy(float)
    return figures.points(
        x, y, "Groups by size, all regions together", f"entities in a group{last}", "groups"
    )


def _cells(table: DataFrame, names: list[str]) -> str:
    finest = table[table["level"] == table["level"].max()].nlargest(LARGEST, "count")
    labels = [" → ".join(map(str, row)) for row in finest[names].itertuples(index=False)]
    title = f"The largest cells of the finest level ({' → '.join(names)})"
    return figures.bars(labels, finest["count"].tolist(), title, "count")


def _table(table: DataFrame, names: list[str]) -> str:
    """The largest cells of the root."""
    top = table[table["level"] == 0].nlargest(LARGEST, "count")
    if top.empty:
        return ""
    labels = [", ".join(map(str, row)) for row in top[names].itertuples(index=False)]
    title = f"The largest cells of all regions together ({', '.join(names)})"
    return figures.bars(labels, top["count"].tolist(), title, "count")


def _bins(table: DataFrame, names: list[str]) -> str:
    """One axis as steps with standard errors; two axes as an image."""
    if "level" in table:
        table = table[table["level"] == table["level"].max()]
    columns = [f"{name}_first" if f"{name}_first" in table else name for name in names]
    shape = [int(table[column].nunique()) for column in columns]
    counts = table["count"].to_numpy(float)
    if len(names) == 2 and counts.size == shape[0] * shape[1]:
        x, y = (f"{name}, bin" for name in names)
        return figures.image(counts.reshape(shape), "Counts by bin", x, y)
    if len(names) != 1:
        return ""
    errors = table["standard_error"].to_numpy(float) if "standard_error" in table else None
    if errors is not None and not np.isfinite(errors).all():
        errors = None
    title = "Counts by bin" + ("" if errors is None else ", with one standard error on each side")
    return figures.steps(counts, errors, title, f"{names[0]}, bin from 0 on", "count")
