"""Run each exact backend in a separate process.

There are two reasons. Solver libraries bundle copies of each other (OR-tools bundles a HiGHS, and cannot be
loaded in one process with highspy), and a solver that hangs or crashes must not affect the caller. A worker
is started on a backend's first use and kept; programs and answers travel as pickles over a socket pair.
"""

from __future__ import annotations

import atexit
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from solvers import process
from solvers.solution import Answer, Effort, NoAnswer

GRACE_SECONDS = 5.0
"""How much longer than its time limit a backend may run before its process is killed."""

STARTING_SECONDS = 30.0
"""How long a process may take to start, in addition to its time for building the program."""

FINDING_SECONDS = 60.0
"""How long a backend's module may take to be loaded, and to look for the solver named by its argument."""

STATING_SECONDS = 300.0
"""How long a backend with a time limit may take to build the program, which its limit does not include."""


class Worker:
    """The parent's end of one backend's process."""

    def __init__(self) -> None:
        self._process, self._line = process.started("solvers.worker:serve")
        self._turn = threading.Lock()

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def ask(
        self, question: tuple[Any, ...], seconds: float | None, stating: float = STATING_SECONDS
    ) -> tuple[Any, Any]:
        """Send a question and wait for the two parts of its answer: built, and done.

        The first part may take `stating` seconds, the second one `seconds` and the grace.

        Raises `TimeoutError` if the solve exceeds its limit and the grace, or building the program takes
        longer than `stating`; the process has been killed; `ChildProcessError` if the process dies; the
        message gives the cause.
        """
        with self._turn:
            if self._line.closed:
                raise ChildProcessError("the solver's process was stopped while this question waited")
            try:
                self._line.send(question)
                if seconds is not None and not self._line.poll(stating):
                    self.stop()
                    raise TimeoutError(f"stopped: the program was not stated within {stating:g} s")
                built = self._line.recv()
                if seconds is not None and not self._line.poll(seconds + GRACE_SECONDS):
                    self.stop()
                    raise TimeoutError(
                        f"stopped: it ran {GRACE_SECONDS:g} s beyond its limit of {seconds:g} s"
                    )
                return (built, self._line.recv())
            except (EOFError, ConnectionError):
                cause = process.ended(self._process)
                raise ChildProcessError(f"the solver's process died ({cause})") from None
            except KeyboardInterrupt:
                self.stop()
                raise

    def stop(self) -> None:
        """End the process, and the programs that it runs, at once."""
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._line.close()


_workers: dict[tuple[str, ...], Worker] = {}
_starting = threading.Lock()


def _worker(backend: Any) -> Worker:
    """The process of a backend. Backends of one name from different modules get separate processes."""
    key = backend.name, backend.module, backend.argument
    with _starting:
        if key not in _workers or not _workers[key].alive:
            _workers[key] = Worker()
        return _workers[key]


@atexit.register
def _stop_all() -> None:
    for worker in _workers.values():
        if worker.alive:
            worker.stop()


def run(
    backend: Any, formulation: Any, effort: Effort, seconds: float | None, stating_counts: bool = False
) -> tuple[Answer, float, float]:
    """Solve a formulation in the backend's process: ``(answer, build seconds, solve seconds)``.

    The limit is for the solve, with `stating_counts` also for building the program.
    """
    started = time.perf_counter()
    question = "solve", backend, formulation, effort, seconds, stating_counts
    stating = STATING_SECONDS if seconds is None or not stating_counts else seconds + STARTING_SECONDS
    try:
        built, (answer, solving) = _worker(backend).ask(question, seconds, stating)
        return answer, built, solving
    except TimeoutError as late:
        return Answer("time_limit", message=str(late)), 0.0, time.perf_counter() - started
    except ChildProcessError as death:
        limited = f"; its memory was limited to {effort.memory / 1e9:g} GB" if effort.memory else ""
        return Answer("crashed", message=f"{death}{limited}"), 0.0, time.perf_counter() - started


def available(backend: Any) -> tuple[bool, str]:
    """Load a backend's module in its process: whether that finds the solver; and why not, if it failed."""
    try:
        _, (there, why) = _worker(backend).ask(("available", backend), FINDING_SECONDS)
        return there, why
    except (TimeoutError, ChildProcessError) as failure:
        return False, str(failure)


def serve(line: Connection) -> None:
    """The worker's end: answer questions until the parent closes the connection."""
    with suppress(EOFError, ConnectionError):
        _serve(line)


def _serve(line: Connection) -> None:
    while True:
        question = line.recv()
        if question[0] == "available":
            line.send(None)
            try:
                line.send((question[1].finds_solver(), ""))
            except Exception as failure:
                line.send((False, f"{type(failure).__name__}: {failure}"))
            continue
        _, backend, formulation, effort, seconds, stating_counts = question
        started = built = time.perf_counter()
        stated, cpu = False, _cpu_seconds()
        try:
            with _at_most(effort.memory):
                solve = formulation.open(backend, effort)
                built = time.perf_counter()
                line.send(built - started)
                stated = True
                if seconds is not None and stating_counts:
                    seconds -= built - started
                    if seconds <= 0:
                        raise NoAnswer("time_limit", "stating the program took all of the time")
                answer = solve(seconds)
        except NoAnswer as refusal:
            answer = Answer(refusal.status, message=str(refusal))
        except MemoryError as lack:
            answer = Answer("out_of_memory", message=f"{type(lack).__name__}: {lack}")
        except Exception as failure:  # any other failure becomes a status, too
            answer = Answer("error", message=f"{type(failure).__name__}: {failure}")
        if not stated:
            line.send(built - started)
        answer = replace(answer, cpu_seconds=_cpu_seconds() - cpu)
        line.send((answer, time.perf_counter() - built))


def _cpu_seconds() -> float:
    """Of this process and of the programs that it has run."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


@contextmanager
def _at_most(memory: int | None) -> Iterator[None]:
    """Limit the memory that this process allocates, in bytes; what it holds already counts, too."""
    if memory is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
