"""What a release promises, to whom, and with what exceptions: one page of plain words from its folder alone.

Every sentence follows from the manifest and its ledger. Upper bounds on what an attacker can conclude are
rounded up. With P and Q the laws of a release from two neighbouring tables:

- ε-DP: the odds of any two neighbouring tables change by at most a factor e^ε (Bayes' rule). Randomized
  response with a probability e^ε/(1 + e^ε) of the truth attains this.
- (ε, δ)-DP: who guesses between two equally likely tables is right with probability (1 + TV(P, Q))/2 ≤
  (e^ε + δ)/(1 + e^ε) (Kairouz, Oh & Viswanath 2015).
- ρ-zCDP: for the same guess, TV ≤ √(ρ/2) by Pinsker's inequality, as KL(P‖Q) ≤ ρ; and ε at any δ by
  `hierdp.privacy.conversion.epsilon_of`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.measurements.origin import SameNoise
from hierdp.mechanisms.registry import REPAIR, released_by
from hierdp.privacy.budget import Ledger
from hierdp.privacy.conversion import epsilon_of
from hierdp.record.written import Unreadable, names_in, read_manifest

PRIORS = (0.01, 0.1, 0.5)
"""Beliefs before the release, for which the page gives the largest belief afterwards."""

DELTAS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
"""Points of the curve of (ε, δ) under zCDP."""

MOST_LINES = 10
"""The most measurements that are listed one by one."""

WIDTH = 88


@dataclass(frozen=True)
class Section:
    """A heading, and its paragraphs."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The page: its title and sections; `sound` is False if the ledger contradicts its own budget."""

    title: str
    sections: tuple[Section, ...]
    sound: bool = True

    def __str__(self) -> str:
        parts = [self.title]
        for section in self.sections:
            lines = [textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ")
                     for line in section.lines]  # fmt: skip
            parts.append("\n".join([section.heading.upper(), *lines]))
        return "\n\n".join(parts)


def explain(folder: str | Path, limit: int | None = None) -> Explanation:
    """Explain a release or a repair, from its folder alone.

    Parameters
    ----------
    folder : path
        What `hierdp release` or `hierdp repair` wrote.
    limit : int, optional
        Memory limit for reading the manifest, in bytes. Default: what its size justifies.

    Raises
    ------
    InputError
        If there is no release, or its manifest cannot be read.
    """
    names = names_in(Path(folder))
    manifest = read_manifest(Path(folder), limit)
    try:
        return _explained(manifest, seal.SIGNATURE in names)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as broken:
        if isinstance(broken, InputError):
            raise
        raise Unreadable(f"manifest.json is broken: {type(broken).__name__}") from None


def _explained(manifest: Mapping[str, Any], signed: bool) -> Explanation:
    made = released_by(manifest.get("mechanism"))
    title = str(manifest.get("title") or f"A release by {manifest.get('mechanism')}")
    budget = manifest.get("budget")
    if made is REPAIR or budget is None:
        return Explanation(title, tuple(_repair(manifest, signed)))
    try:
        ledger, wrong = Ledger.from_dict(budget), ""
    except InputError as contradiction:
        ledger, wrong = None, str(contradiction)
    about = _about(manifest, made.releases if made is not None else "counts")
    if ledger is None:
        problem = f"Do not rely on this release: its ledger contradicts its own budget. {_sentence(wrong)}"
        return Explanation(title, (about, Section("What is wrong", (problem,))), sound=False)
    return Explanation(
        title,
        (
            about,
            Section("Who is protected", tuple(_whom(budget, ledger))),
            Section("Against whom", AGAINST),
            Section("What an attacker can conclude at most", tuple(_conclusions(ledger))),
            Section("What is outside the promise", tuple(_exceptions(manifest, ledger))),
            Section("What was spent, and on which account", tuple(_spent(manifest, ledger, signed))),
            Section("What was not checked", NOT_CHECKED),
        ),
    )


def _about(manifest: Mapping[str, Any], releases: str) -> Section:
    own = manifest.get("own_mechanism")
    by = "hierdp" if own is None else f"{own['class']}, which is not part of hierdp"
    lines = [f"This folder contains {releases}, made by the method {manifest['mechanism']} of {by}."]
    if manifest.get("created"):
        lines.append(f"It was made at {manifest['created']} by the clock of the machine that made it.")
    if manifest.get("note"):
        lines.append(f"The publisher notes: {manifest['note']}")
    if manifest.get("warning"):
        lines.append(
            f"{manifest['warning']}. Whoever knows the seed can remove the noise: no promise below holds."
        )
    return Section("What this is", tuple(lines))


# --- who -------------------------------------------------------------------------------------------------


