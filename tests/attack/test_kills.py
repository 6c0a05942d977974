"""Releases killed at random moments while others look: under the name is a whole release, old or new.

HIERDP_ATTACK_KILLS=100 kills so many; HIERDP_ATTACK_SEED=7 at other moments.
"""

import contextlib
import hashlib
import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest
from attacked import MECHANISMS, assert_no_traceback, counted, hierdp, releasing

from hierdp.execution import seal

pytestmark = pytest.mark.attack

KILLS = int(os.environ.get("HIERDP_ATTACK_KILLS", "20"))
SEED = int(os.environ.get("HIERDP_ATTACK_SEED", "17"))


class Watcher(threading.Thread):
    """Looks at a folder as fast as it can, until it is stopped."""

    def __init__(self, path):
        super().__init__()
        self.path, self.ended = path, threading.Event()
        self.looks, self.lost, self.whole = 0, [], set()

    def run(self):
        while not self.ended.is_set():
            self.look()

    def look(self):
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as gone:
            self.lost.append(str(gone))
            return
        try:
            why = self.why_not_whole(folder)
            # A folder that was replaced meanwhile is being removed: what was read of it says nothing.
            if why and os.fstat(folder).st_ino != os.stat(self.path).st_ino:
                return
            self.looks += 1
            self.lost += [why] if why else []
        except OSError as gone:
            self.lost.append(str(gone))
        finally:
            os.close(folder)

    def why_not_whole(self, folder):
        try:
            os.stat("manifest.json", dir_fd=folder)
            sums = contents(folder, seal.SUMS)
            fingerprint = hashlib.sha256(sums).hexdigest()
            if fingerprint in self.whole:
                return ""
            for line in sums.decode().splitlines():
                told, _, name = line.partition("  ")
                if hashlib.sha256(contents(folder, name)).hexdigest() != told:
                    return f"{name} is not as sealed"
            self.whole.add(fingerprint)
        except OSError as gone:
            return str(gone)
        return ""


def contents(folder, name):
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
        return file.read()


@contextlib.contextmanager
def watching(path):
    watcher = Watcher(path)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.ended.set()
        watcher.join()


def begun(process):
    """Wait for the hidden folder that a release fills, or for the end."""
    while process.poll() is None and not list(Path().glob(".out.unfinished-*")):
        time.sleep(0.001)
    return time.monotonic()


def start(mechanism, seed, more=("--overwrite",)):
    return subprocess.Popen(
        hierdp(*releasing(mechanism, "out", seed, more=more)), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_killed_at_random_moments(mechanism):
    chance = random.Random(f"{SEED} {mechanism}")
    first = start(mechanism, 0, more=())
    filled = begun(first)
    _, said = first.communicate()
    assert first.returncode == 0, said
    length = time.monotonic() - filled
    for kill in range(1, KILLS // len(MECHANISMS) + 1):
        with watching("out") as watcher:
            process = start(mechanism, kill)
            begun(process)  # before that it imports and compiles, and has nothing to lose
            time.sleep(chance.uniform(0, length))
            process.kill()
            process.communicate()
        counted("kills")
        counted("looks at a folder while its release was killed", watcher.looks)
        counted("looks that found no whole release", len(watcher.lost))
        assert watcher.lost == []
        assert len(watcher.whole) in (1, 2)  # the old one, and perhaps the new one
        assert watcher.looks > 0
    last = start(mechanism, 99)
    _, said = last.communicate()
    assert last.returncode == 0, said
    assert_no_traceback(said)
    assert seal.why_not_ours(Path("out")) == ""
    assert sorted(os.listdir()) == ["in.csv", "out"]
