"""The report of a release: its counts drawn, what holds of them, its settings."""

import re

import numpy as np
import pandas as pd
import pytest

from hierdp import SimulatedNoise, release
from hierdp.axes import Numbers
from hierdp.report import release_report

PEOPLE = pd.DataFrame(
    {
        "s": ["01", "01", "02", "02", "é <b>"] * 20,
        "c": ["01a", "01b", "02a", "02b", "z"] * 20,
        "g": [f"{i % 31}" for i in range(100)],
        "age": np.arange(100),
    }
)
SIZES = {"levels": ["s", "c"], "group": ["c", "g"], "max_size": 9}
KINDS = {
    "group-size": (SIZES, "Groups by size, all regions together", ("max size", "9")),
    "count-of-counts": (SIZES, "Groups by size, all regions together", ("methods", "Hc, Hc, Hc")),
    "top-down": (
        {"axes": {"o": ["s", "c"], "d": ["c"]}, "delta": 1e-6},
        "The largest cells of the finest level (o → d)",
        ("axes", "o: root, s, c; d: root, c"),
    ),
    "range-query": (
        {"axes": [Numbers("age", 0, 100)]},
        "Counts by bin, with a standard error to each side",
        ("range query: axes", "age from 0 to 100 in 100 bins"),
    ),
    "clustering": ({"axes": [("c", ["c"])]}, "Counts by bin", ("axes", "c (names)")),
}


@pytest.mark.parametrize("mechanism", KINDS)
def test_it_shows_counts_and_settings(mechanism):
    options, title, (setting, value) = KINDS[mechanism]
    made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(2), **options)
    text = release_report(made)
    assert f">{title}<" in text  # in the picture, as text
    told = dict(re.findall(r"<tr><td>([^<]*)</td><td[^>]*>([^<]*)</td></tr>", text))
    assert told[setting] == value
    assert "which makes them public" in told.get("regions", "which makes them public")
    holds = made.manifest()["holds"]
    assert told["whole numbers"] == {True: "yes", False: "not claimed"}[holds["whole"]]
    assert "NOT private" in text
    assert "é &lt;b&gt;" in text or mechanism != "group-size"
    assert f"hierdp {made.manifest()['versions']['hierdp']}" in text


@pytest.mark.parametrize("method", ["Wavelet", "Quadtree"])
def test_two_axes_are_an_image(method):
    options = {"axes": [Numbers("age", 0, 100, 10), ("c", ["c"])], "method": method}
    text = release_report(release(PEOPLE, "range-query", epsilon=1, noise=SimulatedNoise(2), **options))
    assert ">Counts by bin<" in text
    assert "<image" in text


def test_an_empty_table_is_not_drawn():
    options = {**SIZES, "group_budget": 0.01}
    for seed in range(40):
        made = release(PEOPLE[:1], "count-of-counts", epsilon=1, noise=SimulatedNoise(seed), **options)
        if made.table.empty:
            break
    assert made.table.empty
    assert "<svg" not in release_report(made)


def test_long_fractions_are_short():
    made = release(PEOPLE, "clustering", epsilon=1, noise=SimulatedNoise(3), axes=[("age", ["age"])])
    (line,) = made.proved
    assert len(line.objective) > 20
    assert line.objective not in release_report(made)
