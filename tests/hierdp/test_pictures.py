"""Pictures show their numbers where they are, and say what their shades and axes mean."""

import re

import numpy as np
import pandas as pd
import pytest

from hierdp.reports.accuracy import reach_of
from hierdp.reports.page import Bars, Section, page
from hierdp.reports.pictures import MOST_CELLS, Axis, Heat, grid, points, shaded


def test_shades_are_linear_or_by_the_logarithm_of_skewed_numbers():
    shades, note = shaded(np.array([[-2.0, 0.0, 8.0]]))
    assert (shades.tolist(), note) == ([[0, 20, 100]], "Shaded from -2 (palest) to 8 (strongest).")
    shades, note = shaded(np.array([-5.0, 0, 1, 3, 3, 1023]))
    assert shades.tolist() == [0, 0, 10, 20, 20, 100]  # log2(1 + count) of 10
    assert note == "Shaded from 0 or less (palest) to 1,023 (strongest), by the logarithm."


def test_a_shaded_table_has_names_numbers_and_intervals_as_text():
    ends = np.array([[np.nan, 3.0]]), np.array([[np.nan, 9.5]])
    text = page(
        "", [Section("", pictures=[Heat("By a & b", ["<a>"], ["x", "y"], np.array([[0.0, 5.0]]), ends)])]
    )
    cells = '<td style="--shade:0%">0</td><td style="--shade:100%">5<small>3 to 9.5</small></td>'
    assert f'<th scope="row">&lt;a&gt;</th>{cells}' in text
    assert '<th scope="col"><span>y</span></th>' in text
    assert "<figcaption>By a &amp; b<small>Shaded from 0 (palest) to 5 (strongest).</small>" in text


def test_bars_and_intervals_are_as_long_as_their_numbers():
    frame = pd.DataFrame({"region": ["a", "b", "<c>"], "count": [3.0, np.nan, -1.0]})
    first, second, third = Bars("", frame, "count", ([1.0, np.nan, -5.0], [7.0, np.nan, -1.0])).rows
    assert (first["bar"], first["interval"]) == (("41.7", "25.0"), ("50.0", "50.0"))
    assert (second["bar"], second["interval"]) == (("41.7", "0.0"), None)
    assert (third["bar"], third["interval"]) == (("33.3", "8.3"), ("0.0", "33.3"))
    assert Bars("", frame[:0], "count").rows == []
    text = page("", [Section("", pictures=[Bars("", frame, "count")])])
    bar = '<td class="place"><div><span class="bar" style="left:0.0%;width:25.0%">'
    assert f'<th scope="row">&lt;c&gt;</th>{bar}' in text


def paths(chart):
    return {kind: path for kind, _, path in chart.marks}


def test_points_are_where_their_values_are_and_lines_where_their_intervals_are():
    ends = np.array([0.0, np.nan]), np.array([10.0, np.nan])
    chart = points("", Axis("size", 0, 10), "groups", [0, 5], np.array([1.0, 100.0]), ends, log=True)
    assert (
        paths(chart)["dot"] == "M0 208.6V208.6M300 0.0V0.0"
    )  # log10(1 / 0.5) of log10(100 / 0.5), from below
    assert paths(chart)["line"] == "M0 240.0V104.3"
    assert [text for _, text in chart.up.ticks] == ["1", "10", "100"]
    chart = points("", Axis("age", 0, 10), "count", [0, 10], np.array([-5.0, 15.0]))
    assert paths(chart)["dot"] == "M0 240.0V240.0M600 0.0V0.0"
    assert chart.up.ticks == [(0.0, "-5"), (0.25, "0"), (0.5, "5"), (0.75, "10"), (1.0, "15")]


def test_points_in_one_column_are_one_mark_from_the_least_to_the_greatest():
    values = np.zeros(60_000)
    values[150], values[160] = 4, -4
    dots = paths(points("", Axis("x", 0, 60_000), "count", np.arange(60_000), values))["dot"]
    assert dots.startswith("M0 120.0V120.0M1 120.0V120.0M2 240.0V0.0M3 120.0V120.0")
    assert dots.count("M") == 601


def test_a_grid_has_a_cell_a_bin_with_the_second_axis_up():
    chart = grid("", Axis("x", 0, 3), Axis("y", 0, 2), np.array([[0.0, 4.0], [2.0, 0.0], [4.0, 1.0]]))
    assert chart.box == (0, -0.5, 3, 2)
    assert chart.marks == [("cell", 0.25, "M2 0h1"), ("cell", 0.5, "M1 1h1"), ("cell", 1.0, "M0 0h1M2 1h1")]
    values = np.repeat([[7.0], [0.0]], 512, axis=0) * np.ones(2)
    values[::8] *= 2
    chart = grid("", Axis("x", 0, 1024), Axis("y", 0, 2), values)
    assert chart.box[2:] == (MOST_CELLS, 2)
    ((_, opacity, path),) = chart.marks  # the means of all blocks are 7.875 or 0
    assert (opacity, path.count("M"), "M63 0" in path, "M64 0" in path) == (1.0, 128, True, False)
    assert chart.note.startswith("Shaded from 0 (palest) to 7.88 (strongest).")
    assert chart.note.endswith("A cell shows the mean of about 8 bins.")


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_equal_counts_can_be_drawn(value):
    values, axis = np.full(3, value), Axis("x", 0, 3)
    pictures = [
        points("", axis, "count", np.arange(3), values, (values, values)),
        points("", axis, "count", np.arange(3), values + 1, log=True),
        grid("", axis, axis, values.reshape(1, 3)),
        Heat("", ["a"], ["b", "c", "d"], values.reshape(1, 3)),
        Bars("", pd.DataFrame({"name": list("abc"), "count": values}), "count"),
    ]
    assert "nan" not in page("", [Section("", pictures=pictures)])


@pytest.mark.parametrize(("low", "high"), [(0.5, 1.0), (-3.0, 7e6), (0.98, 1.02), (5.0, 5e12)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_round_few_and_inside(low, high, log):
    if log and low <= 0:
        return
    ticks = Axis("", low, high, log).ticks
    assert all(0 <= place <= 1 for place, _ in ticks)
    assert len({text for _, text in ticks}) == len(ticks) <= 8
    assert log or len(ticks) >= 2
    assert all(re.fullmatch(r"-?[\d,]{0,10}(\.\d{1,2})?(e\+\d\d)?", text) for _, text in ticks)


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_reported_reach_of_noise_holds_95_of_100_draws(scale):
    """The least k with P(|X| > k) ≤ 5 %, by summing the law."""
    values = np.arange(-2000, 2001)
    law = np.exp(-np.abs(values) / scale)
    beyond = [law[np.abs(values) > k].sum() / law.sum() for k in range(60)]
    least = next(k for k, chance in enumerate(beyond) if chance <= 0.05)
    spend = {"noise": "double-geometric", "scale": scale, "standard_deviation": 1.0}
    assert reach_of(spend) == least
    assert reach_of({"noise": "discrete Gaussian", "standard_deviation": 10.0}) == 20
