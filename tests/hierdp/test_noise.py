"""The two sources of noise: their laws and losses; only one of them is private.

By the statistical thresholds, a correct sampler fails less than once in 10⁹ runs.
"""

import dataclasses
import inspect
import math
import time

import numpy as np
import pytest
from doubles import everything_in, hierarchy
from scipy import stats

from hierdp.errors import InputError
from hierdp.execution import progress
from hierdp.measurements.measuring import MeasureTruth
from hierdp.measurements.query import Query
from hierdp.mechanisms.group_size import m_c_dp
from hierdp.mechanisms.unit import trips_of_a_person
from hierdp.privacy import noise as module
from hierdp.privacy.charging import ChargingNoise
from hierdp.privacy.noise import (
    BLOCK,
    Changes,
    Drawing,
    Drawn,
    ExactNoise,
    Law,
    SimulatedNoise,
    Threshold,
    gaussian,
    geometric,
    over,
    threshold,
)
from hierdp.tables import GroupSizes
from tests.marks import quick

DRAWS = 20_000
NEVER = 1e-12
SOURCES = {"exact": ExactNoise, "simulated": lambda: SimulatedNoise(20_130_101)}


def geometric_pmf(k, sensitivity, epsilon):
    """(1 − a)/(1 + a) a^|k|, a = e^(−ε/Δ)."""
    a = math.exp(-epsilon / sensitivity)
    return (1 - a) / (1 + a) * a ** np.abs(k)


def gaussian_pmf(k, sensitivity, rho):
    """∝ exp(−k²/2σ²), σ² = Δ²/2ρ."""
    variance = sensitivity**2 / (2 * rho)
    support = np.arange(-math.ceil(40 * variance**0.5), math.ceil(40 * variance**0.5) + 1)
    return np.exp(-(k**2) / (2 * variance)) / np.exp(-(support**2) / (2 * variance)).sum()


def draw(source, law, sensitivity, loss, counts):
    noise = SOURCES[source]()
    asked = geometric if law == "geometric" else gaussian
    return noise.draw(asked("q", sensitivity, loss), counts)


def moments(pmf, reach):
    k = np.arange(-reach, reach + 1)
    p = pmf(k)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    return (p * k**2).sum(), (p * k**4).sum()


@pytest.mark.parametrize("source", quick(SOURCES, every=3))
@pytest.mark.parametrize(
    ("law", "sensitivity", "loss"),
    quick(
        [
            ("geometric", 2, 0.7),
            ("geometric", 1, 1.0),
            ("geometric", 1, 0.05),
            ("gaussian", math.sqrt(2), 0.5),
            ("gaussian", math.sqrt(2), 0.003),
            ("gaussian", 1.0, 3.0),
        ],
        every=3,
    ),
)
def test_law(source, law, sensitivity, loss):
    true = np.arange(DRAWS) - 777
    noise = draw(source, law, sensitivity, loss, true).answers - true
    pmf = {"geometric": geometric_pmf, "gaussian": gaussian_pmf}[law]
    variance, fourth = moments(lambda k: pmf(k, sensitivity, loss), math.ceil(60 * sensitivity / loss))

    assert abs(noise.mean()) < 7.5 * math.sqrt(variance / DRAWS)
    assert abs((noise**2).mean() - variance) < 8 * math.sqrt((fourth - variance**2) / DRAWS)

    # Chi-square with bins of about half a standard deviation and two tails, all with large expected counts.
    width = max(1, round(variance**0.5 / 2))
    edge = width * max(1, math.ceil(2 * variance**0.5 / width))
    k = np.arange(-edge, edge + width)
    inner = pmf(k, sensitivity, loss).reshape(-1, width).sum(axis=1)
    tail = pmf(np.arange(edge + width, edge + width + math.ceil(80 * sensitivity / loss)), sensitivity, loss)
    low = pmf(np.arange(edge + 1, edge + 1 + math.ceil(80 * sensitivity / loss)), sensitivity, loss).sum()
    expected = np.array([low, *inner, tail.sum()]) * DRAWS
    bins = np.clip((noise + edge) // width, -1, inner.size) + 1
    seen = np.bincount(bins, minlength=inner.size + 2)
    assert expected.sum() == pytest.approx(DRAWS)
    keep = expected >= 10
    statistic = ((seen - expected)[keep] ** 2 / expected[keep]).sum()
    assert statistic < stats.chi2.isf(NEVER, keep.sum())

    # Neighbouring cells get independent noise.
    correlation = (noise[1:] * noise[:-1]).mean() / variance
    assert abs(correlation) < 8 / math.sqrt(DRAWS)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1 / 3, 1.0, 7.3, 50.0])
