"""Tasks that tests give to workers: module-level functions, as `execution` requires."""

import os
import signal
import time

from hierdp.errors import InputError
from hierdp.record.step import NotSolved


def square(x):
    return x * x


def noted(folder, x, killer=None):
    """A square; a file records the call. The first call with x == killer kills its process."""
    with open(os.path.join(folder, f"{x}-{os.getpid()}-{time.monotonic_ns()}"), "w"):
        pass
    if x == killer and len(calls(folder, x)) == 1:
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    return x * x


def noted_until(folder, x, killer):
    """As `noted`, but all tasks run until the killer has been called twice."""
    noted(folder, x, killer)
    while len(calls(folder, killer)) < 2:
        time.sleep(0.01)
    return x * x


def calls(folder, x):
    """The files of the calls of `noted`."""
    return [name for name in os.listdir(folder) if name.startswith(f"{x}-")]


def noted_row(folder, x):
    return [{"x": x, "square": noted(folder, x)}]


def always_dies(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def slow(x, seconds=3600):
    time.sleep(seconds)
    return x


def pid(_):
    time.sleep(0.05)
    return os.getpid()


class Stubborn(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, one, two):  # noqa: ARG002
        super().__init__(one)


def fails(how):
    if how == "input":
        raise InputError("column 'n' is bad")
    if how == "solver":
        raise NotSolved("time_limit", "it took too long")
    if how == "memory":
        raise MemoryError("no more")
    if how == "result":
        return lambda: 1
    raise Stubborn("one", "two")


def same():
    return "the same"


def cores(_):
    """The cores of the process, and of each of its threads, including those of libraries."""
    time.sleep(0.05)
    threads = map(int, os.listdir("/proc/self/task"))
    return os.getpid(), os.sched_getaffinity(0), set.union(*map(os.sched_getaffinity, threads))
