"""The audit finds blocks of exact noise that are left out or repeated (`hierdp audit noise`)."""

import pytest
from test_measurement_mutants import MUTANTS

from hierdp.audit import SAMPLERS, audit
from hierdp.privacy import noise

pytestmark = pytest.mark.slow

FOUND = [
    ("opendp", "last block", "a last block of one count without noise"),
    ("tables", "last block", "the same in noise from tables"),
]


@pytest.mark.parametrize(("method", "change", "bug"), FOUND)
def test_a_broken_sampler_is_found(method, change, bug, monkeypatch):
    if method == "tables":
        pytest.importorskip("flint")
    (case,) = (one for one in SAMPLERS if one.method == method and change in one.change)
    (line,) = audit([case], 1000)
    assert not line.over
    assert not line.shows_nothing
    where, function, broken, _ = MUTANTS[bug]
    monkeypatch.setattr(where, function, broken)
    (line,) = audit([case], 1000)
    assert line.over


def test_the_cases_draw_blocks_of_the_real_size():
    sizes = {case.method: case.tables[0][0] for case in SAMPLERS}
    assert sizes["opendp"] == noise.BLOCK
    if "tables" in sizes:
        from hierdp.privacy.tabulated import AT_ONCE

        assert sizes["tables"] == AT_ONCE
