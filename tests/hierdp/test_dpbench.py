"""The DPBench histograms: contents of a folder, and refused files."""

from pathlib import Path

import numpy as np
import pytest

from hierdp.data.dpbench import dpbench, names
from hierdp.errors import InputError

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "dpbench"


def test_what_a_folder_holds(tmp_path):
    np.save(tmp_path / "B.npy", np.array([[1.0, 2.0]]))
    np.save(tmp_path / "A.npy", np.array([3, 0]))
    assert names(tmp_path) == ("A", "B")
    assert names(tmp_path / "nowhere") == ()
    found = dpbench(tmp_path, "B")
    assert (found.dtype, found.tolist()) == (np.int64, [[1, 2]])


def test_files_that_are_not_histograms_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"HEPTH\.npy does not exist.*; get datafiles/ of the repository"):
        dpbench(tmp_path, "HEPTH")
    np.save(tmp_path / "half.npy", np.array([0.5]))
    np.save(tmp_path / "under.npy", np.array([-1]))
    for name in ("half", "under"):
        with pytest.raises(InputError, match="does not contain counts"):
            dpbench(tmp_path, name)
    with pytest.raises(InputError, match="it has 'half', 'under'"):
        dpbench(tmp_path, "A")


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the DPBench histograms are not there")
def test_the_published_histograms():
    total = {
        "ADULTFRANK": 17_665, "HEPTH": 347_414, "INCOME": 20_787_122, "NETTRACE": 25_714,
        "SEARCHLOGS": 335_889, "GOWALLA-2D": 6_442_863,
    }  # fmt: skip
    assert set(names(FOLDER)) == set(total)
    for name, people in total.items():
        counts = dpbench(FOLDER, name)
        assert counts.shape == ((256, 256) if name == "GOWALLA-2D" else (4096,))
        assert counts.sum() == people
