"""The account across releases: composition of losses, when they are charged, and behaviour under failures."""

import errno
import fcntl
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.top_down import loss_of
from hierdp.privacy import chain
from hierdp.privacy.account import Account, Terms, accounts_beside, open_account
from hierdp.privacy.budget import Ledger, PersonRows, Spend
from hierdp.privacy.charging import ChargingNoise, check_charged
from hierdp.privacy.conversion import best_order, rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.noise import ExactNoise
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
    assert left <= Fraction(0.3) - 2 * Fraction(0.1) < math.nextafter(left, 1)
    with pytest.raises(InputError, match=r"has ε = 0\.1 left, and this release costs ε = 0\.1"):
        account.charge(Loss(math.nextafter(left, 1)), "a", "homes")
    account.charge(Loss(left), "a", "homes")
    with pytest.raises(InputError, match="left, and this release costs ε = 1e-09"):
        account.charge(Loss(1e-9), "a", "homes")
    assert len(account.statement().charges) == 3


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
    with pytest.raises(InputError, match=r"and this release costs ρ = 0.001"):
        account.charge(Loss(rho=0.001), "a", "homes")
    with pytest.raises(InputError, match=r"and this release costs ε = 0.1"):
        account.charge(Loss(0.1), "a", "homes")


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
    account.charge(Loss(0.1), "group-size", "homes")
    account.charge(Loss(rho=0.001), "unbounded", "homes")
    account.charge(Loss(rho=0.001, replaces=True), "bounded", "homes")
    account.charge(Loss(0.1, delta=1e-9), "SH", "homes")
    pure, unbounded, bounded, stable = account.statement().losses
    assert (pure.epsilon, unbounded.rho, bounded.rho, stable.epsilon) == (0.2, 0.004, 0.001, 0.2)
    assert stable.delta == pytest.approx(1e-9 * (1 + math.exp(0.1)), rel=1e-9)
    assert stable.delta >= 1e-9 * (1 + math.exp(0.1))


def test_a_public_total_has_no_place_in_an_account_of_more_or_less(opened):
    with pytest.raises(InputError, match="takes the total as public: release with --unbounded"):
        opened(1.0, 1e-6).charge(Loss(rho=0.001, replaces=True), "top-down", "homes")


def test_what_releases_cost():
    trips = {"epsilon": 1.0, "delta": 1e-8}
    assert loss_of(**trips, axes={}) == Loss(rho=rho_of(1.0, 1e-8), replaces=True)
    assert loss_of(**trips, bounded=False).replaces is False
    assert loss_of(**trips, trips=3, distinct=True).unit == PERSON
    assert loss_of(**trips, method="SH") == Loss(1.0, delta=1e-8, replaces=True)
    tables = partial(MECHANISMS["tabulation"].loss, 1.0)
    assert tables({"delta": 1e-8}) == Loss(rho=rho_of(1.0, 1e-8), replaces=True)
    assert tables({"delta": 1e-8, "bounded": False}) == Loss(rho=rho_of(1.0, 1e-8))
    for name in set(MECHANISMS) - {"top-down", "tabulation"}:
        assert MECHANISMS[name].loss(0.5, {"method": "any"}) == Loss(0.5)


# Releases


def test_a_release_is_charged_before_it_draws(opened, monkeypatch):
    account, seen = opened(), []
    exact = ExactNoise.geometric

    def geometric(*measurement):
        seen.append(states(account))
        return exact(*measurement)

    monkeypatch.setattr(ExactNoise, "geometric", geometric)
    made = release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    assert seen == [["not finished"]] * 2  # two measurements, but one charge
    assert made.charge is not None
    assert states(account) == ["not finished"]
    assert account.statement().left_epsilon == 0.6


