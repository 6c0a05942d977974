"""The account across releases: composition of losses, when they are charged, and behaviour under failures."""

import errno
import fcntl
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms import MECHANISMS
from hierdp.privacy import chain
from hierdp.privacy.account import Account, Charge, Terms, accounts_beside, open_account
from hierdp.privacy.budget import Ledger, PersonRows, Spend
from hierdp.privacy.charging import ChargingNoise, check_charged
from hierdp.privacy.conversion import best_order, rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import UPWARDS, ExactNoise, _scale
from hierdp.privacy.rounding import typed
from hierdp.privacy.whom import PERSON, ROW
from tests.hierdp import changing

HOMES = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
SIZES = {"levels": ["state"], "group": ["home"], "max_size": 3, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip
TRIPS = pd.DataFrame({"o": ["a", "b", "a"], "d": ["a", "a", "b"]})
AXES = {"axes": {"o": ["o"], "d": ["d"]}, "regions_from_data": True}


@pytest.fixture
def opened(tmp_path):
    def make(epsilon=1.0, delta=0.0, name="homes.account", **terms):
        (tmp_path / name).parent.mkdir(exist_ok=True)  # a folder has one account of homes
        return open_account(tmp_path / name, "homes", epsilon, delta, **terms)

    return make


def states(account):
    return [charge.state for charge in account.statement().charges]


# Composition


def renyi(p, q, alpha):
    """The Rényi divergence of two laws on finitely many outcomes, given by their log probabilities."""
    p, q = p - np.logaddexp.reduce(p), q - np.logaddexp.reduce(q)
    return np.logaddexp.reduce(alpha * p + (1 - alpha) * q) / (alpha - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("u", [0.2, 1.0, 7.5, 40.0])
def test_the_divergence_of_a_pure_loss_is_that_of_randomized_response(epsilon, u):
    """No pure noise has a larger divergence, for example the double-geometric one."""
    bound = float(Loss(epsilon).divergence(Decimal(u)))
    answers = np.array([epsilon, 0.0])
    assert bound == pytest.approx(renyi(answers, answers[::-1], 1 + u), rel=1e-9)
    k = np.arange(-3000, 3001)
    assert renyi(-np.abs(k) * epsilon, -np.abs(k - 1) * epsilon, 1 + u) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-100, 1e-20, 1e-6, 30.0, 1e3, 1e300])
def test_the_divergence_of_a_pure_loss_has_both_simple_bounds(epsilon):
    u = best_order(1.0, 1e-8)
    found = Fraction(Loss(epsilon).divergence(u))
    assert 0 < found <= Fraction(epsilon)
    assert found <= (1 + Fraction(u)) * Fraction(epsilon) ** 2 / 2 * (1 + Fraction(1, 10**30))


def losses_of(loss):
    """Privacy losses and probabilities, for randomized response or rounded Gaussian noise with this ρ."""
    if loss.rho is None:
        truth = 1 / (1 + math.exp(-loss.epsilon))
        return np.array([loss.epsilon, -loss.epsilon]), np.array([truth, 1 - truth])
    k = np.arange(-400, 401) / 30 / math.sqrt(loss.rho)
    mass = np.exp(-loss.rho * k**2)
    return loss.rho * (1 - 2 * k), mass / mass.sum()


def delta_of(losses, epsilon):
    """The exact δ of all losses together, from all sums of their privacy losses, rounded up to a grid."""
    grid = 1e-3
    law = np.array([1.0])
    least = 0
    rho = sum(loss.rho or 0 for loss in losses)  # sums of Gaussian noise are Gaussian
    for loss in [*([Loss(rho=rho)] if rho else []), *(one for one in losses if one.rho is None)]:
        values, chances = losses_of(loss)
        steps = np.ceil(values / grid).astype(int)
        one = np.zeros(steps.max() - steps.min() + 1)
        np.add.at(one, steps - steps.min(), chances)
        law, least = np.convolve(law, one), least + steps.min()
    sums = (least + np.arange(law.size)) * grid
    over = sums > epsilon
    return float(law[over] @ -np.expm1(epsilon - sums[over]))


MIXES = {
    "pure": [Loss(0.2)] * 400,
    "zcdp": [Loss(rho=0.002)] * 400,
    "mixed": [Loss(0.1), Loss(rho=0.003)] * 200,
    "one large": [Loss(0.7), *[Loss(0.02)] * 3000],
}


@pytest.mark.parametrize("name", MIXES)
def test_accepted_releases_satisfy_the_accounts_epsilon_and_delta(opened, name):
    """The exact δ of all releases that an account allows together is within the account's δ."""
    account = opened(1.5, 1e-5)
    now, taken = account.statement(), []
    for loss in MIXES[name]:
        after = now.with_charge(loss)
        if not after.holds():
            break
        now, taken = after, [*taken, loss]
    assert 3 < len(taken) < len(MIXES[name])
    assert delta_of(taken, 1.5) <= 1.02e-5  # up to what the grid adds
    assert delta_of(taken * 4, 1.5) > 1e-5  # and is close to it
    if name in ("pure", "one large"):
        assert sum(loss.epsilon for loss in taken) > 1.1
    assert account.statement().charges == ()


def test_pure_losses_fill_an_account_to_the_last_digit(opened):
    account = opened(0.3)
    account.charge(Loss(0.1), "a", "homes")
    account.charge(Loss(0.1), "a", "homes")
    left = account.statement().left_epsilon
    assert left == 0.1
    with pytest.raises(InputError, match=r"has ε = 0\.1 left, and this release costs ε = 0\.1[0]*2:"):
        account.charge(Loss(math.nextafter(left, 1)), "a", "homes")
    account.charge(Loss(left), "a", "homes")
    with pytest.raises(InputError, match="left, and this release costs ε = 1e-09"):
        account.charge(Loss(1e-9), "a", "homes")
    assert len(account.statement().charges) == 3


