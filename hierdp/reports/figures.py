"""Small SVG figures with the same bytes for the same numbers on any machine, drawn without a library.

`hierdp check` draws a report again and compares the bytes, so numbers are printed with fixed digits.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arithmetic.arrays import Floats

WIDTH, HEIGHT = 480, 260
"""In units of the drawing, whose letters have 12; a page scales it to the screen."""

LEFT, RIGHT, TOP, BOTTOM = 84, 18, 32, 44
BLUE = "#0072B2"

LETTER = 6.8
"""Approximate width of a letter of a label, in pixels."""

COLOURS = ((0, 34, 78), (67, 78, 108), (125, 124, 120), (188, 175, 111), (254, 232, 56))
"""Colours from low to high, uniform in lightness and safe for colour-blind readers (after cividis)."""

DARK = (0, 58, 96)
"""The darkest colour of a matrix."""

SKEWED = 20
"""Colours are logarithmic if the largest count exceeds the median positive one by this factor."""


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self, most: int = 7) -> list[float]:
        """Round values between low and high."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(powers) <= 3 else (1,)
            found = [step * 10.0**power for power in powers for step in steps]
            return [v for v in found if self.low <= v <= self.high][:: max(1, len(found) // (2 * most))]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / most))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= most)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [k * step for k in range(first, last + 1)]


Ends = tuple[Floats, Floats] | None
"""The lower and the upper ends of intervals, if there are some."""


def points(x: Floats, y: Floats, title: str, x_label: str, y_label: str, ends: Ends = None) -> str:
    """Dots, with a line from end to end of their intervals; `y` is positive, on a logarithmic axis."""
    across = _across(float(x.min()), float(x.max()))
    low, high = (y, y) if ends is None else (np.minimum(y, np.maximum(ends[0], 0.5)), np.fmax(y, ends[1]))
    up = Scale(*_decades(float(np.nanmin(low)), float(high.max())), HEIGHT - BOTTOM, TOP, log=True)
    places = dict.fromkeys(f"M{across(a):.1f} {up(b):.1f}h0" for a, b in zip(x, y, strict=True))
    dots = f'<path d="{"".join(places)}" stroke="{BLUE}" stroke-width="5" stroke-linecap="round"/>'
    if ends is not None:
        each = zip(x[high > low], low[high > low], high[high > low], strict=True)
        lines = dict.fromkeys(f"M{across(a):.1f} {up(b):.1f}V{up(c):.1f}" for a, b, c in each)
        dots = f'<path d="{"".join(lines)}" stroke="{BLUE}" stroke-opacity="0.4"/>' + dots
    return _figure(_axes(across, up, x_label, y_label) + dots, title)


ORANGE = "#D55E00"


def sums(mean: float, deviation: float, most: int, title: str, x_label: str, y_label: str) -> str:
    """Two lines over numbers k from 1 to `most`: ``mean · k``, and dashed ``deviation · √k``."""
    across = Scale(1, most, LEFT, WIDTH - RIGHT, log=True)
    ends = [(mean, mean * most), (deviation, deviation * math.sqrt(most))]
    up = Scale(*_decades(min(map(min, ends)), max(map(max, ends))), HEIGHT - BOTTOM, TOP, log=True)
    drawn = _axes(across, up, x_label, y_label)
    looks = (f'stroke="{ORANGE}"', f'stroke="{BLUE}" stroke-dasharray="6 4"')
    for (low, high), look, y, name in zip(ends, looks, (52, 72), ("on average", "by chance"), strict=True):
        drawn += f'<path d="M{across(1):.1f} {up(low):.1f}L{across(most):.1f} {up(high):.1f}" {look}/>'
        drawn += f'<path d="M{LEFT + 10} {y}h28" {look}/><text x="{LEFT + 44}" y="{y + 4}">{name}</text>'
    return _figure(drawn, title)


def steps(
    values: Floats,
    about: Ends,
    title: str,
    x_label: str,
    y_label: str,
    ends: tuple[float, float] | None = None,
) -> str:
    """A step line over equal bins; `about` are the ends of a band around it.

    The x axis shows numbers from `ends[0]` to `ends[1]`, by default the bins 0, 1, …. If there are more bins
    than pixels, each pixel shows the smallest and largest value of its bins.
    """
    across = Scale(-0.5, values.size - 0.5, LEFT, WIDTH - RIGHT)
    shown = across if ends is None else Scale(*ends, LEFT, WIDTH - RIGHT)
    every = np.concatenate([values] if about is None else [values, *about])
    low, high = min(0.0, float(every.min())), max(0.0, float(every.max()))
    up = Scale(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)
    starts = np.unique(np.arange(WIDTH) * values.size // WIDTH)
    drawn = _axes(shown, up, x_label, y_label)
    if about is not None:
        band = np.minimum.reduceat(about[0], starts), np.maximum.reduceat(about[1], starts)
        drawn += _band(across, up, starts, *band, values.size, f'fill="{BLUE}" fill-opacity="0.22"')
    if starts.size < values.size:
        line = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        drawn += _band(across, up, starts, *line, values.size, f'fill="{BLUE}" stroke="{BLUE}"')
    else:
        at = f"M{LEFT} {up(values[0]):.1f}" + "".join(
            f"V{up(value):.1f}H{across(i + 0.5):.1f}" for i, value in enumerate(values)
        )
        drawn += f'<path d="{at}" fill="none" stroke="{BLUE}"/>'
    return _figure(drawn, title)


def _band(across: Scale, up: Scale, starts: Any, low: Floats, high: Floats, size: int, look: str) -> str:
    ends = [*starts[1:].tolist(), size]
    there = [f"V{up(v):.1f}H{across(e - 0.5):.1f}" for v, e in zip(high, ends, strict=True)]
    back = [
        f"V{up(v):.1f}H{across(s - 0.5):.1f}" for v, s in zip(low[::-1], starts.tolist()[::-1], strict=True)
    ]
    return f'<path d="M{LEFT} {up(high[0]):.1f}{"".join(there)}{"".join(back)}Z" {look}/>'


MOST_PIXELS = 400
"""Largest number of pixels per side of an image; more bins are averaged."""


def image(values: Floats, title: str, x_label: str, y_label: str) -> str:
    """Counts of a grid as square cells, the second axis upwards; shape (bins along x, bins along y).

    Colours are logarithmic if the counts are skewed; then cells that are not positive are white.
    """
    shape = values.shape
    shown = _fewer(_fewer(values, 0), 1)
    positive = shown[shown > 0]
    log = positive.size > 0 and float(positive.max()) > SKEWED * float(np.median(positive))
    if log:
        high = float(positive.max())
        colours = Scale(max(float(positive.min()), high / 1e6), high, 0, 254, log=True)
    else:
        low, high = float(shown.min()), float(shown.max())
        colours = Scale(low, high if high > low else low + 1, 0, 254)
    pixels = np.full(shown.shape, 255, dtype=np.uint8)  # the last colour is white
    for at in zip(*np.nonzero(shown > 0 if log else np.isfinite(shown)), strict=True):
        pixels[at] = round(colours(max(float(shown[at]), colours.low)))
    side = min((WIDTH - LEFT - 90) / shape[0], 330 / shape[1])
    width, height = side * shape[0], side * shape[1]
    whole = max(150.0, height + TOP + BOTTOM)
    across = Scale(0, shape[0], LEFT, LEFT + width)
    up = Scale(0, shape[1], TOP + height, TOP)
    png = base64.b64encode(_png(pixels.T[::-1])).decode()
    drawn = (
        f'<image x="{LEFT}" y="{TOP}" width="{width:.1f}" height="{height:.1f}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{png}"/>'
        f'<rect x="{LEFT}" y="{TOP}" width="{width:.1f}" height="{height:.1f}" fill="none" stroke="#888"/>'
        + _x_axis(across, TOP + height + BOTTOM, x_label, grid=False)
        + _y_axis(up, y_label, grid=False, most=max(1, min(7, int(height / 18))))
        + _key(colours, LEFT + width + 16, max(100.0, min(height, 240.0)))
    )
    return _figure(drawn, title, whole, LOGARITHMIC if log else "")


LOGARITHMIC = "Colours by the logarithm of the count; white: none over 0."


def matrix(
    values: Floats, rows: Sequence[str], columns: Sequence[str], title: str, note: str, ends: Ends = None
) -> str:
    """Numbers by the named rows and columns as a grid of colours; larger numbers are darker.

    Each cell has its number as a tooltip, and its interval, if it has one. Long names are shortened, with the
    full name in a tooltip.
    """
    longest = 13
    left = 12 + LETTER * min(longest, max(map(len, rows)))
    head = TOP + 10 + 0.75 * LETTER * min(longest, max(map(len, columns)))
    side = min((WIDTH - left - RIGHT - 40) / len(columns), 34.0)
    most, positive = max(1.0, float(values.max())), values[values > 0]
    skewed = positive.size > 0 and most > SKEWED * float(np.median(positive))
    drawn = ""
    for j, name in enumerate(columns):
        place = f'transform="translate({left + side * (j + 0.6):.1f} {head - 6:.1f}) rotate(-48)"'
        drawn += f"<text {place}>{_cut(name, longest)}</text>"
    for i, name in enumerate(rows):
        y = head + side * i
        place = f'x="{left - 8:.1f}" y="{y + side / 2 + 4:.1f}" text-anchor="end"'
        drawn += f"<text {place}>{_cut(name, longest)}</text>"
        for j, other in enumerate(columns):
            value = float(values[i, j])
            part = max(0.0, value) / most
            part = math.sqrt(part) if skewed else part
            shade = ",".join(str(round(255 + (dark - 255) * part)) for dark in DARK)
            tip = escape(f"{name} → {other}: {_short(value)}")
            if ends is not None and not np.isnan(ends[0][i, j]):
                tip += f" ({ends[0][i, j]:,.0f} to {ends[1][i, j]:,.0f})"
            drawn += (
                f'<rect x="{left + side * j:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" '
                f'fill="rgb({shade})" stroke="#ccc"><title>{tip}</title></rect>'
            )
    height = head + side * len(rows) + 12
    return _figure(drawn, title, height, note)


def _cut(name: str, most: int) -> str:
    short = name if len(name) <= most else name[: most - 1] + "…"
    return escape(short) + (f"<title>{escape(name)}</title>" if short != name else "")


def _key(colours: Scale, x: float, height: float) -> str:
    """The colour key."""
    parts = 48
    each = height / parts
    drawn = "".join(
        f'<rect x="{x:.1f}" y="{TOP + height - each * (i + 1):.1f}" width="14" height="{each + 0.5:.1f}" '
        f'fill="rgb({",".join(map(str, _colour(round(i * 254 / (parts - 1)))))})"/>'
        for i in range(parts)
    )
    up = Scale(colours.low, colours.high, TOP + height, TOP, colours.log)
    return drawn + "".join(
        f'<text x="{x + 19:.1f}" y="{up(v) + 4:.1f}">{_short(v)}</text>' for v in up.ticks(5)
    )


def _fewer(values: Floats, axis: int) -> Floats:
    size = values.shape[axis]
    if size <= MOST_PIXELS:
        return values
    starts = np.unique(np.arange(MOST_PIXELS) * size // MOST_PIXELS)
    shape = [-1 if i == axis else 1 for i in range(2)]
    summed: Floats = np.add.reduceat(values, starts, axis=axis)
    return summed / np.diff(np.append(starts, size)).reshape(shape)


def _colour(index: int) -> tuple[int, int, int]:
    at = index / 254 * (len(COLOURS) - 1)
    low = min(int(at), len(COLOURS) - 2)
    red, green, blue = (
        round(a + (b - a) * (at - low)) for a, b in zip(COLOURS[low], COLOURS[low + 1], strict=True)
    )
    return red, green, blue


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Colour indices as an uncompressed PNG, because compressors differ."""
    height, width = pixels.shape
    palette = b"".join(bytes(_colour(i)) for i in range(255)) + b"\xff\xff\xff"
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    blocks = [raw[i : i + 0xFFFF] for i in range(0, len(raw), 0xFFFF)]
    stored = b"".join(
        struct.pack("<BHH", i == len(blocks) - 1, len(block), 0xFFFF ^ len(block)) + block
        for i, block in enumerate(blocks)
    )
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"IDAT", b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(raw))),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


def _across(low: float, high: float) -> Scale:
    room = max(0.5, 0.02 * (high - low))
    return Scale(low - room, high + room, LEFT, WIDTH - RIGHT)


def _decades(low: float, high: float) -> tuple[float, float]:
    return low / 1.4, high * 1.4


def _axes(across: Scale, up: Scale, x_label: str, y_label: str) -> str:
    return _x_axis(across, HEIGHT, x_label) + _y_axis(up, y_label)


def _x_axis(scale: Scale, height: float, label: str, grid: bool = True) -> str:
    bottom = height - BOTTOM
    middle = (scale.start + scale.end) / 2
    drawn = f'<text x="{middle:.1f}" y="{bottom + 36:.1f}" text-anchor="middle">{escape(label)}</text>'
    for value in scale.ticks(max(1, min(9, int((scale.end - scale.start) / 46)))):
        x = scale(value)
        if grid:
            drawn += f'<path d="M{x:.1f} {TOP}V{bottom:.1f}" stroke="#ddd"/>'
        drawn += f'<text x="{x:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">{_short(value)}</text>'
    return drawn


def _y_axis(scale: Scale, label: str, grid: bool = True, most: int = 7) -> str:
    middle = (scale.start + scale.end) / 2
    place = f'transform="translate(14 {middle:.1f}) rotate(-90)" text-anchor="middle"'
    drawn = f"<text {place}>{escape(label)}</text>"
    for value in scale.ticks(most):
        y = scale(value)
        if grid:
            drawn += f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
        drawn += f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(value)}</text>'
    return drawn


def _short(value: float) -> str:
    """A tick's number: 0.05, 20, 1,000, 3e+06."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e6 else f"{value:.4g}"


def _figure(drawn: str, title: str, height: float = HEIGHT, note: str = "") -> str:
    """The drawing under its title, and over a note."""
    below = f'<text x="0" y="{height + 12:.0f}">{escape(note)}</text>' if note else ""
    whole = height + (18 if note else 0)
    return (
        f'<svg viewBox="0 0 {WIDTH} {whole:.0f}" role="img" aria-label="{escape(title)}" font-size="12" '
        f'font-family="system-ui, sans-serif" fill="#222"><text x="0" y="16" font-size="13.5" '
        f'font-weight="bold">{escape(title)}</text>{drawn}{below}</svg>'
    )