def test_a_release_that_is_written_is_in_the_account(opened, tmp_path):
    account = opened()
    made = release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    folder = made.write(tmp_path / "out")
    (charge,) = account.statement().charges
    assert (charge.state, charge.fingerprint) == ("written", seal.digest(folder / seal.SUMS))
    entry = json.loads((folder / "manifest.json").read_text())["account"]
    assert entry == {"data": "homes", "entry": charge.entry, "digest": charge.digest}
    assert FAILS not in {line.verdict for line in check(folder)}
    with pytest.raises(InputError, match=r"has ε = 0.6 left"):
        release(HOMES, "group-size", epsilon=0.7, account=account, **SIZES)
    assert len(account.statement().charges) == 1


def test_check_knows_the_account_entry(opened, tmp_path):
    folder = release(HOMES, "group-size", epsilon=0.4, account=opened(), **SIZES).write(tmp_path / "out")
    changing.change_manifest(folder, lambda manifest: manifest["account"].update(left=0.6))
    seal.seal(folder)
    found = {line.check: line for line in check(folder)}
    assert "'account' has 'left', which no release has" in found["manifest"].why


@pytest.fixture
def written(opened, tmp_path):
    """The account and folder of a release that was charged and written."""
    account = opened()
    made = release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    return account, made.write(tmp_path / "out")


def line_of(folder, account):
    (line,) = [line for line in check(folder, account=account.path) if line.check == "account"]
    return line


def test_check_finds_a_release_in_its_account(written, tmp_path):
    account, folder = written
    line = line_of(folder, account)
    assert line.verdict == HOLDS
    assert "entry 1" in line.why
    assert "ε = 0.4 charged" in line.why
    done = CliRunner().invoke(main, ["check", str(folder), "--account", str(account.path)])
    assert done.exit_code == 0, done.output
    again = release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    first, second = again.write(tmp_path / "first"), again.write(tmp_path / "second", report=False)
    assert [line_of(one, account).verdict for one in (first, second)] == [HOLDS, HOLDS]


def test_check_finds_a_release_of_persons_and_of_replacements(opened, tmp_path):
    persons = opened(name="persons.account", unit=PERSON, column="who")
    table = HOMES.assign(who=[1, 1, 2, 3])
    about = SIZES | {"person": "who", "rows_per_person": 2}
    made = release(table, "group-size", epsilon=0.4, account=persons, **about)
    assert line_of(made.write(tmp_path / "persons"), persons).verdict == HOLDS
    replaced = opened(3.0, 1e-6, name="replaced.account", replaces=True)
    pairs = [(HOMES, "group-size", SIZES), (TRIPS, "top-down", {"delta": 1e-7, **AXES})]
    for i, (rows, mechanism, options) in enumerate(pairs):
        made = release(rows, mechanism, epsilon=0.2, account=replaced, **options)
        assert line_of(made.write(tmp_path / str(i)), replaced).verdict == HOLDS


@pytest.mark.slow
def test_check_reports_missing_account_entries(written, opened, tmp_path):
    account, folder = written
    alone = release(HOMES, "group-size", epsilon=0.4, **SIZES).write(tmp_path / "alone")
    release(HOMES, "group-size", epsilon=0.1, account=account, **SIZES)  # drawn but never written
    _, never = account.statement().charges
    entry = {"data": "homes", "entry": never.entry, "digest": never.digest}
    other = change_manifest(folder, tmp_path / "other", lambda manifest: manifest.update(account=entry))
    trips = open_account(tmp_path / "trips.account", "trips", 1.0)
    edited = change_manifest(folder, tmp_path / "edited", lambda it: it["settings"].update(max_size=4))
    cheaper = change_manifest(folder, tmp_path / "cheaper", lambda it: it["budget"].update(epsilon=0.9))
    wrong = {
        (alone, account): "names no account",
        (folder, trips): "it is an account of 'trips', and the release is of 'homes'",
        (folder, opened(name="new.account")): "it has no entry 1 with the digest",
        (edited, account): "entry 1 has another fingerprint",
        (cheaper, account): "entry 1 has another fingerprint",
        (other, account): "was not finished; this folder is not recorded as written",
        (folder, Account(tmp_path / "none")): "there is no account",
    }
    for (one, where), why in wrong.items():
        line = line_of(one, where)
        assert (line.verdict, why in line.why) == (FAILS, True), line
    account.path.write_bytes(account.path.read_bytes().replace(b'"written"', b'"failed!"'))
    line = line_of(folder, account)
    assert (line.verdict, "was changed" in line.why) == (FAILS, True), line
    done = CliRunner().invoke(main, ["check", str(folder), "--account", str(account.path)])
    assert done.exit_code == 1


