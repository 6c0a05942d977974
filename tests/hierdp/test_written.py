"""Releases from any source are read within a memory limit and printed safely; refusals name the file."""

import io
import json
import os
import re
import shutil
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, check
from hierdp.checking.effort import refuse_or_announce
from hierdp.cli import main
from hierdp.cli.common import visible
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_table import SizeTable
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.record import files, proofs, written
from hierdp.record import release as record
from hierdp.record.written import justified, limit_for
from tests.hierdp.changing import change_manifest

pytestmark = pytest.mark.slow

NAMES = ["a\rb", "c\nd", 'e"f,g', "x\x1b[31m", "[bold]y[/bold]", "z", "\u202eright"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    homes = pd.DataFrame({"town": NAMES, "home": range(len(NAMES))})
    made = release(homes, "group-size", epsilon=1, noise=SimulatedNoise(1), levels=["town"], group=["home"],
                   regions_from_data=True, groups_from_data=True,
                   max_size=3)  # fmt: skip
    made.write(folder / "sizes", report=False)
    ages = release(homes, "range-query", epsilon=1, noise=SimulatedNoise(1), axes=[Numbers("home", 0, 8)])
    ages.write(folder / "ages", report=False)
    return folder


@pytest.fixture
def folder(kept, tmp_path, monkeypatch):
    shutil.copytree(kept, tmp_path / "made")
    monkeypatch.chdir(tmp_path / "made")
    return tmp_path / "made"


def run(*command):
    done = CliRunner().invoke(main, command)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def failing(path):
    return {line.check: line.why for line in check(path) if line.verdict == FAILS}


# --- names ---------------------------------------------------------------------------------------------


def test_names_with_every_special_character_of_csv(folder):
    assert failing(folder / "sizes") == {}
    for name in ("released", "finest"):
        table = pd.read_csv(folder / "sizes" / f"{name}.csv", keep_default_na=False)
        held = pd.read_parquet(folder / "sizes" / f"{name}.parquet")
        held = held.fillna({"parent": ""}) if "parent" in held else held
        pd.testing.assert_frame_equal(table, held, check_dtype=False)
    listed = files.read_regions_of(folder / "sizes" / files.REGIONS)
    assert set(listed["region"].names[1]) == set(NAMES)


@pytest.mark.usefixtures("folder")
def test_nothing_from_a_file_reaches_the_terminal_as_a_command():
    """Terminal escapes, changes of the text direction, and Rich markup in names, paths and errors."""
    nowhere = ["--epsilon", "1", "--out", "o"]
    odd = "o\x1b[2J[red]x"
    shutil.move("sizes", odd)
    for done in (
        run("check", odd),
        run("check", odd + "!"),
        run("query", odd, "--range", "1:2"),
        run("release", "range-query", "none.csv", "--names", "a\x1b[0m", "--epsilon", "1", "--out", "o"),
        run("release", "range-query", "none.csv", "--names", "a\x1b[0m", "--regions-from-data", *nowhere),
    ):
        assert "\x1b" not in done.output
        assert "Traceback" not in done.output
    assert r"o\x1b[2J[red]x" in run("check", odd).output
    assert visible("\u202eleft\x07\x9b") == "\\u202eleft\\x07\\x9b"
    assert visible("a\nb\tç — ε²") == "a\nb\tç — ε²"


# --- limits --------------------------------------------------------------------------------------------


def test_a_release_within_the_limit_is_read_and_one_beyond_it_is_questioned(folder):
    assert written.read(folder / "sizes").table.frame().equals(pd.read_parquet("sizes/released.parquet"))
    done = run("check", "sizes", "--limit", "1e-6")
    assert done.exit_code == 2
    assert "--limit 0.1" in done.output
    assert run("query", "ages", "--range", "1:3", "--limit", "1e-6").exit_code == 2
    assert run("query", "ages", "--range", "1:3").exit_code == 0


BOMBS = {
    "many items": lambda: b"[" + b"[]," * 20_000_000 + b"[]]",
    "deep": lambda: b"[" * 100_000 + b"]" * 100_000,
    "a number that is none": lambda: b'{"a": NaN}',
    "twice": lambda: b'{"budget": 1, "budget": 2}',
    "a list": lambda: b"[]",
    "null": lambda: b"null",
    "empty": lambda: b"",
    "binary": lambda: bytes(range(256)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_manifests_made_to_harm(folder, bomb):
    for name in ("sizes", "ages"):
        (folder / name / files.MANIFEST).write_bytes(BOMBS[bomb]())
        seal.seal(folder / name)
    checked, queried = run("check", "sizes"), run("query", "ages", "--range", "1:3")
    assert checked.exit_code == (2 if bomb == "many items" else 1)
    assert queried.exit_code == 2
    for done in (checked, queried):
        assert "manifest.json" in done.output
        assert "unforeseen" not in done.output
    if bomb == "twice":
        assert "it holds 'budget' twice" in queried.output


def wide(path):
    pq.write_table(pa.table({f"c{i}": [1] for i in range(1_001)}), path)


def tall(path):
    """Sixty million rows in a few kilobytes."""
    column = pa.array(np.zeros(1_000_000, np.int64))
    table = pa.table({"level": column})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(60):
            writer.write_table(table)


def long_names(path):
    """A name of a megabyte, two thousand times."""
    names = pa.DictionaryArray.from_arrays(np.zeros(2_000, np.int32), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"region": names}), path)


PARQUETS = {
    "wide": (wide, "columns: no release has that many"),
    "tall": (tall, "may take"),
    "long names": (long_names, "may take"),
    "broken": (lambda path: path.write_bytes(b"PAR1" + bytes(99) + b"PAR1"), "released.parquet is broken"),
    "short": (lambda path: path.write_bytes(b"PAR"), "released.parquet is broken"),
    "empty": (lambda path: path.write_bytes(b""), "released.parquet is broken"),
    "not there": (lambda path: path.unlink(), "released.parquet is missing"),
}


@pytest.mark.parametrize("bomb", PARQUETS)
def test_tables_made_to_harm(folder, bomb):
    make, why = PARQUETS[bomb]
    for name in ("sizes", "ages"):
        make(folder / name / "released.parquet")
        seal.seal(folder / name)
    for done in (run("check", "sizes"), run("query", "ages", "--range", "1:3")):
        assert done.exit_code in (1, 2)
        assert why in " ".join(done.output.split())
        assert "unforeseen" not in done.output


def test_a_list_of_regions_made_to_harm(folder):
    with (folder / "sizes" / files.REGIONS).open("a") as file:
        file.writelines("," * 1_000_000 for _ in range(10))
    seal.seal(folder / "sizes")
    done = run("check", "sizes")
    assert done.exit_code == 2
    assert "reading regions.csv may take" in done.output


def rewritten(path, change):
    """Change the members of the file of proofs."""
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


def claiming(path, name, size):
    """Change the unpacked size that the file claims for a member."""
    with zipfile.ZipFile(path) as file:
        shown = file.getinfo(name).file_size
    content = path.read_bytes()
    at = content.rindex(name.encode()) - 46 + 24  # in the directory, at the end
    assert int.from_bytes(content[at : at + 4], "little") == shown
    path.write_bytes(content[:at] + size.to_bytes(4, "little") + content[at + 4 :])


PROOFS = {
    "names": (
        lambda path: rewritten(path, lambda held: held.update({"steps.json": b"[" + b"[]," * 999 + b"[]]"})),
        "steps.json is longer than the names of the manifest's steps",
    ),
    "a member": (
        lambda path: rewritten(path, lambda held: held.update({"000000.npz": bytes(101_000_000)})),
        "000000.npz is too large for a step of ",
    ),
    "many": (
        lambda path: rewritten(path, lambda held: held.update({f"{i:06d}.npz": b"" for i in range(99)})),
        "files are expected",
    ),
    "claims less": (lambda path: claiming(path, "000000.npz", 100), "proofs.zip is broken"),
    "claims more": (
        lambda path: claiming(path, "000000.npz", 90_000_000),
        "000000.npz is shorter than it says",
    ),
    "a comment": (lambda path: path.write_bytes(path.read_bytes() + b"!"), "it is not a zip file"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "it is not a zip file"),
    "empty": (lambda path: path.write_bytes(b""), "it is not a zip file"),
}


@pytest.mark.parametrize("bomb", PROOFS)
def test_proofs_made_to_harm(folder, bomb):
    make, why = PROOFS[bomb]
    make(folder / "sizes" / files.PROOFS)
    seal.seal(folder / "sizes")
    assert why in failing(folder / "sizes")["certificates"]


PLACES = Hierarchy.flat("town", ["a", "b"])
SMALL = {
    "count-of-counts": {"levels": ["town"], "group": ["home"], "max_size": 3, "groups_from_data": True},
    "range-query": {"axes": [Numbers("home", 0, 8)]},
    "clustering": {"axes": [Numbers("home", 0, 8)], "method": "Laplace"},
    "tabulation": {"regions": PLACES, "region": "town", "attributes": {"kind": ["x", "y"]}, "delta": 1e-6},
}
"""Options of a small release of mechanisms whose time depends on their problems, not on their rows alone."""


@pytest.mark.parametrize("mechanism", SMALL)
def test_a_check_that_takes_longer_than_the_limit_is_questioned(mechanism, folder):
    """The estimate is for the problems that the manifest lists; the check itself detects a false list."""
    homes = pd.DataFrame({"town": [*"aaab"], "home": range(4), "kind": [*"xyxx"]})
    options = {"epsilon": 1, "noise": SimulatedNoise(1), **SMALL[mechanism]}
    if "levels" in options:
        options["regions_from_data"] = True
    release(homes, mechanism, **options).write(folder / "one", report=False)
    lines = json.loads((folder / "sizes" / files.MANIFEST).read_text())["solved"] * 200
    solved = [{**line, "variables": 10**7} for line in lines[:200]]
    change_manifest(folder / "one", lambda manifest: manifest.update(solved=solved))
    seal.seal(folder / "one")
    done = run("check", "one")
    assert done.exit_code == 2
    needed = re.search(r"200 problems of .* 10 minutes are allowed .* --limit ([0-9.]+)", done.output)
    assert needed, done.output
    assert run("check", "one", "--limit", needed[1]).exit_code == 1  # checked, and detected


@pytest.mark.parametrize("solved", [None, 3, [3], [{}], [{"variables": "x"}], [{"variables": 10**400}]])
def test_a_nonsensical_manifest_is_not_refused_for_its_estimate(solved):
    refuse_or_announce({"solved": solved}, range(5), 10**9)


def test_the_time_for_a_large_table_is_less_for_each_row():
    places = Hierarchy.flat("zone", [str(k) for k in range(999)])
    table = SizeTable(places, np.broadcast_to(np.int64(0), (1_000, 100_000)))
    manifest = {"solved": [{"variables": 2 * len(table)}]}
    refuse_or_announce(manifest, table, 10**9)
    with pytest.raises(InputError, match="may take 23 minutes"):
        refuse_or_announce(manifest, range(len(table)), 10**9)
    refuse_or_announce(manifest, range(len(table)), 24 * 10**9)


def test_the_size_of_tables_justifies_memory_and_holes_or_long_lines_do_not(folder, monkeypatch):
    path = folder / "sizes"
    assert limit_for(path) == justified(path) == justified(folder / "nowhere") == 10**9
    noise = np.random.default_rng(1).bytes(10_000_000)
    (path / files.PROOFS).write_bytes(noise)
    with (path / files.MEASUREMENTS).open("r+b") as file:
        file.truncate(10**12)
    assert justified(path) == 10**9
    (path / files.MEASUREMENTS).write_bytes(noise)
    assert justified(path) == pytest.approx(200 * len(noise), rel=0.05)
    lines = b"region,1,county,a name,its parent\n" * 100_000
    (path / files.REGIONS).write_bytes(lines)  # of a release with little noise, the largest file
    assert justified(path) == pytest.approx(200 * len(noise) + 50 * len(lines), rel=0.01)
    (path / files.REGIONS).write_bytes(lines + b"," * 200_000 + b"\n" + lines)
    assert justified(path) == pytest.approx(200 * len(noise), rel=0.05)
    monkeypatch.setattr(written, "_memory", lambda: 1_500_000_000)
    assert (limit_for(path), limit_for(path, 7)) == (1_500_000_000, 7)


def test_a_release_with_little_noise_justifies_its_memory(tmp_path, monkeypatch):
    """Its rows take less than a byte in Parquet; nothing is allowed here that its files do not justify."""
    homes = pd.DataFrame({"town": [f"{k}" for k in range(500)], "home": range(500)})
    made = release(homes, "group-size", epsilon=1000, noise=SimulatedNoise(1), levels=["town"],
                   group=["home"], regions_from_data=True, groups_from_data=True, max_size=200)  # fmt: skip
    made.write(tmp_path / "made", report=False)
    monkeypatch.setattr(written, "LIMIT", 1)
    assert not [line for line in check(tmp_path / "made") if line.verdict == FAILS]
    monkeypatch.setattr(written, "OF_A_TEXT_BYTE", 0)
    with pytest.raises(InputError, match="may take"):
        check(tmp_path / "made")


def test_proofs_that_take_more_than_the_limit(folder):
    rewritten(folder / "sizes" / files.PROOFS, lambda held: held.update({"000000.npz": bytes(50_000_000)}))
    seal.seal(folder / "sizes")
    done = run("check", "sizes", "--limit", "0.1")
    assert done.exit_code == 2
    assert "reading proofs.zip may take" in done.output


@pytest.mark.parametrize("number", [0, 3, 66_000])
def test_a_directory_of_a_zip_file_is_measured(number):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for i in range(number):
            made.writestr(zipfile.ZipInfo(f"{i:06d}.npz"), b"")
    proofs.check_entries(file, number)
    with pytest.raises(ValueError, match="files are expected"):
        proofs.check_entries(file, number // 3 - 1)


@pytest.mark.parametrize("what", ["file", "pipe", "folder", "link out", "many"])
def test_entries_that_no_release_has_are_refused(folder, what):
    path = folder / "sizes" / "more.txt"
    why = "'more.txt': a release contains regular files only"
    if what == "file":
        path.write_text("")
        seal.seal(folder / "sizes")
        why = "more.txt was added"
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "link out":
        path.symlink_to("/dev/zero")
    else:
        for i in range(9):
            (folder / "sizes" / f"more{i}.txt").write_text("")
        why = f"{folder / 'sizes'} contains more files than any release"
    assert failing(folder / "sizes") == {"files": why}


def test_a_table_that_its_manifest_does_not_describe(folder):
    change_manifest(folder / "ages", lambda it: it["settings"]["range_query"]["axes"][0].update(bins=10**12))
    done = run("query", "ages", "--range", "1:3")
    assert done.exit_code == 2
    assert "ages is broken: its table does not agree with its manifest" in done.output
    change_manifest(folder / "ages", lambda manifest: manifest["settings"].update(range_query={}))
    assert "see hierdp check" in run("query", "ages", "--range", "1:3").output


# --- entries that no check covers ------------------------------------------------------------------------

ADDED = {
    "the manifest has 'endorsed_by'": lambda m: m.update(endorsed_by="the office"),
    "'budget' has 'epsilon_per_year'": lambda m: m["budget"].update(epsilon_per_year=0.1),
    "'budget', 'spends' of 'cumulative sizes by root' has 'note'": (
        lambda m: m["budget"]["spends"][0].update(note="half")
    ),
    "'versions' has 'sampcert'": lambda m: m["versions"].update(sampcert="1.0"),
    "'holds' has 'optimal'": lambda m: m["holds"].update(optimal=True),
    "the manifest lacks 'warning'": lambda m: m.pop("warning"),
    "'budget', 'spends' of 'cumulative sizes by root' lacks 'times'": (
        lambda m: m["budget"]["spends"][0].pop("times")
    ),
}


@pytest.mark.parametrize("why", ADDED)
def test_entries_added_and_sealed_anew(folder, why):
    change_manifest(folder / "sizes", ADDED[why])
    seal.seal(folder / "sizes")
    assert why in failing(folder / "sizes")["manifest"]


def test_an_entry_added_to_a_step(folder):
    change_manifest(folder / "sizes", lambda manifest: manifest["solved"][-1].update(by="hand"))
    seal.seal(folder / "sizes")
    assert "has 'by', which no such release has" in failing(folder / "sizes")["manifest"]


def test_the_entries_are_those_of_a_release(folder):
    manifest = json.loads((folder / "sizes" / files.MANIFEST).read_text())
    assert tuple(name for name in manifest if name not in record.OPTIONAL) == record.ENTRIES
    assert "cautions" in manifest


# --- names that a spreadsheet would run as formulas --------------------------------------------------------

FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "'quoted", "plain", "\tx\ty"]


@pytest.mark.parametrize("safe", [[], ["--csv-safe"]])
def test_names_that_a_spreadsheet_would_run(tmp_path, monkeypatch, safe):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"=town": FORMULAS[:-1], "home": range(6)}).to_parquet("in.parquet")
    done = run("release", "group-size", "in.parquet", "--levels", "=town",
               "--regions-from-data", "--groups-from-data", "--group", "home", "--max-size",
               "3", "--epsilon", "1", "--out", "out", *safe)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert failing(tmp_path / "out") == {}
    assert set(written.read(tmp_path / "out").regions["region"].names[1]) == set(FORMULAS[:-1])
    for name in ("released.csv", "finest.csv", "regions.csv"):
        frame = pd.read_csv(tmp_path / "out" / name, dtype=str, keep_default_na=False)
        texts = {*frame.columns, *frame.to_numpy().ravel()}
        run_by_a_spreadsheet = {text for text in texts if text[:1] in {"=", "+", "@", "-"}}
        assert bool(run_by_a_spreadsheet) is not bool(safe)
    if safe:  # stated in the manifest, and so checked
        change_manifest(tmp_path / "out", lambda manifest: manifest.update(csv_safe=False))
        assert "tables" in failing(tmp_path / "out")
