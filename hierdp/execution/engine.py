"""Where work is done, and how it is handed out: one at a time from here, results in the order of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.execution.protocol import Engine, Shared, T

MOST_WORKERS = 1_000
"""Processes of one machine; more is a slip of the keyboard."""


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def using(workers: int | None = None, scheduler: str | None = None) -> Iterator[None]:
    """Have `each` work elsewhere, for the length of a ``with`` block.

    Parameters
    ----------
    workers : int, optional
        So many processes on this machine. Each needs the memory of its share of the work.
    scheduler : str, optional
        The address of a Dask scheduler (``tcp://host:8786``) whose workers have the same hierdp. Needs the
        extra ``hierdp[dask]``.

    Raises
    ------
    InputError
        If both are given, there are less than one worker, Dask is not installed, no scheduler answers there,
        or its workers have another hierdp.

    Examples
    --------
    >>> with using(workers=2):
    ...     list(each(divmod, [(7, 2), (9, 4)], "dividing"))
    [(3, 1), (2, 1)]
    """
    engine = _made(workers, scheduler)
    before = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(before)
        if engine is not None:
            engine.close()


def each(
    function: Callable[..., T], items: Sequence[tuple[Any, ...]], what: str, shared: Shared = ()
) -> Iterator[T]:
    """``function(*shared, *item)`` of every item, in their order.

    An item is a task: some tenths of a second of work, and a few megabytes at most. A task may be done more
    than once, where a worker is lost.

    Parameters
    ----------
    function : callable
        Of a module (it travels by its name), without side effects. NOT one that sees true counts of a
        release, or draws its noise.
    items : sequence of tuple
    what : str
        For the progress bar.
    shared : tuple
        What every task needs; sent once a worker. Keep it unchanged.

    Raises
    ------
    LostWorker
        If a task's process dies three times.
    """
    engine = _engine.get()
    if engine is None or not items:
        for item in progress.steps(items, what, len(items)):
            yield function(*shared, *item)
        return
    early: dict[int, T] = {}
    turn = 0
    with closing(engine.results(function, items, shared)) as results:
        for place, result in progress.steps(results, what, len(items)):
            early[place] = result
            while turn in early:
                yield early.pop(turn)
                turn += 1


def within(seconds: float, function: Callable[..., T], *item: Any) -> T:
    """``function(*item)``, by a process of its own on this machine that is stopped after so many seconds.

    Raises
    ------
    TimeoutError
        If it is not done by then.
    LostWorker
        If the process dies.
    """
    from hierdp.execution.processes import alone

    return alone(seconds, function, item)


def chunks(length: int, most: int) -> list[slice]:
    """``range(length)`` in slices of at most so many: the same ones, however many work on them."""
    most = max(1, most)
    return [slice(start, min(start + most, length)) for start in range(0, length, most)]


def _made(workers: int | None, scheduler: str | None) -> Engine | None:
    if workers is not None and scheduler is not None:
        raise InputError("give workers of this machine or the address of a scheduler, not both")
    if scheduler is not None:
        from hierdp.execution.cluster import Cluster

        return Cluster(scheduler)
    if workers is None:
        return None
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"workers is {workers!r}: it must be a whole number from 1 to {MOST_WORKERS}")
    from hierdp.execution.processes import Processes

    return Processes(workers)
