"""Older releases pass `hierdp check`: six small ones as 0.2.0 first wrote them, with exact noise.

Two more are stability histograms with the threshold of Boninsegna & Silvestri 2025, used by older releases.
"""

from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from test_check import change_manifest, failed, verdicts

from hierdp.check import FAILS, HOLDS
from hierdp.execution import seal
from hierdp.privacy.threshold import EXACT
from hierdp.versions import versions

BEFORE = Path(__file__).parent / "data" / "releases-0.2.0.zip"
PAPERS_THRESHOLD = BEFORE.with_name("releases-papers-threshold.zip")
KINDS = ["group-size", "top-down", "top-down-rounded", "count-of-counts", "range-query", "clustering"]


@pytest.fixture
def folder(tmp_path):
    with ZipFile(BEFORE) as zipped:
        zipped.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_made_before_passes(folder, kind):
    found = verdicts(folder / kind)
    assert FAILS not in found.values()
    assert found["certificates"] == found["table from steps"] == found["budget: queries"] == HOLDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_release_made_before_fails(folder, kind):
    path = folder / kind / "released.parquet"
    table = pd.read_parquet(path)
    value = "groups" if "groups" in table else "count"
    table.loc[table.index[-1], value] += 1
    table.to_parquet(path, index=False)
    seal.seal(folder / kind)
    assert "table from steps" in failed(folder / kind)


@pytest.mark.parametrize("kind", ["SH", "SH-person"])
def test_the_papers_threshold_passes(tmp_path, kind):
    with ZipFile(PAPERS_THRESHOLD) as zipped:
        zipped.extractall(tmp_path)
    # Made between two versions: the words of the report were those of neither.
    change_manifest(tmp_path / kind, lambda manifest: manifest["versions"].update(hierdp="0.1.9"))
    seal.seal(tmp_path / kind)
    found = verdicts(tmp_path / kind)
    assert FAILS not in found.values()
    assert found["budget: sum"] == found["table from steps"] == found["budget: queries"] == HOLDS
    change_manifest(tmp_path / kind, lambda manifest: manifest["budget"].update(threshold=EXACT))
    assert "budget: queries" in failed(tmp_path / kind)


def test_a_manifest_has_all_later_entries_or_none(folder):
    place = folder / "group-size"
    ours = dict(versions())["hierdp"]
    change_manifest(place, lambda manifest: manifest["versions"].update(hierdp=ours))
    assert "manifest" not in failed(place)
    change_manifest(place, lambda manifest: manifest["versions"].update(cryptography="1"))
    seal.seal(place)
    assert "manifest" in failed(place)
