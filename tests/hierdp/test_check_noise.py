"""If counts and their sums are both measured, noise of another scale than the budget claims is detected."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hierdp import Measurements, SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, check
from hierdp.checking.noise import LITTLE, MUCH, _evidence, _expected, _much, check_noise
from hierdp.counts.axes import Numbers
from hierdp.execution import seal
from hierdp.measurements.measurement import Measurement
from hierdp.measurements.redundant_sums import CountNoise, RedundantSums
from hierdp.privacy import noise as noises
from hierdp.privacy.budget import Spend, spends_of
from hierdp.privacy.conversion import PAPERS, papers_epsilon_of, papers_rho_of
from hierdp.privacy.noise import deviation_of
from hierdp.record import files
from hierdp.reports.release import release_report
from models import Tree
from tests.hierdp.measurements import of_tree

pytestmark = pytest.mark.slow

LAWS = [CountNoise(gaussian, scale) for gaussian in (False, True) for scale in (0.6, 0.9, 3.0, 12.5)]


def masses(law):
    """The law as whole numbers and their probabilities."""
    reach = math.ceil(12 * law.scale) + 2 if law.gaussian else math.ceil(60 * law.scale)
    at = np.arange(-reach, reach + 1)
    mass = np.exp(-(at**2) / (2 * law.scale**2) if law.gaussian else -np.abs(at) / law.scale)
    return at, mass / mass.sum()


def in_all(law, count, own=None):
    """The law of a sum of several counts, and one more with its own law."""
    _, mass = masses(law)
    found = np.ones(1)
    for _ in range(count):
        found = np.convolve(found, mass)
    if own is not None:
        found = np.convolve(found, masses(own)[1])
    return np.arange(found.size) - found.size // 2, found


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    at, mass = masses(law)
    for angle in (0.0, 0.3, 1.0, 3.1, 6.0, 20.0):
        expected = (np.cos(angle * at) * mass).sum()
        assert law.characteristic(np.array([angle]))[0] == pytest.approx(expected, abs=1e-12)
    for s in (0.01 / law.scale, 0.5 / law.scale):
        moment = math.log((np.exp(s * at) * mass).sum())
        stated = float(law.log_moment(np.array(s)))
        assert stated == pytest.approx(moment, rel=1e-9) or (law.gaussian and stated > moment)
    assert law.variance == pytest.approx((at**2 * mass).sum()) or (law.gaussian and law.scale < 1)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("own", [None, CountNoise(False, 2.0), CountNoise(True, 1.5)], ids=str)
@pytest.mark.parametrize("count", [3, 1])
def test_evidence_is_one_on_average_at_most(law, own, count):
    """Computed from the laws, not sampled. By Markov's inequality, this bounds false alarms."""
    at, mass = in_all(law, count, own)
    counts = np.array([count])
    twice = RedundantSums("", np.zeros(1), law, counts, own)
    variance = np.array([count * law.variance + (own.variance if own else 0)])
    for c in LITTLE:
        start, rate = -_expected(law, own, (count,), c)[0], c / variance
        assert (np.exp(start - rate * at.astype(float) ** 2) * mass).sum() == pytest.approx(1, rel=1e-6)
    for c in MUCH:
        found = [_much(twice, np.array([float(d)]), counts, np.sqrt(variance), c) for d in at]
        mean = (np.exp(found) * mass).sum()
        assert mean <= 1 + 1e-9
        if not law.gaussian and (own is None or not own.gaussian):
            assert mean == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("at_once", [1, 10**6])
