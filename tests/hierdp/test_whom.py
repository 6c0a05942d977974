"""Whom a release protects: a row, a person, or one of what a column counts; and accounts that keep to one."""

import html
import json
from fractions import Fraction

import pandas as pd
import pytest

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.counts.axes import Numbers
from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.evaluation.compare import compare
from hierdp.privacy import chain
from hierdp.privacy.account import Account, accounts_beside, open_account
from hierdp.privacy.loss import Loss
from hierdp.privacy.whom import COUNT, PERSON, ROW, Whom, whom_of

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
        def geometric(self, counts, query, sensitivity, epsilon):
            seen.append((counts.tolist(), epsilon))
            return super().geometric(counts, query, sensitivity, epsilon)

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


OLD_TERMS = {"kind": "opened", "format": 1, "id": "0", "data": "visits.csv", "epsilon": 2.0, "delta": 0.0,
             "set_aside": 0.0, "replaces": False, "order": "0"}  # fmt: skip
OLD_LOSS = {"epsilon": 0.25, "rho": None, "delta": 0.0, "replaces": False}


def old_account(folder, unit, charges=1):
    """An account as hierdp wrote it before accounts named a column."""
    path = folder / "old.account"
    chain.create(path, {**OLD_TERMS, "unit": unit})
    for _ in range(charges):
        with chain.appending(path) as (_, append):
            append({"kind": "charged", "what": "range-query", "loss": {**OLD_LOSS, "unit": unit}})
    return Account(path)


def test_an_older_account_opens_and_says_what_it_does_not_record(table, capsys):
    account = old_account(table.parent, PERSON)
    code, text = command("account", account.path, capsys=capsys)
    assert code == 0
    assert "protected: one person more or less" in text
    assert "Not recorded: by which column the entries 1 protect a person, and with how many rows" in text
    with pytest.raises(
        InputError, match=r"protects a person .opened before accounts named a column., but this"
    ):
        release(table, "range-query", epsilon=0.5, account=account, **BINS)
    release(table, "range-query", epsilon=0.5, account=account, **BINS, **BY_PATIENT)  # names the column
    with pytest.raises(InputError, match="protects a person, by column 'patient', but this release protects"):
        release(table, "range-query", epsilon=0.5, account=account, **BINS, **BY_CLINIC)
    now = account.statement()
    assert (now.left_epsilon, now.unrecorded, now.whom.column) == (1.25, [1], "patient")
    assert "entries 1 protect" in command("account", account.path, capsys=capsys)[1]


def test_an_older_account_for_rows_takes_rows_or_numbers_but_not_both(table):
    account = old_account(table.parent, ROW, charges=0)
    release(table, "range-query", epsilon=0.5, account=account, count="n", **BINS)
    with pytest.raises(InputError, match="release with --count n"):
        release(table, "range-query", epsilon=0.5, account=account, **BINS)


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


def test_losses_keep_their_unit():
    whom = whom_of("id", 3, counts="n")
    loss = Loss.of(whom, 0.5)
    assert Loss.from_dict(loss.as_dict()) == loss
    assert loss.of_a_replacement().whom == whom
    assert not Loss.from_dict({**OLD_LOSS, "unit": PERSON}).recorded
