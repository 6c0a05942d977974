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
from hierdp.privacy.conversion import rho_of

pytestmark = pytest.mark.attack

DRAWS = """
from pathlib import Path
from hierdp.privacy.noise import ExactNoise
def marked(usual):
    def draw(*given):
        Path("drawn").touch()
        return usual(*given)
    return draw
ExactNoise.draw = marked(ExactNoise.draw)
"""
"""Leaves a mark before the first noise is drawn."""


def release(zygote, mechanism, epsilon="0.001", **job):
    chosen = MECHANISMS[mechanism].replace("--epsilon 1", f"--epsilon {epsilon}").split()
    chosen += ["--unbounded"] * (mechanism == "tabulation")
    charged = ["--account", "in.account", "--out", "out", "--overwrite"]
    status, said, _ = zygote.run(["release", mechanism, "in.csv", *chosen, *charged], before=DRAWS, **job)
    assert_no_traceback(said)
    return status, said


@pytest.mark.parametrize("mechanism", ["group-size", "tabulation"])
def test_account_is_correct_after_any_kill(zygote, mechanism):
    steps(zygote, mechanism, 0)
    shutil.rmtree("out")
    account = open_account("in.account", "in.csv", 1.0, 1e-6 if mechanism == "tabulation" else 0.0)
    status, said = release(zygote, mechanism, steps="steps.json")
    assert status == 0, said
    names = Path("steps.json").read_text().split(", ")
    chance = random.Random(f"{SEED} account {mechanism}")
    near = next(at for at, name in enumerate(names) if "charge call" in name)
    for kill in range(KILLS):
        wide = chance.randrange(len(names))
        moment = wide if kill % 2 else min(len(names) - 1, max(0, near + chance.randrange(-50, 250)))
        Path("drawn").unlink(missing_ok=True)
        before = len(account.statement().charges)
        status, said = release(zygote, mechanism, die_at=moment)
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
    if mechanism == "group-size":
        assert Account("in.account").statement().left_epsilon == pytest.approx(1 - 0.001 * len(charges))
    else:
        spent = sum(loss.rho for loss in Account("in.account").statement().losses)
        assert spent == pytest.approx(rho_of(0.001, 1e-8) * len(charges))
    Path("drawn").unlink(missing_ok=True)
    status, said = release(zygote, mechanism, epsilon="2")
    assert status == 2
    assert "nothing is released" in said
    assert not Path("drawn").exists()
    assert set(os.listdir()) >= {"in.csv", "out", "in.account", "in.account.head"}
