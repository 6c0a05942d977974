"""`hierdp explain`: its sentences are true of every mechanism, relation and budget."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, repair
from hierdp.audit import CASES
from hierdp.cli import main
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.count_of_counts.mechanism import NOT_EMPTY, PRIVATE_GROUPS
from hierdp.mechanisms.relations import ENTITY, PERSON
from hierdp.mechanisms.tabulation.budget import person_unit, relation_of
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy.budget import Ledger, Spend
from hierdp.privacy.conversion import TIGHTER, epsilon_of, rho_of
from hierdp.privacy.noise import ExactNoise
from hierdp.publication.explanation import JOINS, REPLACES, explain, guess, kind_of, posterior
from hierdp.publication.explanation import _explained as explained
from hierdp.publication.explanation import _percent as percent
from hierdp.publication.explanation import _up as up
from tests.hierdp.changing import change_manifest
from tests.marks import quick

NAMES = [f"{case.name}: {case.change}" for case in CASES]
FIRST = {case.mechanism: case for case in reversed(CASES)}
"""The first audit case of each mechanism."""


def manifest_of(made):
    return json.loads(json.dumps(made.manifest()))


def page(manifest, signed=False):
    return " ".join(str(explained(manifest, signed)).replace("\n- ", "\n").split())


# --- whom --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", quick(CASES, every=8), ids=NAMES)
def test_what_is_hidden_is_what_differs_between_the_audits_tables(case):
    """A replacement keeps the public total; who joins changes no public number."""
    one, other = (manifest_of(case.release(which, SimulatedNoise(1))) for which in (0, 1))
    relation = one["budget"]["neighbouring_relation"]
    assert relation == other["budget"]["neighbouring_relation"]
    kind = kind_of(relation.split("; ")[0])
    said = page(one)
    assert f"differ in one such step: {relation.split('; ')[0]}." in said
    assert ("does not hide how many there are: the total is public" in said) == (kind == REPLACES)
    assert ("hides whether the one that joins or leaves is in the table" in said) == (kind == JOINS)
    if kind == REPLACES:
        assert "total" in one["settings"]
    else:
        assert "total" not in one["settings"]
    assert one["settings"].get("total") == other["settings"].get("total")
    assert f"Protected is {one['budget']['protects']}." in said
    for public in relation.split("; ")[1:]:
        assert public.split("; ")[0][1:] in said
    for name, source in one["taken_as_public"].items():
        assert f"Taken as public: {name.replace('_', ' ')}, {source}." in said
    for caution in one["cautions"]:
        assert caution[1:] in said
    assert len(one["budget"]["spends"]) > 10 or all(line["query"] in said for line in one["budget"]["spends"])


@pytest.mark.parametrize(
    ("relation", "kind"),
    [
        (ENTITY, JOINS),
        (PERSON, JOINS),
        (PRIVATE_GROUPS, JOINS),
        (f"{ENTITY}; {NOT_EMPTY}", JOINS),
        *[
            (trips_of_a_person(m, distinct, replaced).neighbours, REPLACES if replaced else JOINS)
            for m in (1, 3)
            for distinct in (True, False)
            for replaced in (True, False)
        ],
        (relation_of(person_unit(), []), REPLACES),
        (relation_of(person_unit(), [("town", "total")]), REPLACES),
        (relation_of(person_unit(False, 3), []), JOINS),
        ("two tables are neighbours in some other way", None),
    ],
)
def test_every_relation_of_a_mechanism_is_read(relation, kind):
    assert kind_of(relation.split("; ")[0]) == kind


def test_an_unknown_relation_is_repeated_and_no_more():
    stated = manifest_of(FIRST["group-size"].release(0, SimulatedNoise(1)))
    stated["budget"]["neighbouring_relation"] = "one household moves; streets are public"
    said = page(stated)
    assert "one such step: one household moves." in said
    assert "not protected: streets are public." in said
    assert "It hides" not in said


# --- what can be concluded ---------------------------------------------------------------------------------


def pure(epsilon):
    return Ledger(epsilon, 0.0, PERSON, (Spend("q", "n", 1, 1.0, epsilon, None, True),))


def zcdp(epsilon, delta):
    spend = Spend("q", "discrete Gaussian", 1, 1.0, None, rho_of(epsilon, delta), True)
    return Ledger(epsilon, delta, PERSON, (spend,), TIGHTER)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 30.0])
def test_the_odds_are_those_of_randomized_response(epsilon):
    """Bayes' rule for the release that attains ε: the answer "yes" has e^ε times the chance under yes."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    for prior in (0.001, 0.01, 0.1, 0.5, 0.9):
        bayes = prior * truth / (prior * truth + (1 - prior) * (1 - truth))
        # 1 − truth loses all but 3 digits at ε = 30, so a relative 1e-2 of 1 − posterior
        assert 1 - posterior(prior, epsilon) == pytest.approx(1 - bayes, rel=1e-2)
    assert guess(pure(epsilon)) == pytest.approx(truth, rel=1e-12)  # rounding of one division


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3])
def test_no_gaussian_release_allows_a_better_guess(epsilon, delta):
    """The best guess from one discrete Gaussian answer of that ρ, by its exact law, is below the bound."""
    ledger = zcdp(epsilon, delta)
    sigma = math.sqrt(1 / (2 * ledger.rho))
    x = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 2, dtype=float)
    laws = [np.exp(-((x - mean) ** 2) / (2 * sigma**2)) for mean in (0, 1)]
    one, other = (law / law.sum() for law in laws)
    right = np.maximum(one, other).sum() / 2
    assert 0.5 < right <= guess(ledger) <= (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)) + 1e-12


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_the_curve_is_the_inverse_of_the_conversion(epsilon, delta):
    rho = rho_of(epsilon, delta)
    found = epsilon_of(rho, delta)
    assert rho_of(found, delta) >= rho
    assert found == pytest.approx(epsilon, rel=3e-7)  # bisection ends at 1e-7
    assert rho_of(found * (1 - 3e-7), delta) < rho


