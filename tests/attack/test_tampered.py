"""`check` fails all releases that were changed and sealed anew; some only the fingerprint reveals."""

import os
import shutil
from zipfile import ZipFile

import numpy as np
import pytest
from attacked import MECHANISMS, TABLE, assert_no_traceback, counted, releasing
from click.testing import CliRunner
from tampering import BY_FINGERPRINT, CHANGES, PROVED, WITH_REGIONS, flipped

from hierdp.checking import FAILS, check
from hierdp.cli import main
from hierdp.execution import seal
from hierdp.record import files

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two releases by each mechanism, of the same table with different noise."""
    place = tmp_path_factory.mktemp("made")
    where = os.getcwd()
    os.chdir(place)
    (place / "in.csv").write_text(TABLE)
    try:
        for mechanism in MECHANISMS:
            for seed, name in ((1, "out"), (2, "other")):
                done = CliRunner().invoke(main, releasing(mechanism, f"{mechanism}-{name}", seed))
                assert done.exit_code == 0, done.output
    finally:
        os.chdir(where)
    return place


def copy_of(made, mechanism, place):
    shutil.copytree(made / f"{mechanism}-other", place / "other")
    return shutil.copytree(made / f"{mechanism}-out", place / "out")


def failing(folder, fingerprint=None):
    return [line for line in check(folder, fingerprint) if line.verdict == FAILS]


def kept(made, mechanism):
    """The number of saved steps, and whether they have witnesses."""
    with ZipFile(made / f"{mechanism}-out" / files.PROOFS) as proofs:
        names = [name for name in proofs.namelist() if name.endswith(".npz")]
        witnessed = any(
            part.startswith("witness") for name in names for part in np.load(proofs.open(name)).files
        )
    return len(names), witnessed


def changes(made, mechanism):
    """The changes that apply to a release by a mechanism."""
    steps, witnessed = kept(made, mechanism)
    found = dict(CHANGES)
    if not steps:
        for name in ("an answer", "a step without its file", "a step more", "a step of another name",
                     "no proofs, and the manifest as it was"):  # fmt: skip
            found.pop(name)
    if steps:
        found.update(PROVED)
    if steps < 2:
        for name in ("steps in another order", "names of steps in another order",
                     "steps of the manifest in another order"):  # fmt: skip
            found.pop(name, None)
    if not witnessed:
        found.pop("a witness", None)
    if (made / f"{mechanism}-out" / files.REGIONS).exists():
        found.update(WITH_REGIONS)
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_changed_and_sealed_anew(made, tmp_path, mechanism):
    folder = copy_of(made, mechanism, tmp_path)
    assert failing(folder) == []
    missed = []
    for what, change in changes(made, mechanism).items():
        shutil.rmtree(folder)
        shutil.copytree(made / f"{mechanism}-out", folder)
        change(folder)
        seal.seal(folder)
        counted("tampered releases")
        found = failing(folder)
        if found:
            counted("tampered releases caught")
        else:
            missed.append(what)
        done = CliRunner().invoke(main, ["check", str(folder)])
        assert_no_traceback(done.output)
        assert done.exit_code == (1 if found else 0), (what, done.output)
    assert missed == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_only_the_fingerprint_shows(made, tmp_path, mechanism):
    folder = copy_of(made, mechanism, tmp_path)
    published = seal.digest(folder / seal.SUMS)
    assert failing(folder, published) == []
    for what, change in BY_FINGERPRINT.items():
        shutil.rmtree(folder)
        shutil.copytree(made / f"{mechanism}-out", folder)
        change(folder)
        seal.seal(folder)
        counted("tampered releases that only the fingerprint shows")
        assert failing(folder) == [], what
        assert [line.check for line in failing(folder, published)] == ["fingerprint"], what


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_bit_of_each_file_and_the_old_digests(made, tmp_path, mechanism):
    for path in sorted((made / f"{mechanism}-out").iterdir()):
        folder = shutil.copytree(made / f"{mechanism}-out", tmp_path / path.name)
        flipped(path.name, 0.5)(folder)
        counted("tampered releases")
        assert "files" in {line.check for line in failing(folder)}
        counted("tampered releases caught")
