"""A mechanism of a user's own file: how it is named, whose word it is, and what a check says of it."""

import json
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pandas as pd
import pytest
from click.testing import CliRunner

import hierdp.audit
from hierdp import InputError, SimulatedNoise, check, release
from hierdp.checking import FAILS, HOLDS, OPEN
from hierdp.cli import main
from hierdp.execution import seal
from hierdp.mechanisms import MECHANISMS, Mechanism, own
from hierdp.privacy.account import open_account
from hierdp.record import files
from tests.hierdp.changing import manifest

SURVEY = '''
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd

from hierdp.measurements.query import counts
from hierdp.mechanisms import Mechanism
from hierdp.mechanisms.option import Option
from hierdp.tables import read


@dataclass(frozen=True, kw_only=True)
class {name}(Mechanism[None]):
    """Counts of colours."""

    epsilon: float
    column: Annotated[str, Option("The column of colours, which are public.", "COLUMN")]

    SETTINGS = ("column",)
    RELATION = "one row joins or leaves"

    def read(self, source):
        return read(source)[self.column].execute().value_counts().reindex(["red", "blue"]).to_numpy()

    def facts(self, counts):
        return None, counts

    def facts_of(self, manifest, regions, table):
        return None

    def queries_of(self, facts, allowed):
        return [counts("colours", allowed.loss, 2)]

    def run(self, facts, allowed, measure, solve):
        noisy = measure(self.queries_of(facts, allowed)[0]).answers
        measure.end()
        return pd.DataFrame({{"colour": ["red", "blue"], "count": noisy}}), self.settings()
'''

TABLE = pd.DataFrame({"colour": ["red"] * 5 + ["blue"] * 3})


@pytest.fixture
def colours(tmp_path, monkeypatch):
    """The file of a mechanism, with a name that no other test loads."""
    before = dict(MECHANISMS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / f"colours_{tmp_path.name}.py".replace("-", "_").lower()
    file.write_text(SURVEY.format(name="ManyColours"))
    monkeypatch.chdir(tmp_path)
    yield file
    MECHANISMS.clear()
    MECHANISMS.update(before)


def told(*arguments):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return done.exit_code, " ".join(done.output.split())


def verdicts(folder, **how):
    return {line.check: line.verdict for line in check(folder, **how)}


def test_its_name_is_that_of_the_class_and_its_method_is_its_name(colours):
    info = own.load(f"{colours.name}:ManyColours")
    assert (info.name, [method.name for method in info.methods]) == ("many-colours", ["many-colours"])
    assert info.releases == "counts of colours"
    assert own.load(f"{colours}:ManyColours") is info
    made = release(TABLE, info.kind(epsilon=1, column="colour"), noise=SimulatedNoise(1))
    assert made.mechanism == "many-colours"
    assert made.table.colour.tolist() == ["red", "blue"]


@pytest.mark.parametrize(
    ("file", "why"),
    [("this.py", "there is a module called 'this' already"), ("my-survey.py", "no name of a module")],
)
def test_a_file_that_hides_a_module_or_cannot_be_one_is_refused(file, why, tmp_path):
    """Standard and installed modules are found by their names, loaded or not."""
    (tmp_path / file).write_text(SURVEY.format(name="ManyColours"))
    before = list(sys.path)
    with pytest.raises(InputError, match=why):
        own.load(f"{tmp_path / file}:ManyColours")
    assert sys.path == before
    assert "this" not in sys.modules


def test_a_file_is_known_by_whatever_path_leads_to_it(colours, tmp_path, monkeypatch):
    """Also if it can be imported by a link, or a folder has its name."""
    (tmp_path / "elsewhere" / colours.stem).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(tmp_path / "link")
    assert own.load(f"{colours}:ManyColours").name == "many-colours"


@pytest.mark.parametrize(("replaced", "cost"), [(True, 1.0), (False, 2.0)])
def test_an_account_of_replacements_is_charged_what_the_check_expects(replaced, cost, colours, tmp_path):
    """Twice the ε of a row that joins or leaves; of a mechanism whose relation replaces one, its own ε."""
    colours.write_text(f"{SURVEY.format(name='ManyColours')}\n    REPLACED = {replaced}\n")
    table = tmp_path / "people.csv"
    TABLE.to_csv(table, index=False)
    account = open_account(tmp_path / "people.account", data="people.csv", epsilon=3, replaces=True)
    info = own.load(f"{colours.name}:ManyColours")
    made = release(table, info.kind(epsilon=1, column="colour"), account=account)
    folder = made.write(tmp_path / "out")
    assert account.statement().left_epsilon == 3 - cost
    assert {line.check: line.verdict for line in check(folder, account=account.path)}["account"] == HOLDS


def test_a_release_never_decides_which_code_is_run(colours, tmp_path):
    """In a process that has not loaded it, a check says what it does not know, and whose it is."""
    info = own.load(f"{colours.name}:ManyColours")
    folder = release(TABLE, info.kind(epsilon=1, column="colour")).write(tmp_path / "out")
    assert verdicts(folder)["mechanism"] == verdicts(folder)["budget: queries"] == HOLDS
    del MECHANISMS["many-colours"]
    unknown = verdicts(folder)
    assert unknown["mechanism"] == unknown["privacy"] == unknown["budget: sum"] == OPEN
    assert verdicts(folder, mechanism=info.kind)["privacy"] == HOLDS


def test_another_file_of_that_name_fails_by_name(colours, tmp_path):
    info = own.load(f"{colours.name}:ManyColours")
    folder = release(TABLE, info.kind(epsilon=1, column="colour")).write(tmp_path / "out")
    colours.write_text(colours.read_text() + "# changed\n")
    del MECHANISMS["many-colours"]
    (line,) = [line for line in check(folder, mechanism=info.kind) if line.check == "mechanism"]
    assert (line.verdict, line.why) == (
        FAILS,
        f"{colours.name}:ManyColours is not the file that made it, by its digest",
    )


@pytest.mark.parametrize("change", ["removed", "of another form", "of hierdp"])
def test_a_manifest_says_whose_mechanism_it_is(colours, tmp_path, change):
    info = own.load(f"{colours.name}:ManyColours")
    folder = release(TABLE, info.kind(epsilon=1, column="colour")).write(tmp_path / "out")
    changes = {
        "removed": lambda entries: entries.pop("own_mechanism"),
        "of another form": lambda entries: entries.update(own_mechanism="survey.py"),
        "of hierdp": lambda entries: entries.update(mechanism="AHP"),
    }
    manifest(changes[change])(folder)
    seal.seal(folder)
    assert verdicts(folder)["mechanism"] == FAILS


def test_the_manifest_has_the_digest_of_the_file(colours, tmp_path):
    info = own.load(f"{colours.name}:ManyColours")
    folder = release(TABLE, info.kind(epsilon=1, column="colour")).write(tmp_path / "out")
    saved = json.loads((folder / files.MANIFEST).read_text())["own_mechanism"]
    assert saved == {"class": f"{colours.name}:ManyColours", "sha256": seal.digest(colours)}


def test_an_entry_point_is_loaded_only_by_its_name(colours, monkeypatch):
    point = EntryPoint("rainbow", f"{colours.stem}:ManyColours", own.GROUP)
    monkeypatch.syspath_prepend(colours.parent)
    monkeypatch.setattr(own, "entry_points", lambda group: [point] if group == own.GROUP else [])
    assert not own.is_own("group-size")
    assert "many-colours" not in MECHANISMS
    status, output = told("release", "rainbow", "--help")
    assert (status, "The column of colours" in output, "many-colours" in MECHANISMS) == (0, True, True)
    status, output = told("release", "rainbows", "--help")
    assert (status, "rainbows" in output) == (2, True)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (None, "none.py:Survey", "there is no file 'none.py'; name the mechanism as FILE.py:CLASS"),
        ("", ":Survey", "cannot be loaded: AttributeError"),
        ("Survey = 1", ":Survey", "is no class of hierdp.mechanisms.Mechanism"),
        ("raise OSError('down')", ":Survey", "cannot be loaded: OSError: down"),
        (SURVEY.format(name="TopDown"), ":TopDown", "another mechanism is called 'top-down'"),
        (SURVEY.format(name="Wide").replace("    SETTINGS", "    loss: float = 1\n    SETTINGS"), ":Wide",
         "TypeError: Wide: no option can have the name of a method, 'loss'"),
    ],
)  # fmt: skip
def test_what_is_no_mechanism_is_refused_by_name(colours, text, name, message):
    if text is not None:
        colours.write_text(text)
        name = f"./{colours.name}{name}"
    status, output = told("release", name, "people.csv", "--epsilon", "1", "--out", "x")
    assert status == 2
    assert message in output


