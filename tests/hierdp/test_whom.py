"""Whom a release protects: a row, a person, or one of what a column counts; and accounts that keep to one."""

import html
import json
import os
import shlex
import shutil
from fractions import Fraction
from pathlib import Path

import click
import duckdb
import pandas as pd
import pytest

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.experiments.compare import compare
from hierdp.privacy.account import accounts_beside, open_account
from hierdp.privacy.loss import Loss
from hierdp.privacy.whom import COUNT, PERSON, ROW, Whom, whom_of
from hierdp.publication.explanation import explain
from hierdp.tables import Database

ROWS = pd.DataFrame(
    {"patient": ["p", "p", "q"], "clinic": ["c", "d", "d"], "age": [1, 2, 3], "n": [1000, 0, 2]}
)
BINS = {"axes": [Numbers("age", 0, 4)]}
PLACE = {"axes": {"at": (Hierarchy.flat("clinic", ["c", "d"]), "clinic")}, "delta": 1e-6}
BY_PATIENT = {"person": "patient", "rows_per_person": 2}
BY_CLINIC = {"person": "clinic", "rows_per_person": 2}


@pytest.fixture
def table(tmp_path):
    ROWS.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


def line(folder, name, **more):
    (found,) = [line for line in check(folder, **more) if line.check == name]
    return found


def command(*args, capsys):
    with pytest.raises(SystemExit) as done:
        main([str(arg) for arg in args])
    shown = capsys.readouterr()
    return done.value.code, " ".join((shown.out + shown.err).split())


# The unit, in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one row of the table; a person with several rows is protected for one of them"),
        ({"count": "n"}, "one of what column 'n' counts: a row with the number n has up to n times the loss"),
        ({"count": "n", "most_per_row": 5}, "one row of the table, of whose column 'n' at most 5 is counted"),
        (BY_PATIENT, "a person, by column 'patient', with up to 2 rows"),
        ({**BY_PATIENT, "count": "n"}, "a person, by column 'patient', with up to 2 in column 'n', all rows"),
    ],
    ids=str,
)
@pytest.mark.parametrize("mechanism", ["range-query", "top-down"])
def test_the_ledger_says_whom_it_protects(mechanism, options, words, tmp_path):
    given = BINS if mechanism == "range-query" else {**PLACE, "bounded": False}
    made = release(ROWS, mechanism, epsilon=1.0, **given, **options)
    assert made.ledger.as_dict()["protects"].startswith(words)
    folder = made.write(tmp_path / "out")
    assert not [found for found in check(folder) if found.verdict == FAILS]
    said = line(folder, "privacy").why
    assert (words in said) == bool(options)
    report = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    assert not options or words in report


def test_stated_trips_are_not_called_rows():
    made = release(ROWS, "top-down", epsilon=1.0, trips=3, bounded=False, **PLACE)
    assert made.ledger.as_dict()["protects"].startswith(
        "a person with at most 3 rows, as the publisher states"
    )


def test_a_larger_bound_on_rows_than_the_ledger_pays_for_is_found(tmp_path):
    folder = release(ROWS, "range-query", epsilon=1.0, count="n", most_per_row=3, **BINS).write(
        tmp_path / "o"
    )
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    assert manifest["budget"]["bounded_row"] == {"rows": 3, "spends_are_for": "one row"}
    manifest["budget"]["bounded_row"]["rows"] = 4
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert line(folder, "budget: sum").verdict == FAILS


# Bounded rows


def test_numbers_beyond_the_bound_count_as_it():
    class NoNoise(SimulatedNoise):
        def draw(self, query, true):
            seen.append((true.tolist(), query.loss))
            return super().draw(query, true)

    seen = []
    release(
        ROWS, "range-query", epsilon=1.0, noise=NoNoise(0), count="n", most_per_row=4, method="Flat", **BINS
    )
    ((counts, epsilon),) = seen
    assert counts == [0, 4, 0, 2]
    assert Fraction(epsilon) * 4 <= 1


