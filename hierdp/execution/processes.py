"""Processes of this machine that work for this one; one that dies costs its task, not the others'."""

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
"""A task whose process dies so often will not do it: it is the task."""


class Processes:
    """See `hierdp.execution.using`. They are started on their first task and kept until `close`."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._idle: list[_Helper] = []
        self._taken = [0] * number  # how many are at work on each share of the cores

    def results(
        self, function: Callable[..., T], items: Sequence[tuple[Any, ...]], shared: Shared
    ) -> Generator[tuple[int, T], None, None]:
        """See `Engine.results`."""
        waiting, died = deque(range(len(items))), [0] * len(items)
        busy: dict[Any, _Helper] = {}  # by line
        while len(self._idle) < min(self._number, len(items)):  # all start before the first is waited for
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
                    if waiting:  # busy again before its answer is read
                        busy[helper.line] = self._idle.pop()
                        helper.give(waiting.popleft(), function, items, shared)
                    yield place, _read(answer)
        finally:
            for helper in busy.values():
                self._ended(helper, at_once=True)

    def _started(self) -> _Helper:
        """One more, with the share of the cores that is least taken: nobody's threads crowd others out."""
        share = self._taken.index(min(self._taken))
        self._taken[share] += 1
        return _Helper(share, self._number)

    def _ended(self, helper: _Helper, at_once: bool = False) -> str:
        self._taken[helper.share] -= 1
        return helper.end(at_once)

    def close(self) -> None:
        """End them."""
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
    """Every `of`-th core that this process may use, from that of the share on; one, where there are fewer."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    ours = sorted(os.sched_getaffinity(0))
    return ours[share % len(ours) :: of]


class _Helper:
    """Our end of one process."""

    def __init__(self, share: int, of: int) -> None:
        self._process, self.line = process.started("hierdp.execution.processes:serve", cores(share, of))
        self.share = share
        self._knows: object = None
        self.place = -1

    def give(self, place: int, function: Any, items: Sequence[tuple[Any, ...]], shared: Shared) -> None:
        """Send a task, and before it what the tasks share, if it is new; if it is dead, its answer tells."""
        self.place = place
        if shared is not self._knows:
            self._tell("shared", shared)
            self._knows = shared
        self._tell("task", function, items[place])

    def _tell(self, *what: Any) -> None:
        with suppress(ConnectionError):
            self.line.send(what)

    def answer(self) -> bytes | None:
        """What came back; None if it is dead."""
        try:
            return self.line.recv_bytes()
        except (EOFError, ConnectionError):
            return None

    def end(self, at_once: bool = False) -> str:
        """What it died of, or is to die of now."""
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
    advice = "; out of memory? Try fewer workers" if cause == "SIGKILL" else ""
    return f"a worker's process died ({cause}) {TRIES} times at the same task{advice}"


def serve(line: Connection) -> None:
    """A worker's end: do tasks until the parent hangs up."""
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
        except Exception as failure:  # the caller's to handle, with where it was
            failure.add_note("in a worker:\n" + "".join(traceback.format_exception(failure)))
            answer = _failed(failure)
        line.send_bytes(answer)


def _failed(failure: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, failure), protocol=5)
        pickle.loads(answer)
    except Exception:  # it does not travel: its words do
        answer = pickle.dumps((False, RuntimeError(f"{type(failure).__name__}: {failure}")), protocol=5)
    return answer
