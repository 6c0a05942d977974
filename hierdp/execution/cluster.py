"""Run tasks on the workers of a Dask cluster."""

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
"""Time limit for the scheduler's first answer, and for its first worker to appear."""

BACK_SECONDS = 4.0
"""How long to wait for a lost scheduler to return."""

LOOK_SECONDS = 0.02
"""Interval between two checks for finished tasks."""

GONE = "the Dask scheduler was lost: restart it, then run the release again (nothing was written)"

TRIES = 3
"""How often tasks may be lost, on average per task, before the run fails."""

AHEAD = 2
"""Tasks sent in advance for each worker thread: one running and one waiting."""


def _check_answers(address: str, dask: Any) -> None:
    """Check that a scheduler answers, before a client is made.

    A client that cannot connect acquires Dask's global lock again when it is garbage-collected. If another
    client holds the lock at that moment, both wait forever.
    """
    from distributed.core import connect

    async def once() -> None:
        how = dask.Security().get_connection_args("client")
        comm = await connect(address, timeout=PATIENCE_SECONDS, **how)
        await comm.close()

    with ThreadPoolExecutor(1) as aside:  # in a notebook, this thread already runs an event loop
        aside.submit(asyncio.run, once()).result()


class Cluster:
    """Runs tasks on a Dask cluster, and repeats lost tasks; see `hierdp.execution.using`."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError:
            raise InputError(
                "--scheduler needs Dask, which is not installed; run pip install 'hierdp[dask]'"
            ) from None
        self._dask: Any = distributed
        try:
            _check_answers(address, distributed)
            self._client = self._dask.Client(address, timeout=PATIENCE_SECONDS, set_as_default=False)
        except (OSError, ValueError, AssertionError) as nobody:  # AssertionError: Dask's thread did not start
            why = type(nobody).__name__
            raise InputError(
                f"no Dask scheduler answers at {address!r} ({why}); give an address such as tcp://host:8786, "
                "and start a scheduler there (dask scheduler) if none is running"
            ) from None
        try:
            self._check(address)
        except BaseException:
            self.close()
            raise

    def _check(self, address: str) -> None:
        """Raise unless there is a worker, and all workers have this process's hierdp and libraries."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
        except TimeoutError:
            raise InputError(f"the scheduler at {address} has no workers; start some (dask worker)") from None
        try:
            theirs = self._client.run(fingerprint)
        except Exception as failure:  # any error of a worker without hierdp
            raise InputError(
                f"the workers of {address} cannot load hierdp ({type(failure).__name__}); install it there"
            ) from None
        others = sorted(name for name, what in theirs.items() if what != fingerprint())
        if others:
            raise InputError(
                f"the workers {listed(others)} have another version of hierdp or of its libraries than this "
                "process; install the same versions everywhere"
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
                    # The only worker with the shared data is lost, or the scheduler is.
                    losses += 1
                    if self._gone():
                        raise LostWorker(GONE) from None
                    if losses > TRIES * len(items):
                        raise LostWorker("the Dask workers lost the data of tasks repeatedly") from None
                    there = self._spread(shared)
                    send(place, items[place])
                    continue
                for further, item in itertools.islice(todo, 1):
                    send(further, item)
                yield place, result
        except (OSError, RuntimeError) as broken:  # Dask reports a lost scheduler in many ways
            if isinstance(broken, LostWorker) or not self._gone():
                raise
            raise LostWorker(GONE) from None
        finally:
            if not self._gone():
                client.cancel([*done.futures, *there], force=True)

    def _gone(self) -> bool:
        return bool(self._client.status != "running")

    def _as_done(self, done: Any) -> Iterator[Any]:
        """The futures of `as_completed` as they finish; raises if the scheduler is lost.

        Dask itself would try to reconnect for half a minute, without a message.
        """
        missed, looked = 0.0, time.monotonic()
        while not done.is_empty():
            if done.has_ready():
                yield from done.next_batch(block=False)
                looked = time.monotonic()
                continue
            missed = missed + LOOK_SECONDS if self._gone() else 0.0
            if missed > BACK_SECONDS:
                raise LostWorker(GONE)
            if time.monotonic() - looked > PATIENCE_SECONDS:
                self._check_workers()
                looked = time.monotonic()
            time.sleep(LOOK_SECONDS)

    def _check_workers(self) -> None:
        """Raise if there are no workers: a scheduler without any would be waited for without an end."""
        if not self._gone() and not self._client.nthreads():
            raise LostWorker("all Dask workers were lost, and none came back; start some (dask worker)")

    def _spread(self, shared: Shared) -> list[Any]:
        """Send the data that all tasks need to every worker."""
        return list(self._client.scatter(list(shared), broadcast=True, hash=False)) if shared else []

    def close(self) -> None:
        """Disconnect; the scheduler and its workers continue to run."""
        with suppress(*((OSError, RuntimeError) if self._gone() else ())):
            self._client.close(timeout=BACK_SECONDS)

    def _result(self, future: Any) -> Any:
        """A task's result, fetched at once so that it is safe if its worker is lost later."""
        try:
            while True:
                try:
                    return future.result(timeout=PATIENCE_SECONDS)
                except TimeoutError:
                    if self._gone():
                        raise LostWorker(GONE) from None
                    self._check_workers()
        except self._dask.scheduler.KilledWorker as death:
            raise LostWorker(
                f"a task ended all {death.allowed_failures + 1} workers that tried it; out of memory?"
            ) from None