def test_every_equal_split_of_a_decimal_is_granted_and_nothing_more(opened):
    """Also where floats add up to more, such as five times 0.2."""
    now, splits = opened().statement(), 0
    for total in (Decimal(k) / 10 for k in range(1, 101)):
        for parts in range(2, 16):
            part = total / parts
            if Fraction(part) * parts != Fraction(total):
                continue
            aside = float(total / 10**6)
            terms = replace(now.terms, epsilon=float(total), delta=aside, set_aside=aside)
            loss = Loss(float(part), delta=float(part / 10**6))
            charge = Charge(0, "", "", loss, "written", (), "")
            most = replace(now, terms=terms, charges=(charge,) * (parts - 1))
            assert (most.left_epsilon, most.left_delta) == (loss.epsilon, loss.delta)
            spent = most.with_charge(loss)
            assert spent.holds()
            assert (spent.share, spent.left_epsilon, spent.left_delta) == (1, 0, 0)
            for more in (replace(loss, epsilon=1e-18), Loss(0.0, delta=1e-24)):
                assert not spent.with_charge(more).holds()
            splits += 1
    assert splits >= 628


@given(st.floats(1e-6, 1e3), st.integers(1, 400))
def test_noise_costs_no_more_than_the_decimal_of_its_budget(epsilon, sensitivity):
    """Scales are rounded up by more than a float can exceed its decimal."""
    scale = Fraction(_scale(sensitivity, epsilon) * UPWARDS)
    assert sensitivity / scale < typed(epsilon)
    assert (sensitivity / Fraction(_scale(sensitivity, math.sqrt(2 * epsilon)) * UPWARDS)) ** 2 / 2 < typed(
        epsilon
    )


def test_a_budget_with_more_digits_than_a_float_is_refused(tmp_path):
    for text, kept in (("0.200000000000000001", "0.2"), ("0.29999999999999999", "0.3")):
        file = tmp_path / "a.account"
        ran = CliRunner().invoke(main, ["account", "open", str(file), "--data", "a", "--epsilon", text])
        assert (ran.exit_code, file.exists()) == (2, False)
        assert f"{text} has more digits than are kept: write {kept}" in ran.output


def test_a_further_rho_fills_an_account_to_the_last_digit(opened):
    account = opened(1.0, 1e-8)
    account.charge(Loss(rho=0.001), "a", "homes")
    now = account.statement()
    assert now.with_charge(Loss(rho=now.left_rho)).holds()
    assert not now.with_charge(Loss(rho=now.left_rho * (1 + 1e-14))).holds()


def test_the_parts_of_delta_add_up_to_no_more_than_it():
    for k in range(1, 49):
        terms = Terms("homes", 1.0, 1e-6, 1e-6 * k / 97)
        assert Fraction(terms.rest) + Fraction(terms.set_aside) <= Fraction(1e-6)
    assert terms.rest + terms.set_aside == pytest.approx(1e-6, rel=1e-15)


def test_the_divergence_of_a_rho_is_never_under_the_formula():
    u = best_order(1.0, 1e-8)
    for k in range(1, 40):
        assert Fraction(Loss(rho=k / 97).divergence(u)) >= (1 + Fraction(u)) * Fraction(k / 97)


@pytest.mark.parametrize("units", [(ROW, PERSON), (PERSON, ROW)])
def test_losses_of_another_unit_are_refused(opened, units):
    with pytest.raises(InputError, match=f"protects a {units[0]}, but this release protects a {units[1]}"):
        opened(unit=units[0]).charge(Loss(0.1, unit=units[1]), "a", "homes")


def test_zcdp_losses_fill_an_account_to_the_last_digits(opened):
    account = opened(1.0, 1e-8)
    whole = account.statement().left_rho
    assert whole == pytest.approx(rho_of(1.0, 1e-8), rel=1e-15)
    for _ in range(4):
        account.charge(Loss(rho=whole / 4 * (1 - 1e-15)), "a", "homes")
    assert account.statement().left_rho < 1e-15
    assert account.statement().share == pytest.approx(1)
    for loss, cost in ((Loss(rho=0.001), "ρ = 0.001"), (Loss(0.1), "ε = 0.1")):
        with pytest.raises(InputError, match=f"and this release costs {cost}"):
            account.charge(loss, "a", "homes")


def test_a_pure_account_takes_pure_releases_only(opened):
    account = opened(1.0)
    account.charge(Loss(0.5), "a", "homes")
    for loss in (Loss(rho=1e-9), Loss(0.1, delta=1e-12)):
        with pytest.raises(InputError, match="nothing is released"):
            account.charge(loss, "a", "homes")
    assert account.statement().left_rho == 0


def test_delta_is_reserved_for_releases_that_use_it(opened):
    account = opened(1.0, 1e-6, set_aside=1e-7)
    assert account.statement().left_rho == pytest.approx(rho_of(1.0, 9e-7))
    for _ in range(2):
        account.charge(Loss(0.1, delta=4e-8), "SH", "homes")
    with pytest.raises(InputError, match=r"δ = 2e-08 left of the part set aside"):
        account.charge(Loss(0.1, delta=4e-8), "SH", "homes")
    account.charge(Loss(0.1), "group-size", "homes")


