"""Reports in a browser: readable at any width, without errors, for everybody.

They need Chromium, and the extra `browser`: Playwright, and axe, which checks contrast, headings and names.
"""

import shutil

import numpy as np
import pandas as pd
import pytest

from hierdp import SimulatedNoise, compare, evaluate, release, repair
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy

pytestmark = pytest.mark.slow

LONG = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"
PEOPLE = pd.DataFrame(
    {
        "state": ["Wales", "Wales", "Wales", "A", "é <b>"] * 20,
        "county": [LONG, "W2", "W3", "A1", "E1"] * 20,
        "home": [f"{i % 31}" for i in range(100)],
        "age": np.arange(100),
        "size": np.arange(100) % 10,
        "sex": ["female", "male"] * 50,
    }
)
PLACES = Hierarchy.from_columns(PEOPLE, ["state", "county"])
SIZES = {"levels": ["state", "county"], "group": ["county", "home"], "regions_from_data": True,
         "groups_from_data": True}  # fmt: skip
TABLES = {"attributes": ["sex=female,male"], "regions": PLACES, "region": "county", "delta": 1e-6}
MADE = {
    "group-size": ("group-size", {**SIZES, "max_size": 9}),
    "count-of-counts": ("count-of-counts", SIZES),
    "top-down": ("top-down", {"axes": {"from": (PLACES, "county"), "to": (PLACES, "county")}, "delta": 1e-6}),
    "range-query": ("range-query", {"axes": [Numbers("age", 0, 100)]}),
    "bars": ("range-query", {"axes": [Numbers("age", 0, 100, 10)], "confidence": 0.9}),
    "a table": (
        "range-query",
        {"axes": [Numbers("age", 0, 100, 10), Numbers("size", 0, 10)], "confidence": 0.9},
    ),
    "a map": ("range-query", {"axes": [Numbers("age", 0, 100), Numbers("size", 0, 10)]}),
    "clustering": ("clustering", {"axes": [("county", ["county"])], "regions_from_data": True}),
    "tabulation": ("tabulation", TABLES),
    "GLS": ("tabulation", {**TABLES, "method": "GLS"}),
    "repair": ("repair", {}),
    "compare": ("compare", {"axes": {"from": (PLACES, "county"), "to": (PLACES, "county")}, "delta": 1e-6}),
    "compare sizes": ("compare", {**SIZES, "max_size": 9}),
    "evaluate": ("evaluate", {}),
}
WIDTHS = (390, 1200, 1920)

OVERFLOWING = """() => {
  const page = document.documentElement, found = [];
  if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} wide`);
  for (const one of document.querySelectorAll("main *:not(svg *)")) {
    const head = one.closest("thead"), box = one.getBoundingClientRect();
    const scrolls = one.parentElement.closest("[tabindex]");  // also by keys
    if (head && getComputedStyle(head).clipPath != "none") continue;  // for screen readers only
    if (!scrolls && box.width && (box.right > page.clientWidth + 1 || box.left < -1))
      found.push(one.outerHTML.slice(0, 120));
    if (one.tabIndex == 0) continue;
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth && getComputedStyle(one).display != "inline")
      found.push(`${one.scrollWidth} in ${one.clientWidth}: ${one.outerHTML.slice(0, 120)}`);
  }
  return found;
}"""
"""What lies outside the screen, or is wider than its place."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of every kind of release, of a repair, of an evaluation and of comparisons."""
    place = tmp_path_factory.mktemp("reports")
    given = PEOPLE.groupby(["state", "county"], as_index=False).size().rename(columns={"size": "people"})
    for name, (mechanism, options) in MADE.items():
        if mechanism == "repair":
            made = repair(given, levels=["state", "county"], count="people")
        elif mechanism == "evaluate":
            evaluate(place / "tabulation", PEOPLE).write(place / name)
            continue
        elif mechanism == "compare":
            methods = ["Hg", "Hg x Hc x Hc"] if "sizes" in name else ["InfTDA", "SH"]
            compare(PEOPLE, methods=methods, epsilon=[0.1, 1], runs=2, **options).write(place / name)
            continue
        else:
            made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(2), **options)
        title = {"title": f"Of {LONG} and {LONG}", "note": "A note"} if name == "GLS" else {}
        made.write(place / name, proofs=False, **title)
    return place


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; tests are skipped if it, or what drives it, is not installed."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright: pip install 'hierdp[browser]'"
    )
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=quiet)
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page that fails the test if anything goes wrong in it, or if it loads anything else."""
    wrong = []
    opened = browser.new_page()
    opened.on("console", lambda said: wrong.append(said.text))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda sent: sent.url.startswith(("file:", "data:")) or wrong.append(sent.url))
    yield opened
    opened.close()
    assert wrong == []


@pytest.mark.parametrize("name", MADE)
def test_nothing_overflows(reports, page, name):
    page.goto((reports / name / "report.html").as_uri())
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVERFLOWING) == [], width


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(reports, page, name, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe: pip install 'hierdp[browser]'"
    )
    page.goto((reports / name / "report.html").as_uri())
    page.emulate_media(color_scheme=scheme)
    for width in (WIDTHS[0], WIDTHS[-1]):
        page.set_viewport_size({"width": width, "height": 900})
        found = axe.Axe().run(page).response
        assert len(found["passes"]) > 15
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_paper_shows_it_all(reports, page):
    """Printed on A4, no line is cut off at the right, and bars have their colour."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 960})  # A4 less the margins, at 96 dots an inch
    for name in MADE:
        page.goto((reports / name / "report.html").as_uri())
        assert page.evaluate(OVERFLOWING) == [], name
        assert page.pdf(format="A4").startswith(b"%PDF")
    bar = page.locator(".bars .bar").first
    assert bar.evaluate("one => getComputedStyle(one).printColorAdjust") == "exact"
