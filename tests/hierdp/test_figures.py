"""Figures show their numbers, and are the same bytes for the same numbers."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest

from hierdp.reports import figures
from hierdp.reports.accuracy import reach_of
from hierdp.reports.page import Bars, Section, page


def pixels(svg):
    """The image in a figure as colours, shape (rows, columns, 3)."""
    from matplotlib.image import imread

    (png,) = re.findall('base64,([^"]*)', svg)
    return np.rint(imread(io.BytesIO(base64.b64decode(png)))[..., :3] * 255).astype(int)


def test_an_image_has_a_square_cell_a_bin_and_the_second_axis_up():
    values = np.arange(12.0).reshape(4, 3)
    svg = figures.image(values, "a <title>", "x", "y")
    assert ">a &lt;title&gt;<" in svg
    shown = pixels(svg)
    assert shown.shape[:2] == (3, 4)
    assert shown[2, 0].tolist() == list(figures.COLOURS[0])  # the least count: first bins of both axes
    assert shown[0, 3].tolist() == list(figures.COLOURS[-1])
    sides = re.search('<image .*?width="(.*?)" height="(.*?)"', svg).groups()
    assert float(sides[0]) / 4 == pytest.approx(float(sides[1]) / 3, abs=0.1)


def test_skewed_counts_have_logarithmic_colours():
    values = np.array([[1.0, 10.0, 100.0], [10.0, 1000.0, 0.0], [1.0, 10.0, -5.0]])
    svg = figures.image(values, "counts", "x", "y")
    assert figures.LOGARITHMIC in svg
    shown = pixels(svg)[::-1].transpose(1, 0, 2)
    assert shown[1, 2].tolist() == shown[2, 2].tolist() == [255, 255, 255]
    assert shown[0, 0].tolist() == list(figures.COLOURS[0])
    assert shown[1, 1].tolist() == list(figures.COLOURS[-1])
    third = figures._colour(round(254 / 3))  # 10 is a third of the way from 1 to 1,000
    assert shown[0, 1].tolist() == list(third)
    assert "logarithm" not in figures.image(values.clip(1, 10), "counts", "x", "y")


def test_many_bins_are_few_pixels():
    values = np.zeros((1000, 10))
    values[:500] = 7
    shown = pixels(figures.image(values, "", "x", "y"))
    assert shown.shape[:2] == (10, figures.MOST_PIXELS)
    assert (shown[:, 0] == figures.COLOURS[-1]).all()
    assert (shown[:, -1] == figures.COLOURS[0]).all()
    line = figures.steps(np.arange(100_000.0), (np.zeros(100_000), np.full(100_000, 9.0)), "", "x", "y")
    assert len(line) < 100_000


def test_a_line_of_steps_goes_through_its_values():
    svg = figures.steps(np.array([0.0, 5.0, -5.0]), None, "", "x", "y")
    path = re.search('d="(M[^"]*)" fill="none"', svg).group(1)
    heights = [float(v) for v in re.findall(r"V([0-9.]+)", path)]
    up = figures.Scale(-5, 5, figures.HEIGHT - figures.BOTTOM, figures.TOP)
    assert heights == [pytest.approx(up(v), abs=0.06) for v in (0, 5, -5)]


def test_points_are_where_their_values_are():
    svg = figures.points(np.array([1.0, 9.0]), np.array([1.0, 1000.0]), "", "x", "y")
    heights = [float(v) for v in re.findall(r"M[0-9.]+ ([0-9.]+)h0", svg)]
    up = figures.Scale(1 / 1.4, 1400, figures.HEIGHT - figures.BOTTOM, figures.TOP, log=True)
    assert heights == [pytest.approx(up(v), abs=0.06) for v in (1, 1000)]


def test_bars_are_as_long_as_their_values():
    frame = pd.DataFrame({"region": ["a", "b", "<c>"], "count": [3.0, 1.0, -1.0]})
    shown = Bars("Counts", frame, "count")
    assert [(row["left"], row["width"]) for row in shown.rows] == [
        ("25.0", "75.0"), ("25.0", "25.0"), ("0.0", "25.0"),
    ]  # fmt: skip
    text = page("A title", [Section("Counts", bars=[shown])])
    assert '<th scope="row">&lt;c&gt;</th><td class="bar"><span style="margin-left:0.0%;width:25.0%">' in text
    assert [row["width"] for row in Bars("", frame.assign(count=0), "count").rows] == ["0.0"] * 3


def test_a_matrix_is_darkest_where_the_count_is_largest():
    svg = figures.matrix(np.array([[0.0, 5.0], [10.0, 2.5]]), ["a", "b" * 99], ["x", "<y>"], "", "")
    shades = re.findall(r'fill="rgb\((\d+),(\d+),(\d+)\)" stroke="#ccc"><title>(.*?)</title>', svg)
    red = {stated: int(shade) for shade, _, _, stated in shades}
    assert red["a → x: 0"] == 255
    assert red[f"{'b' * 99} → x: 10"] == figures.DARK[0]
    assert red["a → &lt;y&gt;: 5"] == pytest.approx(255 / 2, abs=1)
    assert f"<title>{'b' * 99}</title>" in svg  # the name in full as a tooltip


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_equal_counts_can_be_drawn(value):
    values = np.full(3, value)
    for svg in (
        figures.steps(values, (values, values), "", "", ""),
        figures.matrix(values.reshape(1, 3), ["a"], ["b", "c", "d"], "", ""),
        figures.image(values.reshape(1, 3), "", "", ""),
        figures.points(values, values + 1, "", "", ""),
    ):
        assert "nan" not in svg
        assert svg == svg.strip()


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 7e6), (0.98, 1.02), (5.0, 5e9)])
@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_round_few_and_inside(low, high, log):
    if log and low <= 0:
        return
    ticks = figures.Scale(low, high, 0, 100, log).ticks()
    assert all(low <= tick <= high for tick in ticks)
    assert len(ticks) <= 15
    assert log or len(ticks) >= 2


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


def test_the_label_of_the_y_axis_is_clear_of_its_numbers():
    drawn = figures.steps(np.array([-999_999.0, 1_234_000.0]), None, "title", "x", "released counts")
    (label,) = re.findall(r"translate\((\d+) ", drawn)
    ticks = re.findall(r'<text x="(\d+)" y="[^"]*" text-anchor="end">([^<]*)</text>', drawn)
    assert len(ticks) > 3
    assert min(int(end) - figures.LETTER * len(text) for end, text in ticks) > int(label)