def test_an_account_of_replacements_charges_two_changes(opened):
    account = opened(1.0, 1e-6, set_aside=1e-7, replaces=True)
    for loss in (Loss(0.1), Loss(rho=0.001), Loss(rho=0.001, replaces=True), Loss(0.1, delta=1e-9)):
        account.charge(loss, "a", "homes")
    pure, unbounded, bounded, stable = account.statement().losses
    assert (pure.epsilon, unbounded.rho, bounded.rho, stable.epsilon) == (0.2, 0.004, 0.001, 0.2)
    assert stable.delta == pytest.approx(1e-9 * (1 + math.exp(0.1)), rel=1e-9)
    assert stable.delta >= 1e-9 * (1 + math.exp(0.1))
    with pytest.raises(InputError, match="takes the total as public: release with --unbounded"):
        opened(1.0, 1e-6, name="other/b.account").charge(Loss(rho=0.001, replaces=True), "top-down", "homes")


PURE, ZCDP = Loss(1.0), Loss(rho=rho_of(1.0, 1e-8))
ROWS_OF_A_PERSON = {"unit": PERSON, "column": "who", "rows": 2}


@pytest.mark.parametrize("person", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "options", "loss"),
    [
        ("top-down", {"delta": 1e-8, "axes": {}}, replace(ZCDP, replaces=True)),
        ("top-down", {"delta": 1e-8, "bounded": False}, ZCDP),
        ("top-down", {"delta": 1e-8, "method": "SH"}, Loss(1.0, delta=1e-8, replaces=True)),
        ("tabulation", {"delta": 1e-8}, replace(ZCDP, replaces=True)),
        ("tabulation", {"delta": 1e-8, "bounded": False}, ZCDP),
        *((name, {"method": "any"}, PURE) for name in sorted({*MECHANISMS} - {"top-down", "tabulation"})),
    ],
)
def test_what_releases_cost(mechanism, options, loss, person):
    if person:
        options = {**options, "person": "who", "rows_per_person": 2}
        options |= {"bounded": False} if mechanism in ("top-down", "tabulation") else {}
        loss = replace(loss, **ROWS_OF_A_PERSON, replaces=False)
    assert MECHANISMS[mechanism].loss(1.0, options) == loss


def test_trips_of_a_person_cost_the_person():
    assert MECHANISMS["top-down"].loss(1.0, {"delta": 1e-8, "trips": 3, "distinct": True}).unit == PERSON


# Releases


def homes(account, epsilon=0.4, rows=HOMES, **options):
    return release(rows, "group-size", epsilon=epsilon, account=account, **{**SIZES, **options})


@pytest.fixture
def written(opened, tmp_path):
    """The account and the folder of a release."""
    account = opened()
    return account, homes(account).write(tmp_path / "out")


def test_a_release_is_charged_before_it_draws(opened, monkeypatch):
    account, seen = opened(), []
    exact = ExactNoise.draw

    def draw(*measurement):
        seen.append(states(account))
        return exact(*measurement)

    monkeypatch.setattr(ExactNoise, "draw", draw)
    assert homes(account).charge is not None
    assert seen == [["not finished"]] * 2  # two measurements, but one charge
    assert states(account) == ["not finished"]
    assert account.statement().left_epsilon == 0.6


def test_a_release_that_is_written_is_in_the_account(written):
    account, folder = written
    (charge,) = account.statement().charges
    assert (charge.state, charge.fingerprint) == ("written", seal.digest(folder / seal.SUMS))
    entry = json.loads((folder / "manifest.json").read_text())["account"]
    assert entry == {"data": "homes", "entry": charge.entry, "digest": charge.digest}
    assert FAILS not in {line.verdict for line in check(folder)}
    with pytest.raises(InputError, match=r"has ε = 0.6 left"):
        homes(account, 0.7)
    assert len(account.statement().charges) == 1
    changing.change_manifest(folder, lambda manifest: manifest["account"].update(left=0.6))
    seal.seal(folder)
    lines = {line.check: line for line in check(folder)}
    assert "'account' has 'left', which no such release has" in lines["manifest"].why


def line_of(folder, account):
    (line,) = [line for line in check(folder, account=account.path) if line.check == "account"]
    return line


def test_check_finds_a_release_in_its_account(written, tmp_path):
    account, folder = written
    line = line_of(folder, account)
    assert line.verdict == HOLDS
    assert "entry 1" in line.why
    assert "ε = 0.4 charged" in line.why
    assert run("check", folder, "--account", account.path).exit_code == 0
    again = homes(account)
    first, second = again.write(tmp_path / "first"), again.write(tmp_path / "second", report=False)
    assert [line_of(place, account).verdict for place in (first, second)] == [HOLDS, HOLDS]


def test_check_finds_a_release_of_persons_and_of_replacements(opened, tmp_path):
    persons = opened(name="persons.account", unit=PERSON, column="who")
    made = homes(persons, rows=HOMES.assign(who=[1, 1, 2, 3]), person="who", rows_per_person=2)
    assert line_of(made.write(tmp_path / "persons"), persons).verdict == HOLDS
    replaced = opened(3.0, 1e-6, name="other/replaced.account", replaces=True)
    pairs = [(HOMES, "group-size", SIZES), (TRIPS, "top-down", {"delta": 1e-7, **AXES})]
    for i, (rows, mechanism, options) in enumerate(pairs):
        made = release(rows, mechanism, epsilon=0.2, account=replaced, **options)
        assert line_of(made.write(tmp_path / str(i)), replaced).verdict == HOLDS