def test_numbers_are_rounded_up():
    assert [up(x) for x in (0, 1, 1.0001, 2.718281828, 0.0172053, 12345.1, math.inf)] == [
        "0", "1", "1.01", "2.72", "0.0173", "12,400", "∞",
    ]  # fmt: skip
    assert [percent(p) for p in (0.5, 0.73105, 0.99999, 1.0)] == ["50.0 %", "73.2 %", "99.999 %", "100 %"]


def test_a_pure_release_gives_the_posteriors():
    case = FIRST["range-query"]
    said = page(manifest_of(case.release(0, SimulatedNoise(1))))
    epsilon = case.release(0, SimulatedNoise(1)).ledger.epsilon
    assert f"from 10 % to at most {percent(posterior(0.1, epsilon))}" in said
    assert f"right with a probability of at most {percent(posterior(0.5, epsilon))}" in said
    assert f"truthfully with probability {percent(posterior(0.5, epsilon))}" in said
    assert "ρ" not in said


def test_a_release_under_zcdp_gives_the_curve():
    made = FIRST["tabulation"].release(0, SimulatedNoise(1))
    ledger, said = made.ledger, page(manifest_of(made))
    assert ledger.zcdp
    for delta in (1e-4, 1e-12):
        assert f"ε = {up(epsilon_of(ledger.rho, delta))} at δ = {delta:g}" in said
    assert f"ε = {up(ledger.epsilon)} at δ = {ledger.delta:g}" in said
    assert "from 10 %" not in said  # odds have no bound with a δ


# --- exceptions, spending ----------------------------------------------------------------------------------


def test_invariants_and_thresholds_are_exceptions():
    stated = manifest_of(next(c for c in CASES if "invariant" in c.change).release(0, SimulatedNoise(1)))
    said = page(stated)
    assert (
        "The guarantee does not cover the invariants, which are published as they are: region:total." in said
    )
    assert "They are true answers, and no ε covers what they reveal." in said
    stated = manifest_of(next(c for c in CASES if c.method == "SH").release(0, SimulatedNoise(1)))
    (spend,) = stated["budget"]["spends"]
    assert (
        f"A threshold hides cells ({spend['noise']}). With probability at most {up(spend['delta'])}"
        in page(stated)
    )


def test_noise_from_a_seed_voids_every_promise():
    case = FIRST["range-query"]
    assert "NOT private" in page(manifest_of(case.release(0, SimulatedNoise(1))))
    assert "no promise below holds" in page(manifest_of(case.release(0, SimulatedNoise(1))))
    assert "NOT private" not in page(manifest_of(case.release(0, ExactNoise())))


