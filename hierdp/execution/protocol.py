"""What does the work of others: the interface of processes and of Dask."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


Shared = tuple[Any, ...]


class LostWorker(RuntimeError):
    """A task took its process down again and again, or nobody is left to do it; nothing is released."""


class Engine(Protocol):
    """Others who work for this process."""

    def results(
        self, function: Callable[..., T], items: Sequence[tuple[Any, ...]], shared: Shared
    ) -> Generator[tuple[int, T], None, None]:
        """Place and result of every item, as they come; closed early, it stops what is not done."""

    def close(self) -> None:
        """Let them go."""