@pytest.mark.parametrize("sensitivity", [1, 2])
def test_pure_loss_is_opendps_and_no_more_than_requested(sensitivity, epsilon):
    import opendp.prelude as dp

    spend = ExactNoise().draw(geometric("q", sensitivity, epsilon), np.zeros(3, np.int64)).spend
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    assert spend.epsilon == dp.m.make_laplace(*space, scale=spend.scale).map(sensitivity)
    assert epsilon * (1 - 1e-9) <= spend.epsilon <= epsilon
    assert (spend.noise, spend.sensitivity, spend.rho) == ("double-geometric", sensitivity, None)
    assert spend.scale == pytest.approx(sensitivity / epsilon)


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 0.0132, 1 / 3, 5.0])
@pytest.mark.parametrize("sensitivity", [1.0, math.sqrt(2)])
def test_zcdp_loss_is_opendps_and_no_more_than_requested(sensitivity, rho):
    import opendp.prelude as dp

    spend = ExactNoise().draw(gaussian("q", sensitivity, rho), np.zeros(3, np.int64)).spend
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    assert spend.scale == pytest.approx(sensitivity / math.sqrt(2 * rho))
    assert spend.rho == dp.m.make_gaussian(*space, scale=spend.scale).map(sensitivity)
    assert rho * (1 - 1e-9) <= spend.rho <= rho
    assert (spend.noise, spend.epsilon) == ("discrete Gaussian", None)


def test_exact_noise_cannot_be_seeded():
    assert not inspect.signature(ExactNoise).parameters
    with pytest.raises(TypeError):
        ExactNoise(1)
    assert not {"seed", "rng"} & set(inspect.signature(ExactNoise.draw).parameters)
    same = np.zeros(200, np.int64)
    noises = []
    for noise in (ExactNoise(), ExactNoise()):
        np.random.seed(0)  # noqa: NPY002  — no global seed may reach it
        noises += [noise.draw(geometric("q", 1, 0.1), same).answers for _ in range(2)]
    for i, first in enumerate(noises):
        assert not any((first == second).all() for second in noises[:i])


def test_same_seed_same_bytes():
    counts = np.arange(1000)
    for law in (geometric("q", 1, 0.3), gaussian("q", 1, 0.01), gaussian("q", 1, 1e-13)):
        first, second, other = (
            SimulatedNoise(seed).draw(law, counts).answers.tobytes() for seed in (7, 7, 8)
        )
        assert first == second
        assert first != other
    one = SimulatedNoise(7)
    first, second = (one.draw(geometric("q", 1, 0.3), counts).answers for _ in range(2))
    assert (first != second).any()


def test_simulated_noise_of_a_large_scale():
    noise = SimulatedNoise(3).draw(gaussian("q", 1.0, 1e-13), np.zeros(DRAWS, np.int64)).answers
    scale = 1 / math.sqrt(2e-13)
    assert noise.std() == pytest.approx(scale, rel=0.05)


def test_simulated_noise_has_its_tails():
    noise = SimulatedNoise(3).draw(gaussian("q", 1.0, 0.005), np.zeros(10**6, np.int64)).answers  # scale 10
    assert min(noise.max(), -noise.min()) > 42  # expect 13 of a million draws beyond it on each side


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(1)], ids=["exact", "simulated"])
def test_shapes_and_large_counts_are_kept(noise):
    counts = np.array([[0, 2**53 + 1], [-(2**53) - 1, 2**60]])
    for noisy in (
        noise.draw(geometric("q", 1, 1e3), counts),  # so little noise that all of it is 0
        noise.draw(gaussian("q", 1, 1e6), counts),
    ):
        assert noisy.answers.dtype == np.int64
        assert (noisy.answers == counts).all()
        assert noisy.answers is not counts
    assert noise.draw(geometric("q", 1, 1.0), np.zeros((0,), np.int64)).answers.shape == (0,)