@pytest.mark.slow
def test_check_reports_missing_account_entries(written, opened, tmp_path):
    account, folder = written
    alone = homes(None).write(tmp_path / "alone")
    homes(account, 0.1)  # drawn but never written
    _, never = account.statement().charges
    entry = {"data": "homes", "entry": never.entry, "digest": never.digest}

    def changed(name, change):
        shutil.copytree(folder, tmp_path / name)
        changing.change_manifest(tmp_path / name, change)
        seal.seal(tmp_path / name)
        return tmp_path / name

    other = changed("other", lambda manifest: manifest.update(account=entry))
    edited = changed("edited", lambda manifest: manifest["settings"].update(max_size=4))
    cheaper = changed("cheaper", lambda manifest: manifest["budget"].update(epsilon=0.9))
    trips = open_account(tmp_path / "trips.account", "trips", 1.0)
    wrong = {
        (alone, account): "names no account",
        (folder, trips): "it is an account of 'trips', and the release is of 'homes'",
        (folder, opened(name="other/new.account")): "it has no entry 1 with the digest",
        (edited, account): "entry 1 has another fingerprint",
        (cheaper, account): "entry 1 has another fingerprint",
        (other, account): "was not finished; this folder is not recorded as written",
        (folder, Account(tmp_path / "none")): "there is no account",
    }
    for (place, where), why in wrong.items():
        line = line_of(place, where)
        assert (line.verdict, why in line.why) == (FAILS, True), line
    account.path.write_bytes(account.path.read_bytes().replace(b'"written"', b'"failed!"'))
    line = line_of(folder, account)
    assert (line.verdict, "was changed" in line.why) == (FAILS, True), line
    assert run("check", folder, "--account", account.path).exit_code == 1


@pytest.mark.parametrize(
    ("cost", "why"),
    [
        (Loss(0.5), "entry 1 is charged ε = 0.4; the release costs ε = 0.5"),
        (Loss(None, 0.01), "the release costs ρ = 0.01"),
        (
            Loss(0.4, unit=PERSON, column="id"),
            "entry 1 is charged for one row of the table; .*; the release protects a person, by column 'id'",
        ),
    ],
)
def test_check_says_that_a_release_was_charged_too_little(written, monkeypatch, cost, why):
    """Its fingerprint is correct, as if this had been its charge."""
    account, folder = written
    monkeypatch.setattr("hierdp.checking.account._cost", lambda *_: cost)
    assert re.search(why, line_of(folder, account).why)


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failure_after_the_charge_stays_charged(opened, monkeypatch):
    account = opened()

    def draw(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ExactNoise, "draw", draw)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        homes(account)
    assert interrupted.value.__notes__ == [f"entry 1 of {account.path} stays charged, ε = 0.4"]
    assert states(account) == ["failed"]
    assert account.statement().left_epsilon == 0.6
    assert json.loads(account.path.read_text().splitlines()[-1])["why"] == "KeyboardInterrupt"


@pytest.mark.parametrize(
    ("mechanism", "options", "flags"),
    [
        ("group-size", SIZES, "--epsilon NUMBER"),
        ("group-size", {**SIZES, "person": "who", "rows_per_person": 2}, "--person who --epsilon NUMBER"),
        ("group-size", {**SIZES, "entities": "n"}, "--count n --epsilon NUMBER"),
        ("top-down", {"delta": 1e-7, **AXES}, "--epsilon NUMBER --delta NUMBER --replaces"),
        ("top-down", {"delta": 1e-7, "trips": 2, **AXES},
         "--unit person --epsilon NUMBER --delta NUMBER --replaces"),
        ("top-down", {"delta": 1e-7, "method": "SH", **AXES},
         "--epsilon NUMBER --delta NUMBER --set-aside NUMBER --replaces"),
    ],
)  # fmt: skip
def test_a_missing_account_can_be_opened_by_the_command_in_the_refusal(mechanism, options, flags, tmp_path):
    account = Account(tmp_path / "homes.account", "my homes")
    with pytest.raises(InputError) as refused:
        release(HOMES, mechanism, epsilon=0.1, account=account, **options)
    command = re.search("`hierdp (.*)`", str(refused.value))[1]
    assert command == f"account open {account.path} --data 'my homes' {flags}"
    numbers = command.replace("epsilon NUMBER", "epsilon 5").replace("delta NUMBER", "delta 1e-6")
    assert run(*shlex.split(numbers.replace("NUMBER", "1e-7"))).exit_code == 0
    loss = MECHANISMS[mechanism].loss(0.1, options)
    account.check(loss)


@pytest.mark.parametrize("broken", ["fill", "name"])
def test_a_release_that_cannot_be_written_is_failed(opened, tmp_path, monkeypatch, broken):
    account = opened()
    made = homes(account)
    if broken == "fill":
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("kept")
    else:
        monkeypatch.setattr("hierdp.execution.folder._put", full)
    with pytest.raises((InputError, OSError)):
        made.write(tmp_path / "out", overwrite=broken == "fill")
    assert states(account) == ["failed"]
    assert account.statement().left_epsilon == 0.6
    monkeypatch.undo()
    made.write(tmp_path / "another")  # drawn and charged once, so it may still be written
    assert states(account) == ["written"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"levels": ["nowhere"]}, "no column 'nowhere'"),
        ({"max_size": -1}, "max_size"),
        ({"noise": SimulatedNoise(1)}, "simulated noise protects nobody"),
        ({"account": "homes.account"}, "account must be an Account"),
        ({"epsilon": 2}, "has ε = 1 left, and this release costs ε = 2: nothing is released"),
    ],
)
def test_bad_input_costs_nothing(opened, options, why):
    account = opened()
    before = account.path.read_bytes()
    with pytest.raises(InputError, match=why):
        homes(**{"account": account, **options})
    assert account.path.read_bytes() == before


