"""The leaderboard: what a browser computes from the page is what Python computes from the results."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from hierdp.bench import metrics, runs
from hierdp.bench.leaderboard import page, write_leaderboard
from hierdp.errors import InputError
from hierdp.verification.judge import SEVERITY

HOSTILE = "</script><script>document.title = 'caught'</script> & <b>bold</b>"

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def results():
    """Runs of three backends on twelve problems, with all verdicts."""
    rng = np.random.default_rng(0)
    verdicts = [*SEVERITY]
    rows = []
    for k in range(12):
        for backend in ("fast", "highs", "slow & steady"):
            verdict = "solved" if backend == "fast" else verdicts[int(rng.integers(len(verdicts)))]
            rows.append({
                "problem": f"p{k}", "backend": backend, "version": "1.0", "tolerance": "default",
                "time_limit": 10.0, "threads": 1, "set": "small", "model": "Chebyshev", "origin": "random",
                "form": "LP" if k % 2 else "MIQP", "variables": 10 ** (k % 3 + 2), "rows": 3,
                "status": "optimal", "verdict": verdict, "relative_gap": 0.0, "bound_error": 0.0,
                "objective": 5.0, "bound": 5.0,
                "optimum": 5.0, "proved": True, "primal_residual": np.nan, "dual_residual": np.nan,
                "build_seconds": 0.0, "solve_seconds": float(rng.uniform(0, 5)),
                "certificate_seconds": np.nan, "cpu_seconds": float(rng.uniform(0, 5)),
                "presolve": True, "memory": 0.0, "repeats": 1, "lower_quartile": 0.0, "upper_quartile": 0.0,
                "message": HOSTILE if backend == "highs" else "",
                "python": "3", "machine": "a <b>machine</b>", "load": 0.0,
                "edition": "2026.2", "date": "2026-11-23", "solver_version": "1.2.3",
            })  # fmt: skip
    return pd.DataFrame(rows)[runs.COLUMNS]


def test_the_page_holds_the_rows_and_nothing_in_them_is_code():
    text = page(results())
    assert HOSTILE not in text
    assert "<b>machine</b>" not in text
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert not re.search("[<>&]", data)
    found = json.loads(data)
    assert len(found["rows"]) == 36
    assert {row["message"] for row in found["rows"]} == {HOSTILE, ""}
    assert [row["seconds"] for row in found["rows"]] == metrics.seconds(results()).tolist()
    assert "default-src 'none'" in text


def test_a_file_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no runs"):
        write_leaderboard(tmp_path / "none.parquet", tmp_path / "page.html")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("form", ["", "LP"])
def test_a_browser_shows_what_python_computes(tmp_path, form):
    rows = results()
    (tmp_path / "page.html").write_text(page(rows), encoding="utf-8")
    address = f"{(tmp_path / 'page.html').as_uri()}#sort=-solved&backend=highs&form={form}"
    dom = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
         "--dump-dom", address],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    assert "<title>Leaderboard of solvers</title>" in dom
    here = rows[rows["form"] == form] if form else rows
    wanted = metrics.by_backend(here).set_index("backend")
    shown = table(dom, "board")
    assert set(shown["backend"]) == set(wanted.index)
    solved = [float(value) for value in shown["solved"]]
    assert solved == sorted(solved, reverse=True)
    for k, backend in enumerate(shown["backend"]):
        row = wanted.loc[backend]
        assert float(shown["mean"][k]) == pytest.approx(row["mean_seconds_all"], rel=6e-3)
        assert float(shown["cpu"][k]) == pytest.approx(row["mean_cpu_seconds_all"], rel=6e-3)
        assert float(shown["solved"][k]) == pytest.approx(row["solved"], rel=6e-3)
        counts = [*metrics.UNSOLVED, "unproved"]
        assert [int(shown[name][k]) for name in counts] == [row[name] for name in counts]
    detail = table(dom, "detail")
    assert sorted(detail["problem"]) == sorted(here["problem"].unique())
    assert set(detail["message"]) == {HOSTILE}


@pytest.fixture
def leaderboard(tmp_path):
    """The page in a browser, opened from disk; fails the test if anything goes wrong in it."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright: pip install 'hierdp[browser]'"
    )
    if BROWSER is None:
        pytest.skip("there is no Chromium here")
    (tmp_path / "page.html").write_text(page(results()), encoding="utf-8")
    wrong = []
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        shown = opened.new_page()
        shown.on("console", lambda said: wrong.append(said.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("request", lambda sent: sent.url.startswith("file:") or wrong.append(sent.url))
        shown.goto((tmp_path / "page.html").as_uri())
        yield shown
        opened.close()
    assert wrong == []


def column(shown, table_id, name):
    """The texts of a column."""
    names = shown.locator(f"#{table_id} th").all_inner_texts()
    at = [one.split()[0] for one in names].index(name) + 1
    return shown.locator(f"#{table_id} tbody td:nth-child({at})").all_inner_texts()


@pytest.mark.slow
def test_the_page_is_filtered_by_size_and_form(leaderboard):
    rows = results()
    leaderboard.get_by_role("combobox", name=re.compile("^size")).select_option("101 to 10,000")
    here = rows[rows["variables"].between(101, 10_000)]
    assert 0 < here["problem"].nunique() < rows["problem"].nunique()
    assert leaderboard.locator("#count").inner_text().startswith(f"{here['problem'].nunique()} problems")
    wanted = metrics.by_backend(here).set_index("backend")
    assert column(leaderboard, "board", "backend") == list(wanted.index)
    for backend, shown in zip(wanted.index, column(leaderboard, "board", "mean"), strict=True):
        assert float(shown) == pytest.approx(wanted.loc[backend, "mean_seconds_all"], rel=6e-3)
    leaderboard.get_by_role("combobox", name=re.compile("^form")).select_option("MIQP")
    here = here[here["form"] == "MIQP"]
    assert leaderboard.locator("#count").inner_text().startswith(f"{here['problem'].nunique()} problem")
    assert leaderboard.locator("#profile path").count() > 1
    leaderboard.reload()  # the address keeps the choice
    assert leaderboard.locator("#count").inner_text().startswith(f"{here['problem'].nunique()} problem")


@pytest.mark.slow
def test_the_page_of_an_instance(leaderboard):
    rows = results()
    leaderboard.locator("#board").get_by_role("button", name="highs").click()
    assert leaderboard.locator("#detail-title").inner_text() == "Runs of highs"
    assert sorted(column(leaderboard, "detail", "problem")) == sorted(rows["problem"].unique())
    leaderboard.locator("#detail").get_by_role("button", name="p3").click()
    assert "Runs of p3" in leaderboard.locator("#detail-title").inner_text()
    of = rows[rows["problem"] == "p3"].set_index("backend")
    assert sorted(column(leaderboard, "detail", "backend")) == sorted(of.index)
    for backend, verdict in zip(
        column(leaderboard, "detail", "backend"), column(leaderboard, "detail", "verdict"), strict=True
    ):
        assert verdict == of.loc[backend, "verdict"]
    leaderboard.reload()  # each instance has its own address
    assert "Runs of p3" in leaderboard.locator("#detail-title").inner_text()
    assert "LP" in leaderboard.locator("#about").inner_text()
    leaderboard.get_by_role("button", name="(back)").click()
    assert leaderboard.locator("#detail-title").inner_text() == "Runs of highs"


def table(dom, name):
    """A table of the page, by column."""
    (found,) = re.findall(rf'<table id="{name}">(.*?)</table>', dom, re.DOTALL)
    lines = [re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in found.split("</tr>")]
    cells = [[html.unescape(re.sub(r"</?button[^>]*>", "", cell)) for cell in line] for line in lines if line]
    return {name: [line[k] for line in cells[1:]] for k, name in enumerate(cells[0])}