def test_simulated_noise_is_marked(tmp_path):
    places = hierarchy([[0, 0]])
    data = GroupSizes(places, places.tree.sum_up(np.array([[3, 1, 2], [0, 5, 1]])))
    for noise, private in ((SimulatedNoise(1), False), (ExactNoise(), True)):
        release = m_c_dp(data, 1.0, noise)
        assert [spend.private for spend in release.ledger.spends] == [private] * 2
        assert release.ledger.private is private
        assert release.manifest()["budget"]["private"] is private
        assert (release.manifest()["warning"] is None) == private
        written = everything_in(release.write(tmp_path / str(private)))
        assert ("NOT private" in written) != private
        assert ("NOT private" in (tmp_path / str(private) / "report.html").read_text()) != private


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(1)], ids=["exact", "simulated"])
def test_noisy_counts_do_not_carry_the_true_ones(noise):
    true = np.arange(1000, 1100)
    for noisy in (noise.draw(geometric("q", 1, 0.01), true), noise.draw(gaussian("q", 1.0, 1e-5), true)):
        assert isinstance(noisy, Drawn)
        assert [field.name for field in dataclasses.fields(noisy)] == ["answers", "spend", "positions"]
        assert set(vars(noisy)) == {"answers", "spend", "positions"}
        assert noisy.positions is None
        assert not np.shares_memory(noisy.answers, true)
        assert noisy.answers.base is None or not np.shares_memory(noisy.answers.base, true)
        assert (noisy.answers != true).any()
        assert {type(value) for value in dataclasses.astuple(noisy.spend)} <= {
            str, int, float, bool, type(None)
        }  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "the seed is -1: it must be a whole number, 0 or more"),
        *((seed, f"the seed must be a whole number, 0 or more, got {seed!r}") for seed in ("a", 1.5, True)),
    ],
)
def test_bad_seeds(seed, message):
    with pytest.raises(InputError, match=message):
        SimulatedNoise(seed)


def test_true_counts_are_not_changed():
    for noise in (ExactNoise(), SimulatedNoise(1)):
        true = np.arange(50)
        noise.draw(geometric("q", 1, 0.1), true)
        noise.draw(gaussian("q", 1.0, 0.1), true)
        assert (true == np.arange(50)).all()


@pytest.mark.parametrize("noise", [ExactNoise(), SimulatedNoise(1)], ids=["exact", "simulated"])
@pytest.mark.parametrize("loss", [1e-30, 1e-320, 0.0])
def test_noise_that_would_drown_everything_is_refused(noise, loss):
    with pytest.raises(InputError, match="epsilon is so small that the noise's scale is"):
        noise.draw(geometric("q", 1, loss), np.zeros(3, np.int64))
    with pytest.raises(InputError, match="epsilon is so small that the noise's scale is"):
        noise.draw(gaussian("q", 1.0, loss), np.zeros(3, np.int64))


# --- blocks on all cores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_come_back_in_order(size):
    counts = np.arange(size) * 1000 - 5
    noisy = ExactNoise().draw(gaussian("q", 1.0, 1e6), counts).answers  # so little noise that all of it is 0
    assert (noisy == counts).all()
    large = ExactNoise().draw(over("q", Changes(2, 2, 1, 1), 1e5, 2), counts + 10**6)
    assert (large.positions == np.arange(size)).all()
    assert (large.answers == counts + 10**6).all()


def test_each_block_has_noise_of_its_own():
    noisy = (
        ExactNoise().draw(gaussian("q", 1.0, 1e-4), np.zeros(6 * BLOCK, np.int64)).answers.reshape(6, BLOCK)
    )
    for i in range(6):
        for j in range(i):
            assert abs(np.corrcoef(noisy[i], noisy[j])[0, 1]) < 8 / math.sqrt(BLOCK)
    assert noisy.std(axis=1) == pytest.approx([math.sqrt(5000)] * 6, rel=0.12)