def test_processes_of_their_own_know_it(colours, tmp_path):
    """Each run of a comparison and of an audit may be made by another process."""
    TABLE.to_csv(tmp_path / "colours.csv", index=False)
    colours.write_text(
        SURVEY.format(name="ManyColours")
        + """

from hierdp.mechanisms.mechanism import case_of
import numpy as np

AUDITED = ManyColours(epsilon=2, column="colour")
CASES = [case_of(AUDITED, "a row more", (np.array([5, 3]), np.array([6, 3])), by=["colour"])]
"""
    )
    named = ("--mechanism", f"{colours.name}:ManyColours", "--workers", "2")
    compared = ("--methods", "many-colours", "--column", "colour", "--runs", "2", "--out", "comparison")
    status, output = told("compare", "colours.csv", *compared, *named)
    assert (status, "Written to comparison/" in output) == (0, True), output
    assert "many-colours" not in {case.mechanism for case in hierdp.audit.CASES}  # loaded before, or now
    status, output = told("audit", "many-colours", "--runs", "100", *named)
    assert (status, "No bound exceeds its claim" in output) == (0, True), output


def test_a_value_has_all_options(colours):
    with pytest.raises(InputError, match="give no others"):
        release(TABLE, own.load(f"{colours.name}:ManyColours").kind(epsilon=1, column="colour"), epsilon=1)
    with pytest.raises(InputError, match="no mechanism"):
        release(TABLE, 7)
    with pytest.raises(InputError, match="column must be a text"):
        release(TABLE, own.load(f"{colours.name}:ManyColours").kind(epsilon=1, column=3))


@pytest.mark.usefixtures("colours")
def test_a_class_without_a_file_has_no_digest_and_does_not_hold(tmp_path):
    names = {}
    exec(compile(SURVEY.format(name="Typed"), "<typed>", "exec"), names)
    folder = release(TABLE, names["Typed"](epsilon=1, column="colour")).write(tmp_path / "out")
    assert verdicts(folder)["mechanism"] == OPEN


def test_an_option_of_a_subclass_cannot_hide_a_method():
    with pytest.raises(TypeError, match="no option can have the name of a method, 'unit'"):

        @dataclass(frozen=True, kw_only=True)
        class Clash(Mechanism[None]):
            unit: int = 1