def _whom(budget: Mapping[str, Any], ledger: Ledger) -> Iterator[str]:
    change, *_ = ledger.neighbours.split("; ")
    bound = budget.get("person") or budget.get("bounded_row")
    yield f"Protected is {budget['protects']}."
    yield f"The promise is about any two tables that differ in one such step: {change}."
    if bound and bound["spends_are_for"] == "one row":
        yield (
            f"What is protected has up to {bound['rows']} such steps; ε below is for all of them together. "
            "Further rows are not counted."
        )
    if kind_of(change) == REPLACES:
        yield (
            "It hides what the table says about the one that is replaced, but for the exceptions below. It "
            "does not hide how many there are: the total is public."
        )
    elif kind_of(change) == JOINS:
        yield (
            "It hides whether the one that joins or leaves is in the table, and all that the table says "
            "about it, but for the exceptions below. A change from one place of the table to another is two "
            f"steps, leaving and joining: it is protected with up to {_twice(ledger)}."
        )
    if not bound:
        yield (
            "Somebody behind k of these units, such as a person with k rows or a household of k people, is "
            f"protected less: {_k_times(ledger)}."
        )


REPLACES, JOINS = "replaces", "joins"


def kind_of(change: str) -> str | None:
    """Whether a neighbouring relation, in a manifest's words, replaces or adds; None if it says neither."""
    if "replaced" in change:
        return REPLACES
    return (
        JOINS
        if any(words in change for words in ("joins or leaves", "more or less", "comes or goes"))
        else None
    )


def _twice(ledger: Ledger) -> str:
    if ledger.zcdp:
        return f"ρ = {_up(4 * ledger.rho)} instead of {_up(ledger.rho)}"
    return f"ε = {_up(2 * ledger.epsilon)} instead of {_up(ledger.epsilon)}"


def _k_times(ledger: Ledger) -> str:
    if ledger.zcdp:
        return "their ρ is up to k² times that of one unit"
    return "their ε is up to k times that of one unit" + (", and their δ grows, too" if ledger.delta else "")


AGAINST = (
    "Anybody who reads the published files; who knows the program, the method and all options; who may know "
    "every row of the table but those protected; who has any other data, any computer and any time.",
    "Not against those who can see the table, or the machine while it makes the release: its memory, its "
    "timing and its error messages depend on the true data.",
    "Facts about the population are not hidden. That an attacker learns something about a person because it "
    "holds for many others is no breach of this promise.",
)


# --- what can be concluded -------------------------------------------------------------------------------


def posterior(prior: float, epsilon: float) -> float:
    """The largest probability of one of two neighbouring tables after an ε-DP release.

    Examples
    --------
    >>> round(posterior(0.5, 1), 3)
    0.731
    """
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def guess(ledger: Ledger) -> float:
    """An upper bound on the probability to guess right between two equally likely neighbouring tables."""
    right = posterior(0.5, ledger.epsilon) + ledger.delta / (1 + _e_to(ledger.epsilon))
    if ledger.zcdp:
        right = min(right, 0.5 + 0.5 * math.sqrt(ledger.rho / 2))
    return min(1.0, right)


def _conclusions(ledger: Ledger) -> Iterator[str]:
    epsilon, times = ledger.epsilon, _e_to(ledger.epsilon)
    delta = f", δ = {ledger.delta:g}" if ledger.delta else ""
    plus = f" (plus δ = {ledger.delta:g})" if ledger.delta else ""
    yield (
        f"ε = {epsilon:g}{delta}: whatever is published is at most e^ε = {_up(times)} times as likely from "
        f"one of two such tables as from the other{plus}."
    )
    if not ledger.delta:
        after = [f"from {100 * p:g} % to at most {_percent(posterior(p, epsilon))}" for p in PRIORS]
        yield (
            "So an attacker's odds for one of two such tables against the other grow at most by this factor. "
            f"A belief can rise {'; '.join(after)}. It can fall by the same factor."
        )
    yield (
        "An attacker who has to guess between two such tables, both equally likely before, is right with a "
        f"probability of at most {_percent(guess(ledger))}."
    )
    yield (
        "For comparison, randomized response: somebody says in public which of the two tables it is, "
        f"truthfully with probability {_percent(posterior(0.5, epsilon))}, and with a lie otherwise"
        + ("; with probability δ they show it. No release with this ε and δ reveals more." if ledger.delta
           else ". No release with this ε reveals more.")
    )  # fmt: skip
    if ledger.zcdp:
        deltas = sorted({*DELTAS, ledger.delta}, reverse=True)
        curve = ", ".join(f"ε = {_up(_epsilon_at(delta, ledger))} at δ = {delta:g}" for delta in deltas)
        yield (
            f"The loss is ρ = {ledger.rho:.6g} (zero-concentrated differential privacy), which gives a "
            f"promise for every δ at once: {curve}."
        )


def _epsilon_at(delta: float, ledger: Ledger) -> float:
    found = epsilon_of(ledger.rho, delta)
    return min(found, ledger.epsilon) if delta == ledger.delta else found


