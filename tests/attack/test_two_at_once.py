"""Two releases to one folder at the same time: one is refused, or each prints its own fingerprint."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from attacked import assert_no_traceback, counted, hierdp, releasing

from hierdp.execution import seal

pytestmark = pytest.mark.attack


@pytest.mark.parametrize("mechanism", ["range-query", "group-size"])
@pytest.mark.parametrize("there", [False, True], ids=["a free name", "replacing"])
def test_two_at_once(mechanism, there):
    if there:
        subprocess.run(hierdp(*releasing(mechanism, "out", 1)), check=True, capture_output=True)
    both = [
        subprocess.Popen(
            hierdp(*releasing(mechanism, "out", seed, more=["--overwrite"])), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for seed in (2, 3)
    ]  # fmt: skip
    said = ["".join(process.communicate()) for process in both]
    fingerprints = set()
    for process, text in zip(both, said, strict=True):
        assert_no_traceback(text)
        if process.returncode:
            assert process.returncode == 2
            assert "another run is writing out" in " ".join(text.split())
        else:
            fingerprints.add(re.search("Fingerprint: ([0-9a-f]{64})", text)[1])
    assert len(fingerprints) == sum(process.returncode == 0 for process in both) > 0
    assert seal.digest(Path("out", seal.SUMS)) in fingerprints
    assert seal.why_not_ours(Path("out")) == ""
    assert sorted(os.listdir()) == ["in.csv", "out"]
    counted("pairs of releases to one folder at once")