def test_sums_of_several_numbers_of_counts_are_expected_as_each_alone(at_once, monkeypatch):
    monkeypatch.setattr("hierdp.checking.noise.AT_ONCE", at_once)
    expected, law, kinds = _expected.__wrapped__, LAWS[2], (1, 2, 5, 9)  # without what it keeps
    alone = [expected(law, None, (kind,), 4.0)[0] for kind in kinds]
    assert expected(law, None, kinds, 4.0) == pytest.approx(
        alone, rel=1e-12
    )  # of some thousand positive floats


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("shift", [0, 1, 5])
def test_no_constant_raises_the_evidence_of_too_little(law, shift):
    """If parents are chosen by their noisy counts, their own noise is treated as an arbitrary constant."""
    at, mass = in_all(law, 2)
    counts = np.array([2])
    twice = RedundantSums("", np.zeros(1), law, counts, CountNoise(False, 50.0), chosen_of=0)
    public = twice._replace(own=None, chosen_of=None)
    assert [one for one in _evidence(twice) if one[0]] == [one for one in _evidence(public) if one[0]]
    for c in LITTLE:
        variance = np.array([2 * law.variance])
        start = -_expected(law, None, (2,), c)[0]
        found = start - c * (at + shift).astype(float) ** 2 / variance
        assert (np.exp(found) * mass).sum() <= 1 + 1e-9


def test_evidence_of_too_much_allows_for_the_choice_of_parents():
    """The largest of many noisy zeros have a child: too much noise, if that choice were ignored."""
    rng, law = np.random.default_rng(1), CountNoise(False, 5.0)
    p = -math.expm1(-1 / law.scale)

    def draw(n):
        return (rng.geometric(p, n) - rng.geometric(p, n)).astype(float)

    parents = np.sort(draw(3000))[-150:]
    off, counts = parents - draw(150), np.ones(150, dtype=int)
    chosen = RedundantSums("", off, law, counts, law, chosen_of=3000)
    assert [line.verdict for line in check_noise([chosen])] == [HOLDS]
    assert [line.verdict for line in check_noise([chosen._replace(chosen_of=None)])] == [FAILS]


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("gaussian", [False, True])
def test_a_tree_of_noisy_counts(factor, gaussian):
    rng = np.random.default_rng(3)
    tree = Tree([[0] * 100, np.repeat(np.arange(100), 3)])
    true = tree.sum_up(rng.integers(0, 9, (300, 2)))
    noise = SimulatedNoise(5)
    scale = 4 * factor
    law = noises.gaussian("q", 1, 1 / (2 * scale**2)) if gaussian else noises.geometric("q", 1, 1 / scale)
    drawn = noise.draw(law, true).answers
    law = CountNoise(gaussian, 4.0)
    (line,) = check_noise(of_tree(tree, drawn, [law] * 3, "counts"))
    assert line.verdict == (HOLDS if factor == 1 else FAILS)
    if factor != 1:
        assert ("smaller" if factor < 1 else "larger") in line.why
    assert not list(check_noise(of_tree(tree, drawn, [law, None, law], "counts")))


# --- releases with a changed budget, and everything that depends on it -------------------------------------

