"""The command line: commands that work; others end with one clear message and write nothing."""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.experiments.papers import PAPERS
from tests.marks import but_for_compiling, quick

HIERDP = Path(sys.executable).with_name("hierdp")

PEOPLE = "state,county,home,n\nA,a,1,2\nA,a,2,0\nA,a2,4,1\nB,b,3,5\n"
TRIPS = "o_state,o,d,n\nA,a,x,30\nA,a,y,2\nB,b,x,10\n"
FILES = {
    "people.csv": PEOPLE,
    "trips.csv": TRIPS,
    "regions.csv": "state,county\nA,a\nA,a2\nB,b\nB,never\n",
    "ends.csv": "all,end\nx,a\nx,b\nx,x\nx,y\n",
    "lost.csv": PEOPLE + "B,,5,1\nB,zz,6,1\nB,b,,1\n",
    "no such region.csv": PEOPLE + "B,zz,6,1\n",
    "a file": "",
    "ages.csv": "age,town,n\n3,a,40\n17,b,41\n18,a,1\n64,b,2\n",
    "towns.csv": "town\na\nb\nnever\n",
    "homes.csv": "state,county,home,n\nA,a,1,2\nA,a,2,1\nA,a2,4,1\nB,b,3,500\n",
    "empty home.csv": "state,county,home,n\nA,a,1,2\nA,a,2,1\nA,a2,4,1\nB,b,3,500\nB,b,9,0\n",
}
SEEN = "--regions-from-data --groups-from-data"
SIZES = "release group-size people.csv --levels state,county --group home --entities n --max-size 5 " + SEEN
SIZES += " --epsilon 1 --out out"
TABLED = "release group-size people.csv --regions regions.csv --region-levels state,county --levels county"
TABLED += " --groups-from-data --group home --entities n --max-size 5 --epsilon 1 --out out"
FLOWS = "release top-down trips.csv --axis origin=o_state,o --axis to=d --count n --regions-from-data"
FLOWS += " --epsilon 1 --delta 1e-8 --out out"
AGES = "release clustering ages.csv --numbers age=0:80:8 --count n --epsilon 1 --out out"
GROUPS = "release count-of-counts homes.csv --levels state,county --group home --entities n --epsilon 1 "
GROUPS += f"--out out {SEEN}"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.csv").write_bytes("state,county,home,n\nK\xf6ln,a,1,1\n".encode("latin-1"))
    Path("mine").mkdir()
    Path("mine", "thesis.txt").write_text("years of work")
    return tmp_path


def run(command):
    done = CliRunner().invoke(main, shlex.split(command), prog_name="hierdp")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert "Traceback" not in done.output
    return done


# --- what works ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "hierdp demo"),
        ("demo", "--time-limit"),
        ("release", "top-down"),
        ("release group-size", "Choose it without looking at the data"),
        ("release top-down", "far below 1 / number of people"),
        ("verify", "Exit status 1 if an answer is wrong"),
        ("solvers", "how to install the others"),
        ("mechanisms", "what it protects"),
    ],
)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help(command, says, flag):
    done = run(f"{command} {flag}")
    assert done.exit_code == 0
    text = " ".join(done.output.split())
    assert "Usage: hierdp" in text
    assert says in text


@pytest.mark.parametrize(
    ("kind", "command"), quick(itertools.product(["csv", "parquet"], [SIZES, TABLED]), every=3)
)
def test_release_group_size(kind, command):
    if kind == "parquet":
        pd.read_csv("people.csv").to_parquet("people.parquet")
        command = command.replace("people.csv", "people.parquet")
    done = run(command)
    assert done.exit_code == 0, done.output
    tabled = command.split()[3] == "--regions"
    regions = ["all", "A", "B", "a", "a2", "b", *["never"] * tabled]
    table = pq.read_table("out/released.parquet").to_pandas()
    assert table.region.drop_duplicates().tolist() == regions
    assert table["size"].tolist() == list(range(6)) * len(regions)
    by_region = table.groupby("region")["groups"].sum()
    assert by_region["all"] == 4
    assert by_region["A"] + by_region["B"] == 4
    assert (table["groups"] >= 0).all()
    again = pd.read_csv("out/released.csv", keep_default_na=False)
    pd.testing.assert_frame_equal(again, table.fillna({"parent": ""}), check_dtype=False)
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["budget"]["private"] is True
    assert manifest["budget"]["spent"] == pytest.approx(1)
    assert manifest["settings"]["groups"] == 4
    assert ("table of regions" in manifest["taken_as_public"]["regions"]) == tabled
    assert "ε = 1 spent" in done.output
    lines = {
        line.rsplit(maxsplit=1)[0].strip(): line.split()[-1] for line in done.output.splitlines() if line
    }
    printed = [spend for line, spend in lines.items() if line.startswith("cumulative sizes")]
    assert printed == [f"{spend['epsilon']:.6g}" for spend in manifest["budget"]["spends"]]
    assert lines["sum"] == "1"
    assert "out/report.html" in done.output


