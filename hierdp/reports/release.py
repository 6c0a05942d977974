"""The report of a release, from its table and manifest only; `hierdp check` makes it again and compares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from hierdp.counts.layout import Layout
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import Table
from hierdp.measurements.origin import SameNoise
from hierdp.privacy.budget import Ledger
from hierdp.privacy.whom import Whom
from hierdp.reports.accuracy import accuracy_section, intervals_section
from hierdp.reports.counts import axes_of, counts_section
from hierdp.reports.page import Section, budget_section, page, steps_section
from hierdp.reports.solved import count_proved

MOST_VALUES = 100
"""Longer lists among the settings are in the manifest only."""

PROPERTIES = {
    "whole": "whole numbers",
    "non_negative": "not negative",
    "consistent": "adding up, level by level",
    "total": "of the public total",
}
ANSWERS = {True: "yes", False: "not claimed", None: "does not apply"}


def release_report(table: Table, manifest: Mapping[str, Any]) -> str:
    """A report that needs no true counts: plain words and verdicts first, the ledger last.

    - table: the released counts.
    - manifest: as made by `Release.manifest`. The report depends on nothing else, not even the time.

    Returns: a page in HTML.
    """
    released = manifest["budget"] is not None
    what = _what(table, manifest["settings"], released)
    sections = [
        about_section(table, manifest, what),
        verdicts_section(manifest),
        counts_section(laid_out(table).named(manifest.get("labels", {})), manifest["settings"]),
        protected_section(manifest),
        *intervals_section(table, manifest),
        accuracy_section(table, manifest),
        settings_section(manifest),
        steps_section(manifest),
        *([budget_section(manifest)] if released else []),
    ]
    cautions = [f"Warning: {text}." for text in manifest.get("cautions", [])]
    warnings = [*([manifest["warning"]] if manifest["warning"] else []), *cautions]
    return page(manifest["title"] or what, sections, warnings, manifest["note"] or "")


def about_section(table: Table, manifest: Mapping[str, Any], what: str) -> Section:
    """What was released or repaired, in plain words; it stands under the title without a heading."""
    rows = f"{len(table):,} rows"
    said = f"{what}: " if manifest["title"] else ""
    if manifest["budget"] is None:
        kept = manifest["settings"]["fixed"]
        text = (
            f"{said}Somebody else noised or estimated these counts. hierdp made them consistent: {rows}, in "
            "the files named released, with the given counts beside the repaired ones."
        )
        return Section("", [text + (f" Counts of {', '.join(kept)} are as given." if kept else "")])
    repaired = "; the noisy counts were then made to fit together" if manifest["solved"] else ""
    text = (
        f"{said}{rows}, in the files named released. To protect the people behind the counts, "
        f"{manifest['mechanism']} added random noise to the true counts{repaired}. "
        f"{_true_counts(manifest['settings'])}"
    )
    return Section("", [text if said else text[0].upper() + text[1:]])


def _true_counts(settings: Mapping[str, Any]) -> str:
    """Which counts are published without noise."""
    plan = settings.get("plan")
    invariants = plan.get("invariants", ()) if isinstance(plan, Mapping) else ()
    public = ["the total"] if "total" in settings else []
    if "groups" in settings and settings.get("groups_are", "public") == "public":
        public.append("the number of groups" + (" of each region" if "groups_are" in settings else ""))
    public += [f"the invariant {name}" for name in invariants]
    if not public:
        return "No true count is in any of the files."
    named = " and ".join([", ".join(public[:-1])] * (len(public) > 1) + public[-1:])
    return f"Without noise, because they count as public: {named}. No other true count is in the files."


def protected_section(manifest: Mapping[str, Any]) -> Section:
    """Whom the release protects, how well, and what it takes as public."""
    title = "What is protected"
    if manifest["budget"] is None:
        text = (
            "This is a repair, not a private release: hierdp added no noise, and makes no claim of privacy. "
            "Whom the counts protect, if anybody, depends on how the given counts were made."
        )
        return Section(title, [text])
    ledger = Ledger.from_dict(manifest["budget"])
    chance = f", but for a chance of {ledger.delta:g}" if ledger.delta else ""
    texts = [
        f"Protected: {_protected(ledger)}. Whatever somebody concludes from this release, and whatever else "
        f"they know, such a change makes it at most {_factor(ledger.epsilon)} times as likely{chance} "
        f"(ε = {ledger.epsilon:g}; the smaller ε, the stronger the protection and the larger the noise).",
        "For example, somebody who holds two such tables to be equally likely becomes "
        f"{_sure(ledger.epsilon)} sure of one of them{chance}.",
    ]
    if not ledger.private:
        texts = [
            "This run protects nobody: its noise is simulated. With exact noise it would be as follows.",
            *texts,
        ]
    public = manifest["taken_as_public"]
    if public:
        text = "; ".join(f"{name.replace('_', ' ')}: {words}" for name, words in public.items())
        texts.append(f"Taken as public, by the publisher's word: {text}.")
    return Section(title, texts)


def _sure(epsilon: float) -> str:
    """What e^ε : 1 is as a probability, rounded up to a percent."""
    percent = math.ceil(100 / (1 + math.exp(-epsilon)) - 1e-9)
    return f"at most {percent} %" if percent < 100 else "nearly 100 %"


def _protected(ledger: Ledger) -> str:
    whom = ledger.whom
    if ledger.person is None:
        return ledger.neighbours + ("" if whom == Whom() else f". This is {whom}")
    return (
        f"{whom}; a row's change is that {ledger.neighbours}, and ε is that of all that is counted together"
    )


def verdicts_section(manifest: Mapping[str, Any]) -> Section:
    """The properties of counts, proofs, noise and budget, one line each."""
    import pandas as pd

    solved, budget = manifest["solved"], manifest["budget"]
    proved, problems = count_proved(solved)
    steps = f"{proved:,} of {problems:,}" if solved else "nothing was to be solved"
    rows = [("privacy", "no claim: nothing was measured, no noise was added")]
    if budget is not None:
        ledger = Ledger.from_dict(budget)
        spent = f"{ledger.spent:.6g} of {ledger.rho if ledger.zcdp else ledger.epsilon:.6g}"
        rows = [("noise drawn exactly", "yes" if ledger.private else "no"), ("budget spent", spent)]
    if (same := manifest.get("same_noise_as")) is not None:
        other = SameNoise(**same)
        words = f"as the release by {other.mechanism}, {other.fingerprint}: no further budget"
        rows.append(("same noise", words))
    rows += [
        ("post-processing proved optimal", steps),
        *((f"counts: {PROPERTIES[name]}", ANSWERS[holds]) for name, holds in manifest["holds"].items()),
        ("standard errors", manifest["standard_errors"]),
    ]
    text = (
        "Anybody can check this from the files alone: hierdp check FOLDER --fingerprint, with that published."
    )
    return Section("Verdicts", [text], frames=[pd.DataFrame(rows, columns=["claim", "verdict"])])


def settings_section(manifest: Mapping[str, Any]) -> Section:
    """The public parameters, and the versions of the software."""
    import pandas as pd

    settings, created = manifest["settings"], manifest["created"].replace("T", " ").removesuffix("+00:00")
    seen = [name.removesuffix("_from_data") for name in settings if name.endswith("_from_data")]
    but_for = f", but for the {' and '.join(seen)}, which are those in the data" if seen else ""
    chosen = f"All of it is public, and taken as chosen without looking at the data{but_for}."
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    texts = [*([] if manifest["budget"] is None else [chosen]), f"Made {created} UTC by {versions}."]
    return Section(
        "Settings", texts, frames=[pd.DataFrame(_in_words(settings), columns=["setting", "value"])]
    )


def _factor(epsilon: float) -> str:
    """e^ε with few digits, also if it overflows a float."""
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else f"e^{epsilon:g}"


def _what(table: Table, settings: Mapping[str, Any], released: bool) -> str:
    """The default title."""
    layout = Layout.of(table, settings)
    if not released:
        (levels,) = settings["axes"].values()
        return f"Repaired counts by {' and '.join(levels[1:])}"
    if layout.sizes:
        levels = settings["levels"]
        return f"How many groups have each size, by {', '.join(levels[1:]) or levels[0]}"
    if layout.categories:
        return f"Counts by {', '.join(layout.categories)}, for every {', '.join(settings['levels'][1:])}"
    if layout.axes:
        return f"Counts by {' and '.join(layout.axes)}"
    axes = axes_of(settings)
    return f"Counts by {' and '.join(axis['name'] for axis in axes)}" if axes else "Private counts"


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
        if isinstance(value.get("kind"), str):  # an attribute may be called kind, too
            return f"{value['name']} ({value['kind']})"
        return "; ".join(f"{name}: {_plain(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        if len(value) > MOST_VALUES:
            return f"{len(value):,} values: see manifest.json"
        return ", ".join(map(_plain, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
