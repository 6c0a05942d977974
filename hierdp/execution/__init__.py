"""Run independent tasks (regions, sizes, subtrees, runs) in this process, in several processes, or on Dask.

    with execution.using(workers=4):
        made = release(table, "group-size", ...)

Results are in the order of the tasks, so they do not depend on where the tasks ran, or on the number of
workers. Tasks contain the post-processing of noisy counts, and runs of experiments. True counts, and drawing
noise, stay in the process that reads the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from typing import Any

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.execution.protocol import Engine, Shared, T
from hierdp.execution.protocol import LostWorker as LostWorker

MOST_WORKERS = 1_000
"""The largest number of processes; a larger one is likely a typing error."""


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def using(workers: int | None = None, scheduler: str | None = None) -> Iterator[None]:
    """Make `each` run its tasks in other processes or on Dask, within a ``with`` block.

    Parameters
    ----------
    workers : int, optional
        Number of processes on this machine. Each needs memory for its share of the work.
    scheduler : str, optional
        Address of a Dask scheduler (``tcp://host:8786``) whose workers have the same version of hierdp. Needs
        the extra ``hierdp[dask]``.

    Raises
    ------
    InputError
        If both are given, `workers` is less than 1, Dask is not installed, no scheduler answers, or its
        workers have another version of hierdp.

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
    """``function(*shared, *item)`` for every item, in order.

    An item is a task: a few tenths of a second of work, and a few megabytes at most. A task may run more than
    once if a worker is lost.

    Parameters
    ----------
    function : callable
        A function defined in a module (it is sent by name), without side effects. It must NOT use the true
        counts of a release or draw noise.
    items : sequence of tuple
    what : str
        Label of the progress bar.
    shared : tuple
        Data that all tasks need, sent once to each worker. It must not be modified.

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
    """``function(*item)``, in a separate process on this machine that is stopped after a time limit.

    Raises
    ------
    TimeoutError
        If the time limit is reached.
    LostWorker
        If the process dies.
    """
    from hierdp.execution.processes import alone

    return alone(seconds, function, item)


def chunks(length: int, most: int) -> list[slice]:
    """``range(length)`` in slices of at most `most`; they do not depend on the number of workers."""
    most = max(1, most)
    return [slice(start, min(start + most, length)) for start in range(0, length, most)]


def _made(workers: int | None, scheduler: str | None) -> Engine | None:
    if workers is not None and scheduler is not None:
        raise InputError("give either workers or a scheduler, not both")
    if scheduler is not None:
        from hierdp.execution.cluster import Cluster

        return Cluster(scheduler)
    if workers is None:
        return None
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"workers must be a whole number from 1 to {MOST_WORKERS}, got {workers!r}")
    from hierdp.execution.processes import Processes

    return Processes(workers)
