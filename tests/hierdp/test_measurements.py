"""A release is computed from truth plus noise of the claimed law, a draw of its own for each number.

`hierdp check` finds the noisy counts in a release and recomputes the table from them, so these are all that
the release was made from (`measurements.recovered`). A release that draws noise and then uses true counts
fails here, whatever its ledger says. See `test_measurement_mutants.py`.
"""

from functools import lru_cache

import numpy as np
import pytest
from laws_of_noise import Seeded
from measurements import CASES, Counting, Recording, Repeating, Watched, made, recovered, together
from scipy.stats import chi2

from hierdp.mechanisms.clustering.priv_tree import SPLITS
from hierdp.privacy import noise as exact
from hierdp.privacy import tabulated
from hierdp.privacy.noise import ExactNoise, SimulatedNoise, gaussian, geometric
from hierdp.privacy.tables import random_words
from tests.marks import quick

FIRST = {"M_dp^OP": 1}
"""The first draw, where the default of 1001 is outside the window of a program."""

RUNS = 25

ONE_OF_EACH = (
    "M_c^dp",
    "Hc of secret groups",
    "InfTDA unbounded",
    "SH",
    "AHP",
    "Wavelet",
    "H_b^c",
    "TopDown unbounded",
)
"""One case of each mechanism, and of the wavelet."""

SLOW = {"slow": lambda name: name not in ONE_OF_EACH}


def own_draws(name):
    """Check that each number is its truth plus its own draw, that none is left out, and none used twice."""
    source = Counting(FIRST.get(name, 1001))
    watched = Watched(source)
    found = recovered(made(name, watched))
    true, noisy = together(watched.true), together(watched.noisy)
    noisy.pop(SPLITS, None)  # whose draws are forgotten: the decisions are recorded
    assert found.keys() == noisy.keys()
    draws = []
    for query in noisy:
        here, there = found[query], noisy[query]
        if name.startswith("SH"):  # its cells are in another order
            here, there = np.sort(here), np.sort(there)
        assert np.array_equal(here, there), query
        draws.append(there - np.sort(true[query]) if name.startswith("SH") else there - true[query])
    drawn = np.sort(np.concatenate(draws))
    if not name.startswith(("SH", "PrivTree")):
        assert np.array_equal(drawn, source.first + np.arange(source.drawn))


@pytest.mark.parametrize("name", quick(CASES, **SLOW))
def test_each_number_is_its_truth_plus_its_own_draw(name):
    own_draws(name)


def follows(name):
    """Check that another table with the same public facts and answers gives the same release."""
    first = Recording(3)
    one = made(name, first)
    secret = "unbounded" in name or "persons" in name
    other = made(name, Repeating(first.answers, first.choices), seed=2, rows=71 if secret else 60)
    assert one.table.equals(other.table)
    assert one.settings == other.settings


@pytest.mark.parametrize(
    "name", quick([name for name in CASES if not name.startswith("SH") and "invariant" not in name], **SLOW)
)
def test_a_release_follows_from_public_facts_and_noisy_answers(name):
    """SH does not say which cells it measured; an invariant publishes true counts."""
    follows(name)


# --- the law of the noise, over repeated releases ---------------------------------------------------------


COARSE = 1000
"""Noise of a larger scale is tested in units, of which its scale is as many: its law there is exact, too."""


