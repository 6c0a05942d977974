"""Folders appear whole and replace only what hierdp wrote; refused targets, and kills; tables that grow."""

import errno
import os
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
from tests.marks import but_for_compiling

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


# --- what is replaced ------------------------------------------------------------------------------------


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_of_ours_is_replaced(monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr(atomic_rename, "swap", lambda *_: False)
    made("out")
    replaced("out")
    assert (names(), names("out"), text_of("out")) == (
        ["in.csv", "out"],
        ["SHA256SUMS", "manifest.json"],
        "new",
    )


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
    named = {one.name for one in options if one.metavar in ("TABLE", "FILE", "KEY", "URL")}
    assert inputs == {"table", *named}


# --- refusals, before any noise is drawn -----------------------------------------------------------------


def link(name, to):
    Path(name).symlink_to(to)
    return Path(name)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (lambda: link("dangling", "gone"), "is a symbolic link"),
        (lambda: link("linked", made("real")), "is a symbolic link"),
        (lambda: Path("n" * 250), "is too long for this disk"),
        (lambda: Path("n" * 300), "is too long for this disk"),
        (lambda: Path(os.fsdecode(b"caf\xe9")), "is not UTF-8"),
    ],
    ids=["dangling link", "link to a release", "long name", "name too long to look up", "not UTF-8"],
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
    assert why in done.output
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


def test_a_folder_that_cannot_be_emptied_is_refused(monkeypatch):
    made("out")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, how: Path(path).name != "parts" and allowed(path, how))
    with pytest.raises(InputError, match="out belongs to another user"):
        replaced("out")


def test_nothing_is_left_after_a_refusal_of_the_input():
    done = CliRunner().invoke(main, [*RELEASE[:-4], "--epsilon", "-1", "--out", "out"])
    assert (done.exit_code, names()) == (2, ["in.csv"])


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
    assert (names(), text_of("out")) == (["in.csv", "out"], "from before")
    assert len(said) == 1
    assert "was restored: an earlier run was killed" in said[0]
    replaced("out")
    assert (names(), text_of("out")) == (["in.csv", "out"], "new")


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
    assert (names(), text_of("out")) == (["in.csv", "out"], "newer")


@pytest.mark.parametrize("failure", [errno.ENOSYS, errno.EINVAL, errno.EPERM])
def test_a_disk_that_cannot_swap(monkeypatch, failure):
    def call(*_):
        atomic_rename.ctypes.set_errno(failure)
        return -1

    monkeypatch.setattr(atomic_rename, "_system_call", lambda: call)
    made("out")
    replaced("out")
    assert (names(), text_of("out")) == (["in.csv", "out"], "new")
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
    assert (names(), text_of("out")) == (["in.csv", "out"], "from before")


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

FULL_DEVICE = Path("/dev/full")


@pytest.mark.slow
@pytest.mark.skipif(not FULL_DEVICE.exists(), reason="needs a device that is always full")
def test_output_to_a_full_device():
    with FULL_DEVICE.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hierdp", *RELEASE[:-2], "--out", "out"], stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        assert but_for_compiling(done.stderr) == (
            "Error: the release in out is complete; only its summary could not be printed "
            "(No space left on device)\n"
        )
        assert done.returncode == os.EX_IOERR
        assert seal.why_not_ours(Path("out")) == ""


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