@pytest.mark.parametrize(
    ("mechanism", "options", "message"),
    [
        ("range-query", {**BINS, "most_per_row": 2}, "each row counts as one: give the column of numbers"),
        (
            "range-query",
            {**BINS, "most_per_row": 2, "count": "n", **BY_PATIENT},
            "cannot be given with person",
        ),
        ("range-query", {**BINS, "most_per_row": 0, "count": "n"}, "at least 1|whole number, 1 or more"),
        ("top-down", {**PLACE, "most_per_row": 2, "count": "n"}, "a row that joins or leaves changes it"),
        (
            "top-down",
            {**PLACE, "most_per_row": 2, "count": "n", "bounded": False, "trips": 3},
            "trips cannot be given with most_per_row",
        ),
        (
            "top-down",
            {**PLACE, "most_per_row": 2, "count": "n", "bounded": False, "distinct": True},
            "distinct cannot be given with most_per_row",
        ),
    ],
)
def test_a_bound_on_rows_that_does_not_fit_is_refused(mechanism, options, message):
    with pytest.raises(InputError, match=message):
        release(ROWS, mechanism, epsilon=1.0, **options)


# Accounts


def test_an_account_takes_releases_for_one_column_of_persons_only(table):
    """Two releases by different columns added up to 1 + 1, where a person's loss was beyond the budget."""
    account = open_account(table.parent / "a.account", table.name, 2.0, unit=PERSON, column="patient")
    release(table, "range-query", epsilon=1.0, account=account, **BINS, **BY_PATIENT)
    for other in ({}, BY_CLINIC, {"count": "n"}, {"count": "n", "most_per_row": 3}):
        with pytest.raises(
            InputError, match="protects a person, by column 'patient', but this release protects"
        ):
            release(table, "range-query", epsilon=0.5, account=account, **BINS, **other)
    with pytest.raises(InputError, match="release with --person patient"):
        release(table, "top-down", epsilon=0.5, account=account, trips=2, bounded=False, **PLACE)
    (charge,) = account.statement().charges
    assert charge.loss.whom == Whom(PERSON, "patient", 2, None)
    three = {"person": "patient", "rows_per_person": 3, "count": "n"}
    release(table, "range-query", epsilon=0.5, account=account, **BINS, **three)
    assert account.statement().charges[-1].loss.whom == Whom(PERSON, "patient", 3, "n")


def test_an_account_for_rows_takes_numbers_only_if_they_are_bounded(table):
    account = open_account(table.parent / "a.account", table.name, 2.0)
    with pytest.raises(
        InputError, match=r"one of what column 'n' counts.*bound what a row counts by --most-per"
    ):
        release(table, "range-query", epsilon=0.5, account=account, count="n", **BINS)
    release(table, "range-query", epsilon=0.5, account=account, count="n", most_per_row=9, **BINS)
    release(table, "range-query", epsilon=0.5, account=account, **BINS)
    with pytest.raises(InputError, match="leave out --person"):
        release(table, "range-query", epsilon=0.5, account=account, **BY_PATIENT, **BINS)
    assert [charge.loss.rows for charge in account.statement().charges] == [9, 1]


def test_an_account_for_what_a_column_counts(table):
    account = open_account(table.parent / "a.account", table.name, 2.0, unit=COUNT, column="n")
    release(table, "range-query", epsilon=0.5, account=account, count="n", **BINS)
    with pytest.raises(InputError, match="release with --count n"):
        release(table, "range-query", epsilon=0.5, account=account, count="age", **BINS)
    with pytest.raises(InputError, match="release with --count n"):
        release(table, "range-query", epsilon=0.5, account=account, **BINS)


@pytest.mark.parametrize(
    "terms", [{"unit": ROW, "column": "n"}, {"unit": COUNT}, {"unit": PERSON, "column": ""}]
)
def test_terms_that_do_not_name_a_unit_are_refused(tmp_path, terms):
    with pytest.raises(InputError, match="column"):
        open_account(tmp_path / "a", "a", 1.0, **terms)