RNG = np.random.default_rng(7)
PEOPLE = pd.DataFrame(
    {
        "x": np.minimum(RNG.gamma(2, 20, 2000), 127).astype(int),
        "s": RNG.integers(0, 4, 2000).astype(str),
        "g": RNG.integers(0, 300, 2000).astype(str),
    }
)
PEOPLE["c"] = PEOPLE.s + RNG.choice(list("abcdef"), 2000)
PEOPLE["t"] = PEOPLE.c + (PEOPLE.x % 4).astype(str)
SIZES = {"levels": ["s", "c"], "group": ["c", "g"], "max_size": 40, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip
MANY = {"levels": ["s", "c", "t"], "group": ["t", "g"], "max_size": 5, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip
TRIPS = {"axes": {"o": ["s", "c"], "d": ["s", "c"]}, "delta": 1e-6, "regions_from_data": True}
KINDS = {
    "M_c^dp": ("group-size", SIZES),
    "M_H^dp": ("group-size", {**SIZES, "method": "M_H^dp"}),
    "Hc": ("count-of-counts", SIZES),
    "naive": ("count-of-counts", {**SIZES, "method": "naive"}),
    "InfTDA": ("top-down", TRIPS),
    "two trips": ("top-down", {**TRIPS, "bounded": False, "trips": 2}),
}


ROUNDING = 1 + 1e-12
"""Room in the budget, so that the sum of rounded parts does not exceed it."""


def claim(manifest, factor):
    """Multiply the claimed noise by a factor, and change everything that follows from it."""
    stated = manifest["budget"]
    for line in stated["spends"]:
        line["scale"] *= factor
        for loss, power in (("epsilon", 1), ("rho", 2)):
            if line[loss] is not None:
                line[loss] /= factor**power
        spend = Spend(**{name: value for name, value in line.items() if name != "standard_deviation"})
        line["standard_deviation"] = deviation_of(spend)
    if stated["delta"]:
        stated["conversion"] = PAPERS  # it has an inverse in closed form
        stated["epsilon"] = papers_epsilon_of(stated["rho"] / factor**2, stated["delta"]) * ROUNDING
        stated["rho"] = papers_rho_of(stated["epsilon"], stated["delta"])
    else:
        stated["epsilon"] *= ROUNDING / factor
    stated["spent"] /= factor ** (2 if stated["delta"] else 1)


def claim_in(folder, table, factor):
    """Claim so many times the noise in every file of a written release, and seal it again."""
    manifest = json.loads((folder / files.MANIFEST).read_text())
    claim(manifest, factor)
    (folder / files.MANIFEST).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
    (folder / files.REPORT).write_text(release_report(table, manifest))
    if (folder / files.MEASUREMENTS).exists():
        answers = [found.answers for found in Measurements.read(folder / files.MEASUREMENTS)]
        claimed = map(Measurement, spends_of(manifest["budget"]), answers)
        Measurements(tuple(claimed)).write(folder / files.MEASUREMENTS)
    seal.seal(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_only_an_impossible_scale_fails(tmp_path, kind):
    mechanism, options = KINDS[kind]
    made = release(PEOPLE, mechanism, epsilon=1, noise=SimulatedNoise(4), **options)
    folder = made.write(tmp_path / "out")
    before = {line.check: line.verdict for line in check(folder)}
    assert FAILS not in before.values()
    assert before["noise"] == HOLDS
    for factor, word in ((6.0, "smaller"), (1 / 36, "larger")):  # of what was claimed just before
        claim_in(folder, made.table, factor)
        (line,) = [line for line in check(folder) if line.verdict == FAILS]
        assert line.check == "noise"
        assert f"the noise is {word} than a scale of" in line.why


class Quieter(SimulatedNoise):
    """Noise that is a sixth of the scale that it reports."""

    def draw(self, query, true):
        stated = super().draw(query, true).spend
        return replace(super().draw(replace(query, loss=6 * query.loss), true), spend=stated)


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("range-query", {"axes": [Numbers("x", 0, 128)], "branching": 2}),
        ("range-query", {"axes": [Numbers("x", 0, 128)], "branching": 2, "method": "H_b"}),
        ("count-of-counts", {**MANY, "groups_from_data": False, "group_budget": 0.5}),
        ("clustering", {"axes": [Numbers("x", 0, 128)], "method": "GS", "width": 1}),
    ],
    ids=["H_b^c", "H_b", "numbers of groups", "GS"],
)
def test_a_source_of_too_little_noise_is_found(tmp_path, mechanism, options):
    for noise, verdict in ((SimulatedNoise(4), HOLDS), (Quieter(4), FAILS)):
        made = release(PEOPLE, mechanism, epsilon=1, noise=noise, **options)
        folder = made.write(tmp_path / "out", overwrite=True, report=False)
        assert {line.verdict for line in check(folder) if line.check == "noise"} == {verdict}


def test_negligible_noise_is_not_a_fault(tmp_path):
    made = release(PEOPLE, "group-size", epsilon=1e4, noise=SimulatedNoise(4), **SIZES)
    assert FAILS not in {line.verdict for line in check(made.write(tmp_path / "out", report=False))}
