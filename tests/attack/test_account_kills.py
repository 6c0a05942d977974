"""Releases with an account, killed at chosen steps: the account is correct each time.

As in `test_kills`, HIERDP_ATTACK_KILLS=200 sets the number of kills.
"""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from attacked import MECHANISMS, assert_no_traceback, counted
from test_kills import KILLS, SEED, steps

from hierdp.execution import seal
from hierdp.privacy.account import Account, open_account

pytestmark = pytest.mark.attack

DRAWS = """
from pathlib import Path
from hierdp.privacy.noise import ExactNoise
usual = ExactNoise.geometric
def geometric(*asked):
    Path("drawn").touch()
    return usual(*asked)
ExactNoise.geometric = geometric
"""
"""Leaves a mark before the first noise is drawn."""


def release(zygote, epsilon="0.001", **job):
    chosen = MECHANISMS["group-size"].replace("--epsilon 1", f"--epsilon {epsilon}").split()
    charged = ["--account", "in.account", "--out", "out", "--overwrite"]
    status, said, _ = zygote.run(["release", "group-size", "in.csv", *chosen, *charged], before=DRAWS, **job)
    assert_no_traceback(said)
    return status, said


def test_account_is_correct_after_any_kill(zygote):
    steps(zygote, "group-size", 0)
    shutil.rmtree("out")
    account = open_account("in.account", "in.csv", 1.0)
    status, said = release(zygote, steps="steps.json")
    assert status == 0, said
    names = Path("steps.json").read_text().split(", ")
    chance = random.Random(f"{SEED} account")
    near = next(at for at, name in enumerate(names) if "charge call" in name)
    for kill in range(KILLS):
        wide = chance.randrange(len(names))
        moment = wide if kill % 2 else min(len(names) - 1, max(0, near + chance.randrange(-50, 250)))
        Path("drawn").unlink(missing_ok=True)
        before = len(account.statement().charges)
        status, said = release(zygote, die_at=moment)
        assert status in (-signal.SIGKILL, 0), said
        counted("kills of releases with an account" if status else "releases that ended before their kill")
        charges = account.statement().charges
        assert len(charges) - before in (0, 1)
        if Path("drawn").exists():
            assert len(charges) == before + 1
            counted("kills after noise was drawn")
        written = {charge.fingerprint for charge in charges if charge.state == "written"}
        assert seal.digest(Path("out") / seal.SUMS) in written  # the old release, or the new one
        assert len({charge.entry for charge in charges}) == len(charges)
    assert Account("in.account").statement().left_epsilon == pytest.approx(1 - 0.001 * len(charges))
    Path("drawn").unlink(missing_ok=True)
    status, said = release(zygote, epsilon="1")
    assert status == 2
    assert "nothing is released" in said
    assert not Path("drawn").exists()
    assert set(os.listdir()) >= {"in.csv", "out", "in.account", "in.account.head"}
