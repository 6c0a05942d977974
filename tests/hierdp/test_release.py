"""What a release states, what it must not reveal, and that it appears whole or not at all."""

import errno
import fcntl
import json
import logging
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from doubles import Double, everything_in, hierarchy

import hierdp.record.release as record
import solvers
from hierdp import SimulatedNoise, release
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import atomic_rename, folder
from hierdp.mechanisms.group_size import m_c_dp
from hierdp.mechanisms.top_down import inf_tda
from hierdp.record.spool import Spool
from hierdp.record.step import NotProved
from hierdp.tables import Flows, GroupSizes
from tests.marks import quick

FILES = {
    *("released.parquet", "released.csv", "finest.parquet", "finest.csv", "regions.csv"),
    *("manifest.json", "measurements.parquet", "proofs.zip", "report.html", "SHA256SUMS", "NOT-PRIVATE.txt"),
}


def small_sizes():
    places = hierarchy([[0, 0]])
    return GroupSizes(places, places.tree.sum_up(np.array([[3, 1, 2], [0, 5, 1]])))


def small_flows(count=40):
    axes = (hierarchy([[0, 0]], "o"), hierarchy([[0, 0], [0, 1, 1]], "d"))
    return Flows(axes, ("from", "to"), np.array([[0, 0], [1, 2]]), np.array([count, 20]))


@pytest.fixture
def made():
    return m_c_dp(small_sizes(), 1.0, SimulatedNoise(1))


# --- the manifest ----------------------------------------------------------------------------------------


def test_manifest_of_group_sizes(made):
    manifest = json.loads(json.dumps(made.manifest()))
    assert manifest["mechanism"] == "M_c^dp"
    assert manifest["warning"] == "SIMULATED NOISE: this release is NOT private"
    budget = manifest["budget"]
    assert (budget["private"], budget["epsilon"], budget["delta"]) == (False, 1.0, 0.0)
    assert budget["composition"] == "pure differential privacy"
    assert budget["neighbouring_relation"].startswith("one entity joins or leaves a group")
    assert [s["query"] for s in budget["spends"]] == [
        "cumulative sizes by root",
        "cumulative sizes by level1",
    ]
    assert [s["epsilon"] for s in budget["spends"]] == [0.5, 0.5]
    assert [s["scale"] for s in budget["spends"]] == [2.0, 2.0]
    assert budget["spent"] == 1.0
    assert manifest["settings"] == {
        "max_size": 2,
        "last_size_means": "this size or more",
        "groups": 12,
        "levels": ["root", "level1"],
    }
    assert [s["model"] for s in manifest["solved"]] == ["Isotonic"] * 3 + ["HierarchyQIP"]
    for solved in manifest["solved"]:
        assert solved["proved_optimal"] is True
        assert solved["objective"] == solved["bound"]
        assert solved["seconds"] >= 0
    assert [s["variables"] for s in manifest["solved"]] == [3, 3, 3, 9]
    assert manifest["all_proved_optimal"] is True
    versions = manifest["versions"]
    assert versions["python"] == platform.python_version()
    assert versions["opendp"] == metadata.version("opendp")
    assert "not installed" not in versions.values()


def test_a_manifest_lists_a_step_that_is_not_proved(made):
    first, *others = made.steps
    solution = replace(first.solution, certificate=first.model.certificate([0, 9, 9]))
    manifest = replace(made, steps=Spool([replace(first, solution=solution), *others])).manifest()
    assert manifest["all_proved_optimal"] is False
    assert [s["proved_optimal"] for s in manifest["solved"]] == [False, True, True, True]


def test_manifest_of_flows():
    made = inf_tda(small_flows(), 1.0, 1e-8, SimulatedNoise(1), "from")
    manifest = json.loads(json.dumps(made.manifest()))
    budget = manifest["budget"]
    assert (manifest["mechanism"], budget["delta"]) == ("InfTDA", 1e-8)
    assert budget["composition"] == "zero-concentrated differential privacy"
    assert budget["spent"] == pytest.approx(budget["rho"])
    assert "replaced" in budget["neighbouring_relation"]
    assert manifest["settings"] == {
        "axes": {"from": ["root", "olevel1"], "to": ["root", "dlevel1", "dlevel2"]},
        "order": ["from", "to", "to"],
        "total": 60,
    }
    assert [s["model"] for s in manifest["solved"]] == ["Chebyshev"] * 3