@pytest.mark.parametrize(
    ("kind", "tabled"), quick(itertools.product(["csv", "parquet"], [False, True]), every=3)
)
def test_release_top_down(kind, tabled):
    command = FLOWS
    if tabled:
        command = command.replace("origin=o_state,o", "origin=o").replace("--regions-from-data", "")
        command += " --regions ends.csv --region-levels end"
    if kind == "parquet":
        pd.read_csv("trips.csv").to_parquet("trips.parquet")
        command = command.replace("trips.csv", "trips.parquet")
    done = run(command)
    assert done.exit_code == 0, done.output
    table = pq.read_table("out/released.parquet").to_pandas()
    named = ["level", "origin_level", "origin", "to_level", "to", "count", "lower", "upper"]
    assert table.columns.tolist() == named
    assert (table.groupby("level")["count"].sum() == 42).all()
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["settings"]["order"] == (["to", "origin"] if tabled else ["to", "origin", "origin"])
    assert manifest["budget"]["delta"] == 1e-8
    assert "ρ = 0.0172053 spent" in done.output


def test_negligible_noise_gives_the_true_table():
    """With an enormous ε the exact noise is 0, so the released files must contain the true table."""
    run(SIZES.replace("--epsilon 1", "--epsilon 1e6"))
    table = pd.read_csv("out/released.csv", keep_default_na=False)
    found = {(r.region, r.size): r.groups for r in table.itertuples() if r.groups and r.level == 2}
    assert found == {("a", 0): 1, ("a", 2): 1, ("a2", 1): 1, ("b", 5): 1}
    run(FLOWS.replace("--epsilon 1", "--epsilon 1e6") + " --overwrite --first origin")
    table = pd.read_csv("out/released.csv")
    found = {(r.origin, r.to): r.count_ for r in table.rename(columns={"count": "count_"}).itertuples()
             if r.level == 3}  # fmt: skip
    assert found == {("a", "x"): 30, ("a", "y"): 2, ("b", "x"): 10}


def test_odd_names():
    rows = 'état;комуна;h\n"Île ""x""";<b>ü</b>;1\n日本;東京|1;2\n=cmd();\' OR 1;3\n007;0080;4\n'
    Path("odd.csv").write_text(rows, encoding="utf-8")
    done = run(
        "release group-size odd.csv --levels état,комуна --group h --max-size 2 --epsilon 1e6 --out out "
        + f"--title <b>ü</b> {SEEN}"
    )
    assert done.exit_code == 0, done.output
    table = pd.read_csv("out/released.csv", dtype=str, keep_default_na=False)
    assert set(table[table.level == "2"].region) == {"<b>ü</b>", "東京|1", "' OR 1", "0080"}
    assert set(table[table.level == "2"].parent) == {'Île "x"', "日本", "=cmd()", "007"}
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "<b>ü</b>" not in page
    assert "&lt;b&gt;ü&lt;/b&gt;" in page


def test_unknown_keeps_every_row():
    command = TABLED.replace("people.csv", "lost.csv").replace("--epsilon 1", "--epsilon 1e6")
    done = run(f"{command} --unknown elsewhere")
    assert done.exit_code == 0, done.output
    table = pd.read_csv("out/released.csv", keep_default_na=False)
    sizes = table[table.region == "all"].set_index("size")["groups"]
    # homes 1 … 6, and in each of the five regions the (mostly empty) group of rows without one
    assert sizes.to_dict() == {0: 1 + 4, 1: 1 + 2 + 1, 2: 1, 3: 0, 4: 0, 5: 1}
    assert set(table[table.level == 2].region) == {"a", "a2", "b", "never", "elsewhere"}


def test_simulated_noise_is_repeated_and_marked():
    outputs = [run(f"{SIZES.replace('--out out', f'--out {out}')} --simulate 5") for out in ("one", "two")]
    assert Path("one/released.csv").read_bytes() == Path("two/released.csv").read_bytes()
    assert all("SIMULATED NOISE: this is NOT private" in done.output for done in outputs)
    assert "NOT private" in Path("one/report.html").read_text()
    manifest = json.loads(Path("one/manifest.json").read_text())
    assert "NOT private" in manifest["warning"]
    assert manifest["budget"]["private"] is False
    assert not any(spend["private"] for spend in manifest["budget"]["spends"])
    run(f"{SIZES} --simulate 6 --epsilon 0.1")
    assert Path("one/released.csv").read_bytes() != Path("out/released.csv").read_bytes()


def test_existing_folders():
    assert run(SIZES).exit_code == 0
    before = Path("out/manifest.json").read_text()
    assert run(SIZES).exit_code == 2
    assert Path("out/manifest.json").read_text() == before
    assert run(f"{SIZES} --overwrite").exit_code == 0
    assert run(f"{FLOWS} --overwrite").exit_code == 0
    assert json.loads(Path("out/manifest.json").read_text())["mechanism"] == "InfTDA"


