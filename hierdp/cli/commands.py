"""The commands by name. A command's module is loaded when the command is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import click

MODULES = {
    **{name: name for name in ("demo", "plan", "release", "repair", "account", "check", "explain")},
    "query": "query",
    "export": "export",
    **{
        name: name
        for name in ("analyze", "compare", "evaluate", "verify", "prove", "audit", "bench", "reproduce")
    },
    "solvers": "lists",
    "mechanisms": "lists",
}
"""The module in `hierdp.cli` of each command."""


class Commands(Mapping[str, click.Command]):
    """The commands of hierdp."""

    def __getitem__(self, name: str) -> click.Command:
        command: click.Command = getattr(import_module(f"hierdp.cli.{MODULES[name]}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)
