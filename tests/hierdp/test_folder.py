"""Folders appear whole and replace only what hierdp wrote; refused targets, and kills; tables that grow."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp.cli import main
from hierdp.cli.release import release
from hierdp.cli.sources import Input
from hierdp.errors import InputError
from hierdp.execution import atomic_rename, folder, progress, seal, store
from hierdp.mechanisms import MECHANISMS
from tests.marks import but_for_compiling, quick

TABLE = "town,home\na,1\na,1\nb,2\n"
OPTIONS = ["--levels", "town", "--regions-from-data", "--group", "home", "--groups-from-data"]
OPTIONS += ["--max-size", "3", "--epsilon", "1", "--simulate", "1"]
RELEASE = ["release", "group-size", "in.csv", *OPTIONS]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text(TABLE)
    return tmp_path


def made(path, text="from before"):
    """A folder that looks as if hierdp wrote it."""
    with folder.appearing(Path(path)) as aside:
        (aside / "manifest.json").write_text(text)
        (aside / "parts").mkdir()
        (aside / "parts" / "one").write_text("1")
    return Path(path)


def replaced(path, text="new", **more):
    with folder.appearing(Path(path), overwrite=True, **more) as aside:
        (aside / "manifest.json").write_text(text)


def names(where="."):
    return sorted(entry.name for entry in Path(where).iterdir())


def text_of(path):
    return (Path(path) / "manifest.json").read_text()


BEFORE = ["in.csv", "out"], "from before"


def state():
    """The names beside the folder, and the text in it, if it is there."""
    return names(), Path("out").exists() and text_of("out")


# --- what is replaced ------------------------------------------------------------------------------------


@pytest.mark.parametrize("there", ["a release", "an empty folder"])
@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_of_ours_is_replaced(monkeypatch, swaps, there):
    if not swaps:
        monkeypatch.setattr(atomic_rename, "swap", lambda *_: False)
    made("out") if there == "a release" else Path("out").mkdir()
    replaced("out")
    assert state() == (["in.csv", "out"], "new")
    assert names("out") == ["SHA256SUMS", "manifest.json"]


def spoil(how):
    path = made("out")
    if how == "a file of mine":
        (path / "notes.txt").write_text("mine")
    elif how == "a folder of mine":
        (path / "mine").mkdir()
    elif how == "deeper":
        (path / "parts" / "notes.txt").write_text("mine")
    elif how == "a link":
        (path / "link").symlink_to("manifest.json")
    elif how == "changed":
        (path / "parts" / "one").write_text("2")
    elif how == "missing":
        (path / "parts" / "one").unlink()
    elif how == "not sealed":
        (path / seal.SUMS).unlink()
    elif how == "not hierdp's":
        (path / "manifest.json").rename(path / "mine.json")
        seal.seal(path)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("a file of mine", "'notes.txt' in it was not written by hierdp"),
        ("a folder of mine", "'mine' in it was not written by hierdp"),
        ("deeper", "'parts/notes.txt' in it was not written by hierdp"),
        ("a link", "'link' in it was not written by hierdp"),
        ("changed", "'parts/one' in it has changed since it was written"),
        ("missing", "'parts/one' is missing from it"),
        ("not sealed", "it has no SHA256SUMS"),
        ("not hierdp's", "its SHA256SUMS lists no manifest.json or report.html"),
    ],
)
def test_nothing_else_is_replaced(how, why):
    spoil(how)
    before = {path: path.is_file() and path.read_bytes() for path in Path("out").rglob("*")}
    with pytest.raises(InputError, match="out is not an unchanged release") as refused:
        replaced("out")
    assert f"({why})" in str(refused.value)
    assert {path: path.is_file() and path.read_bytes() for path in Path("out").rglob("*")} == before
    assert names() == ["in.csv", "out"]


def test_the_folder_one_is_in_is_not_replaced(place, monkeypatch):
    made("out")
    for inside in ("out", "out/parts"):
        monkeypatch.chdir(inside)
        for path in (Path("."), Path.cwd(), place / "out"):
            with pytest.raises(InputError, match="contains, the current directory"):
                replaced(path)
        monkeypatch.chdir(place)
    assert text_of("out") == "from before"


def test_a_folder_that_holds_the_input_is_not_replaced():
    CliRunner().invoke(main, [*RELEASE, "--out", "out"])
    again = CliRunner().invoke(
        main, ["release", "range-query", "out/finest.csv", "--names", "town", "--regions-from-data",
               "--epsilon", "1", "--simulate", "1", "--out", "out", "--overwrite"],
    )  # fmt: skip
    assert again.exit_code == 2
    assert "out contains the input 'finest.csv'" in again.output
    assert seal.why_not_ours(Path("out")) == ""


@pytest.mark.parametrize("option", ["--regions", "--groups", "--account", "--database"])
def test_no_input_is_overwritten(option):
    CliRunner().invoke(main, [*RELEASE, "--out", "out"])
    arguments = ["release", "group-size", "in.csv", *OPTIONS, option, "out/finest.csv"]
    again = CliRunner().invoke(main, [*arguments, "--out", "out", "--overwrite"])
    assert again.exit_code == 2
    assert "out contains the input 'finest.csv'" in again.output


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_command_declares_what_it_reads(mechanism):
    options = release.commands[mechanism].params
    inputs = {one.name for one in options if isinstance(one.type, Input)}
    named = {one.name for one in options if one.metavar in ("TABLE", "FILE", "FILE.toml", "KEY", "URL")}
    assert inputs == {"table", *named}


# --- refusals, before any noise is drawn -----------------------------------------------------------------


def link(name, to):
    Path(name).symlink_to(to)
    return Path(name)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (lambda: Path("in.csv"), "in.csv exists; choose another|is a file, not a folder"),
        (lambda: Path("no/such/out"), "the folder .*no/such of out does not exist; create it first"),
        (lambda: Path("in.csv/out"), "create it first"),
        (lambda: link("dangling", "gone"), "is a symbolic link"),
        (lambda: link("linked", made("real")), "is a symbolic link"),
        (lambda: Path("n" * 250), "is too long for this disk"),
        (lambda: Path("n" * 300), "is too long for this disk"),
        (lambda: Path(os.fsdecode(b"caf\xe9")), "is not UTF-8"),
    ],
)
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_refused_before_noise_is_drawn(monkeypatch, target, why, overwrite):
    def drawn(*_, **__):
        raise AssertionError("something was measured")

    monkeypatch.setattr("hierdp.api.release", drawn)
    path = target()
    before = names()
    done = CliRunner().invoke(main, [*RELEASE, "--out", os.fspath(path), *overwrite])
    assert done.exit_code == 2, done.output
    assert re.search(why, " ".join(done.output.split()))
    assert names() == before


def test_a_mount_point_is_refused(monkeypatch):
    made("out")
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "out")
    with pytest.raises(InputError, match="out is a mount point"):
        replaced("out")


def test_the_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    """In a folder where everyone may write, but only owners may rename, like /tmp."""
    made("out")
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(InputError, match="out belongs to another user"):
        replaced("out")


def test_a_folder_is_kept_unless_it_is_to_be_replaced():
    made("out")
    with pytest.raises(InputError, match="exists; choose another folder, or replace it with --overwrite"):
        made("out", "new")
    with pytest.raises(InputError, match="exists; choose another folder"), folder.appearing(Path("other")):
        Path("out").rename("other")  # the name may be taken while a folder is filled
    assert names() == ["in.csv", "other"]
    assert text_of("other") == "from before"


def test_a_folder_that_cannot_be_emptied_is_refused(monkeypatch):
    made("out")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, how: Path(path).name != "parts" and allowed(path, how))
    with pytest.raises(InputError, match="out belongs to another user"):
        replaced("out")


def test_nothing_is_left_after_a_refusal_of_the_input():
    done = CliRunner().invoke(main, [*RELEASE[:-4], "--epsilon", "-1", "--out", "out"])
    assert (done.exit_code, names()) == (2, ["in.csv"])


# --- whole or not at all ---------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_half_way_leaves_what_was_there(failure, existing):
    if existing:
        made("out")
    with pytest.raises(type(failure)), folder.appearing(Path("out"), overwrite=existing) as aside:  # noqa: PT012
        (aside / "half").write_text("of a release")
        raise failure
    assert state() == (BEFORE if existing else (["in.csv"], False))
    replaced("out")
    assert state() == (["in.csv", "out"], "new")


def test_a_failure_of_the_last_rename_puts_the_old_one_back(monkeypatch):
    made("out")
    monkeypatch.setattr(atomic_rename, "swap", lambda *_: False)
    rename = Path.rename

    def fails(self, target):
        if ".unfinished-" in self.name:
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="Input/output"):
        replaced("out")
    assert state() == BEFORE


FILES = {
    *("released.parquet", "released.csv", "finest.parquet", "finest.csv", "regions.csv"),
    *("manifest.json", "measurements.parquet", "proofs.zip", "report.html", "SHA256SUMS"),
}

HALF_WAY = """
import time
import hierdp.record.release as record
from hierdp.__main__ import run
write = record.write_tables
def half(release, manifest, into, large_csv):
    write(release, manifest, into, large_csv)
    print("half way", flush=True)
    time.sleep(3600)
