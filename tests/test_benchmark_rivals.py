"""Other programs beside ours: errors by hand, the Census's shares, what a watched process is charged with."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from benchmarks import rivals
from hierdp.mechanisms.tabulation.plan import plan_of


def test_distances_by_hand():
    true = np.array([[4, 1], [0, 5]])
    made = np.array([[3, 2], [2, 3]])
    found = rivals.distances(true, {"cells": made})
    assert found["pairs"] == found["cells"] == pytest.approx(6 / 20)
    assert found["singles"] == pytest.approx((0 / 20 + 2 / 20) / 2)
    assert found["whole, not negative"]
    apart = rivals.distances(true, {"0,1": made - 2.5})
    assert set(apart) == {"pairs", "whole, not negative"}
    assert not apart["whole, not negative"]


def test_the_censuss_shares_are_in_proportion_and_spent_entirely():
    made, shipped = rivals.census_shares(), plan_of("redistricting-2020")
    levels = {name: Fraction(share) for name, share in made["level_shares"].items()}
    assert sum(levels.values()) == 1
    assert levels["state"] / levels["root"] == Fraction(1440, 104)
    for level, queries in made["query_shares"].items():
        parts = {name: Fraction(share) for name, share in queries.items()}
        assert sum(parts.values()) == 1
        given = shipped.query_shares[rivals.CENSUS_LEVELS[level]]
        assert parts["group"] / parts["detailed"] == given["hispanic*cenrace"] / given["detailed"]
    assert made["query_shares"]["state"]["total"] == "0"


WORK = """
import json, subprocess, sys, time
def work():
    held, until = bytearray(60_000_000), time.process_time() + 0.5
    while time.process_time() < until:
        held[0] += 0
if len(sys.argv) > 1:
    work()
    time.sleep(1)  # so that it is seen, even under load
else:
    subprocess.run([sys.executable, __file__, "child"])
    print(json.dumps({"cpu of the job": 1, "other": 2}))
"""


@pytest.mark.slow
def test_a_watched_process_is_charged_with_its_children(tmp_path):
    pytest.importorskip("psutil")
    script = tmp_path / "work.py"
    script.write_text(WORK)
    found = rivals.watched([sys.executable, str(script)])
    assert set(found) == {"cpu of the job", "seconds", "cpu", "mb"}
    assert found["cpu"] >= 0.5  # the child's
    assert found["mb"] > 60
    with pytest.raises(RuntimeError, match="SyntaxError"):
        rivals.watched([sys.executable, "-c", "("], stdin=subprocess.DEVNULL)


def test_the_page_has_the_committed_errors():
    text = (rivals.HERE.parents[1] / "docs/tabulation.md").read_text(encoding="utf-8")
    assert f"<!-- rivals -->\n{rivals.page_table(pd.read_parquet(rivals.RESULTS))}\n<!-- /rivals -->" in text
