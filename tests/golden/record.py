"""The entries of the record, and their digests: one line ``NAME part digest`` for each text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

Entries = dict[str, Callable[[], dict[str, str]]]
"""By name, a function that gives a text for each part of the entry."""

MODULES = ("releases", "refusals", "verdicts")
"""Modules of this package, each with a function ``entries() -> Entries``."""

DIGESTS = Path(__file__).parent / "digests.txt"

Digests = dict[str, dict[str, str]]
"""Digests by entry and part."""


def entries() -> Entries:
    """All entries."""
    return {
        name: texts
        for module in MODULES
        for name, texts in import_module(f"tests.golden.{module}").entries().items()
    }


def digests(texts: dict[str, str]) -> dict[str, str]:
    """The digest of each text."""
    return {part: hashlib.sha256(text.encode()).hexdigest()[:16] for part, text in texts.items()}


def read() -> Digests:
    """The record."""
    found: Digests = {}
    for text in DIGESTS.read_text(encoding="utf-8").splitlines() if DIGESTS.exists() else ():
        name, part, digest = text.rsplit(" ", 2)
        found.setdefault(name, {})[part] = digest
    return found


def changes(name: str, now: dict[str, str], before: dict[str, str]) -> list[str]:
    """A line for each part whose digest differs, with the command that shows its text."""
    parts = [part for part in {**before, **now} if now.get(part) != before.get(part)]
    return [f'{name}, {part}: python -m tests.golden show "{name}.{part}"' for part in parts]


def accept(names: Iterable[str] = ()) -> list[str]:
    """Record the present texts of some entries, or of all; return a line for each part that changed."""
    known, before = entries(), read()
    names = list(names)
    now = {name: digests(known[name]()) for name in names or known}
    changed = [text for name in {**({} if names else before), **now}
               for text in changes(name, now.get(name, {}), before.get(name, {}))]  # fmt: skip
    kept = {name: now.get(name, before.get(name, {})) for name in known}
    lines = [f"{name} {part} {digest}\n" for name, of in kept.items() for part, digest in of.items()]
    DIGESTS.write_text("".join(lines), encoding="utf-8")
    return changed
