"""Workers of a Dask cluster that work for this process."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from hierdp.errors import InputError, listed
from hierdp.execution.protocol import LostWorker, Shared
from hierdp.versions import fingerprint

T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""How long a scheduler has to answer, and its first worker to be there."""

BACK_SECONDS = 4.0
"""How long a scheduler that was lost has to come back."""

LOOK_SECONDS = 0.02
"""From one look for finished tasks to the next."""

GONE = "the Dask scheduler is gone: start it again, and the release anew (nothing of it was written)"

TRIES = 3
"""Losses a task, on average, after which it is given up."""

AHEAD = 2
"""Tasks sent for each of the workers' threads: one at work, one waiting for it, the rest still here."""


def _knock(address: str, dask: Any) -> None:
    """Whether anybody is there, before there is a client.

    One that does not come up takes Dask's one lock again when it is collected; if that is while the next one
    holds it, both wait forever.
    """
    from distributed.core import connect

    async def once() -> None:
        how = dask.Security().get_connection_args("client")
        comm = await connect(address, timeout=PATIENCE_SECONDS, **how)
        await comm.close()

    with ThreadPoolExecutor(1) as aside:  # a notebook's own thread runs a loop already
        aside.submit(asyncio.run, once()).result()


class Cluster:
    """See `hierdp.execution.using`. The scheduler gives a lost worker's tasks to others, three times."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError(
                "a scheduler needs Dask, which is not installed: pip install 'hierdp[dask]'"
            ) from None
        self._dask: Any = distributed
        try:
            _knock(address, distributed)
            self._client = self._dask.Client(address, timeout=PATIENCE_SECONDS, set_as_default=False)
        except (OSError, ValueError, AssertionError) as nobody:  # the last: Dask's own thread did not start
            why = type(nobody).__name__
            raise InputError(
                f"no Dask scheduler answers at {address!r} ({why}): give an address such as tcp://host:8786, "
                "and start one there if there is none (dask scheduler)"
            ) from None
        try:
            self._check(address)
        except BaseException:
            self.close()
            raise

    def _check(self, address: str) -> None:
        """The workers have to be there, and have what we have."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TimeoutError:
            raise InputError(f"the scheduler at {address} has no workers: start some (dask worker)") from None
        try:
            theirs = self._client.run(fingerprint)
        except Exception as failure:  # whatever a worker without hierdp says
            raise InputError(
                f"the workers of {address} cannot load hierdp ({type(failure).__name__}): install it there"
            ) from None
        others = sorted(name for name, what in theirs.items() if what != fingerprint())
        if others:
            raise InputError(
                f"the workers {listed(others)} have another hierdp than this process, or other versions of "
                "the libraries that it uses: install the same versions everywhere"
            )

    def results(
        self, function: Callable[..., T], items: Sequence[tuple[Any, ...]], shared: Shared
    ) -> Generator[tuple[int, T], None, None]:
        """See `Engine.results`."""
        client, todo, losses = self._client, iter(enumerate(items)), 0
        there = self._spread(shared)
        places: dict[str, int] = {}
        done = self._dask.as_completed(loop=client.loop)

        def send(place: int, item: tuple[Any, ...]) -> None:
            key = f"hierdp-{uuid.uuid4().hex}"
            places[key] = place
            done.add(client.submit(function, *there, *item, key=key, pure=False))

        try:
            threads = sum(client.nthreads().values())
            for place, item in itertools.islice(todo, AHEAD * max(1, threads)):
                send(place, item)
            for future in self._as_done(done):
                place = places.pop(future.key)
                try:
                    result = self._result(future)
                except CancelledError:
                    # What the tasks share went with the only worker that had it; or the scheduler is gone.
                    losses += 1
                    if self._gone():
                        raise LostWorker(GONE) from None
                    if losses > TRIES * len(items):
                        raise LostWorker("what the Dask scheduler held was lost again and again") from None
                    there = self._spread(shared)
                    send(place, items[place])
                    continue
                for further, item in itertools.islice(todo, 1):
                    send(further, item)
                yield place, result
        except (OSError, RuntimeError) as broken:  # in Dask's words, of which it has many
            if isinstance(broken, LostWorker) or not self._gone():
                raise
            raise LostWorker(GONE) from None
        finally:
            if not self._gone():
                client.cancel([*done.futures, *there], force=True)

    def _gone(self) -> bool:
        return bool(self._client.status != "running")

    def _as_done(self, done: Any) -> Iterator[Any]:
        """The futures of `as_completed`, as they are done, as long as the scheduler is there.

        Dask by itself tries for half a minute to reach it again, and says nothing.
        """
        missed = 0.0
        while not done.is_empty():
            if done.has_ready():
                yield from done.next_batch(block=False)
                continue
            missed = missed + LOOK_SECONDS if self._gone() else 0.0
            if missed > BACK_SECONDS:
                raise LostWorker(GONE)
            time.sleep(LOOK_SECONDS)

    def _spread(self, shared: Shared) -> list[Any]:
        """What all tasks need, on every worker."""
        return list(self._client.scatter(list(shared), broadcast=True, hash=False)) if shared else []

    def close(self) -> None:
        """Leave the scheduler and its workers as they were."""
        with suppress(*((OSError, RuntimeError) if self._gone() else ())):
            self._client.close(timeout=BACK_SECONDS)

    def _result(self, future: Any) -> Any:
        """A task's result, which is fetched at once: a worker that is lost later does not take it along."""
        try:
            while True:
                try:
                    return future.result(timeout=PATIENCE_SECONDS)
                except TimeoutError:
                    if self._gone():
                        raise LostWorker(GONE) from None
        except self._dask.scheduler.KilledWorker as death:
            raise LostWorker(
                f"a task took down each of the {death.allowed_failures + 1} workers it was given to"
            ) from None