def test_check_says_that_a_release_was_charged_too_little(written, monkeypatch):
    """Its fingerprint is correct, as if this had been its charge."""
    account, folder = written
    monkeypatch.setattr("hierdp.checking.account._cost", lambda *_: Loss(0.5))
    assert "entry 1 is charged ε = 0.4; the release costs ε = 0.5" in line_of(folder, account).why
    monkeypatch.setattr("hierdp.checking.account._cost", lambda *_: Loss(0.4, unit=PERSON, column="id"))
    wrong = "entry 1 is charged for one row of the table; .*; the release protects a person, by column 'id'"
    assert re.search(wrong, line_of(folder, account).why)
    monkeypatch.setattr("hierdp.checking.account._cost", lambda *_: Loss(None, 0.01))
    assert "the release costs ρ = 0.01" in line_of(folder, account).why


def change_manifest(folder, place, change):
    """A copy with a changed manifest, sealed anew."""
    shutil.copytree(folder, place)
    changing.change_manifest(place, change)
    seal.seal(place)
    return place


def test_a_failure_after_the_charge_stays_charged(opened, monkeypatch):
    account = opened()

    def geometric(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ExactNoise, "geometric", geometric)
    with pytest.raises(KeyboardInterrupt):
        release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    assert states(account) == ["failed"]
    assert account.statement().left_epsilon == 0.6
    assert json.loads(account.path.read_text().splitlines()[-1])["why"] == "KeyboardInterrupt"


@pytest.mark.parametrize("broken", ["fill", "name"])
def test_a_release_that_cannot_be_written_is_failed(opened, tmp_path, monkeypatch, broken):
    account = opened()
    made = release(HOMES, "group-size", epsilon=0.4, account=account, **SIZES)
    if broken == "fill":
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("kept")
    else:
        monkeypatch.setattr(
            "hierdp.execution.folder._put", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
        )
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
        release(HOMES, "group-size", **{"epsilon": 0.4, "account": account, **SIZES, **options})
    assert account.path.read_bytes() == before


def test_data_must_match_the_account(tmp_path):
    path = tmp_path / "homes.account"
    open_account(path, "homes.csv", 1.0)
    for name in ("homes.csv", "others.csv"):
        HOMES.to_csv(tmp_path / name, index=False)
    account = Account(path)
    with pytest.raises(InputError, match="give the name of the data"):
        release(HOMES, "group-size", epsilon=0.1, account=account, **SIZES)
    with pytest.raises(
        InputError,
        match=r"is an account for 'homes.csv', but 'others.csv' is to be "
        "released",
    ):
        release(tmp_path / "others.csv", "group-size", epsilon=0.1, account=account, **SIZES)
    release(tmp_path / "homes.csv", "group-size", epsilon=0.1, account=account, **SIZES)
    same = Account(path, data="homes.csv")
    release(tmp_path / "others.csv", "group-size", epsilon=0.1, account=same, **SIZES)
    assert account.statement().left_epsilon == pytest.approx(0.8)


@pytest.mark.slow
def test_mechanisms_of_three_kinds_share_an_account(opened):
    account = opened(3.0, 1e-6, set_aside=1e-7)
    more = {"account": account, **AXES, "bounded": False, "epsilon": 0.5, "delta": 1e-8}
    release(HOMES, "group-size", epsilon=0.5, account=account, **SIZES)
    release(TRIPS, "top-down", **more)
    release(TRIPS, "top-down", method="SH", **more)
    assert [loss.in_words for loss in account.statement().losses] == [
        "ε = 0.5", f"ρ = {rho_of(0.5, 1e-8):.6g}", "ε = 0.5, δ = 1e-08",
    ]  # fmt: skip
    with pytest.raises(InputError, match="protects a row, but this release protects a person"):
        release(TRIPS, "top-down", trips=2, **more)
    assert len(account.statement().charges) == 3