def in_units(noise, scale):
    """Noise in whole units, rounded towards 0."""
    return np.sign(noise) * (np.abs(noise) // max(1, int(scale) // COARSE))


@lru_cache
def law(kind, scale):
    """Whole numbers of units and their probabilities."""
    unit = max(1, int(scale) // COARSE)
    if unit > 1:
        assert kind.startswith("double")
        beyond = np.exp(-np.arange(1, 40 * COARSE * 2) * (unit / scale)) / (1 + np.exp(-1 / scale))
        apart = -np.diff(beyond)  # P(unit·k ≤ X < unit·(k + 1)) for k = 1, 2, …
        at = np.arange(-apart.size, apart.size + 1)
        return at, np.concatenate([apart[::-1], [1 - 2 * beyond[0]], apart])
    far = int(np.ceil(40 * scale)) + 2
    at = np.arange(-far, far + 1)
    mass = np.exp(-np.abs(at) / scale if kind.startswith("double") else -(at**2) / (2 * scale**2))
    return at, mass / mass.sum()


@lru_cache
def of_sums(kind, scale, draws):
    """P(Σ ≤ k) of the sum of draws, and of the sum of their absolute values; each from its least value."""
    at, mass = law(kind, scale)
    positive = np.concatenate([mass[at == 0], 2 * mass[at > 0]])
    found = []
    for each in (mass, positive):
        size = 1 << int(np.ceil(np.log2(draws * each.size)))
        found.append(np.cumsum(np.fft.irfft(np.fft.rfft(each, size) ** draws, size)))
    return found


def two_sided(below, at):
    """How probable a value as far out as this is; floats of a Fourier transform are right to about 1e-13."""
    return 2 * np.minimum(below[at], 1 - np.where(at > 0, below[at - 1], 0)) + 1e-13


def by_cell(kind, scale, noise):
    """The least p-value of any cell's mean and mean deviation, times their number; noise: (runs, cells)."""
    sums, sizes = of_sums(kind, scale, len(noise))
    least = len(noise) * law(kind, scale)[0][0]
    p = [two_sided(sums, noise.sum(axis=0) - least), two_sided(sizes, np.abs(noise).sum(axis=0))]
    return float(np.min(p)) * 2 * noise.shape[1]


def by_value(kind, scale, noise):
    """The p-value of a chi-square test over values, in bins of at least 5 expected draws."""
    at, mass = law(kind, scale)
    expected = mass * noise.size
    bins = np.cumsum(expected) // 5
    observed = np.bincount(noise.ravel() - at[0], minlength=at.size)
    edges = np.flatnonzero(np.diff(bins, prepend=-1))
    seen, due = np.add.reduceat(observed, edges), np.add.reduceat(expected, edges)
    return float(chi2.sf(((seen - due) ** 2 / due).sum(), max(1, seen.size - 1)))


def check_law(name, source, runs=RUNS, allowed=1e-9):
    """Check the noise of every query over repeated releases: each cell, and all of them together."""
    noise, spends, cells = {}, {}, {}
    for run in range(runs):
        watched = Watched(source(run))
        # With many rows of a person, at ε = 3 no cell would reach the threshold of SH.
        found = recovered(made(name, watched, epsilon=60.0 if name == "SH of persons" else 3.0))
        for query, true in together(watched.true).items():
            if query not in found:  # of PrivTree, decisions; a total or maximum below the least allowed one
                assert query in ("total", "largest size", "largest count", SPLITS)
                continue
            one = found[query]
            if name.startswith("SH"):
                one, true = np.sort(one), np.sort(true)
            assert one.shape == true.shape
            noise.setdefault(query, []).append(in_units(one - true, watched.spends[query].scale))
            cells.setdefault(query, []).append(true)
            spends[query] = watched.spends[query]
    for query, each in noise.items():
        spend = spends[query]
        kind = "double" if spend.noise.startswith("double") else "gaussian"
        fixed = all(np.array_equal(true, cells[query][0]) for true in cells[query])
        if fixed and not name.startswith("SH"):
            assert by_cell(kind, spend.scale, np.stack(each)) > allowed, query
        if not name.startswith("SH"):
            assert by_value(kind, spend.scale, np.concatenate(each)) > allowed, query
        else:  # sorting moves noise between cells, but keeps its sum
            draws = sum(one.size for one in each)
            assert draws
            sums = of_sums(kind, spend.scale, draws)[0]
            at = sum(int(one.sum()) for one in each) - draws * int(law(kind, spend.scale)[0][0])
            assert two_sided(sums, np.array([at]))[0] > allowed
    assert noise


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_law_of_noise_from_tables(name, monkeypatch):
    """With seeded words, so that the outcome is always the same."""
    pytest.importorskip("flint")
    monkeypatch.setattr(random_words, "system_words", Seeded(7))
    check_law(name, lambda _: tabulated.TabulatedNoise())


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_the_law_of_opendps_noise(name):
    """OpenDP takes no seed: an honest release fails about once in 10⁷ runs of all these tests."""
    check_law(name, lambda _: ExactNoise(), runs=10, allowed=1e-10)


def test_the_law_of_one_release_of_each_kind():
    for name in ("Flat", "VanillaGauss"):
        check_law(name, SimulatedNoise, runs=12)


@pytest.mark.parametrize("kind", ["double", "gaussian"])
def test_these_tests_tell_other_laws(kind):
    rng = np.random.default_rng(5)
    at, mass = law(kind, 2.0)
    right = rng.choice(at, (25, 40), p=mass)
    assert min(by_cell(kind, 2.0, right), by_value(kind, 2.0, right)) > 1e-4
    for spoil in (
        lambda noise: np.where(np.arange(40) == 3, 0, noise),  # one cell without noise
        lambda noise: noise + (np.arange(40) == 3) * 5,  # one cell with a bias
    ):
        assert by_cell(kind, 2.0, spoil(right)) < 1e-9
    for wrong in (right + 1, right // 2, np.where(right == 0, 1, right)):
        assert by_value(kind, 2.0, wrong) < 1e-9


# --- blocks of draws ---------------------------------------------------------------------------------------


def blocks_apart(source, at_once):
    """Check that six blocks, the last of one count, get noise of their own."""
    zeros = np.zeros(5 * at_once + 1, np.int64)
    draws = {
        "geometric": lambda: source.draw(geometric("q", 1, 1e-11), zeros).answers,
        "gaussian": lambda: source.draw(gaussian("q", 1.0, 1 / (2 * 9e4**2)), zeros).answers,
    }
    for name, draw in draws.items():
        lasts = []
        for _ in range(3):
            noise = draw()
            firsts = [tuple(noise[start : start + 20]) for start in range(0, 5 * at_once, at_once)]
            assert len(set(firsts)) == 5, name
            assert all(len(set(first)) > 10 for first in firsts), name
            lasts.append(int(noise[-1]))
        assert any(lasts), name  # one in 10¹⁴ honest runs fails


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_blocks_of_opendps_noise_share_no_draw_and_leave_none_out(blocks, monkeypatch):
    monkeypatch.setattr(exact, "BLOCK", 40 * blocks)
    blocks_apart(ExactNoise(), 40 * blocks)


def test_blocks_of_noise_from_tables_share_no_draw_and_leave_none_out(monkeypatch):
    pytest.importorskip("flint")
    monkeypatch.setattr(tabulated, "AT_ONCE", 40)
    blocks_apart(tabulated.TabulatedNoise(), 40)


def test_the_law_in_units_is_that_of_its_numbers():
    scale = 2500.0
    (at, mass), whole = law("double", scale), np.arange(-150_000, 150_001)
    fine = np.exp(-np.abs(whole) / scale)
    held = np.bincount(in_units(whole, scale) - at[0], weights=fine / fine.sum(), minlength=at.size)
    # Beyond 60 times the scale the tail is below 1e-26.
    assert np.abs(held - mass).max() < 1e-12
    assert abs(mass.sum() - 1) < 1e-12