def test_data_must_match_the_account(tmp_path):
    path = tmp_path / "homes.account"
    open_account(path, "homes.csv", 1.0)
    right, other = tmp_path / "homes.csv", tmp_path / "others.csv"
    for file in (right, other):
        HOMES.to_csv(file, index=False)
    account = Account(path)
    with pytest.raises(InputError, match="give the name of the data"):
        homes(account, 0.1)
    with pytest.raises(InputError, match=r"an account for 'homes.csv', but 'others.csv' is to be released"):
        homes(account, 0.1, other)
    homes(account, 0.1, right)
    homes(Account(path, data="homes.csv"), 0.1, other)
    assert account.statement().left_epsilon == pytest.approx(0.8)


@pytest.mark.slow
def test_mechanisms_of_three_kinds_share_an_account(opened):
    account = opened(3.0, 1e-6, set_aside=1e-7)
    more = {"account": account, **AXES, "bounded": False, "epsilon": 0.5, "delta": 1e-8}
    homes(account, 0.5)
    release(TRIPS, "top-down", **more)
    release(TRIPS, "top-down", method="SH", **more)
    words = ["ε = 0.5", f"ρ = {rho_of(0.5, 1e-8):.6g}", "ε = 0.5, δ = 1e-08"]
    assert [loss.in_words for loss in account.statement().losses] == words
    with pytest.raises(InputError, match="protects a row, but this release protects a person"):
        release(TRIPS, "top-down", trips=2, **more)
    assert len(account.statement().charges) == 3


def ledger(epsilon=1.0, delta=0.0, person=None, rho=None):
    spent = None if rho else epsilon
    spend = Spend("q", "noise", 1, 1.0, spent, rho, True, delta if delta and not rho else None)
    return Ledger(epsilon, delta, "n", (spend,), person=person)


OF_PERSON = ledger(person=PersonRows("who", 1, "one person"))
OF_RHO = ledger(delta=1e-8, rho=1e-3)


@pytest.mark.parametrize(
    ("made", "enough", "too_little"),
    [
        (ledger(), Loss(1.0), [Loss(math.nextafter(1, 0)), Loss(rho=1.0)]),
        (ledger(delta=1e-8), Loss(1.0, delta=1e-8), [Loss(1.0, delta=9e-9)]),
        (OF_RHO, Loss(rho=OF_RHO.rho), [Loss(rho=math.nextafter(OF_RHO.rho, 0)), Loss(1.0, delta=1e-8)]),
        (
            OF_PERSON,
            Loss(1.0, unit=PERSON, column="who"),
            [Loss(1.0), Loss(1.0, unit=PERSON, column="id"), Loss(1.0, **ROWS_OF_A_PERSON)],
        ),
    ],
)
def test_a_release_that_cost_more_than_its_charge_is_noticed(made, enough, too_little):
    check_charged(made, enough)
    for loss in too_little:
        with pytest.raises(InputError, match="cost more than it was charged for"):
            check_charged(made, loss)


def test_nothing_is_drawn_before_the_charge():
    seen = []

    class Source:
        def draw(self, *_):
            seen.append("draw")

    noise = ChargingNoise(Source(), lambda: seen.append("charge") or object())
    for _ in range(2):
        noise.draw(None, None)
    assert seen == ["charge", "draw", "draw"]


# The file


def filled(account, releases=3):
    for part in range(releases):
        account.charge(Loss(0.01), "group-size", "homes").written(f"{part}" * 64)
    return account.path.read_bytes()


def of_lines(change):
    """A change of a file's lines."""
    return lambda content: b"".join(change(content.splitlines(keepends=True)))


def becomes(content):
    return lambda _: content


FILE, HEAD = "homes.account", "homes.account.head"
NOT_OURS = "was changed, moved, or not written by hierdp"
NO_HEAD = "is missing or damaged; it records the length"
DAMAGE = {
    "a blank": (FILE, lambda content: content.replace(b'"entry": 0', b'"entry":  0'), NOT_OURS),
    "a name twice": (FILE, lambda content: content.replace(b"{", b'{"entry": 9, ', 1), NOT_OURS),
    "more epsilon": (FILE, lambda content: content.replace(b'n": 1.0', b'n": 9.0', 1), NOT_OURS),
    "a line less": (FILE, of_lines(lambda lines: [lines[0], *lines[2:]]), NOT_OURS),
    "two lines moved": (FILE, of_lines(lambda each: [each[0], *each[3:5], *each[1:3], *each[5:]]), NOT_OURS),
    "a line twice": (FILE, of_lines(lambda lines: [*lines, lines[-1]]), NOT_OURS),
    "a line of nothing": (FILE, lambda content: content + b"{}\n", NOT_OURS),
    "an empty line": (FILE, lambda content: content + b"\n", NOT_OURS),
    "a text": (FILE, becomes(b"hello\n"), f"line 1 of .* {NOT_OURS}"),
    "deep brackets": (FILE, becomes(b"[" * 100_000 + b"\n"), f"line 1 of .* {NOT_OURS}"),
    "a database": (FILE, becomes(b"SQLite format 3\0\n"), f"line 1 of .* {NOT_OURS}"),
    "not UTF-8": (FILE, becomes(b"\xff\n"), f"line 1 of .* {NOT_OURS}"),
    "an older copy": (FILE, of_lines(lambda lines: lines[:3]), "was cut short: it has 3 lines and had 7"),
    "an empty head": (HEAD, becomes(b""), NO_HEAD),
    "a list for a head": (HEAD, becomes(b"[]"), NO_HEAD),
    "a head of no lines": (HEAD, lambda content: content.replace(b"7", b"0", 1), "do not belong together"),
    "a head of words": (HEAD, becomes(b'{"lines": "x"}'), NO_HEAD),
    "a deep head": (HEAD, becomes(b"[" * 100_000), NO_HEAD),
    "a long head": (HEAD, lambda content: content.replace(b":", b":" + b" " * 100_000), NO_HEAD),
    "another digest": (HEAD, lambda content: content.replace(b'"digest": "', b'"digest": "x'), "not belong"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "why"), DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_account_is_refused_and_left_as_it_is(opened, name, damage, why):
    account = opened()
    filled(account)
    file = account.path.with_name(name)
    content = file.read_bytes()
    file.write_bytes(damage(content))
    for use in (account.statement, lambda: account.charge(Loss(0.01), "group-size", "homes")):
        with pytest.raises(InputError, match=why):
            use()
    assert file.read_bytes() == damage(content)
    file.write_bytes(content)
    assert len(account.statement().charges) == 3


def test_a_changed_byte_or_a_cut_is_noticed_anywhere(opened):
    account = opened()
    whole = filled(account, 1)
    for at in range(0, len(whole), 5):
        account.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError, match=r"was changed|was cut short|do not belong together"):
            account.statement()
    ends = [at + 1 for at, byte in enumerate(whole[:-1]) if byte == ord("\n")]
    for size in sorted({*range(0, len(whole), 19), *ends, *(end - 1 for end in ends), len(whole) - 1}):
        account.path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"was cut short: it has \d lines and had 3"):
            account.charge(Loss(0.01), "group-size", "homes")
        assert account.path.stat().st_size == size