def _e_to(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 700 else math.inf


def _percent(probability: float) -> str:
    """A probability in percent, rounded up to one more digit than it needs to differ from 100 %."""
    for digits in range(1, 8):
        shown = math.ceil(probability * 10 ** (digits + 2) - 1e-9) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f} %"
    return "100 %"


def _up(value: float) -> str:
    """Three significant digits, rounded up."""
    if not math.isfinite(value) or value == 0:
        return "0" if value == 0 else "∞"
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    shown = math.ceil(value * scale * (1 - 1e-12)) / scale
    return f"{shown:,.0f}" if shown >= 1000 else f"{shown:.3g}"


# --- exceptions ------------------------------------------------------------------------------------------


def _exceptions(manifest: Mapping[str, Any], ledger: Ledger) -> Iterator[str]:
    _, *further = ledger.neighbours.split("; ")
    for one in further:
        if one.startswith("the guarantee does not cover"):
            yield f"{_sentence(one)} They are true answers, and no ε covers what they reveal."
        else:
            yield f"Published exactly, and not protected: {one}."
    for name, source in manifest["taken_as_public"].items():
        yield f"Taken as public: {name.replace('_', ' ')}, {source}."
    for spend in ledger.spends:
        if spend.delta is not None:
            yield (
                f"A threshold hides cells ({spend.noise}). With probability at most {_up(spend.delta)} (this "
                "is what δ pays for), a cell appears that is in only one of the two tables."
            )
    for caution in manifest["cautions"]:
        yield f"Warning: {_sentence(str(caution))}"
    yield "All options of the release are public, and were to be chosen without the data."


# --- what was spent --------------------------------------------------------------------------------------


def _spent(manifest: Mapping[str, Any], ledger: Ledger, signed: bool) -> Iterator[str]:
    unit, allowed = ("ρ", ledger.rho) if ledger.zcdp else ("ε", ledger.epsilon)
    yield (
        f"{len(ledger.spends)} measurements cost {unit} = {ledger.spent:.6g} of {allowed:.6g}. The sum was "
        "computed again for this page, and is within the budget."
    )
    for spend in ledger.spends[:MOST_LINES]:
        loss = spend.rho if ledger.zcdp else spend.epsilon
        yield f"{spend.query}: {spend.noise} noise of scale {spend.scale:.4g} for {unit} = {loss or 0:.4g}."
    if len(ledger.spends) > MOST_LINES:
        yield f"… and {len(ledger.spends) - MOST_LINES:,} more; manifest.json lists all of them."
    account, why = manifest.get("account"), manifest.get("without_account")
    if same := manifest.get("same_noise_as"):
        other, account = SameNoise(**same), same["account"]
        yield (
            f"The measurements are those of the release by {other.mechanism} with the fingerprint "
            f"{other.fingerprint}. Both releases together cost no more than that one."
        )
    if account:
        yield (
            f"Charged to the account of {account['data']!r}, as its entry {account['entry']} (digest "
            f"{str(account['digest'])[:16]}…). The account limits what all its releases cost together."
        )
        if why:
            yield f"Charged to no other account. The publisher's reason: {_sentence(str(why))}"
    elif why:
        yield f"Charged to no account. The publisher's reason: {_sentence(str(why))}"
    else:
        yield "Charged to no account: nothing here limits what other releases of the same people cost."
    yield (
        "The folder is signed; whose signature it is was not checked here." if signed else
        "The folder is not signed, and does not prove who made it."
    )  # fmt: skip


NOT_CHECKED = (
    "This page repeats what the manifest says. `hierdp check` checks the files against their fingerprint "
    "(--fingerprint), the signature (--public-key), the account (--account), the laws of the noise, the "
    "sensitivities, and the proofs of all answers.",
    "No program can check from these files that the noise was really drawn as stated, that the table was "
    "complete and correct, or that a column names persons as it should.",
    "Nor that the options and public lists were chosen without the data, or that no other release, file or "
    "true count of the same people is known.",
)


def _repair(manifest: Mapping[str, Any], signed: bool) -> Iterator[Section]:
    yield Section(
        "What this is",
        (
            f"This folder contains counts that were given, made consistent ({manifest.get('mechanism')}).",
            *([f"The publisher notes: {manifest['note']}"] if manifest.get("note") else []),
        ),
    )
    yield Section(
        "Who is protected",
        (
            "hierdp claims nothing about privacy here: it drew no noise, and spent no budget.",
            "The result is computed from the given counts alone. It protects whom they protect, and no more. "
            "Ask whoever made them. If they are true counts, nobody is protected.",
        ),
    )
    yield Section(
        "What was not checked",
        (
            "Where the given counts come from, and what noise they have.",
            "`hierdp check` checks the files and the proofs that each answer is optimal. The folder is "
            + ("signed; whose signature it is was not checked here." if signed else "not signed."),
        ),
    )


def _sentence(text: str) -> str:
    """A text as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
