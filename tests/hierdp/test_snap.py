"""Histograms of SNAP's files, and of files of counts."""

import gzip

import numpy as np
import pytest

from hierdp.data.snap import histogram
from hierdp.errors import InputError


def test_citations_by_their_number(tmp_path):
    path = tmp_path / "cit-HepTh.txt"
    path.write_text("# Directed graph\n# FromNodeId\tToNodeId\n1\t9\n2\t9\n3\t9\n1\t2\n3\t1\n")
    assert histogram(path).tolist() == [2, 0, 1]  # papers 1 and 2 are cited once, 9 three times


def test_check_ins_by_longitude(tmp_path):
    path = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    rows = [f"0\t2010-10-19T23:55:27Z\t30.2\t{x}\t22847" for x in (-180, -97.7, -97.7, 179.999)]
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    found = histogram(path)
    assert found.shape == (2**16,)
    assert found.sum() == 4
    assert (found[0], found[int((180 - 97.7) / 360 * 2**16)], found[-1]) == (1, 2, 1)


def test_counts_and_what_is_none(tmp_path):
    np.save(tmp_path / "ages.npy", np.array([3, 0, 7]))
    (tmp_path / "ages.csv").write_text("3\n0\n7\n")
    assert histogram(tmp_path / "ages.npy").tolist() == histogram(tmp_path / "ages.csv").tolist() == [3, 0, 7]
    for name, text in {"ages.txt": "3\n-1\n", "incomes.txt": "a\n", "cit-HepTh.txt": "1\tx\n"}.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            histogram(tmp_path / name)