def test_what_a_killed_writer_left_of_a_line_is_removed(opened):
    account = opened()
    account.path.write_bytes(account.path.read_bytes() + b'{"entry": 1, "at"')
    account.charge(Loss(0.5), "a", "homes")
    assert account.statement().left_epsilon == 0.5
    assert len(chain.read(account.path)) == 2


def test_lines_are_numbered(opened):
    path = opened().path
    (first,) = chain.read(path)
    line, digest = chain._line({"kind": "failed", "charge": 0}, 2, first["digest"])
    path.write_bytes(path.read_bytes() + line)
    chain._set_head(path, 2, digest)
    with pytest.raises(InputError, match=r"line 2 of .* was changed"):
        chain.read(path)


@pytest.mark.parametrize("name", [FILE, HEAD])
def test_a_missing_or_read_only_file_refuses_charges(opened, tmp_path, name):
    account, other = opened(), opened(name="other/other.account")
    whole = account.path.read_bytes()
    (tmp_path / name).chmod(0o444)
    with pytest.raises(InputError, match=r"read-only|cannot be written"):
        homes(account, 0.1)
    assert account.path.read_bytes() == whole
    assert account.statement().charges == ()  # it can be read
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r"there is no account .*; open one with|is missing or damaged"):
        account.statement()
    os.mkfifo(tmp_path / name)  # opening it would wait for a writer
    with pytest.raises(InputError, match=r"is a folder or a device|is missing or damaged"):
        account.statement()
    (tmp_path / name).unlink()
    filled(other, 1)
    shutil.copy(tmp_path / "other" / name.replace("homes", "other"), tmp_path / name)
    with pytest.raises(InputError, match=r"do not belong together|was cut short"):
        account.statement()


