"""A release of another format is refused by all readers; who wrote one of this format does not matter."""

import shutil

import pandas as pd
import pytest
from click.testing import CliRunner

import hierdp
from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, OPEN, check
from hierdp.checking.same_noise import repaired
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.publication.copy import copy_of
from hierdp.publication.explanation import explain
from hierdp.record import files
from tests.hierdp.changing import change_manifest

AGES = pd.DataFrame({"age": [3, 17, 17, 40, 41]})


@pytest.fixture(scope="module")
def ages(tmp_path_factory):
    made = release(AGES, "range-query", epsilon=1, noise=SimulatedNoise(1), axes=[Numbers("age", 0, 48, 6)])
    return made.write(tmp_path_factory.mktemp("ages") / "out")


@pytest.fixture
def folder(ages, tmp_path):
    return shutil.copytree(ages, tmp_path / "out")


def changed(folder, change):
    change_manifest(folder, change)
    seal.seal(folder)
    return folder


READERS = {
    "check": check,
    "query": lambda folder: hierdp.query(folder, "0:12"),
    "explain": explain,
    "open": hierdp.open,
    "repair": lambda folder: repaired(folder, "H_b"),
    "evaluate": lambda folder: hierdp.evaluate(folder, AGES),
    "export": copy_of,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_release_of_another_format_is_refused(folder, reader):
    changed(folder, lambda manifest: manifest.update(format=2, versions={"hierdp": "0.9.1"}))
    with pytest.raises(
        InputError,
        match=r"the release has the format 2, made by hierdp 0\.9\.1; hierdp .* reads the format 1: use",
    ):
        READERS[reader](folder)


@pytest.mark.parametrize("found", [0, True, 1.0, "1", None, [1], "1" * 10**6])
def test_only_the_number_1_is_this_format(folder, found):
    """Also where the manifest has nothing else of a release; what it says is not repeated at length."""
    for change in (dict.copy, dict.clear):
        changed(folder, change)
        change_manifest(folder, lambda manifest: manifest.update(format=found))
        with pytest.raises(InputError, match="reads the format 1") as refused:
            check(folder)
        assert len(str(refused.value)) < 250


def test_a_manifest_without_a_format_is_not_that_of_a_release(folder):
    changed(folder, lambda manifest: manifest.pop("format"))
    with pytest.raises(InputError, match="is not the manifest of a release: it has no 'format'"):
        explain(folder)
    assert [line.check for line in check(folder) if line.verdict == FAILS] == ["readable"]


def test_the_command_refuses_another_format(folder):
    changed(folder, lambda manifest: manifest.update(format=2))
    done = CliRunner().invoke(main, ["check", str(folder)])
    assert done.exit_code == 2
    assert "the release has the format 2" in " ".join(done.output.split())


def test_what_another_version_wrote_in_this_format_is_checked_in_full(folder):
    changed(folder, lambda m: (m["versions"].update(hierdp="0.2.9"), m.update(left_out=[files.REPORT])))
    (folder / files.REPORT).unlink()  # another version may draw it in other words
    seal.seal(folder)
    found = {line.check: line for line in check(folder)}
    assert FAILS not in {line.verdict for line in found.values()}
    assert found["version"].verdict == OPEN
    changed(folder, lambda manifest: manifest.update(promise="none"))
    (line,) = [line for line in check(folder) if line.verdict == FAILS]
    assert (line.check, "'promise', which no such release has" in line.why) == ("manifest", True)