def test_a_release_that_cost_more_than_its_charge_is_noticed():
    def ledger(epsilon=1.0, delta=0.0, person=None, rho=None):
        spent = None if rho else epsilon
        own = Spend("q", "noise", 1, 1.0, spent, rho, True, delta if delta and not rho else None)
        return Ledger(epsilon, delta, "n", (own,), person=person)

    person = PersonRows("who", 1, "one person")
    by_rho = ledger(delta=1e-8, rho=1e-3)
    for made, loss in (
        (ledger(), Loss(1.0)),
        (ledger(delta=1e-8), Loss(1.0, delta=1e-8)),
        (ledger(person=person), Loss(1.0, unit=PERSON, column="who")),
        (by_rho, Loss(rho=by_rho.rho)),
    ):
        check_charged(made, loss)
    for made, loss in (
        (ledger(), Loss(math.nextafter(1, 0))),
        (ledger(), Loss(rho=1.0)),
        (ledger(delta=1e-8), Loss(1.0, delta=9e-9)),
        (ledger(person=person), Loss(1.0)),
        (ledger(person=person), Loss(1.0, unit=PERSON, column="id")),
        (ledger(person=person), Loss(1.0, unit=PERSON, column="who", rows=2)),
        (by_rho, Loss(rho=math.nextafter(by_rho.rho, 0))),
        (by_rho, Loss(1.0, delta=1e-8)),
    ):
        with pytest.raises(InputError, match="cost more than it was charged for"):
            check_charged(made, loss)


@pytest.mark.parametrize(("draw", "given"), [("geometric", 4), ("gaussian", 4), ("stable", 5), ("choose", 4)])
def test_nothing_is_drawn_before_the_charge(draw, given):
    seen = []

    class Drawn:
        def __getattr__(self, name):
            return lambda *_: seen.append(name)

    noise = ChargingNoise(Drawn(), lambda: seen.append("charge") or object())
    for _ in range(2):
        getattr(noise, draw)(*[None] * given)
    assert seen == ["charge", draw, draw]


# The file


def test_a_line_is_written_as_hierdp_writes_it(opened):
    """A line must have exactly this form, not only the entries that its digest covers."""
    account = opened()
    text = account.path.read_bytes()
    for other in (text.replace(b'"entry": 0', b'"entry":  0'), text.replace(b"{", b'{"entry": 9, ', 1)):
        account.path.write_bytes(other)
        with pytest.raises(InputError, match=r"line 1 of .* was changed"):
            account.statement()
    account.path.write_bytes(text)
    assert account.statement().charges == ()


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


def filled(account, releases=3):
    for part in range(releases):
        entry = account.charge(Loss(0.01), "group-size", "homes")
        entry.written(f"{part}" * 64)
    return account.path.read_bytes()


def test_a_changed_byte_is_noticed_anywhere(opened):
    account = opened()
    whole = filled(account, 1)
    for at in range(0, len(whole), 5):
        account.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError, match=r"was changed|was cut short|do not belong together"):
            account.statement()
    account.path.write_bytes(whole)
    assert len(account.statement().charges) == 1


def test_a_cut_is_noticed_anywhere(opened):
    account = opened()
    whole = filled(account, 1)
    ends = [at + 1 for at, byte in enumerate(whole[:-1]) if byte == ord("\n")]
    for size in sorted({*range(0, len(whole), 19), *ends, *(end - 1 for end in ends), len(whole) - 1}):
        account.path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"was cut short: it has \d lines and had 3"):
            account.charge(Loss(0.01), "group-size", "homes")
        assert account.path.stat().st_size == size  # it is left unchanged


