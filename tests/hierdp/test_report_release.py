"""The report of a release: plots of its counts, their properties, and the settings."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, release
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.errors import InputError
from hierdp.questions.intervals import with_intervals
from hierdp.reports.release import release_report as drawn

pytestmark = pytest.mark.slow


def release_report(made, **words):
    return drawn(made.table, made.manifest(**words))


PEOPLE = pd.DataFrame(
    {
        "s": ["01", "01", "02", "02", "é <b>"] * 20,
        "c": ["01a", "01b", "02a", "02b", "z"] * 20,
        "g": [f"{i % 31}" for i in range(100)],
        "age": np.arange(100),
    }
)
SIZES = {"levels": ["s", "c"], "group": ["c", "g"], "max_size": 9, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip
KINDS = {
    "group-size": (SIZES, "Groups by size, all regions together", ("max size", "9")),
    "count-of-counts": (SIZES, "Groups by size, all regions together", ("methods", "Hc, Hc, Hc")),
    "top-down": (
        {"axes": {"o": ["s", "c"], "d": ["c"]}, "delta": 1e-6, "regions_from_data": True},
        "Counts by o (c) → d (c)",
        ("axes", "o: root, s, c; d: root, c"),
    ),
    "tabulation": (
        {
            "levels": ["s", "c"],
            "attributes": ["g"],
            "attributes_from_data": True,
            "delta": 1e-6,
            "regions_from_data": True,
        },
        "Counts by g, all regions together",
        ("levels", "root, s, c"),
    ),
    "range-query": (
        {"axes": [Numbers("age", 0, 100)]},
        "Counts by age, with one standard error on each side",
        ("range query: axes", "age from 0 to 100 in 100 bins"),
    ),
    "clustering": ({"axes": [("c", ["c"])], "regions_from_data": True}, "Counts by c", ("axes", "c (names)")),
}


@pytest.mark.parametrize("mechanism", KINDS)
def test_it_shows_counts_and_settings(mechanism):
    options, title, (setting, value) = KINDS[mechanism]
    made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(2), **options)
    text = release_report(made)
    assert f">{title}" in text  # in the picture or its table, as text
    rows = dict(re.findall(r"<tr><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td></tr>", text))
    assert rows[setting] == value
    assert ("which makes them public" in text.partition("Taken as public")[2]) == (
        "regions_from_data" in options
    )
    holds = made.manifest()["holds"]
    assert rows["counts: whole numbers"] == {True: "yes", False: "not claimed"}[holds["whole"]]
    assert "NOT private" in text
    assert "é &lt;b&gt;" in text or mechanism != "group-size"
    assert f"hierdp {made.manifest()['versions']['hierdp']}" in text


@pytest.mark.parametrize(
    ("mechanism", "title", "drawn_as"),
    [
        ("group-size", "Groups by size, all regions together", '<path class="line"'),
        ("count-of-counts", "Groups by size, all regions together", '<path class="line"'),
        ("range-query", "Counts by age", '<path class="line"'),
        ("top-down", "Counts by o (s), in rows, and d (c), in columns", r"<small>[\d,]+ to [\d,]+</small>"),
        ("tabulation", "Counts by g, all regions together", '>lower<.*>upper<.*<span class="interval"'),
    ],
)
def test_pictures_show_intervals(mechanism, title, drawn_as):
    options, _, _ = KINDS[mechanism]
    made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(2), confidence=0.9, **options)
    shown = re.escape(f">{title}, with their intervals")
    assert re.search(shown + ".*" + drawn_as, release_report(made), re.DOTALL)


@pytest.mark.parametrize("method", ["Wavelet", "Quadtree"])
def test_two_axes_are_a_shaded_table_or_a_chart(method):
    for bins, many in ((10, False), (32, True)):
        options = {"axes": [Numbers("age", 0, 100, bins), ("c", ["c"])], "regions_from_data": True}
        made = release(PEOPLE, "range-query", epsilon=1, noise=SimulatedNoise(2), method=method, **options)
        for one, intervals in ((made, False), (with_intervals(made, 0.9), True)):
            text = release_report(one)
            assert text.count("<svg") == many * (1 + intervals)
            assert ('class="heat"' in text) != many
            assert (">Widths of intervals by age (across) and c (up)<" in text) == (many and intervals)
            if not many:
                assert '<th scope="row">90 to 100</th>' in text
                assert '<th scope="col"><span>01a</span></th>' in text


def test_a_few_bins_are_bars_in_their_order():
    made = release(
        PEOPLE, "range-query", epsilon=1, noise=SimulatedNoise(2), axes=[Numbers("age", 0, 100, 10)]
    )
    labels = re.findall('<th scope="row">([0-9]+ to [0-9]+)</th>', release_report(made))
    assert labels == [f"{i} to {i + 10}" for i in range(0, 100, 10)]


def test_an_empty_table_is_not_drawn():
    options = {**SIZES, "groups_from_data": False, "group_budget": 0.01}
    for seed in range(40):
        made = release(PEOPLE[:1], "count-of-counts", epsilon=1, noise=SimulatedNoise(seed), **options)
        if made.table.empty:
            break
    assert made.table.empty
    assert "<svg" not in release_report(made)


def test_long_fractions_are_short():
    made = release(PEOPLE, "clustering", epsilon=1, noise=SimulatedNoise(3),
        axes=[("age", ["age"])], regions_from_data=True)  # fmt: skip
    (line,) = made.proved
    assert len(line.objective) > 20
    assert line.objective not in release_report(made)


def test_title_and_note_are_text_and_stand_first():
    made = release(PEOPLE, "group-size", epsilon=1, noise=SimulatedNoise(2), **SIZES)
    text = release_report(made, title='People & "<b>work</b>"', note="<script>1</script>\nand more")
    assert "<h1>People &amp; &#34;&lt;b&gt;work&lt;/b&gt;&#34;</h1>" in text
    assert '<p class="note">&lt;script&gt;1&lt;/script&gt;\nand more</p>' in text
    assert "<script" not in text
    what = "How many groups have each size, by s, c"
    assert f"<p>{what}: " in text
    heads = [
        "Verdicts",
        "Counts",
        "What is protected",
        "How accurate to expect it",
        "Settings",
        "Solved and proved",
    ]
    assert re.findall("<h2>(.*?)</h2>", text) == [*heads, "Budget: the ledger"]
    assert re.findall("<h[12]>(.*?)</h[12]>", release_report(made))[:2] == [what, "Verdicts"]
    assert "Protected: one entity joins or leaves a group; regions and groups are public." in text


@pytest.mark.parametrize("words", [{"title": 7}, {"note": b"text"}, {"title": "\udcff"}])
def test_non_text_titles_are_refused(tmp_path, words):
    made = release(PEOPLE, "group-size", epsilon=1, noise=SimulatedNoise(2), **SIZES)
    with pytest.raises(InputError, match=f"the {next(iter(words))} (must be text|is not valid Unicode)"):
        made.write(tmp_path / "out", **words)
    assert list(tmp_path.iterdir()) == []


def test_title_and_note_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("in.csv", index=False)
    arguments = [
        "release",
        "range-query",
        "in.csv",
        "--numbers",
        "age=0:100",
        "--epsilon",
        "1",
        "--out",
        "out",
    ]
    done = CliRunner().invoke(main, [*arguments, "--title", "Ages & more", "--note", "Of <2020>"])
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert (manifest["title"], manifest["note"]) == ("Ages & more", "Of <2020>")
    assert "<h1>Ages &amp; more</h1>" in (tmp_path / "out/report.html").read_text()
    done = CliRunner().invoke(main, [*arguments, "--overwrite", "--title", "\udcff"])
    assert done.exit_code == 2
    assert "the title is not valid Unicode text" in done.output