def test_the_account_of_the_command_line_names_the_column(table, capsys):
    folder = table.parent
    code, text = command("account", "open", folder / "v.account", "--data", "visits.csv", "--person",
                         "patient", "--epsilon", 1, capsys=capsys)  # fmt: skip
    assert code == 0
    assert "protected: one person, by column 'patient': more or less" in text
    args = ["release", "range-query", table, "--numbers", "age=0:4", "--epsilon", "0.5"]
    charged = [*args, "--account", folder / "v.account", "--out", folder / "out"]
    code, text = command(*charged, capsys=capsys)
    assert code != 0
    assert "release with --person patient" in text
    assert not (folder / "out").exists()
    code, _ = command(*charged, "--person", "patient", "--rows-per-person", 2, capsys=capsys)
    assert code == 0
    assert "patient, 2 rows" in command("account", folder / "v.account", capsys=capsys)[1]
    assert line(folder / "out", "account", account=folder / "v.account").verdict == HOLDS
    for wrong in ("--person a --count b", "--unit row --person a", "--unit row --count b"):
        made = ["account", "open", folder / "w", "--data", "x", "--epsilon", 1, *wrong.split()]
        assert command(*made, capsys=capsys)[0] == 2


# A release beside an account


def test_a_release_of_data_with_an_account_must_be_charged(table, capsys):
    account = open_account(table.parent / "v.account", "visits.csv", 1.0)
    assert list(accounts_beside(table)) == [account.path]
    for noise in (None, SimulatedNoise(0)):
        with pytest.raises(
            InputError, match=r"these data have an account, .*v\.account: .*\(without_account=REASON\)"
        ):
            release(table, "range-query", epsilon=5.0, noise=noise, **BINS)
    with pytest.raises(InputError, match="these data have an account"):
        compare(table, methods=["Flat"], **BINS)
    for reason in ("", " ", 3):
        with pytest.raises(InputError, match="without_account is the reason"):
            release(table, "range-query", epsilon=5.0, without_account=reason, **BINS)
    with pytest.raises(InputError, match="leave out without_account"):
        release(table, "range-query", epsilon=0.5, account=account, without_account="because", **BINS)
    assert account.statement().charges == ()
    args = ["release", "range-query", table, "--numbers", "age=0:4", "--epsilon", "5"]
    code, text = command(*args, "--out", table.parent / "a", capsys=capsys)
    assert code != 0
    assert f"charge the release to it (--account {account.path}" in text
    assert not (table.parent / "a").exists()
    reason = "the visits are made up"
    code, _ = command(*args, "--out", table.parent / "b", "--without-account", reason, capsys=capsys)
    assert code == 0
    assert json.loads((table.parent / "b" / "manifest.json").read_text())["without_account"] == reason
    assert not [found for found in check(table.parent / "b") if found.verdict == FAILS]
    found = line(table.parent / "b", "account", account=account.path)
    assert (found.verdict, reason in found.why) == (FAILS, True)


def test_an_account_of_another_table_is_not_in_the_way(table):
    (table.parent / "homes.csv").write_text("a\n1\n")
    (table.parent / "deep").write_text('{"kind": ' + "[" * 60_000)
    open_account(table.parent / "h.account", "homes.csv", 1.0)
    assert release(table, "range-query", epsilon=1.0, **BINS).without_account is None
    open_account(table.parent / "census.account", "census 2020", 1.0)  # may be this table's
    with pytest.raises(InputError, match=r"census\.account"):
        release(table, "range-query", epsilon=1.0, **BINS)


def test_a_link_to_a_table_does_not_hide_its_account(table):
    account = open_account(table.parent / "v.account", "visits.csv", 1.0)
    (table.parent / "there").mkdir()
    for link in (table.parent / "other.csv", table.parent / "there" / "visits.csv"):
        link.symlink_to(table)
        assert [path.resolve() for path in accounts_beside(link)] == [account.path.resolve()]
        with pytest.raises(InputError, match="these data have an account"):
            release(link, "range-query", epsilon=1.0, **BINS)


