"""The interface of engines that run tasks outside this process: processes and Dask."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


Shared = tuple[Any, ...]


class LostWorker(RuntimeError):
    """A task's process died repeatedly, or no worker is left; nothing is released."""


class Engine(Protocol):
    """Runs tasks outside this process."""

    def results(
        self, function: Callable[..., T], items: Sequence[tuple[Any, ...]], shared: Shared
    ) -> Generator[tuple[int, T], None, None]:
        """Index and result of every item, in order of completion; closing it stops unfinished tasks."""

    def close(self) -> None:
        """Release the workers."""
