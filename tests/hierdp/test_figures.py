"""Figures show their numbers, and are the same bytes for the same numbers."""

import base64
import io
import re

import numpy as np
import pytest

from hierdp.reports import figures


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
    assert "colours by the logarithm of the count, white: none over 0" in svg
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
    line = figures.steps(np.arange(100_000.0), np.ones(100_000), "", "x", "y")
    assert len(line) < 100_000


def test_a_line_of_steps_goes_through_its_values():
    svg = figures.steps(np.array([0.0, 5.0, -5.0]), None, "", "x", "y")
    path = re.search('d="(M[^"]*)" fill="none"', svg).group(1)
    heights = [float(v) for v in re.findall(r"V([0-9.]+)", path)]
    up = figures.Scale(-5, 5, figures.HEIGHT - figures.BOTTOM, figures.TOP)
    assert heights == [pytest.approx(up(v), abs=0.06) for v in (0, 5, -5)]


def test_points_and_bars_are_where_their_values_are():
    svg = figures.points(np.array([1.0, 9.0]), np.array([1.0, 1000.0]), "", "x", "y")
    heights = [float(v) for v in re.findall(r"M[0-9.]+ ([0-9.]+)h0", svg)]
    up = figures.Scale(1 / 1.4, 1400, figures.HEIGHT - figures.BOTTOM, figures.TOP, log=True)
    assert heights == [pytest.approx(up(v), abs=0.06) for v in (1, 1000)]
    svg = figures.bars(["a", "b" * 99], [4.0, 1.0], "", "x")
    first, second = (float(v) for v in re.findall(r'<rect [^>]*width="([0-9.]+)"', svg))
    assert first == pytest.approx(4 * second, abs=0.3)
    assert "b" * 99 in svg  # in full in its tooltip


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_equal_counts_can_be_drawn(value):
    values = np.full(3, value)
    for svg in (
        figures.steps(values, values, "", "", ""),
        figures.bars(["a", "b", "c"], values.tolist(), "", ""),
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