def test_a_folder_or_a_huge_file_is_not_an_account(opened, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        Account(tmp_path).statement()
    account = opened()
    os.truncate(account.path, chain.MOST_BYTES + 1)  # its end takes no place on the disk
    with pytest.raises(InputError, match="has 100,000,001 bytes: it is not an account"):
        account.charge(Loss(0.1), "group-size", "homes")


@pytest.mark.parametrize(
    "loss",
    [
        {"delta": None}, {"delta": ""}, {"delta": math.nan}, {"delta": math.inf}, {"delta": -0.1},
        {"epsilon": -1}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": None}, {"rho": 0.1},
    ],
)  # fmt: skip
def test_an_impossible_loss_is_refused(opened, loss):
    """In a line with a correct digest."""
    account = opened()
    with chain.appending(account.path) as (_, append):
        append({"kind": "charged", "what": "group-size", "loss": Loss(0.1).as_dict() | loss})
    with pytest.raises(InputError, match=r"is not an account$"):
        account.statement()


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_an_account_of_another_format_is_refused(tmp_path, number):
    path = tmp_path / "a.account"
    terms = {"data": "homes", "epsilon": 1.0, "order": "0"}
    chain.create(path, {"kind": "opened", "format": number, **terms})
    with pytest.raises(InputError, match=rf"an account of the format {number!r}; .* reads the format 1: use"):
        Account(path).statement()


def test_a_link_to_an_account_is_the_account(opened, tmp_path):
    account, links = opened(), tmp_path / "links"
    links.mkdir()
    (links / "a").symlink_to(account.path)
    filled(Account(links / "a"), 1)
    filled(account, 1)
    assert account.statement() == Account(links / "a").statement()
    assert [path.name for path in links.iterdir()] == ["a"]
    Path(f"{account.path}.head").unlink()
    with pytest.raises(InputError, match=r"homes\.account\.head is missing"):
        Account(links / "a").statement()


def test_a_link_in_place_of_a_temporary_file_is_not_followed(opened, tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("years of work")
    for name in (FILE, HEAD):
        (tmp_path / f".{name}.{os.getpid()}").symlink_to(mine)
    account = opened()
    (tmp_path / f".{HEAD}.{os.getpid()}").symlink_to(mine)
    filled(account, 1)
    assert mine.read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE, HEAD, "mine"]


OPENS = (
    "import sys; from hierdp.privacy.account import open_account; open_account(sys.argv[1], 'theirs', 1.0)"
)


@pytest.mark.parametrize("moment", [0, 1])
def test_of_two_processes_that_open_an_account_one_succeeds(opened, monkeypatch, moment, tmp_path):
    path, real, calls, theirs = tmp_path / FILE, chain._create, iter(range(2)), []

    def created(aside, text):
        if next(calls) == moment:
            theirs.append(subprocess.run([sys.executable, "-c", OPENS, path], capture_output=True).returncode)
        real(aside, text)

    monkeypatch.setattr(chain, "_create", created)
    with pytest.raises(InputError, match="exists; choose another") if moment == 0 else nullcontext():
        opened()
    assert theirs == [moment]
    assert Account(path).statement().terms.data == ("homes" if moment else "theirs")
    assert sorted(file.name for file in tmp_path.iterdir()) == [FILE, HEAD]


def test_an_account_without_its_head_is_not_left_behind(opened, monkeypatch, tmp_path):
    monkeypatch.setattr(chain, "_set_head", full)
    with pytest.raises(OSError, match="No space left"):
        opened()
    assert not list(tmp_path.iterdir())


def test_an_account_is_never_replaced(opened):
    account = opened()
    filled(account)
    with pytest.raises(InputError, match="exists; choose another name"):
        opened()
    assert len(account.statement().charges) == 3


@pytest.mark.parametrize(
    ("name", "data", "terms", "why"),
    [
        (FILE, "homes", {"epsilon": 0}, "epsilon is 0"),
        (FILE, "homes", {"delta": 1.0}, "delta is 1"),
        (FILE, "homes", {"delta": -1.0}, "delta is -1"),
        (FILE, "homes", {"delta": 1e-8, "set_aside": 1e-7}, "set_aside is 1e-07"),
        (FILE, "homes", {"unit": "house"}, "the unit is 'house'"),
        (FILE, " ", {}, "needs the name of its data"),
        ("no/a", "homes", {}, r"the folder .* does not exist"),
    ],
)
def test_terms_that_cannot_be(tmp_path, name, data, terms, why):
    with pytest.raises(InputError, match=why):
        open_account(tmp_path / name, data, **{"epsilon": 1.0, **terms})
    assert list(tmp_path.iterdir()) == []


CALLS = ("pwrite", "fsync", "ftruncate", "replace", "open", "close")
"""The system calls of a charge, before or after which it may be killed."""


def counting(monkeypatch, ending):
    """Number these calls, and pass each to `ending(number, call, …)`, which may end the process or fail."""
    number = iter(range(10**6))
    for name in CALLS:
        usual = getattr(os, name)

        def call(*given, usual=usual, name=name, **more):
            return ending(next(number), lambda: usual(*given, **more), name, given)

        monkeypatch.setattr(chain.os, name, call)


def charge(account):
    return account.charge(Loss(0.001), "group-size", "homes")


def calls_of_a_charge(account, monkeypatch):
    names = []

    def ending(_, call, name, __):
        names.append(name)
        return call()

    with monkeypatch.context() as patch:
        counting(patch, ending)
        charge(account)
    return names


def killed_at(account, step, half, monkeypatch):
    """Charge in a process that is killed before (or in the middle of) a call; say whether it was charged."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:

        def ending(number, call, name, given):
            if number == step:
                if half and name == "pwrite":
                    descriptor, text, at = given
                    os.lseek(descriptor, at, os.SEEK_SET)
                    os.write(descriptor, text[: len(text) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call()

        try:
            counting(monkeypatch, ending)
            charge(account)
            os.write(writing, b"charged")
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    said = os.read(reading, 100)
    os.close(reading)
    return os.waitstatus_to_exitcode(status), bool(said)


def full_at(account, step, monkeypatch):
    """Charge on a disk that is full at a call; say whether it was charged."""

    def ending(number, call, name, given):
        if number != step:
            return call()
        if name == "pwrite":  # some bytes may fit
            os.lseek(given[0], given[2], os.SEEK_SET)
            os.write(given[0], given[1][:7])
        return full()

    with monkeypatch.context() as patch, suppress(OSError):
        counting(patch, ending)
        charge(account)
        return True
    return False


@pytest.mark.parametrize("fault", ["killed", pytest.param("killed half", marks=pytest.mark.slow), "full"])
def test_a_fault_at_any_step_leaves_a_true_account(opened, monkeypatch, fault):
    """Confirmed charges are recorded, unconfirmed ones may be, and the account remains usable."""
    account = opened()
    calls = calls_of_a_charge(account, monkeypatch)
    assert calls.count("pwrite") == 2  # of the line and of the head
    for step, name in enumerate([*calls, "none"]):
        if fault == "full" and name not in ("pwrite", "fsync", "replace", "none"):
            continue
        before, content = len(account.statement().charges), account.path.read_bytes()
        if fault == "full":
            charged = full_at(account, step, monkeypatch)
        else:
            status, charged = killed_at(account, step, fault == "killed half", monkeypatch)
            assert status == (0 if name == "none" else -signal.SIGKILL)
        after = len(account.statement().charges)
        assert after - before in ((1,) if charged else (0, 1))
        assert charged or name != "none"
        if fault == "full" and step == calls.index("pwrite"):
            assert account.path.read_bytes() == content  # without the bytes that did fit
            assert not charged
        charge(account).written("0" * 64)
        assert len(account.statement().charges) == after + 1
    entries = [entry.entry for entry in account.statement().charges]
    assert len({*entries}) == len(entries)


def test_a_charge_that_fails_draws_nothing(opened, monkeypatch):
    drawn = []
    monkeypatch.setattr(ExactNoise, "draw", lambda *_: drawn.append(1))
    monkeypatch.setattr(Account, "charge", full)
    with pytest.raises(OSError, match="No space left"):
        homes(opened(), 0.1)
    assert drawn == []


def test_many_at_once_never_spend_the_same(opened):
    """Each thread opens the file itself, as processes do; four of twelve charges fit."""
    account, said = opened(1.0), []

    def charging():
        try:
            Account(account.path, "homes").charge(Loss(0.25), "group-size").written("0" * 64)
        except InputError as refused:
            said.append(str(refused))
        else:
            said.append("fits")

    threads = [threading.Thread(target=charging) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count("fits") == 4
    assert all("has ε = 0 left" in text for text in said if text != "fits")
    assert states(account) == ["written"] * 4


def test_reading_the_file_does_not_release_its_lock(opened, tmp_path, monkeypatch):
    """POSIX locks would be released. `accounts_beside` opens all files beside a table, in any thread."""
    account = opened()
    (tmp_path / "homes.csv").write_text("a\n1\n")
    monkeypatch.setattr(chain, "WAIT_SECONDS", 0.05)
    with chain.appending(account.path):
        assert account.path.read_bytes()
        assert list(accounts_beside(tmp_path / "homes.csv")) == [account.path]
        child = os.fork()
        if not child:
            with suppress(BaseException):
                account.charge(Loss(0.1), "group-size", "homes")
                os._exit(0)
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        with pytest.raises(InputError, match="another process has locked"):
            account.statement()
    assert account.statement().charges == ()


def test_a_charge_is_not_lost_if_the_file_is_replaced_meanwhile(opened, tmp_path, monkeypatch):
    """As by somebody who restores a copy."""
    account, usual, copy = opened(), fcntl.flock, tmp_path / "copy"
    shutil.copy(account.path, copy)

    def flock(*given):
        if copy.exists():
            copy.rename(account.path)
        usual(*given)

    monkeypatch.setattr(chain.fcntl, "flock", flock)
    account.charge(Loss(0.1), "group-size", "homes")
    assert len(account.statement().charges) == 1


def test_a_disk_without_locks(opened, monkeypatch):
    account = opened()
    monkeypatch.setattr(chain.fcntl, "flock", full)
    with pytest.raises(InputError, match="does not support locks"):
        account.statement()


# The command line


def run(*arguments):
    return CliRunner().invoke(main, [str(part) for part in arguments])


def test_the_command_line_opens_and_shows(tmp_path):
    path = tmp_path / FILE
    terms = ("--data", "homes", "--epsilon", 2, "--delta", 1e-7, "--set-aside", 1e-8)
    done = run("account", "open", path, *terms)
    assert done.exit_code == 0, done.output
    assert "No release has been charged yet" in done.output
    account = Account(path, "homes")
    homes(account, 0.5).write(tmp_path / "out")
    release(TRIPS, "top-down", epsilon=0.5, delta=1e-8, bounded=False, account=account, **AXES)
    done = run("account", path)
    assert done.exit_code == 0, done.output
    (charge, _) = account.statement().charges
    texts = ["ε = 2, δ = 1e-07 (1e-08 of it set aside)", "protected: one row more or less", "written"]
    texts += ["not finished", charge.at, charge.fingerprint, "ε = 0.5", "ρ = ", account.statement().digest]
    shown = " ".join(done.output.split())  # lines are broken where the path is long
    assert [text for text in texts if text not in shown] == []
    assert done.output == run("account", "show", path).output
    share = float(re.search(r"Spent: ([\d.]+) %", done.output)[1])
    assert share == pytest.approx(100 * account.statement().share, rel=1e-3)
    assert "account FILE" in run("account", "--help").output


@pytest.fixture
def command(tmp_path):
    """The account of a table, and a release of the table with further options."""
    HOMES.to_csv(tmp_path / "homes.csv", index=False)
    run("account", "open", tmp_path / FILE, "--data", "homes.csv", "--epsilon", 1)
    words = "--levels state --group home --regions-from-data --groups-from-data --max-size 3 --out"
    table = ("release", "group-size", tmp_path / "homes.csv", *words.split(), tmp_path / "out")
    return Account(tmp_path / FILE), lambda *options: run(*table, *options)


def test_the_command_line_charges_and_signs(command, tmp_path):
    account, released = command
    done = released("--epsilon", 0.4, "--account", account.path)
    assert done.exit_code == 0, done.output
    (charge,) = account.statement().charges
    assert (charge.state, charge.fingerprint) == ("written", seal.digest(tmp_path / "out" / seal.SUMS))
    assert charge.fingerprint in done.output
    of_account = ("--overwrite", "--account", account.path)
    refused = {
        ("--epsilon", 0.7, *of_account): "has ε = 0.6 left",
        ("--epsilon", 0.1, *of_account, "--data", "others"): "'others' is to be released",
        ("--epsilon", 0.1, "--overwrite", "--data", "homes.csv"): "give --account as well",
        ("--epsilon", 0.1, *of_account, "--simulate", 1): "simulated noise protects nobody",
        ("--epsilon", 0.1, *of_account, "--sign", account.path): "is not a private key",
        ("--epsilon", 0.1, *of_account[1:]): "choose another folder",
    }
    for options, why in refused.items():
        done = released(*options)
        assert done.exit_code == 2, done.output
        assert why in " ".join(done.output.split())
    assert states(account) == ["written"]
    assert seal.digest(tmp_path / "out" / seal.SUMS) == charge.fingerprint


def test_the_command_line_says_that_it_failed(command, tmp_path, monkeypatch):
    account, released = command
    monkeypatch.setattr("hierdp.execution.folder._put", full)
    ran = released("--epsilon", 0.4, "--account", account.path)
    assert ran.exit_code == 1
    assert f"entry 1 of {account.path} stays charged, ε = 0.4" in " ".join(ran.output.split())
    assert states(account) == ["failed"]
    assert not (tmp_path / "out").exists()
