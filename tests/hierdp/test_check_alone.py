"""hierdp check only reads and checks witnesses, without solving."""

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from steps import save, solved_in
from test_check import ALL, failed, released

from hierdp import SimulatedNoise
from hierdp.checking import check
from hierdp.execution import seal
from hierdp.mechanisms import MECHANISMS
from hierdp.record import files, proofs
from models.instances import packed, unpacked

pytestmark = pytest.mark.slow

CHECK = """
import sys
from hierdp.checking import FAILS, check

for folder in sys.argv[1:]:
    lines = {line.check: line for line in check(folder)}
    assert "FAILS" not in {line.verdict for line in lines.values()}, (folder, lines)
    assert lines["certificates"].verdict == lines["table from steps"].verdict == "holds", (folder, lines)
    loaded = sorted(name for name in sys.modules if name.split(".")[0] == "solvers")
    assert not loaded, (folder, loaded)
"""


def test_a_check_of_any_mechanism_and_method_imports_no_solver(tmp_path):
    """With intervals, too."""
    with_ends = [
        (name, {**options, "confidence": 0.9}) for name, options in ALL if MECHANISMS[name].intervals
    ]
    folders = [
        released(mechanism, tmp_path / str(at), SimulatedNoise(3), **options)
        for at, (mechanism, options) in enumerate([*ALL, *with_ends[::4]])
    ]
    done = subprocess.run([sys.executable, "-c", CHECK, *map(str, folders)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- releases without witnesses --------------------------------------------------------------------------


def without_witnesses(folder):
    """Leave out all witnesses."""
    path = folder / files.PROOFS
    with ZipFile(path) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    with ZipFile(path, "w", ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content if name == proofs.NAMES else _without_witness(content))
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


def in_need(folder):
    """Whether an answer is proved by a witness only."""
    return any(step.witness and not step.model.certificate(step.x) for step in solved_in(folder))


def test_a_missing_witness_is_a_fault(tmp_path):
    """Otherwise somebody could remove it and claim that there was none."""
    for mechanism, options in ALL:
        folder = released(mechanism, tmp_path / "out", SimulatedNoise(4), **options)
        if (folder / files.PROOFS).exists() and in_need(folder):
            shutil.copytree(folder, tmp_path / "empty")
            save([replace(kept, witness=None) for kept in solved_in(folder)], tmp_path / "empty")
            seal.seal(tmp_path / "empty")
            without_witnesses(folder)
            why = {line.why for line in check(folder) if line.check == "certificates"}
            assert "has no witness" in " ".join(why)
            for each in (folder, tmp_path / "empty"):
                assert "certificates" in failed(each)
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
        ([2**40], np.int64),
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