def test_persons_with_several_rows():
    stated = manifest_of(FIRST["range-query"].release(0, SimulatedNoise(1)))
    assert "Somebody behind k of these units" in page(stated)
    stated["budget"]["spends"][0]["epsilon"] /= 4
    person = {"column": "who", "rows": 3, "spends_are_for": "one row"}
    stated["budget"] |= {"person": person, "protects": "a person, by column 'who', with up to 3 rows"}
    said = page(stated)
    assert "Protected is a person, by column 'who', with up to 3 rows." in said
    assert "has up to 3 such steps; ε below is for all of them together" in said
    assert "Somebody behind k" not in said
    stated["budget"]["person"]["spends_are_for"] = "one person"
    assert "such steps" not in page(stated)


def test_accounts_signatures_and_publishers_words():
    stated = manifest_of(FIRST["range-query"].release(0, SimulatedNoise(1)))
    assert "Charged to no account: nothing here limits" in page(stated)
    assert "The folder is not signed" in page(stated)
    assert "The publisher's reason: A test." in page({**stated, "without_account": "a test"})
    account = {"data": "visits.csv", "entry": 4, "digest": "ab" * 32}
    said = page({**stated, "account": account, "title": "Ages", "note": "second edition"}, signed=True)
    assert said.startswith("Ages WHAT THIS IS")
    assert "The publisher notes: second edition" in said
    assert "account of 'visits.csv', as its entry 4 (digest abababababababab…)" in said
    assert "The folder is signed; whose signature it is was not checked here." in said


def test_a_ledger_that_contradicts_its_budget(tmp_path):
    made = FIRST["range-query"].release(0, SimulatedNoise(1))
    made.write(tmp_path / "out")
    change_manifest(tmp_path / "out", lambda stated: stated["budget"]["spends"][0].update(epsilon=99.0))
    found = explain(tmp_path / "out")
    assert not found.sound
    assert "Do not rely on this release: its ledger contradicts its own budget." in " ".join(
        str(found).split()
    )
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "WHAT AN ATTACKER" not in done.output


# --- other folders -----------------------------------------------------------------------------------------

NOISY = pd.DataFrame({"state": [None, "A", "B"], "people": [10, 4, 9]})


def test_a_repair_claims_nothing(tmp_path):
    made = repair(NOISY, levels=["state"], count="people")
    made.write(tmp_path / "out")
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "out")])
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert "hierdp claims nothing about privacy here: it drew no noise, and spent no budget." in said
    assert "It protects whom they protect, and no more." in said.replace("- ", "")
    assert "ε" not in said


@pytest.mark.parametrize("mechanism", quick(MECHANISMS))
def test_the_command_explains_a_written_release_on_a_page(tmp_path, mechanism):
    FIRST[mechanism].release(0, SimulatedNoise(1)).write(tmp_path / "out", title="Ti\x1b[2Ktle")
    done = CliRunner().invoke(main, ["explain", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 110
    assert [line for line in lines if line and line == line.upper() and not line.startswith((" ", "-"))] == [
        "WHAT THIS IS", "WHO IS PROTECTED", "AGAINST WHOM", "WHAT AN ATTACKER CAN CONCLUDE AT MOST",
        "WHAT IS OUTSIDE THE PROMISE", "WHAT WAS SPENT, AND ON WHICH ACCOUNT", "WHAT WAS NOT CHECKED",
    ]  # fmt: skip


def test_no_true_count_is_needed(tmp_path):
    """It reads the manifest alone: the other files may be missing."""
    FIRST["group-size"].release(0, SimulatedNoise(1)).write(tmp_path / "out")
    before = str(explain(tmp_path / "out"))
    for file in (tmp_path / "out").iterdir():
        if file.name != "manifest.json":
            file.unlink()
    assert str(explain(tmp_path / "out")) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 7},
        {"budget": {"epsilon": 1}},
        {"budget": {"epsilon": "x", "delta": 0, "neighbouring_relation": "", "spends": 0}},
        {"account": [1]},
        {"cautions": 3},
    ],
)
def test_broken_manifests_are_named(tmp_path, wrong):
    stated = manifest_of(FIRST["range-query"].release(0, SimulatedNoise(1)))
    (tmp_path / "manifest.json").write_text(json.dumps({**stated, **wrong}), encoding="utf-8")
    done = CliRunner().invoke(main, ["explain", str(tmp_path)])
    assert done.exit_code == 2, done.output
    assert "manifest.json is " in done.output


def test_no_release_there(tmp_path):
    done = CliRunner().invoke(main, ["explain", str(tmp_path)])
    assert done.exit_code == 2
    assert "is not a release: it has no manifest.json" in done.output
