"""The demo ends with a check of its own releases."""

import json

import pytest
from click.testing import CliRunner

import hierdp.checking
import hierdp.demo
from hierdp.checking.result import FAILS, HOLDS, CheckResult
from hierdp.cli import main
from hierdp.verification.verify import verify
from models import Chebyshev

pytestmark = pytest.mark.slow


@pytest.fixture
def demo(monkeypatch, tmp_path):
    """The demo, without solving its steps again by every backend."""
    small = Chebyshev([5, 3, -2], total=4)
    monkeypatch.setattr(hierdp.demo, "verify", lambda *_, **__: verify(small, backends=["highs"]))
    return lambda: CliRunner().invoke(main, ["demo", "--simulate", "1", "--out", str(tmp_path / "d")])


def test_both_releases_hold_from_their_files_alone(demo, tmp_path):
    done = demo()
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 120  # also for output to a file
    said = " ".join(done.output.split())
    assert "Taken as public: regions, a public list: the airports of the year's timetable; groups, a" in said
    assert "a public list: the aircraft on" in (tmp_path / "d" / "report.html").read_text()
    for name in ("group-sizes", "origin-destination"):
        manifest = json.loads((tmp_path / "d" / name / "manifest.json").read_text())
        assert manifest["cautions"] == []
        assert manifest["taken_as_public"]["regions"] == "a public list: the airports of the year's timetable"
        assert f"/d/{name}: All checks hold; 2 could not be made." in said  # fingerprint, simulated noise
    assert said.count("this is NOT private. Do not publish it.") == 2


@pytest.mark.parametrize("which", ["group-sizes", "origin-destination"])
def test_a_release_that_fails_its_check_fails_the_demo(demo, monkeypatch, which):
    def check(folder):
        return [
            CheckResult("counts", HOLDS, ""),
            CheckResult("total", FAILS if folder.name == which else HOLDS, "no"),
        ]

    monkeypatch.setattr(hierdp.checking, "check", check)
    done = demo()
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert f"/d/{which}: 1 of 2 checks fail. Do not rely on this release." in said
    assert said.count("All checks hold.") == 1
    assert "a release fails its check" in said