def lines_of(whole):
    return whole.splitlines(keepends=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[3], lines[4], lines[1], lines[2], *lines[5:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines, b"{}\n"],
        lambda lines: [*lines, b"\n"],
        lambda lines: [lines[0].replace(b'"epsilon": 1.0', b'"epsilon": 9.0'), *lines[1:]],
    ],
)
def test_lines_that_were_moved_or_made_are_noticed(opened, change):
    account = opened()
    lines = lines_of(filled(account))
    account.path.write_bytes(b"".join(change(lines)))
    with pytest.raises(InputError, match="was changed, moved, or not written by hierdp"):
        account.statement()


def test_an_older_copy_is_noticed(opened):
    account = opened()
    older = filled(account)
    filled(account)
    account.path.write_bytes(older)
    with pytest.raises(InputError, match="was cut short: it has 7 lines and had 13"):
        account.statement()


def test_the_head_belongs_to_the_account(opened):
    account, other = opened(), opened(name="other.account")
    filled(account)
    filled(other, 1)
    head = Path(f"{account.path}.head")
    content = head.read_bytes()
    deep, long = b"[" * 100_000, content.replace(b":", b":" + b" " * 100_000)
    for wrong in (b"", b"[]", b'{"lines": 0, "digest": ""}', b'{"lines": "x"}', deep, long):
        head.write_bytes(wrong)
        with pytest.raises(InputError, match="head"):
            account.statement()
    head.write_bytes(Path(f"{other.path}.head").read_bytes())
    with pytest.raises(InputError, match="do not belong together"):
        account.statement()
    head.unlink()
    with pytest.raises(InputError, match="is missing or damaged; it records the length"):
        account.statement()
    os.mkfifo(head)  # reading it would wait for a writer
    with pytest.raises(InputError, match="is missing or damaged"):
        account.statement()
    head.unlink()
    head.write_bytes(content)
    assert len(account.statement().charges) == 3


@pytest.mark.parametrize("which", ["homes.account", "homes.account.head"])
def test_read_only_account_refuses_charges(opened, tmp_path, which):
    account = opened()
    whole = account.path.read_bytes()
    (tmp_path / which).chmod(0o444)
    with pytest.raises(InputError, match=r"read-only|cannot be written"):
        release(HOMES, "group-size", epsilon=0.1, account=account, **SIZES)
    assert account.path.read_bytes() == whole
    assert account.statement().charges == ()  # it can be read


def test_missing_account(tmp_path):
    with pytest.raises(InputError, match=r"there is no account .*; open one with"):
        Account(tmp_path / "none").statement()
    with pytest.raises(InputError, match="is a folder"):
        Account(tmp_path).statement()
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
    with pytest.raises(InputError, match="is a folder or a device"):
        Account(tmp_path / "pipe").statement()


@pytest.mark.parametrize(
    "text", [b"hello\n", b"[" * 100_000 + b"\n", b"SQLite format 3\0\n", b"\n", b"\xff\n"]
)
def test_other_files_are_not_accounts(tmp_path, text):
    (tmp_path / "other").write_bytes(text)
    with pytest.raises(InputError, match=r"line 1 of .* was changed, moved, or not written by hierdp"):
        Account(tmp_path / "other").statement()


def test_an_account_too_large_to_read_is_refused(opened):
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
    with pytest.raises(InputError, match="is not an account of this version of hierdp"):
        account.statement()


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
    for name in ("homes.account", "homes.account.head"):
        (tmp_path / f".{name}.{os.getpid()}").symlink_to(mine)
    account = opened()
    (tmp_path / f".homes.account.head.{os.getpid()}").symlink_to(mine)
    filled(account, 1)
    assert mine.read_text() == "years of work"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["homes.account", "homes.account.head", "mine"]


OPENS = (
    "import sys; from hierdp.privacy.account import open_account; open_account(sys.argv[1], 'theirs', 1.0)"
)


