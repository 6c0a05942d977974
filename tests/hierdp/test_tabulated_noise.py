"""`TabulatedNoise`: the laws, losses and record of OpenDP's noise, drawn from tables.

Most draws are from seeded words, and so the same in every run. For the others, a correct sampler fails less
than once in 10⁹ runs.
"""

import inspect
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from laws_of_noise import Seeded
from scipy import stats

from hierdp import TabulatedNoise, release
from hierdp.checking import check
from hierdp.checking.result import FAILS, OPEN
from hierdp.cli import main
from hierdp.privacy import tabulated
from hierdp.privacy.noise import (
    OPENDP,
    TABLES,
    ExactNoise,
    choice,
    gaussian,
    geometric,
    opendp,
    over,
    threshold,
)
from hierdp.privacy.tables import random_words
from hierdp.privacy.tables.sampler import LARGEST_GAUSSIAN
from hierdp.privacy.threshold import Changes
from tests.marks import quick

pytest.importorskip("flint")
pytest.importorskip("cryptography")

NEVER = 1e-12
ZEROS = np.zeros(200_000, dtype=np.int64)


@pytest.fixture
def seeded(monkeypatch):
    """Words that are the same in every run."""
    monkeypatch.setattr(random_words, "system_words", Seeded(20_130_101))
    monkeypatch.setattr(tabulated, "AT_ONCE", 10**9)  # in one block, because threads cannot share the source


SCALES = [("geometric", 3.7), ("gaussian", 3.7), ("geometric", 0.4), ("gaussian", 0.4), ("gaussian", 250.0),
          ("geometric", 127.0), ("geometric", 1e4), ("geometric", 1e9), ("geometric", 1e11)]  # fmt: skip


FEWEST = 20
"""The fewest expected draws in a bin of the χ² test."""

BINS = 16
"""Number of bins within a scale's width, if it has that many whole numbers."""


@dataclass(frozen=True, eq=False)
class Bins:
    """Ranges of noise, and their probabilities.

    - low: the start of the second range; the first contains everything below.
    - width: number of whole numbers in a range; the last contains everything above.
    - shares, float array, shape (ranges,)
    """

    low: int
    width: int
    shares: np.ndarray

    @classmethod
    def of(cls, law, scale, draws):
        """Ranges with at least `FEWEST` expected draws: by the tails' bounds, then by their masses."""
        width = max(1, round(scale / BINS))
        far = scale * (
            math.log(draws / FEWEST) if law == "geometric" else math.sqrt(2 * math.log(draws / FEWEST))
        )
        number, at_most = max(1, math.ceil(far / width)), distribution(law, scale)
        while True:
            low = -number * width
            cuts = low + width * np.arange(2 * number + 1)
            below = at_most(cuts - 1)
            above = at_most(-cuts)  # P(X ≥ cut), by symmetry
            shares = np.concatenate([[below[0]], _between(below, above), [above[-1]]])
            if number == 1 or (shares * draws).min() >= FEWEST:
                return cls(low, width, shares)
            number -= 1

    def count(self, noise):
        """The number of draws in each range."""
        last = len(self.shares) - 2
        at = np.clip((noise - self.low) // self.width, -1, last) + 1
        return np.bincount(at, minlength=last + 2)

    def p_value(self, counts):
        """The p-value of χ²: how often a correct sample deviates at least as much."""
        expected = self.shares * counts.sum()
        keep = expected > 0
        off = ((counts - expected)[keep] ** 2 / expected[keep]).sum()
        return float(stats.chi2.sf(off, keep.sum() - 1))


def _between(below, above):
    """P(cut ≤ X < next cut), each computed from the smaller tail."""
    return np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))


def distribution(law, scale):
    """P(X ≤ k) in floats, for a wide range of k."""
    if law == "geometric":
        return stats.dlaplace(1 / scale).cdf
    reach = math.ceil(40 * scale) + 1
    mass = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    sums = np.cumsum(mass) / math.fsum(mass)
    return lambda k: sums[np.clip(np.asarray(k) + reach, 0, 2 * reach)]


def drawn(noise, law, scale, counts):
    if law == "geometric":
        return noise.draw(geometric("q", 1, 1 / scale), counts)
    return noise.draw(gaussian("q", 1.0, 1 / (2 * scale**2)), counts)