def test_release_records_where_regions_come_from():
    rows = pd.DataFrame({"s": ["A", "B"], "g": [1, 2]})
    seen = release(rows, "group-size", epsilon=1, levels=["s"], group=["g"], max_size=2,
        regions_from_data=True, groups_from_data=True)  # fmt: skip
    assert seen.taken_as_public["regions"] == "as seen in the data, which makes them public"
    assert seen.taken_as_public["which_groups"] == "those with a row in the data, which makes them public"
    places = hierarchy([[0, 0]])
    rows["s"] = places.names[1]
    listed = release(rows, "group-size", epsilon=1, regions=places, region="s", group=["g"],
        max_size=2, groups_from_data=True)  # fmt: skip
    assert listed.taken_as_public["regions"] == "from a table of regions"
    both = release(rows, "top-down", epsilon=1, delta=1e-8, axes={"a": (places, "s"), "b": (places, "s")})
    assert both.taken_as_public["regions"] == "from a table of regions"
    one = release(
        rows, "top-down", epsilon=1, delta=1e-8, axes={"a": (places, "s"), "b": ["s"]}, regions_from_data=True
    )
    assert one.taken_as_public["regions"] == "as seen in the data, which makes them public"


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        (
            "group-sizes",
            {},
            "no mechanism 'group-sizes'; did you mean 'group-size'\\? There are .*'top-down'",
        ),
        ("group-size", {"branching": 2}, "group-size takes no branching; it takes delta, group, .*window"),
        ("group-size", {"first": "a"}, "group-size takes no first"),
        ("group-size", {"group": ["g"]}, "group-size needs max_size"),
        ("top-down", {"axes": {"a": ["s"]}}, "top-down needs delta"),
        ("top-down", {"axes": {"a": ["s"]}, "delta": 2}, "delta is 2.0"),
        ("top-down", {"axes": {"a": ["s"]}, "delta": None}, "delta must be a number"),
        ("group-size", {"epsilon": "no"}, "epsilon must be a number"),
    ],
)
def test_release_refuses_bad_input(mechanism, options, message):
    rows = pd.DataFrame({"s": ["A"], "g": [1]})
    with pytest.raises(InputError, match=message):
        release(rows, mechanism, **{"epsilon": 1, **options})


def test_files(made, tmp_path):
    path = made.write(tmp_path / "out")
    assert {file.name for file in path.iterdir()} == FILES
    assert (path.stat().st_mode & 0o777) == 0o755
    tables = (pd.read_parquet(path / "released.parquet"), made.table)
    first, second = (table.fillna({"parent": ""}) for table in tables)  # pandas 2 reads nan as None
    pd.testing.assert_frame_equal(first, second)
    again = pd.read_csv(path / "released.csv", dtype={"parent": str}, keep_default_na=False)
    assert again["groups"].tolist() == made.table["groups"].tolist()
    assert json.loads((path / "manifest.json").read_text())["settings"] == made.settings
    assert {file.name for file in made.write(tmp_path / "bare", report=False).iterdir()} == FILES - {
        "report.html"
    }
    page = (path / "report.html").read_text()
    assert "<svg" in page
    for fetched in ("http://", "https://", "<script", "<link", "src=", "@import", "url("):
        assert fetched not in page.replace("url(#", "")  # references within the page


def test_an_answer_that_is_not_proved_is_no_release(monkeypatch):
    good = solvers.solve

    def lies(model):
        from dataclasses import replace

        return replace(good(model), status="feasible", message="a gap of 1")

    monkeypatch.setattr(solvers, "solve", lies)
    with pytest.raises(NotProved, match=r"root all: feasible; a gap of 1\. Please report this"):
        m_c_dp(small_sizes(), 1.0, SimulatedNoise(1))


# --- nothing leaks ---------------------------------------------------------------------------------------

SECRET = 98_765_432_123
SHIFT = 10_000_019


def digits(text):
    return "".join(c for c in text if c.isalnum())


@pytest.fixture
def shifted(monkeypatch):
    """Replace exact noise by a large constant, so that any true count found was leaked."""
    noise = Double(lambda counts: counts + SHIFT * (1 + np.arange(counts.size).reshape(counts.shape)))
    monkeypatch.setattr("hierdp.mechanisms.group_size.mechanism.ExactNoise", lambda: noise)
    monkeypatch.setattr("hierdp.mechanisms.top_down.mechanism.ExactNoise", lambda: noise)
    return noise