# --- real processes --------------------------------------------------------------------------------------


def shell(command, folder, **variables):
    return subprocess.run(
        [HIERDP, *shlex.split(command)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(not HIERDP.exists(), reason="hierdp is not installed as a command")
def test_as_a_command(place):
    done = shell(SIZES, place)
    assert (done.returncode, but_for_compiling(done.stderr)) == (0, ""), done.stderr
    assert done.stdout.startswith("M_c^dp: 36 rows; 8 of 8 post-processing problems proved optimal")
    bad = shell(SIZES.replace("--epsilon 1", "--epsilon nan").replace("--out out", "--out new"), place)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.splitlines()[-1] == "Error: --epsilon is nan: it must be a positive finite number"
    assert not (place / "new").exists()
    version = shell("--version", place)
    assert re.fullmatch(r"hierdp, version [0-9.]+\n", version.stdout)
    plain = shell("mechanisms", place, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii:replace")
    assert plain.returncode == 0


def test_solvers():
    done = run("solvers")
    assert done.exit_code == 0
    for word in ("fast", "highs", "cp-sat", "clarabel", "pyomo:highs", "Apache-2.0", "certificates"):
        assert word in done.output


def test_mechanisms():
    done = run("mechanisms")
    text = " ".join(done.output.split())
    assert done.exit_code == 0
    for word in ("M_c^dp", "group-size", "InfTDA", "top-down", "ε-DP", "zCDP", "Isotonic", "Chebyshev"):
        assert word in text


def test_verify():
    done = run("verify Chebyshev Isotonic --backends highs --instances 2 --size 6 --seed 3 --out v.parquet")
    assert done.exit_code == 0, done.output
    assert "4 models, 4 proved optimal" in done.output
    table = pd.read_parquet("v.parquet")
    assert len(table) == 8
    assert set(table.verdict) == {"solved"}
    assert set(table.model) <= {"Chebyshev", "Isotonic", "Isotonic (relaxed)"}


RELEASED = (
    "NOT-PRIVATE.txt",
    "SHA256SUMS",
    "finest.csv",
    "finest.parquet",
    "manifest.json",
    "measurements.parquet",
    "proofs.zip",
    "regions.csv",
    "released.csv",
    "released.parquet",
    "report.html",
)


@pytest.mark.slow
def test_demo(tmp_path):
    """The demo from end to end, once, in a separate process."""
    tmp_path = tmp_path / "demo"
    tmp_path.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "hierdp", "demo", "--simulate", "1", "--time-limit", "1", "--out", "d"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "SIMULATED NOISE: this is NOT private" in done.stdout
    assert "wrong" not in done.stdout
    out = tmp_path / "d"
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == [
        "SHA256SUMS",
        *(f"group-sizes/{name}" for name in RELEASED),
        *(f"origin-destination/{name}" for name in RELEASED),
        "report.html",
        "verification.parquet",
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d"]

    rows = pd.read_parquet(out / "verification.parquet")
    assert rows.proved.all()
    assert "wrong" not in set(rows.verdict)
    failed = set(rows.backend[rows.verdict == "failed"])
    assert not failed & {"fast", "highs", "cp-sat", "clarabel", "pyomo:highs"}  # others may be inaccurate
    assert {"fast", "highs", "cp-sat", "clarabel", "pyomo:highs"} <= set(rows.backend)
    assert {"Isotonic", "HierarchyQIP", "Chebyshev"} <= set(rows.model)

    manifest = json.loads((out / "group-sizes/manifest.json").read_text())
    assert manifest["budget"]["epsilon"] == 1
    assert "NOT private" in manifest["warning"]
    flows = pd.read_parquet(out / "origin-destination/released.parquet")
    assert (flows.groupby("level")["count"].sum() == 336_776).all()
    manifest = json.loads((out / "origin-destination/manifest.json").read_text())
    assert (manifest["budget"]["epsilon"], manifest["budget"]["delta"]) == (1, 1e-8)
    assert manifest["all_proved_optimal"] is True

    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Error by level" in page
    assert "Time by backend" in page
    assert "NOT private" in page
    for fetched in ("<script", "<link", "<img", "src=", "@import", "url(http", 'href="http'):
        assert fetched not in page


STAYS = "True counts stay on this machine, which also draws the noise."


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("release group-size", STAYS),
        ("verify", "Instances are solved there."),
        ("reproduce", "All runs and their noise are made there"),
        ("audit", "All runs and their noise are made there"),
        ("demo", "Only problems with noisy counts are solved there."),
    ],
)
def test_help_says_what_leaves_this_machine(command, where):
    said = " ".join(CliRunner().invoke(main, [*command.split(), "--help"]).output.split())
    assert where in said
    assert (STAYS in said) == (where == STAYS)


def test_help_lists_the_papers():
    said = CliRunner().invoke(main, ["reproduce", "--help"]).output
    assert all(paper in said for paper in PAPERS)
