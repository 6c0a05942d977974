"""Releases killed at chosen steps while others read: the name always refers to a whole release, old or new.

A step is a call or a return of one of hierdp's functions, counted in a first run that is not killed. So the
steps do not depend on the machine's speed. They range from before the folder is made to after the last line
is printed; half of them are near the exchange of the folders. HIERDP_ATTACK_KILLS=100 sets the number of
kills per mechanism; HIERDP_ATTACK_SEED=7 chooses other steps.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import threading
from pathlib import Path

import pytest
from attacked import MECHANISMS, assert_no_traceback, counted, releasing

from hierdp.execution import seal

pytestmark = pytest.mark.attack

KILLS = int(os.environ.get("HIERDP_ATTACK_KILLS", "12"))
SEED = int(os.environ.get("HIERDP_ATTACK_SEED", "17"))


class Watcher(threading.Thread):
    """Reads a folder over and over until it is stopped."""

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
            # If the folder was replaced meanwhile, it is being removed: ignore what was read.
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
                digest, _, name = line.partition("  ")
                if hashlib.sha256(contents(folder, name)).hexdigest() != digest:
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


def moments(names, number, chance):
    """The steps to kill before: half of them near the folder's renaming, the others from first to last."""
    start = next(i for i, name in enumerate(names) if name == "folder.appearing call")
    given = next(i for i, name in enumerate(names) if name == "folder._put call")
    near = [max(start, given - 60), min(len(names), given + 120)]
    wide = [start, len(names)]
    for low, high, share in ((*near, (number + 1) // 2), (*wide, number // 2)):
        for part in range(share):  # one in each of `share` intervals
            yield chance.randrange(
                low + (high - low) * part // share, low + (high - low) * (part + 1) // share
            )


def release(zygote, mechanism, seed, **job):
    status, said, _ = zygote.run(releasing(mechanism, "out", seed, more=["--overwrite"]), **job)
    assert_no_traceback(said)
    return status, said


def steps(zygote, mechanism, seed):
    status, said = release(zygote, mechanism, seed, steps="steps.json")
    assert status == 0, said
    names = json.loads(Path("steps.json").read_text())
    Path("steps.json").unlink()
    return names


def assert_killed(status, said):
    """The process was killed, or ended because it had fewer steps this time."""
    assert status in (-signal.SIGKILL, 0), said
    counted("kills" if status else "releases that ended before their kill")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_killed_while_it_replaces_a_release(zygote, mechanism):
    chance = random.Random(f"{SEED} {mechanism}")
    steps(zygote, mechanism, 0)  # to a name not yet in use
    names = steps(zygote, mechanism, 1)
    counted("steps of releases to choose from", len(names))
    for kill, moment in enumerate(moments(names, KILLS * 2 // 3, chance), 2):
        with watching("out") as watcher:
            assert_killed(*release(zygote, mechanism, kill, die_at=moment))
            while not watcher.looks:
                pass
        counted("looks at a folder while its release was killed", watcher.looks)
        counted("looks that found no whole release", len(watcher.lost))
        assert watcher.lost == []
        assert len(watcher.whole) in (1, 2)  # the old one and perhaps the new one
        assert seal.why_not_ours(Path("out")) == ""
    status, said = release(zygote, mechanism, 99)
    assert status == 0, said
    assert sorted(os.listdir()) == ["in.csv", "out"]  # nothing hidden is left
    assert zygote.run(["check", "out"])[0] == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_killed_while_it_makes_a_first_release(zygote, mechanism):
    chance = random.Random(f"{SEED} first {mechanism}")
    names = steps(zygote, mechanism, 1)
    for kill, moment in enumerate(moments(names, KILLS // 3, chance), 2):
        shutil.rmtree("out", ignore_errors=True)
        assert_killed(*release(zygote, mechanism, kill, die_at=moment))
        if Path("out").exists():
            assert seal.why_not_ours(Path("out")) == ""
    status, said = release(zygote, mechanism, 99)
    assert status == 0, said
    assert sorted(os.listdir()) == ["in.csv", "out"]