@pytest.mark.parametrize(("law", "scale"), quick(SCALES, first=2))
@pytest.mark.parametrize("draws", [ZEROS.size, pytest.param(5_000_000, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("seeded")
def test_the_law(law, scale, draws):
    made = drawn(TabulatedNoise(), law, scale, np.zeros(draws, dtype=np.int64))
    bins = Bins.of(law, made.spend.scale, draws)
    assert bins.p_value(bins.count(made.answers)) > NEVER
    assert len(bins.shares) > 3
    noise = made.answers.astype(float)
    assert abs((noise[1:] * noise[:-1]).mean()) < 8 * noise.var() / math.sqrt(draws)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale"), SCALES[:4])
def test_the_law_is_opendps(law, scale):
    """A χ² test of whether two samples have the same law."""
    draws = 100_000
    counts = np.zeros(draws, dtype=np.int64)
    bins = Bins.of(law, scale, draws)
    rows = [
        bins.count(drawn(noise, law, scale, counts).answers) for noise in (TabulatedNoise(), ExactNoise())
    ]
    table = np.array(rows)
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > NEVER


def test_bins_would_tell_another_law():
    for law, scale in (("geometric", 3.7), ("gaussian", 3.7)):
        made = drawn(TabulatedNoise(), law, scale, ZEROS).answers
        another = "gaussian" if law == "geometric" else "geometric"
        for other, wide in ((law, scale * 1.1), (another, scale)):
            bins = Bins.of(other, wide, ZEROS.size)
            assert bins.p_value(bins.count(made)) < NEVER
        bins = Bins.of(law, scale, ZEROS.size)
        assert bins.p_value(bins.count(np.abs(made) * np.where(np.arange(made.size) % 50, 1, -1))) < NEVER


@pytest.mark.parametrize("loss", [1e-9, 1e-3, 1 / 3, 7.3])
def test_scale_and_loss_are_those_of_opendps_map(loss):
    ours, theirs = TabulatedNoise(), ExactNoise()
    few = np.zeros(3, dtype=np.int64)
    for one, other in (
        (ours.draw(geometric("q", 2, loss), few).spend, theirs.draw(geometric("q", 2, loss), few).spend),
        (ours.draw(gaussian("q", 2.0, loss), few).spend, theirs.draw(gaussian("q", 2.0, loss), few).spend),
    ):
        assert vars(one) | {"sampler": ""} == vars(other) | {"sampler": ""}
        assert (one.sampler, other.sampler) == ("hierdp tables 1", opendp())
        assert one.private


def test_the_sampler_gets_the_scale_that_is_on_record(monkeypatch):
    """It is exact: the fraction equal to the float."""
    scales = []

    def keep(make):
        def made(scale):
            scales.append(scale)
            return make(scale)

        return made

    for name in ("double_geometric", "discrete_gaussian"):
        monkeypatch.setattr(tabulated, name, keep(getattr(tabulated, name)))
    few, noise = np.ones(3, dtype=np.int64), TabulatedNoise()
    spends = [
        noise.draw(geometric("q", 1, 0.3), few).spend,
        noise.draw(gaussian("q", 1.0, 0.3), few).spend,
        noise.draw(over("q", Changes(2, 2, 1, 1), 0.7, 40), few).spend,
    ]
    assert scales == [Fraction(spend.scale) for spend in spends]


def test_what_opendp_still_draws_is_named():
    noise, few = TabulatedNoise(), np.arange(5)
    wide = noise.draw(gaussian("q", 1.0, 1 / (2 * (2.0 * LARGEST_GAUSSIAN) ** 2)), few)
    assert wide.spend.sampler == opendp()
    assert np.abs(wide.answers).max() > 100
    spend = noise.draw(choice("q", 1, 5.0), [np.array([1, 90])]).spend
    assert spend.sampler == opendp()


@pytest.mark.usefixtures("seeded")
def test_law_of_stable():
    changes, epsilon, delta = Changes(2, 2, 1, 1), 0.5, 0.01
    least, q = threshold(changes, epsilon, delta), math.exp(-0.25)
    for true in (1, least - 3, least, least + 2):
        noisy = TabulatedNoise().draw(over("q", changes, epsilon, least), np.full(50_000, true))
        assert (noisy.answers >= least).all()
        assert (np.diff(noisy.positions) > 0).all()
        away = least - true
        share = q**away / (1 + q) if away > 0 else 1 - q ** (1 - away) / (1 + q)
        assert abs(noisy.positions.size / 50_000 - share) < 8 * math.sqrt(
            max(share * (1 - share), 1e-4) / 50_000
        )
    spends = [
        one.draw(over("q", changes, epsilon, least), np.array([5])).spend
        for one in (ExactNoise(), TabulatedNoise())
    ]
    assert vars(spends[0]) | {"sampler": ""} == vars(spends[1]) | {"sampler": ""}


def test_it_takes_no_seed_and_keeps_nothing():
    assert not inspect.signature(TabulatedNoise).parameters
    noise = TabulatedNoise()
    noise.draw(geometric("q", 1, 0.1), ZEROS)
    assert vars(noise) == {}


def test_no_two_blocks_threads_or_measurements_share_a_draw():
    def some(_):
        return TabulatedNoise().draw(geometric("q", 1, 0.01), ZEROS).answers

    with ThreadPoolExecutor(4) as pool:
        parts = [part for made in pool.map(some, range(4)) for part in np.array_split(made, 6)]
    for i, one in enumerate(parts):
        for other in parts[:i]:
            n = min(one.size, other.size)
            assert abs(np.corrcoef(one[:n], other[:n])[0, 1]) < 8 / math.sqrt(n)


def test_counts_keep_their_shape_order_and_size():
    size = 3 * tabulated.AT_ONCE + 7
    counts = np.arange(size) * 1000 - 5
    noisy = (
        TabulatedNoise().draw(gaussian("q", 1.0, 1e6), counts).answers
    )  # so little noise that all of it is 0
    assert (noisy == counts).all()
    assert noisy is not counts
    for shape in ((0,), (3, 4), (2, 0)):
        assert TabulatedNoise().draw(geometric("q", 1, 1.0), np.zeros(shape, np.int64)).answers.shape == shape
    every_other = np.arange(20)[::2]
    assert (TabulatedNoise().draw(geometric("q", 1, 1e3), every_other).answers == every_other).all()


def homes():
    rows = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
    return {"source": rows, "mechanism": "group-size", "levels": ["state"], "group": ["home"],
        "max_size": 3, "regions_from_data": True, "groups_from_data": True}  # fmt: skip


def test_a_release_names_it_in_every_line_and_is_checked(tmp_path):
    made = release(**homes(), epsilon=1.0, noise=TabulatedNoise())
    lines = made.manifest()["budget"]["spends"]
    assert {line["sampler"] for line in lines} == {"hierdp tables 1"}
    assert made.ledger.private
    report = check(made.write(tmp_path / "released"))
    assert not [found for found in report if found.verdict == FAILS]
    (privacy,) = [found for found in report if found.check == "privacy"]
    assert "all noise exact, as stated, by hierdp tables; protected" in privacy.why


def test_check_does_not_vouch_for_a_sampler_that_it_does_not_know():
    from hierdp.checking.budget import check_budget

    manifest = release(**homes(), epsilon=1.0, noise=TabulatedNoise()).manifest()
    for strange in ("dice 6", None, "hierdp tablets 1", 5):
        manifest["budget"]["spends"][0]["sampler"] = strange
        (privacy,) = [found for found in check_budget(manifest) if found.check == "privacy"]
        assert privacy.verdict == OPEN
        assert "does not know what drew the noise" in privacy.why


def test_default_noise_is_opendps():
    made = release(**homes(), epsilon=1.0)
    assert {spend.sampler for spend in made.ledger.spends} == {opendp()}


def test_other_noise_loads_none_of_it():
    code = """
import sys
import hierdp.privacy.noise
print([n for n in sys.modules if n.split(".")[0] in ("flint", "cryptography") or "privacy.tab" in n])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_account_may_be_charged_for_it(tmp_path):
    from hierdp.privacy.account import open_account

    account = open_account(tmp_path / "homes.account", "homes", 2.0, 0.0)
    made = release(**homes(), epsilon=1.0, noise=TabulatedNoise(), account=account)
    assert {spend.sampler for spend in made.ledger.spends} == {"hierdp tables 1"}
    assert made.charge is not None


@pytest.fixture
def rows(tmp_path):
    table = tmp_path / "homes.csv"
    homes()["source"].to_csv(table, index=False)
    return ["release", "group-size", str(table), "--levels", "state", "--group", "home",
            "--regions-from-data", "--groups-from-data", "--max-size", "3",
            "--epsilon", "1", "--out", str(tmp_path / "out")]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "name"), [(["--noise", "tables"], TABLES), (["--noise", "opendp"], OPENDP)]
)
def test_the_command_line_chooses_it(rows, tmp_path, options, name):
    done = CliRunner().invoke(main, [*rows, *options])
    assert done.exit_code == 0, done.output
    budget = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))["budget"]
    assert budget["private"]
    assert {line["sampler"].rpartition(" ")[0] for line in budget["spends"]} == {name}


def test_the_command_line_has_one_source_of_noise(rows, tmp_path):
    done = CliRunner().invoke(main, [*rows, "--noise", "tables", "--simulate", "1"])
    assert done.exit_code == 2
    assert "leave it out with --simulate" in done.output
    assert not (tmp_path / "out").exists()
