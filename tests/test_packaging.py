"""What is installed: the lock, the declared versions and what the distributions contain."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = ("demo", "test", "develop", "bench", "spark")
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(file):
    """Each locked package of a file: its version, its marker and its hashes."""
    text = (ROOT / "requirements" / f"{file}.txt").read_text(encoding="utf-8")
    for entry in re.sub(r" \\\n +", " ", text).splitlines():
        requirement, *hashes = entry.split(" --hash=")
        name, version, marker = re.fullmatch(r"([a-z0-9-]+)==([\w.+!]+)(?: ; (.*))?", requirement).groups()
        yield name, version, marker, hashes


def numbers(version):
    """The leading numbers of a version, which compare as versions do."""
    return [int(part) for part in re.match(r"\d+(?:\.\d+)*", version)[0].split(".")]


def names(requirements):
    """The normalized names and minima of declared requirements."""
    for one in requirements:
        name, least = re.match(r"([\w.-]+)(?:\[[\w,]+\])?[>=]=([\w.]+)", one).groups()
        yield re.sub(r"[-_.]+", "-", name).lower(), least


@pytest.mark.parametrize("file", FILES)
def test_every_locked_package_has_hashes_and_no_address(file):
    entries = list(locked(file))
    assert entries
    for name, _, _, hashes in entries:
        assert hashes, name
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), name


def test_a_package_has_one_locked_version():
    versions = {}
    for file in FILES:
        for name, version, _, _ in locked(file):
            assert versions.setdefault(name, version) == version, name
    demo = {name for name, *_ in locked("demo")}
    assert not any(name in demo for file in FILES[1:] for name, *_ in locked(file))


@pytest.mark.parametrize("file", FILES)
def test_the_lock_has_all_that_is_declared(file):
    project = DECLARED["project"]
    extras, wanted = project["optional-dependencies"], list(project["dependencies"])
    wanted += DECLARED["build-system"]["requires"]
    todo = [] if file == "demo" else [file]
    for extra in todo:  # grows, by the extras that an extra includes
        for one in extras[extra]:
            if one.startswith("hierdp["):
                todo += re.search(r"\[(.*)\]", one)[1].split(",")
            else:
                wanted.append(one)
    versions = {name: version for part in {"demo", file} for name, version, *_ in locked(part)}
    for name, least in names(wanted):
        assert name in versions, f"{name}: make lock"
        assert numbers(versions[name]) >= numbers(least), f"{name}: make lock"


def test_the_oldest_versions_are_those_declared():
    done = subprocess.run(
        [sys.executable, ROOT / "requirements/declared.py", "--oldest"],
        capture_output=True, text=True, check=True)  # fmt: skip
    printed = done.stdout.splitlines()
    assert "numpy==2.0.2; python_version < '3.13'" in printed
    assert "ibis-framework==10.0.0" in printed
    assert "mkdocs==1.6.0" in printed
    assert "inf-tda==0.1" in printed
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+(; .*)?", line) for line in printed)
    done = subprocess.run(
        [sys.executable, ROOT / "requirements/declared.py", "--build-system"],
        capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines() == DECLARED["build-system"]["requires"]


BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2])"
)


@pytest.mark.slow
def test_distributions_are_whole(tmp_path):
    """The source distribution is the whole project; the wheel has the packages, data and type markers."""
    pytest.importorskip("setuptools", minversion="77")
    kept = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "site", "*.egg-info", "hierdp-d*")
    shutil.copytree(ROOT, tmp_path / "hierdp", ignore=kept)
    if (ROOT / ".ci").exists():
        shutil.copytree(ROOT / ".ci", tmp_path / "hierdp/.ci")
    output = ""
    for kind in ("sdist", "wheel"):
        done = subprocess.run(
            [sys.executable, "-c", BUILD, kind, tmp_path], cwd=tmp_path / "hierdp",
            capture_output=True, text=True, check=True)  # fmt: skip
        output += done.stdout + done.stderr
    assert "absent from the" not in output
    shutil.unpack_archive(next(tmp_path.glob("*.tar.gz")), tmp_path / "source")
    shutil.unpack_archive(next(tmp_path.glob("*.whl")), tmp_path / "wheel", "zip")
    (source,) = (tmp_path / "source").iterdir()

    def files(folder, *parts):
        top = [folder / part for part in parts]
        return {str(path.relative_to(folder)) for one in top for path in one.rglob("*") if path.is_file()}

    packages = ("hierdp", "models", "solvers")
    others = ("tests", "docs", "benchmarks", "notebooks", "requirements")
    mine = {
        name for name in files(ROOT, *packages, *others) if "__pycache__" not in name and "/." not in name
    }
    assert files(source, *packages, *others) == mine
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "mkdocs.yml"):
        assert (source / name).is_file(), name
    wheel = files(tmp_path / "wheel", *packages)
    assert {f"{package}/py.typed" for package in packages} <= wheel
    assert wheel == files(source, *packages)