def test_another_account_does_not_replace_that_of_the_table(table, capsys):
    open_account(table.parent / "v.account", "visits.csv", 1.0)
    (table.parent / "e").mkdir()
    other = open_account(table.parent / "e" / "other.account", "visits.csv", 20.0)
    with pytest.raises(InputError, match=r"have another account, .*v\.account: charge .* names v\.account"):
        release(table, "range-query", epsilon=5.0, account=other, **BINS)
    with pytest.raises(InputError, match="have another account"):
        release(table, "range-query", epsilon=5.0, account=other, without_account="a test", **BINS)
    assert other.statement().charges == ()
    reason = "v.account was for the pilot"
    args = ["release", "range-query", table, "--numbers", "age=0:4", "--epsilon", 5]
    args += ["--account", other.path, "--without-account", reason, "--out", table.parent / "a"]
    assert command(*args, capsys=capsys)[0] == 0
    manifest = json.loads((table.parent / "a" / "manifest.json").read_text())
    assert (manifest["without_account"], manifest["account"]["entry"]) == (reason, 1)
    assert line(table.parent / "a", "account", account=other.path).verdict == HOLDS
    assert "Charged to no other account. The publisher's reason: V.account was" in str(
        explain(table.parent / "a")
    )


QUERIES = (
    "SELECT * FROM 'visits.csv'", "FROM visits.csv", "SELECT * FROM read_csv('vis*.csv')",
    "WITH v AS (SELECT * FROM read_csv(['visits.csv'], header=true)) SELECT * FROM v WHERE age < 3;",
    "SELECT age FROM (VALUES (1)) t(age) WHERE age IN (SELECT age FROM \"visits.csv\")",
)  # fmt: skip


def test_neither_a_query_nor_a_database_nor_a_link_hides_an_account(table, monkeypatch):
    monkeypatch.chdir(table.parent)
    os.link(table, "other.csv")
    with duckdb.connect("clinic.duckdb") as made:
        made.execute("CREATE TABLE persons AS SELECT * FROM 'visits.csv'")
    queries = [Database("", query=query) for query in QUERIES]
    absolute = Database("", query=f"FROM 'file://{table}'")
    whole = Database("clinic.duckdb", "persons"), Database("duckdb://clinic.duckdb", query="FROM persons")
    for sources, data in (((*queries, absolute, "other.csv"), "visits.csv"), (whole, "clinic")):
        account = open_account(f"{data}.account", data, 1.0)
        for source in sources:
            assert [one.resolve() for one in accounts_beside(source)] == [account.path.resolve()], source
            with pytest.raises(InputError, match="these data have an account"):
                release(source, "range-query", epsilon=1.0, **BINS)
        account.path.unlink()
    assert not list(accounts_beside(Database("postgresql://a@b/visits.csv", query="FROM visits.csv")))


def test_data_have_one_account(table, monkeypatch):
    os.link(table, table.parent / "other.csv")
    open_account(table.parent / "v.account", "visits.csv", 1.0)
    monkeypatch.chdir(table.parent)
    Path("e").mkdir()
    for file, data in (("w", "visits.csv"), ("w", "visits"), ("w", "other.csv"), ("e/w", "visits.csv")):
        with pytest.raises(InputError, match=r"has an account, .*v\.account, and one account limits"):
            open_account(file, data, 1.0)
    open_account("w", "homes.csv", 1.0)
    shutil.copy(table, "e")  # another file of this name
    open_account("e/w", "visits.csv", 1.0)


NO_TABLE = {
    "plan_file",
    *("release", "account", "file", "sign", "public_key", "export", "out", "plan_out", "resume", "save"),
    *("answers", "problems", "results", "solver", "data", "test_set", "folder", "archive", "problem"),
    *("solution", "replayed", "plan", "labels"),
}  # fmt: skip
"""What else commands read or write: releases, accounts, keys, problems of solvers, names of codes."""

CHARGED = "release"
"""The commands that charge an account, or are refused beside one."""

NOT_TO_BE_PUBLISHED = "evaluate"
"""The command for inside the house, whose output says so."""

