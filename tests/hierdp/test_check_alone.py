"""hierdp check only reads and checks witnesses, without solving; it reports what older releases left out."""

import io
import json
import subprocess
import sys
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from test_check import ALL, as_it_was, change_manifest, failed, released, verdicts

from hierdp import SimulatedNoise
from hierdp.check import FAILS, HOLDS, OPEN, check
from hierdp.execution import seal
from hierdp.record import files, proofs
from models.instances import packed, unpacked
from tests.marks import quick

pytestmark = pytest.mark.slow

CHECK = """
import sys
from hierdp.check import FAILS, check

for folder in sys.argv[1:]:
    lines = {line.check: line for line in check(folder)}
    assert "FAILS" not in {line.verdict for line in lines.values()}, (folder, lines)
    assert lines["certificates"].verdict == lines["table from steps"].verdict == "holds", (folder, lines)
    loaded = sorted(name for name in sys.modules if name.split(".")[0] == "solvers")
    assert not loaded, (folder, loaded)
"""


@pytest.mark.parametrize("some", quick([slice(None, None, 7), slice(None)]), ids=["some", "all"])
def test_a_check_of_any_mechanism_and_method_imports_no_solver(tmp_path, some):
    folders = [
        released(mechanism, tmp_path / str(at), SimulatedNoise(3), **options)
        for at, (mechanism, options) in enumerate(ALL[some])
    ]
    done = subprocess.run([sys.executable, "-c", CHECK, *map(str, folders)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- releases of versions without witnesses --------------------------------------------------------------


def as_before(folder):
    """Make the release as an older version wrote it: without witnesses, and with that version's number."""
    path = folder / files.PROOFS
    with ZipFile(path) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content if name == proofs.NAMES else _without_witness(content))
    change_manifest(folder, lambda manifest: manifest["versions"].update(hierdp="0.1.0"))
    seal.seal(folder)


def _without_witness(content):
    with np.load(io.BytesIO(content)) as arrays:
        held = {name: arrays[name] for name in arrays if not name.startswith("witness")}
    about = json.loads(str(held["about.json"]))
    del about["witness"]
    held["about.json"] = np.array(json.dumps(about))
    kept = io.BytesIO()
    np.savez(kept, **held)
    return kept.getvalue()


@pytest.mark.parametrize(("mechanism", "options"), quick(ALL, every=5), ids=lambda value: str(value)[:60])
def test_a_release_without_witnesses_is_read_and_never_called_false(tmp_path, mechanism, options):
    folder = released(mechanism, tmp_path / "out", SimulatedNoise(4), **options)
    steps = list(proofs.read(folder / files.PROOFS)) if (folder / files.PROOFS).exists() else []
    needed = [kept for kept in steps if kept.witness and not kept.model.certificate(kept.x)]
    if steps:
        as_before(folder)
    found = verdicts(folder)
    assert FAILS not in found.values()
    assert found["certificates"] == (OPEN if needed else HOLDS)
    if needed:
        (line,) = [line for line in check(folder) if line.check == "certificates"]
        assert line.why.startswith(
            f"{len(needed)} of {len(steps)} steps were saved by a version without witnesses"
        )


def test_a_missing_witness_in_a_new_release_is_a_fault(tmp_path):
    """Otherwise somebody could remove it and claim that there was none."""
    for mechanism, options in ALL:
        folder = released(mechanism, tmp_path / "out", SimulatedNoise(4), **options)
        steps = list(proofs.read(folder / files.PROOFS)) if (folder / files.PROOFS).exists() else []
        if any(kept.witness and not kept.model.certificate(kept.x) for kept in steps):
            bare = [proofs.SavedStep(kept.step, kept.model, kept.x) for kept in steps]
            proofs.write(map(as_it_was, bare), folder / files.PROOFS)
            seal.seal(folder)
            assert "certificates" in failed(folder)
            return
    raise AssertionError("no release needs a witness")


# --- how witnesses are stored ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "dtype"),
    [
        ([0, 255], np.uint8),
        ([-1, 127], np.int8),
        ([-1, 200], np.int16),
        ([2**31], np.uint32),
        ([-(2**40)], np.int64),
        ([0.5], np.float64),
    ],
)
def test_a_witness_takes_no_more_bytes_than_it_needs(kept, dtype):
    from models import Chebyshev

    model = Chebyshev([5, 3, -2], total=4)
    witness = {"prices": np.array(kept), "root": 3}
    arrays = packed(model, [3, 1, 0], witness)
    assert arrays["witness of the answer.prices"].dtype == dtype
    again = unpacked(arrays).witness
    assert again["root"] == 3
    assert again["prices"].tolist() == kept
    assert again["prices"].dtype == np.array(kept).dtype
