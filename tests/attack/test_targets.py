"""Folders that cannot be made or replaced are refused before any noise is drawn; nothing is left behind."""

import os
from pathlib import Path

import pytest
from attacked import assert_no_traceback, counted, releasing

pytestmark = pytest.mark.attack

NO_NOISE = """
from hierdp.privacy import noise
def drawn(*_, **__):
    raise AssertionError("noise was drawn")
for kind in (noise.ExactNoise, noise.SimulatedNoise):
    for name in [name for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))]:
        setattr(kind, name, drawn)
"""

NOBODY = """
import os
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
"""
"""Become the user with this number; hierdp is already loaded."""


def refused(zygote, target, before=""):
    status, said, _ = zygote.run(
        releasing("range-query", target, 1, more=["--overwrite"]), before=NO_NOISE + before
    )
    assert_no_traceback(said)
    assert "AssertionError" not in said
    assert status == 2, said
    assert said.count("Error: ") == 1
    counted("targets refused before noise is drawn")
    return " ".join(said.split())


def test_noise_would_be_noticed(zygote):
    status, said, _ = zygote.run(releasing("range-query", "out", 1), before=NO_NOISE)
    assert status not in (0, 2)
    assert "AssertionError" in said
    assert sorted(os.listdir()) == ["in.csv"]


TARGETS = {
    "a dangling link": ("link", "is a symbolic link"),
    "a link to a folder": ("link2", "is a symbolic link"),
    "a link to itself": ("loop", "is a symbolic link"),
    "a file": ("in.csv", "is a file, not a folder"),
    "a folder with a file of one's own": ("mine", "is not an unchanged release"),
    "no parent": ("none/out", "create it first"),
    "a parent that is a file": ("in.csv/out", ""),
    "the folder one is in": (".", "the current directory"),
    "the folder above": ("..", "the current directory"),
    "a name too long": ("x" * 300, "too long for this disk"),
    "a name too long with its prefix": ("x" * 250, "too long for this disk"),
    "a path too long": ("/".join(["x" * 200] * 30), "too long for this disk"),
    "the root": ("/", ""),
    "a device": ("/dev/null", "is a file, not a folder"),
    "proc": ("/proc/out", ""),
}


@pytest.mark.parametrize("what", TARGETS)
def test_a_target_that_cannot_be(zygote, what):
    target, why = TARGETS[what]
    Path("link").symlink_to("nowhere")
    Path("folder").mkdir()
    Path("link2").symlink_to("folder")
    Path("loop").symlink_to("loop")
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("")
    before = sorted(os.walk("."))
    assert why in refused(zygote, target)
    assert sorted(os.walk(".")) == before
    assert os.readlink("link") == "nowhere"


def test_a_name_that_is_not_utf_8(zygote):
    before = sorted(os.listdir(b"."))
    assert "is not UTF-8; choose another name" in refused(zygote, "o\udcff")
    assert sorted(os.listdir(b".")) == before


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no mount point that is known to be there")
def test_a_mount_point(zygote):
    """It is kept, empty or not."""
    said = refused(zygote, "/dev/shm")
    assert "is a mount point" in said or "is not an unchanged release" in said


as_nobody = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@as_nobody
@pytest.mark.parametrize("what", ["a read-only folder", "another user's release", "in a folder like /tmp"])
def test_as_another_user(zygote, place, what):
    for part in (place, *list(place.parents)[:2]):
        part.chmod(0o755)
    Path("shared").mkdir()
    status, said, _ = zygote.run(releasing("range-query", "shared/theirs", 1))
    assert status == 0, said
    if what == "a read-only folder":
        assert "is not writable" in refused(zygote, "shared/out", NOBODY)
    elif what == "another user's release":
        Path("shared").chmod(0o777)
        assert "belongs to another user" in refused(zygote, "shared/theirs", NOBODY)
    else:
        Path("shared").chmod(0o1777)
        assert "belongs to another user" in refused(zygote, "shared/theirs", NOBODY)
    assert os.listdir("shared") == ["theirs"]