def test_true_counts_of_flows_do_not_leak(shifted, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    table = tmp_path / "in.csv"
    rows = [("a", "x", SECRET), ("a", "y", 3), ("b", "x", SECRET // 3), ("b", "y", 500)]
    pd.DataFrame(rows, columns=["from", "to", "n"]).to_csv(table, index=False)
    options = ["--axis", "o=from", "--axis", "d=to", "--count", "n", "--epsilon", "1", "--delta",
        "1e-8", "--regions-from-data"]  # fmt: skip
    done = CliRunner().invoke(
        main, ["release", "top-down", str(table), *options, "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert any((true == SECRET).any() for true in shifted.true)  # it was measured, so it could leak
    seen = digits(done.output + everything_in(tmp_path / "out") + caplog.text + "".join(capfd.readouterr()))
    for secret in (SECRET, SECRET // 3, SECRET + SECRET // 3):
        assert str(secret) not in seen


def test_true_counts_of_groups_do_not_leak(shifted, tmp_path, caplog, capfd):
    """One region has 987,654 groups of size 1; the number of all groups is public, and different."""
    caplog.set_level(logging.DEBUG)
    data = small_sizes()
    leaves = np.array([[17, 987_654, 1_000], [123_457, 40_000, 2]])
    data = GroupSizes(data.hierarchy, data.hierarchy.tree.sum_up(leaves))
    path = m_c_dp(data, 1.0).write(tmp_path / "out")
    assert any((true == 987_654 + 17).any() for true in shifted.true)
    seen = digits(everything_in(path) + caplog.text + "".join(capfd.readouterr()))
    for secret in {*data.counts.ravel(), *np.cumsum(data.counts, axis=1)[:, :-1].ravel()}:
        if secret > 100_000 and secret != data.groups:
            assert str(secret) not in seen


@pytest.mark.parametrize(
    ("rows", "options", "culprit"),
    [
        ([("a", "x", SECRET), ("a", "y", -SECRET)], [], "row 2, column 'n'"),
        ([("a", "x", f"{SECRET}.5")], [], "row 1, column 'n'"),
        ([("a", "x", f"{SECRET}x")], [], "row 1, column 'n'"),
        ([("a", "x", SECRET), ("", "x", SECRET)], [], "row 2, column 'from'"),
        ([("a", "x", SECRET), ("b", "x", 10**20 + SECRET)], [], "row 2, column 'n'"),
        ([("a", "x", 2**62 + SECRET), ("a", "x", 2**62 + SECRET)], [], "column 'n'"),
        ([("a", "x", SECRET)], ["--count", "m"], "no column 'm'"),
        ([("a", "x", SECRET)], ["--first", "z"], "no axis 'z'"),
        ([("a", "x", SECRET)], ["--unknown", "a"], "'a'"),
        ([("a", "x", SECRET), ("a", "x", 2**60)], [], None),
    ],
)
def test_errors_hold_no_counts(tmp_path, caplog, rows, options, culprit):
    caplog.set_level(logging.DEBUG)
    table = tmp_path / "in.csv"
    pd.DataFrame(rows, columns=["from", "to", "n"]).to_csv(table, index=False)
    common = ["--axis", "o=from", "--axis", "d=to", "--count", "n", "--epsilon", "1", "--delta",
        "1e-8", "--regions-from-data"]  # fmt: skip
    done = CliRunner().invoke(
        main, ["release", "top-down", str(table), *common, *options, "--out", str(tmp_path / "out")]
    )
    if culprit is not None:
        assert done.exit_code == 2, done.output
        assert culprit in done.output
        assert not (tmp_path / "out").exists()
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    seen = digits(done.output + caplog.text)
    trace, error = [], done.exception
    while error is not None:  # as a debugger or a log of exceptions would print it
        trace.append(repr(error))
        error = error.__cause__ or error.__context__
    assert str(SECRET) not in seen + digits("".join(trace))


# --- whole or not at all ---------------------------------------------------------------------------------


def names(parent):
    return sorted(file.name for file in Path(parent).iterdir())


def test_an_existing_folder_is_kept(made, tmp_path):
    made.write(tmp_path / "out")
    before = everything_in(tmp_path / "out")
    with pytest.raises(InputError, match="exists; choose another folder, or replace it with --overwrite"):
        made.write(tmp_path / "out")
    assert everything_in(tmp_path / "out") == before
    assert names(tmp_path) == ["out"]


def test_overwriting_replaces_the_whole(made, tmp_path):
    path = made.write(tmp_path / "out")
    made.write(path, overwrite=True, report=False)
    assert set(names(path)) == FILES - {"report.html"}
    made.write(path, overwrite=True)  # it is a release even without a report
    assert set(names(path)) == FILES
    assert names(tmp_path) == ["out"]


def test_only_releases_are_overwritten(made, tmp_path):
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter.tex").write_text("years of work")
    with pytest.raises(InputError, match="thesis is not an unchanged release"):
        made.write(mine, overwrite=True)
    assert (mine / "chapter.tex").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    made.write(tmp_path / "empty", overwrite=True)
    assert set(names(tmp_path / "empty")) == FILES


def test_invalid_targets_are_refused(made, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for path, overwrite, message in (
        ("file", False, "exists; choose another folder"),
        ("file", True, "is a file, not a folder"),
        ("no/such/out", False, "the folder .*no/such of out does not exist; create it first"),
        ("file/out", False, "create it first"),
        ("nowhere", False, "is a symbolic link"),
        ("nowhere", True, "is a symbolic link"),
    ):
        with pytest.raises(InputError, match=message):
            made.write(tmp_path / path, overwrite=overwrite)
    assert names(tmp_path) == ["file", "nowhere"]


@pytest.mark.parametrize(
    "failure",
    quick([OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()], every=2),
)
@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_half_way_leaves_nothing(made, tmp_path, monkeypatch, failure, existing):
    path = tmp_path / "out"
    if existing:
        made.write(path)
        before = everything_in(path)
    write = record.write_tables

    def half(release, manifest, into, large_csv):
        write(release, manifest, into, large_csv)
        (into / "manifest.json").unlink()
        raise failure

    monkeypatch.setattr(record, "write_tables", half)
    with pytest.raises(type(failure)):
        made.write(path, overwrite=existing)
    assert names(tmp_path) == (["out"] if existing else [])
    assert not existing or everything_in(path) == before
    monkeypatch.setattr(record, "write_tables", write)
    made.write(path, overwrite=existing)
    assert set(names(path)) == FILES


def test_a_failure_of_the_last_rename_puts_the_old_one_back(made, tmp_path, monkeypatch):
    path = made.write(tmp_path / "out")
    before = everything_in(path)
    monkeypatch.setattr(atomic_rename, "swap", lambda *_: False)
    rename = Path.rename

    def fails(self, target):
        if ".unfinished-" in self.name:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="Input/output"):
        made.write(path, overwrite=True)
    assert everything_in(path) == before
    assert names(tmp_path) == ["out"]


SLOW = """
import time
import hierdp.record.release as record
import solvers
from hierdp.cli import main
write = record.write_tables
def half(release, manifest, into, large_csv):
    write(release, manifest, into, large_csv)
    print("half way", flush=True)
    time.sleep(3600)
record.write_tables = half
main()
"""


def release_arguments(tmp_path):
    table = tmp_path / "in.csv"
    table.write_text("town,home\na,1\na,1\nb,2\n")
    options = ["--levels", "town", "--group", "home", "--max-size", "3", "--epsilon", "1",
        "--regions-from-data", "--groups-from-data"]  # fmt: skip
    return ["release", "group-size", str(table), *options, "--out", str(tmp_path / "work" / "out")]


@pytest.mark.slow
@pytest.mark.parametrize("how", quick([signal.SIGINT, signal.SIGKILL, signal.SIGTERM]))
def test_a_killed_process_leaves_no_release(tmp_path, how):
    work = tmp_path / "work"
    work.mkdir()
    arguments = release_arguments(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "half way\n", process.communicate()[1]
        time.sleep(0.1)
        process.send_signal(how)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode != 0
    assert not (work / "out").exists()
    assert "Traceback" not in errors
    if how == signal.SIGINT:
        assert names(work) == []
        assert process.returncode in (1, 130)
        assert "Aborted" in errors or "nterrupted" in errors
    done = subprocess.run(
        [sys.executable, "-m", "hierdp", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert names(work) == ["out"]  # what SIGKILL left is removed, too
    assert set(names(work / "out")) == FILES - {"NOT-PRIVATE.txt"}


def test_only_leftovers_of_dead_processes_are_removed(made, tmp_path):
    abandoned = tmp_path / ".out.unfinished-abcd_123"
    (abandoned / "deep").mkdir(parents=True)
    (abandoned / "deep" / "half").write_text("of a release")
    others = [".out.unfinished-mine", ".out.unfinished-abcd_1234", ".other.unfinished-abcd_123", "out.old"]
    for name in others:
        (tmp_path / name).mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis").write_text("years of work")
    (tmp_path / ".out.unfinished-is_a_lnk").symlink_to(elsewhere)
    (tmp_path / ".out.unfinished-is_afile").write_text("")
    before = set(names(tmp_path)) - {abandoned.name}
    with folder.appearing(tmp_path / "out") as living:
        (living / "manifest.json").write_text("{}")
        made.write(tmp_path / "out2")
        with pytest.raises(InputError, match="another run is writing out; wait for it"):
            made.write(tmp_path / "out")
        assert living.is_dir()  # it belongs to this process, or to one of its threads
        assert set(names(tmp_path)) == before | {living.name, "out2"}
    assert set(names(tmp_path)) == before | {"out", "out2"}
    assert names(elsewhere) == ["thesis"]


def test_leftovers_for_other_names_are_removed(made, tmp_path):
    """Of dead processes of this machine; a folder of another machine may be alive."""
    for name in (f".a.unfinished-{folder.MACHINE}-abcd_123", ".b.unfinished-0000abcd-abcd_123"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").write_text("of a release")
    (tmp_path / f".c.csv.unfinished-{folder.MACHINE}-abcd_123").write_text("half of a table")
    with folder.appearing(tmp_path / "out") as living, folder.file_appearing(tmp_path / "d.csv") as file:
        (living / "manifest.json").write_text("{}")
        file.write_text("d")
        made.write(tmp_path / "out2")  # removes what is dead, and nothing that lives
        with folder.file_appearing(tmp_path / "e.csv") as other:
            other.write_text("e")
        assert set(names(tmp_path)) == {
            living.name,
            file.name,
            "out2",
            "e.csv",
            ".b.unfinished-0000abcd-abcd_123",
        }
    assert set(names(tmp_path)) == {"out", "out2", "d.csv", "e.csv", ".b.unfinished-0000abcd-abcd_123"}


def test_the_name_may_be_taken_while_a_folder_is_filled(made, tmp_path):
    with pytest.raises(InputError, match="exists; choose another folder"), folder.appearing(tmp_path / "out"):
        made.write(tmp_path / "other").rename(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert set(names(tmp_path / "out")) == FILES


def test_a_new_folder_taken_for_abandoned_before_it_is_locked(made, tmp_path, monkeypatch):
    lock, taken = fcntl.flock, []

    def flock(descriptor, how):
        if not taken and (unfinished := [*tmp_path.iterdir()]):  # not while it locks the parent folder
            taken.extend(unfinished)
            taken[0].rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    made.write(tmp_path / "out")
    assert len(taken) == 1
    assert names(tmp_path) == ["out"]


def test_a_disk_without_locks(made, tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", flock)
    left = tmp_path / ".out.unfinished-abcd_123"
    left.mkdir()
    made.write(tmp_path / "out")
    assert names(tmp_path) == [left.name, "out"]  # it is unknown whether its process is alive


def test_locks_are_given_back(made, tmp_path):
    open_before = set(os.listdir("/dev/fd"))
    (tmp_path / ".out.unfinished-abcd_123").mkdir()
    made.write(tmp_path / "out")
    with pytest.raises(ZeroDivisionError), folder.appearing(tmp_path / "other"):
        raise ZeroDivisionError
    assert len(os.listdir("/dev/fd")) == len(open_before)


def test_the_folder_is_on_the_disk_before_it_has_its_name(made, tmp_path, monkeypatch):
    synced, sync = [], folder._sync

    def noted(path):
        synced.append((path.name, (tmp_path / "out").exists()))
        sync(path)

    monkeypatch.setattr(folder, "_sync", noted)
    made.write(tmp_path / "out")
    assert {name for name, there in synced if not there} > FILES
    assert [name for name, there in synced if there] == [tmp_path.name]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_a_full_disk(tmp_path):
    """A real disk of 64 KiB."""
    disk = tmp_path / "work"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        arguments = release_arguments(tmp_path)
        table = tmp_path / "in.csv"
        table.write_text("town,home\n" + "".join(f"town{i},{i}\n" for i in range(500)))
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 1
        assert done.output.strip().splitlines()[-1] == "Error: the disk is full; nothing is left half written"
        assert names(disk) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_at_any_file(made, tmp_path, monkeypatch):
    """If any write fails, nothing is left."""
    opened = []
    for fail_at in range(1, 20):
        opened.clear()

        def sync(path, fail_at=fail_at):
            opened.append(path)
            if len(opened) == fail_at:
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(folder, "_sync", sync)
        target = tmp_path / f"out{fail_at}"
        try:
            made.write(target)
        except OSError:
            if len(opened) <= len(FILES) + 1:
                assert not target.exists()
        else:
            break
    assert not [name for name in names(tmp_path) if name.startswith(".")]
    assert fail_at > len(FILES)