READ = {
    "compare": {"table", "database", "query"},
    "plan bins": {"like"},
    "plan clustering": {"regions", "public_counts"},
    "plan count-of-counts": {"regions", "groups"},
    "plan flows": {"like"},
    "plan group-size": {"regions"},
    "plan groups": {"like"},
    "plan range-query": {"regions"},
    "plan tabulation": {"regions"},
    "plan top-down": {"regions", "like"},
    "reconcile": {"forecasts", "hierarchy", "past"},
    "repair": {"noisy"},
}
"""All other options that read tables, by command: they go through `refuse_protected`."""


def commands_below(group, name=""):
    for each in group.list_commands(click.Context(group)):
        one = group.get_command(click.Context(group), each)
        full = f"{name} {each}".strip()
        yield from commands_below(one, full) if isinstance(one, click.Group) else [(full, one)]


def test_every_option_that_reads_a_table_is_known():
    found = {}
    for name, one in commands_below(main):
        # A command keeps the flags of help of the first context that asks for its parameters.
        context = click.Context(one, help_option_names=main.context_settings["help_option_names"])
        used = [p for p in one.get_params(context) if not getattr(p, "hidden", False)
                or (name, p.name) == ("plan range-query", "regions")]  # fmt: skip
        read = {p.name for p in used if isinstance(p.type, click.Path | click.File) or p.name == "query"}
        if name.startswith("plan "):  # a plan does not read the table of its release
            read -= {"table"}
        if (read := read - NO_TABLE) and name.split()[0] not in (CHARGED, NOT_TO_BE_PUBLISHED):
            found[name] = read
            assert "--public" in {text for p in used for text in p.opts}, name
    assert found == READ


AXES = "--axis a=clinic --delta 1e-6 --epsilon 1"
PROTECTED = {
    "compare": "compare {} --methods Flat --numbers age=0:4 --runs 1 --out out",
    "compare sql": "compare --sql {sql} --methods Flat --numbers age=0:4 --runs 1 --out out",
    "bins": "plan bins --for ranges --bins 3 --like {} --count n --epsilon 1 --runs 1",
    "flows": "plan flows --for cells --axis a=clinic --like {} --epsilon 1 --runs 1",
    "groups": "plan groups --for 'counts by size' --levels clinic --max-size 2 --like {} --epsilon 1",
    "top-down": f"plan top-down --like {{}} {AXES} --runs 1",
    "regions": "plan top-down --regions {} --region-levels clinic --axis a=clinic --delta 1e-6 --epsilon 1",
    "clustering": "plan clustering --bins 3 --epsilon 1 --public-counts {}",
    "group list": "plan count-of-counts --levels clinic:2 --groups {} --max-size 2 --epsilon 1",
    "range-query": "plan range-query --names clinic --regions {} --region-levels clinic --epsilon 1",
    "repair": "repair {} --levels clinic --count n --out out",
    "reconcile": "reconcile {} {} --out out.csv",
}


@pytest.mark.parametrize("name", PROTECTED)
def test_what_reads_a_table_without_a_charge_refuses_one_with_an_account(table, name, monkeypatch, capsys):
    monkeypatch.chdir(table.parent)
    open_account("v.account", "visits.csv", 1.0)
    args = [part.format("visits.csv", sql="FROM 'visits.csv'") for part in shlex.split(PROTECTED[name])]
    code, text = command(*args, capsys=capsys)
    assert (code, list(table.parent.glob("out*"))) == (2, [])
    assert "these data have an account" in text
    assert "say why (--public REASON)" in text
    assert "--public is why the data are public, in words" in command(*args, "--public=", capsys=capsys)[1]
    assert "have an account" not in command(*args, "--public", "made up", capsys=capsys)[1]


def test_losses_keep_their_unit():
    whom = whom_of("id", 3, counts="n")
    loss = Loss.of(whom, 0.5)
    assert Loss.from_dict(loss.as_dict()) == loss
    assert loss.of_a_replacement().whom == whom
    for name in loss.as_dict():
        some = {other: value for other, value in loss.as_dict().items() if other != name}
        with pytest.raises(ValueError):  # noqa: PT011  # it has no words: the account's reader says what is wrong
            Loss.from_dict(some)