@pytest.mark.parametrize("moment", [0, 1])
def test_of_two_processes_that_open_an_account_one_succeeds(opened, monkeypatch, moment, tmp_path):
    path, real, calls, theirs = tmp_path / "homes.account", chain._create, iter(range(2)), []

    def created(aside, text):
        if next(calls) == moment:
            theirs.append(subprocess.run([sys.executable, "-c", OPENS, path], capture_output=True).returncode)
        real(aside, text)

    monkeypatch.setattr(chain, "_create", created)
    with pytest.raises(InputError, match="exists; choose another") if moment == 0 else nullcontext():
        opened()
    assert theirs == [moment]
    assert Account(path).statement().terms.data == ("homes" if moment else "theirs")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["homes.account", "homes.account.head"]


def test_an_account_without_its_head_is_not_left_behind(opened, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

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
    ("terms", "why"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"delta": -1.0}, "delta is -1"),
        ({"delta": 1e-8, "set_aside": 1e-7}, "set_aside is 1e-07"),
        ({"unit": "house"}, "the unit is 'house'"),
    ],
)
def test_terms_that_cannot_be(opened, tmp_path, terms, why):
    with pytest.raises(InputError, match=why):
        opened(**terms)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="needs the name of its data"):
        open_account(tmp_path / "a", " ", 1.0)
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        open_account(tmp_path / "no" / "a", "homes", 1.0)


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


def calls_of_a_charge(account, monkeypatch):
    names = []

    def ending(_, call, name, __):
        names.append(name)
        return call()

    with monkeypatch.context() as patch:
        counting(patch, ending)
        account.charge(Loss(0.001), "group-size", "homes")
    return names


def killed_at(account, step, half, monkeypatch):
    """Run a process that charges and then confirms it; kill it before (or in the middle of) a call."""
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
            account.charge(Loss(0.001), "group-size", "homes")
            os.write(writing, b"charged")
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    said = os.read(reading, 100)
    os.close(reading)
    return os.waitstatus_to_exitcode(status), said