def test_threads_draw_at_the_same_time():
    """Two blocks are drawn at once; otherwise the barrier would never open."""
    import threading

    inside = threading.Barrier(2, timeout=300)

    def measure(part):
        inside.wait()
        return part

    counts = np.arange(2 * BLOCK)
    original, module.processors = module.processors, lambda: 2
    try:
        assert (module._draw(Drawing("stated", measure), counts, "q") == counts).all()
    finally:
        module.processors = original


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_ctrl_c_leaves_the_other_blocks(failure, monkeypatch):
    begun = []

    def measure(part):
        begun.append(part.size)
        if len(begun) > 1:
            time.sleep(1)  # all together would take minutes, but the failure comes long before
        return part

    def steps(items, *_):
        next(iter(items))
        raise failure

    monkeypatch.setattr(progress, "steps", steps)
    monkeypatch.setattr(module, "BLOCK", 1)
    with pytest.raises(failure):
        module._draw(Drawing("stated", measure), np.arange(200), "q")
    assert len(begun) < 100


def test_a_failing_block_fails_the_draw():
    def measure(part):
        if part[0] == 2 * BLOCK:
            raise OverflowError("no")
        return part

    with pytest.raises(OverflowError):
        module._draw(Drawing("stated", measure), np.arange(5 * BLOCK), "q")


# --- the stability histogram -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", quick([7.3, 1.0, 0.01], every=2))
@pytest.mark.parametrize("delta", quick([1e-12, 1e-8, 0.3], every=2))
@pytest.mark.parametrize("trips", [1, 2, 3, 50])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("bounded", [True, False])
def test_stable_costs_no_more_than_requested(epsilon, delta, trips, distinct, bounded):
    changes = trips_of_a_person(trips, distinct, bounded).changes(1)
    least = threshold(changes, epsilon, delta)
    noisy = ExactNoise().draw(over("q", changes, epsilon, least), np.array([5, 10**7]))
    spend = noisy.spend
    assert epsilon * (1 - 1e-9) <= spend.epsilon <= epsilon
    assert 0 < spend.delta <= delta
    assert (spend.sensitivity, spend.rho, spend.private) == (changes.in_all, None, True)
    assert spend.scale == pytest.approx(changes.in_all / epsilon)
    assert f"under {least} dropped" in spend.noise


def tail(k, scale):
    """P(noise ≥ k) for double-geometric noise."""
    a = math.exp(-1 / scale)
    return a**k / (1 + a) if k > 0 else 1 - a ** (1 - k) / (1 + a)


@pytest.mark.parametrize("source", SOURCES)
def test_law_of_stable(source):
    changes, epsilon, delta, draws = Changes(2, 2, 1, 1), 0.5, 0.01, DRAWS // 4
    least = threshold(changes, epsilon, delta)
    for true in (1, least - 3, least, least + 2):
        noisy = SOURCES[source]().draw(over("q", changes, epsilon, least), np.full(draws, true))
        assert (noisy.answers >= least).all()
        assert (np.diff(noisy.positions) > 0).all()
        p = tail(least - true, 4.0)
        assert abs(noisy.positions.size / draws - p) < 8 * math.sqrt(max(p * (1 - p), 1e-4) / draws)
    noisy = SOURCES[source]().draw(over("q", changes, epsilon, least), np.full(DRAWS, 10**6))
    away = noisy.answers - 10**6
    for k in range(-6, 7):
        p = float(geometric_pmf(k, 2, epsilon))
        assert abs((away == k).mean() - p) < 8 * math.sqrt(p / DRAWS)
    assert noisy.spend.private == (source == "exact")


@pytest.mark.parametrize("source", SOURCES)
def test_the_record_of_a_threshold_is_of_what_is_drawn(source):
    """Even if a law claims another sensitivity, or another threshold."""
    changes, drawn = Changes(2, 4, 2, 2), []
    for law in (over("q", changes, 1.0, 30), Law("q", 1, 1.0, "no noise", Threshold(changes, 30))):
        drawn.append(SOURCES[source]().draw(law, np.array([5, 10**7])).spend)
    assert drawn[0] == drawn[1]
    assert (drawn[0].sensitivity, drawn[0].noise) == (4, "double-geometric, under 30 dropped")


def test_an_unknown_noise_is_refused_before_an_account_is_charged():
    asked, charges = Query("ages", 1, 1.0, 3, lambda counts: counts, noise="laplace"), []
    noise = ChargingNoise(SimulatedNoise(1), lambda: charges.append(1) or object())
    with pytest.raises(InputError, match="ages: there is no noise 'laplace'; there are 'double-geometric'"):
        MeasureTruth(np.zeros(3, np.int64), noise)(asked)
    assert charges == []
