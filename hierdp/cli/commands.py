"""The commands by name. A command's module is loaded when the command is used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import click

MODULES = {
    **{
        name: name
        for name in ("demo", "plan", "release", "repair", "reconcile", "account", "check", "explain")
    },
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
    """Commands by name, each made when it is used."""

    def __init__(
        self,
        names: Collection[str],
        make: Callable[[str], click.Command],
        named: Callable[[str], str] = lambda name: name,
    ) -> None:
        """With `named`, which gives the name of a command for what is typed."""
        self._names, self._make, self._named = names, make, named

    def __getitem__(self, typed: str) -> click.Command:
        if (name := self._named(typed)) not in self._names:
            raise KeyError(typed)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class LazyCommand(click.Command):
    """A command whose options are made, and whose code is loaded, when they are first needed."""

    def __init__(
        self, name: str, callback: Callable[..., Any] | None, help: str | None,
        options: Callable[[], list[click.Parameter]],
    ) -> None:  # fmt: skip
        super().__init__(name, callback=callback, help=help)
        self._options = options
        del self.params  # click has set it; from here on, the property below is used

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]
        """The options."""
        return self._options()


def _of_module(name: str) -> click.Command:
    command: click.Command = getattr(import_module(f"hierdp.cli.{MODULES[name]}"), name)
    return command


COMMANDS = Commands(MODULES, _of_module)
"""The commands of hierdp."""