record.write_tables = half
run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", quick([signal.SIGINT, signal.SIGKILL, signal.SIGTERM]))
def test_a_killed_process_leaves_no_release(how):
    command = [*RELEASE[:-2], "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "half way\n", process.communicate()[1]
        process.send_signal(how)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    if how == signal.SIGKILL:
        assert not Path("out").exists()
    else:
        word = "interrupted" if how == signal.SIGINT else "terminated"
        assert but_for_compiling(errors) == f"Error: {word}; nothing is left half written\n"
        assert (process.returncode, names()) == (128 + how, ["in.csv"])
    done = subprocess.run([sys.executable, "-m", "hierdp", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert names() == ["in.csv", "out"]  # what SIGKILL left is removed, too
    assert set(names("out")) == FILES


def test_leftovers_of_dead_processes_are_removed_and_nothing_else():
    """For this name those of all machines, for other names those of this machine."""
    dead, there = f"unfinished-{folder.MACHINE}-abcd_123", "unfinished-0000abcd-abcd_123"
    for name in (".out.unfinished-abcd_123", f".a.{dead}"):
        Path(name, "deep").mkdir(parents=True)
        Path(name, "deep", "half").write_text("of a release")
    Path(f".c.csv.{dead}").write_text("half of a table")
    kept = [".out.unfinished-mine", ".out.unfinished-abcd_1234", ".other.unfinished-abcd_123", "out.old"]
    kept += [f".b.{there}", "elsewhere"]
    for name in kept:
        Path(name).mkdir()
    Path("elsewhere", "thesis").write_text("years of work")
    link(".out.unfinished-is_a_lnk", "elsewhere")
    Path(".out.unfinished-is_afile").write_text("")
    kept += ["in.csv", ".out.unfinished-is_a_lnk", ".out.unfinished-is_afile"]
    made("out2")
    assert names() == sorted([*kept, ".out.unfinished-abcd_123", "out2"])
    Path(f".c.csv.{dead}").write_text("half of a table")
    with folder.appearing(Path("out")) as living, folder.file_appearing(Path("d.csv")) as file:
        (living / "manifest.json").write_text("{}")
        file.write_text("d")
        made("out3")
        with pytest.raises(InputError, match="another run is writing out; wait for it"):
            made("out")
        assert names() == sorted([*kept, living.name, file.name, "out2", "out3"])
    assert names() == sorted([*kept, "out", "out2", "out3", "d.csv"])
    assert names("elsewhere") == ["thesis"]


def test_a_new_folder_taken_for_abandoned_before_it_is_locked(tmp_path, monkeypatch):
    lock, taken = fcntl.flock, []

    def flock(descriptor, how):
        if not taken and (unfinished := [*tmp_path.glob(".out.*")]):  # not while it locks the parent folder
            taken.extend(unfinished)
            taken[0].rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    made("out")
    assert len(taken) == 1
    assert state() == BEFORE


def test_without_locks_leftovers_stay(monkeypatch):
    """It is unknown whether their process is alive."""

    def flock(*_):
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", flock)
    left = Path(".out.unfinished-abcd_123")
    left.mkdir()
    made("out")
    assert names() == [left.name, "in.csv", "out"]


def test_locks_are_given_back():
    open_before = set(os.listdir("/dev/fd"))
    Path(".out.unfinished-abcd_123").mkdir()
    made("out")
    with pytest.raises(ZeroDivisionError), folder.appearing(Path("other")):
        raise ZeroDivisionError
    assert len(os.listdir("/dev/fd")) == len(open_before)


def test_a_release_is_on_the_disk_before_it_has_its_name_and_a_full_disk_leaves_nothing(monkeypatch):
    """Each file is synced; if one cannot be, the release is not there."""
    synced, failing, sync = [], [0], folder._sync

    def full(path):
        synced.append((path.name, Path("out").exists()))
        if len(synced) == failing[-1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(path)

    monkeypatch.setattr(folder, "_sync", full)
    done = CliRunner().invoke(main, [*RELEASE, "--out", "out"])
    assert done.exit_code == 0, done.output
    assert {name for name, there in synced if not there} > FILES
    assert [there for _, there in synced] == [False] * (len(synced) - 1) + [True]
    assert synced[-1][0] == Path.cwd().name
    assert Path("out").stat().st_mode & 0o777 == 0o755
    before = seal.digest(Path("out", seal.SUMS))
    for number in range(1, len(synced)):
        failing.append(number)
        synced.clear()
        done = CliRunner().invoke(main, [*RELEASE, "--out", "out", "--overwrite"])
        assert done.output.endswith("Error: the disk is full; nothing is left half written\n")
        assert names() == ["in.csv", "out"]
        assert (seal.why_not_ours(Path("out")), seal.digest(Path("out", seal.SUMS))) == ("", before)


# --- killed while replacing ------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def test_folder_is_restored_after_a_kill(monkeypatch):
    """If two folders cannot be swapped, a kill may come between the two renames."""
    made("out")
    Path(".out.replaced-abcd_123").mkdir()
    Path("out").rename(".out.replaced-abcd_123/out")
    said = []
    monkeypatch.setattr(progress, "tell", said.append)
    with pytest.raises(InputError, match="exists; choose another folder"), folder.appearing(Path("out")):
        pass
    assert state() == BEFORE
    assert len(said) == 1
    assert "was restored: an earlier run was killed" in said[0]
    replaced("out")
    assert state() == (["in.csv", "out"], "new")


def test_a_swap_leaves_no_moment_without_a_folder(monkeypatch):
    """Before each call that changes folders, the name refers to the old folder or the new one."""
    if not atomic_rename.swap(made("one"), made("two")):
        pytest.skip("this disk cannot swap folders")
    made("out")
    seen = []

    def watched(name, call):
        def watch(*given, **more):
            seen.append((name, Path("out").exists() and text_of("out")))
            return call(*given, **more)

        return watch

    swap = watched("swap", atomic_rename._system_call())
    monkeypatch.setattr(atomic_rename, "_system_call", lambda: swap)
    monkeypatch.setattr(folder.shutil, "rmtree", watched("rmtree", folder.shutil.rmtree))
    monkeypatch.setattr(Path, "rename", watched("rename", Path.rename))
    replaced("out")
    assert [name for name, _ in seen] == ["swap", "rmtree"]
    assert [text for _, text in seen] == ["from before", "new"]


def test_a_kill_after_the_swap_leaves_the_new_one(monkeypatch):
    made("out")
    remove = folder.shutil.rmtree

    def killed(*_, **__):
        raise Killed

    monkeypatch.setattr(folder.shutil, "rmtree", killed)
    with pytest.raises(Killed):
        replaced("out")
    assert text_of("out") == "new"
    monkeypatch.setattr(folder.shutil, "rmtree", remove)
    replaced("out", "newer")
    assert state() == (["in.csv", "out"], "newer")


@pytest.mark.parametrize("failure", [errno.ENOSYS, errno.EINVAL, errno.EPERM])
def test_a_disk_that_cannot_swap(monkeypatch, failure):
    def call(*_):
        atomic_rename.ctypes.set_errno(failure)
        return -1

    monkeypatch.setattr(atomic_rename, "_system_call", lambda: call)
    made("out")
    replaced("out")
    assert state() == (["in.csv", "out"], "new")
    Path("there").mkdir()
    with pytest.raises(FileExistsError):
        atomic_rename.rename_to_free_name(Path("out"), Path("there"))


def test_a_swap_that_fails_is_an_error(monkeypatch):
    def call(*_):
        atomic_rename.ctypes.set_errno(errno.EIO)
        return -1

    made("out")
    monkeypatch.setattr(atomic_rename, "_system_call", lambda: call)
    with pytest.raises(OSError, match="Input/output"):
        replaced("out")
    assert state() == BEFORE


# --- two at once -----------------------------------------------------------------------------------------


def test_one_of_two_simultaneous_releases_is_refused():
    made("out")
    start, both = threading.Barrier(2), threading.Barrier(2)
    ends = []

    def run(text):
        start.wait()
        try:
            with folder.appearing(Path("out"), overwrite=True) as aside:
                (aside / "manifest.json").write_text(text)
                both.wait(timeout=60)
            ends.append(text)
        except InputError as refused:
            ends.append(str(refused))
            both.wait(timeout=60)

    threads = [threading.Thread(target=run, args=(text,)) for text in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = text_of("out")
    assert winner in ("one", "two")
    assert sorted(end in ("one", "two") for end in ends) == [False, True]
    assert any("another run is writing out" in end for end in ends)
    assert names() == ["in.csv", "out"]


def test_a_release_prints_the_fingerprint_of_its_files():
    done = CliRunner().invoke(main, [*RELEASE, "--out", "out"])
    assert f"Fingerprint: {seal.digest(Path('out', seal.SUMS))} " in done.output


# --- growing tables of results ---------------------------------------------------------------------------


def test_a_row_after_a_cut_line_is_read(tmp_path):
    out, left = tmp_path / "r.parquet", tmp_path / ".r.parquet.journal"
    left.write_text('{"problem": "one", "backend": "fast"}\n{"problem": "cut o')
    columns = ["problem", "backend"]
    with store.growing(out, columns, columns) as kept:
        kept.add({"problem": "two", "backend": "fast"})
        assert store.read(out, columns)["problem"].tolist() == ["one", "two"]
    assert not left.exists()
    assert pd.read_parquet(out)["problem"].tolist() == ["one", "two"]


def test_a_disk_without_locks(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(store.fcntl, "flock", flock)
    with (
        pytest.raises(InputError, match=r"the disk of .*r\.parquet does not support locks"),
        store.growing(tmp_path / "r.parquet", ["problem"], ["problem"]),
    ):
        pass


# --- an existing release is never reported as missing ----------------------------------------------------


def test_a_summary_that_fails(monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(sys.modules["hierdp.cli.release"], "print_frame", fails)
    done = CliRunner().invoke(main, [*RELEASE, "--out", "out"])
    assert done.exit_code == os.EX_IOERR
    assert done.output.endswith(
        "Error: the release in out is complete; only its summary could not be printed (ZeroDivisionError)\n"
    )
    assert seal.why_not_ours(Path("out")) == ""
