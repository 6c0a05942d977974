"""Run tasks in processes on this machine; if one dies, only its task is repeated.

`concurrent.futures.ProcessPoolExecutor` and `loky` would halve this module. With both,

- a process that dies breaks the whole pool: all unfinished tasks start again, and which one killed its
  process is unknown (`test_a_killed_worker_leaves_the_others_at_work`);
- processes outlive a killed parent until their tasks end (`solvers.process` watches for that).

The first also runs the caller's script again in each process, unless it is guarded by ``__name__``, or forks
a process that has threads; `loky` is another dependency.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from hierdp.execution.protocol import LostWorker, Shared
from solvers import process

T = TypeVar("T")

TRIES = 3
"""A task whose process dies this often is given up."""


class Processes:
    """A pool of processes, started with their first task and kept until `close`."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._idle: list[_Helper] = []
        self._taken = [0] * number  # processes on each share of the cores

    def results(
        self, function: Callable[..., T], items: Sequence[tuple[Any, ...]], shared: Shared
    ) -> Generator[tuple[int, T], None, None]:
        """See `Engine.results`."""
        waiting, died = deque(range(len(items))), [0] * len(items)
        busy: dict[Any, _Helper] = {}  # by connection
        while len(self._idle) < min(self._number, len(items)):  # start all before waiting for the first
            self._idle.append(self._started())
        try:
            while waiting or busy:
                while waiting and len(busy) < self._number:
                    helper = self._idle.pop() if self._idle else self._started()
                    busy[helper.line] = helper
                    helper.give(waiting.popleft(), function, items, shared)
                for line in wait(list(busy)):
                    helper = busy.pop(line)
                    place, answer = helper.place, helper.answer()
                    if answer is None:
                        cause = self._ended(helper)
                        died[place] += 1
                        if died[place] == TRIES:
                            raise LostWorker(_last_words(cause))
                        waiting.appendleft(place)
                        continue
                    self._idle.append(helper)
                    if waiting:  # give it a new task before reading its answer
                        busy[helper.line] = self._idle.pop()
                        helper.give(waiting.popleft(), function, items, shared)
                    yield place, _read(answer)
        finally:
            for helper in busy.values():
                self._ended(helper, at_once=True)

    def _started(self) -> _Helper:
        """A new process on the least used share of the cores, so that threads do not compete."""
        share = self._taken.index(min(self._taken))
        self._taken[share] += 1
        return _Helper(share, self._number)

    def _ended(self, helper: _Helper, at_once: bool = False) -> str:
        self._taken[helper.share] -= 1
        return helper.end(at_once)

    def close(self) -> None:
        """End all idle processes."""
        while self._idle:
            self._ended(self._idle.pop(), at_once=True)


def alone(seconds: float, function: Callable[..., T], item: tuple[Any, ...]) -> T:
    """See `hierdp.execution.within`."""
    helper = _Helper(0, 1)
    try:
        helper.give(0, function, [item], ())
        if not helper.line.poll(seconds):
            raise TimeoutError(f"stopped after {seconds:g} s")
        answer = helper.answer()
        if answer is None:
            raise LostWorker(f"a worker's process died ({helper.end()})")
        result: T = _read(answer)
        return result
    finally:
        helper.end(at_once=True)


def cores(share: int, of: int) -> list[int]:
    """Every `of`-th core that this process may use, starting at `share`; one core if there are fewer."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    ours = sorted(os.sched_getaffinity(0))
    return ours[share % len(ours) :: of]


class _Helper:
    """The parent's side of one process."""

    def __init__(self, share: int, of: int) -> None:
        self._process, self.line = process.started("hierdp.execution.processes:serve", cores(share, of))
        self.share = share
        self._knows: object = None
        self.place = -1

    def give(self, place: int, function: Any, items: Sequence[tuple[Any, ...]], shared: Shared) -> None:
        """Send a task, and the shared data if they are new. If the process is dead, `answer` returns None."""
        self.place = place
        if shared is not self._knows:
            self._tell("shared", shared)
            self._knows = shared
        self._tell("task", function, items[place])

    def _tell(self, *what: Any) -> None:
        with suppress(ConnectionError):
            self.line.send(what)

    def answer(self) -> bytes | None:
        """The pickled answer, or None if the process is dead."""
        try:
            return self.line.recv_bytes()
        except (EOFError, ConnectionError):
            return None

    def end(self, at_once: bool = False) -> str:
        """End the process, by a signal if `at_once`; return the cause of its end."""
        if at_once:
            self._process.kill()
        cause = process.ended(self._process)
        self.line.close()
        return cause


def _read(answer: bytes) -> Any:
    done, result = pickle.loads(answer)
    if not done:
        raise result
    return result


def _last_words(cause: str) -> str:
    advice = "; it may be out of memory: try fewer workers" if cause == "SIGKILL" else ""
    return f"a worker's process died ({cause}) {TRIES} times on the same task{advice}"


def serve(line: Connection) -> None:
    """The worker's side: run tasks until the parent closes the connection."""
    with suppress(EOFError, ConnectionError):
        _serve(line)


def _serve(line: Connection) -> None:
    shared: Shared = ()
    while True:
        kind, *rest = line.recv()
        if kind == "shared":
            (shared,) = rest
            continue
        function, item = rest
        try:
            answer = pickle.dumps((True, function(*shared, *item)), protocol=5)
        except Exception as failure:  # raised again by the parent, with this traceback as a note
            failure.add_note("in a worker:\n" + "".join(traceback.format_exception(failure)))
            answer = _failed(failure)
        line.send_bytes(answer)


def _failed(failure: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, failure), protocol=5)
        pickle.loads(answer)
    except Exception:  # it cannot be pickled: send its message
        answer = pickle.dumps((False, RuntimeError(f"{type(failure).__name__}: {failure}")), protocol=5)
    return answer