@pytest.mark.parametrize("half", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_process_killed_at_any_step_leaves_a_true_account(opened, monkeypatch, half):
    """Confirmed charges are recorded, unconfirmed ones may be, and the account remains usable."""
    account = opened()
    steps = calls_of_a_charge(account, monkeypatch)
    assert steps.count("pwrite") == 2  # of the line and of the head
    for step in range(len(steps) + 1):
        before = len(account.statement().charges)
        status, said = killed_at(account, step, half, monkeypatch)
        after = len(account.statement().charges)
        assert status == (-signal.SIGKILL if step < len(steps) else 0)
        if said:
            assert (status, after) == (0, before + 1)
        else:
            assert after - before in (0, 1)
        account.charge(Loss(0.001), "group-size", "homes").written("0" * 64)
        assert len(account.statement().charges) == after + 1
    assert len({charge.entry for charge in account.statement().charges}) == len(account.statement().charges)


def test_a_full_disk_at_any_step_leaves_a_true_account(opened, monkeypatch):
    """Confirmed charges are recorded, failed ones may be, and the account remains usable."""
    account = opened()
    steps = calls_of_a_charge(account, monkeypatch)
    for step in [at for at, name in enumerate(steps) if name in ("pwrite", "fsync", "replace")]:
        before, whole = len(account.statement().charges), account.path.read_bytes()

        def ending(number, call, name, given, step=step):
            if number != step:
                return call()
            if name == "pwrite":  # some bytes may fit
                os.lseek(given[0], given[2], os.SEEK_SET)
                os.write(given[0], given[1][:7])
            raise OSError(errno.ENOSPC, "full")

        charged = False
        with monkeypatch.context() as patch, suppress(OSError):
            counting(patch, ending)
            account.charge(Loss(0.001), "group-size", "homes")
            charged = True
        after = len(account.statement().charges)
        if step == steps.index("pwrite"):
            assert account.path.read_bytes() == whole  # without the bytes that did fit
            assert not charged
        assert after - before in ((1,) if charged else (0, 1))
        account.charge(Loss(0.001), "group-size", "homes")
        assert len(account.statement().charges) == after + 1


def test_a_charge_that_fails_draws_nothing(opened, monkeypatch):
    drawn = []

    def charge(*_, **__):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(ExactNoise, "geometric", lambda *_: drawn.append(1))
    monkeypatch.setattr(Account, "charge", charge)
    with pytest.raises(OSError, match="full"):
        release(HOMES, "group-size", epsilon=0.1, account=opened(), **SIZES)
    assert drawn == []


def test_many_at_once_never_spend_the_same(opened):
    """Each thread opens the file itself, as processes do; four of twelve charges fit."""
    account, said = opened(1.0), []

    def one():
        try:
            Account(account.path, "homes").charge(Loss(0.25), "group-size").written("0" * 64)
        except InputError as refused:
            said.append(str(refused))
        else:
            said.append("fits")

    threads = [threading.Thread(target=one) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count("fits") == 4
    assert all("has ε = 0 left" in one for one in said if one != "fits")
    assert states(account) == ["written"] * 4


CHARGE = """
import sys
from hierdp.errors import InputError
from hierdp.privacy.account import Account
from hierdp.privacy.loss import Loss
sys.stdin.readline()
for _ in range(3):
    try:
        entry = Account(sys.argv[1], "homes").charge(Loss(float(sys.argv[2])), "group-size", by=sys.argv[3])
        entry.written(sys.argv[3] * 64)
        print(entry.number)
    except InputError as refused:
        assert "left, and this release costs" in str(refused), refused
"""


@pytest.mark.slow
def test_twelve_processes_at_once_never_spend_the_same(opened):
    """They start together and charge three times each; of the 36 charges, 20 fit."""
    account, epsilon = opened(1.0), 0.05
    charging = [
        subprocess.Popen(
            [sys.executable, "-c", CHARGE, str(account.path), str(epsilon), f"{i:x}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i in range(12)
    ]  # fmt: skip
    said = [one.communicate()[0].split() for one in started(charging)]
    assert [one.returncode for one in charging] == [0] * 12
    entries = sorted(int(number) for numbers in said for number in numbers)
    now = account.statement()
    assert entries == sorted(charge.entry for charge in now.charges)
    assert len(set(entries)) == len(entries) == 19 + (20 * Fraction(epsilon) <= 1)
    assert now.pure == len(entries) * Fraction(epsilon) <= 1
    assert {charge.state for charge in now.charges} == {"written"}
    lines = [json.loads(line) for line in account.path.read_text().splitlines()]
    assert all(line["fingerprint"] == lines[line["charge"]]["by"] * 64 for line in lines if "charge" in line)


def started(processes):
    """Start all processes before waiting for the first."""
    for one in processes:
        one.stdin.write("go\n")
        one.stdin.flush()
    return processes


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


def test_a_stopped_process_is_waited_for_and_named(opened, monkeypatch):
    account = opened()
    monkeypatch.setattr(chain, "WAIT_SECONDS", 0.05)
    with chain.appending(account.path), pytest.raises(InputError, match="another process has locked"):
        account.statement()
    assert account.statement().charges == ()


def test_a_disk_without_locks(opened, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    account = opened()
    monkeypatch.setattr(chain.fcntl, "flock", flock)
    with pytest.raises(InputError, match="does not support locks"):
        account.statement()


# The command line


def run(*arguments):
    return CliRunner().invoke(main, [str(part) for part in arguments])


def test_the_command_line_opens_and_shows(tmp_path):
    path = tmp_path / "homes.account"
    done = run(
        "account", "open", path, "--data", "homes", "--epsilon", 2, "--delta", 1e-7, "--set-aside", 1e-8
    )
    assert done.exit_code == 0, done.output
    assert "No release has been charged yet" in done.output
    account = Account(path, "homes")
    release(HOMES, "group-size", epsilon=0.5, account=account, **SIZES).write(tmp_path / "out")
    release(TRIPS, "top-down", epsilon=0.5, delta=1e-8, bounded=False, account=account, **AXES)
    done = run("account", path)
    assert done.exit_code == 0, done.output
    (charge, _) = account.statement().charges
    texts = ["ε = 2, δ = 1e-07 (1e-08 of it set aside)", "protected: one row more or less", "written"]
    texts += ["not finished", charge.at, charge.fingerprint, "ε = 0.5", "ρ = ", account.statement().digest]
    shown = " ".join(done.output.split())  # lines are broken where the path is long
    for text in texts:
        assert text in shown
    assert done.output == run("account", "show", path).output
    share = float(re.search(r"Spent: ([\d.]+) %", done.output)[1])
    assert share == pytest.approx(100 * account.statement().share, rel=1e-3)


def test_the_help_names_both_ways():
    assert "account FILE" in run("account", "--help").output
    assert run("account").exit_code in (0, 2)


def released(folder, *options):
    HOMES.to_csv(folder / "homes.csv", index=False)
    table = ("release", "group-size", folder / "homes.csv", "--levels", "state", "--group", "home",
        "--regions-from-data", "--groups-from-data")  # fmt: skip
    return run(*table, "--max-size", 3, "--out", folder / "out", *options)


def test_the_command_line_charges_and_signs(tmp_path):
    path = tmp_path / "homes.account"
    run("account", "open", path, "--data", "homes.csv", "--epsilon", 1)
    done = released(tmp_path, "--epsilon", 0.4, "--account", path)
    assert done.exit_code == 0, done.output
    (charge,) = Account(path).statement().charges
    assert (charge.state, charge.fingerprint) == ("written", seal.digest(tmp_path / "out" / seal.SUMS))
    assert charge.fingerprint in done.output
    refused = {
        ("--epsilon", 0.7, "--account", path, "--overwrite"): "has ε = 0.6 left",
        (
            "--epsilon",
            0.1,
            "--account",
            path,
            "--data",
            "others",
            "--overwrite",
        ): "'others' is to be released",
        ("--epsilon", 0.1, "--data", "homes.csv", "--overwrite"): "give --account as well",
        ("--epsilon", 0.1, "--account", path, "--simulate", 1, "--overwrite"): "simulated noise protects "
        "nobody",
        ("--epsilon", 0.1, "--account", path, "--sign", path, "--overwrite"): "is not a private key",
        ("--epsilon", 0.1, "--account", path): "choose another folder",
    }
    for options, why in refused.items():
        done = released(tmp_path, *options)
        assert done.exit_code == 2, done.output
        assert why in " ".join(done.output.split())
    assert states(Account(path)) == ["written"]
    assert seal.digest(tmp_path / "out" / seal.SUMS) == charge.fingerprint


def test_the_command_line_says_that_it_failed(tmp_path, monkeypatch):
    path = tmp_path / "homes.account"
    run("account", "open", path, "--data", "homes.csv", "--epsilon", 1)

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("hierdp.execution.folder._put", full)
    done = released(tmp_path, "--epsilon", 0.4, "--account", path)
    assert done.exit_code == 1
    assert states(Account(path)) == ["failed"]
    assert not (tmp_path / "out").exists()


def test_a_release_for_persons_costs_them():
    for name in set(MECHANISMS) - {"top-down", "tabulation"}:
        options = {"person": "who", "rows_per_person": 2}
        assert MECHANISMS[name].loss(0.1, options) == Loss(0.1, unit=PERSON, column="who", rows=2)
    persons = {"person": "who", "rows_per_person": 2, "bounded": False}
    assert loss_of(epsilon=1.0, delta=1e-8, **persons) == replace(
        loss_of(epsilon=1.0, delta=1e-8, bounded=False), unit=PERSON, column="who", rows=2
    )
    of_tables = MECHANISMS["tabulation"].loss(1.0, {"delta": 1e-8, **persons})
    assert of_tables == Loss(rho=rho_of(1.0, 1e-8), unit=PERSON, column="who", rows=2)
