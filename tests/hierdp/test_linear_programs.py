"""Intervals by linear programs against enumeration and the closed form; unbiased estimates by their mean."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import Hierarchy, InputError, Numbers, SimulatedNoise, query, release
from hierdp import open as open_release
from hierdp.cli import main
from hierdp.mechanisms.linear_programs import Region
from hierdp.mechanisms.registry import released_by
from hierdp.mechanisms.top_down.mechanism import top_down
from hierdp.questions.intervals import accuracy_of
from hierdp.questions.tables import Questions
from hierdp.record.written import ReleaseFolder
from hierdp.tables import Flows

PEOPLE = pd.DataFrame(
    [(a, f"{a}{i}", g, 9 * i * (g == "x") + 2 * (a == "B")) for a in "AB" for i in range(3) for g in "xy"],
    columns=["county", "town", "group", "n"],
)  # fmt: skip
TABLE = {"attributes": ["group"], "attributes_from_data": True, "levels": ["county", "town"], "count": "n",
         "delta": 1e-6, "regions_from_data": True}  # fmt: skip
HOMES = pd.DataFrame(
    [(a, f"{a}{i}", f"{a}{i}{k}", k % 3 + 1) for a in "AB" for i in range(2) for k in range(6)],
    columns=["county", "town", "home", "persons"],
)


def as_written(made):
    return ReleaseFolder(made.manifest(), made.counts, dict(made.regions), made.measurements)


def selections(there, texts):
    questions = Questions(there.table, there.manifest["settings"], there.regions)
    return [questions.selection(text) for text in texts]


def flows(seed, epsilon=0.5):
    """Flows within a state are large; few go to the other's counties, most of which are released as 0."""
    rng = np.random.default_rng(4)
    names = [*(f"A{i}" for i in range(3)), *(f"B{i:x}" for i in range(12))]  # in the order of their names
    places = Hierarchy.from_columns({"state": [n[0] for n in names], "county": names}, ["state", "county"])
    counts = rng.choice([0, 0, 0, 8, 20, 300], (15, 15))
    counts[:3, 3:], counts[3:, :3] = rng.random((3, 12)) < 0.3, rng.choice([0, 40], (12, 3))
    cells = np.argwhere(counts)
    data = Flows((places, places), ("origin", "destination"), cells, counts[tuple(cells.T)])
    return counts, top_down(data, epsilon, 1e-6, SimulatedNoise(seed))


def table(seed=1, epsilon=1, **more):
    return release(
        PEOPLE, "tabulation", epsilon=epsilon, noise=SimulatedNoise(seed), method="GLS", **TABLE, **more
    )


def homes(seed=1, method="M_H^dp", epsilon=1):
    options = {"levels": ["county", "town"], "group": "home", "entities": "persons", "max_size": 4}
    options |= {"regions_from_data": True, "groups_from_data": True, "method": method}
    return release(HOMES, "group-size", epsilon=epsilon, noise=SimulatedNoise(seed), **options)


@pytest.mark.parametrize("seed", range(25))
def test_the_ends_are_the_least_and_the_largest_sum_that_keeps_all_bounds(seed):
    rng = np.random.default_rng(seed)
    size, most = int(rng.integers(1, 5)), 4
    region = Region(np.full(size, float(most)), rng.integers(0, 2, size))
    points = np.array(list(itertools.product(range(most + 1), repeat=size)))
    # Sums over runs of consecutive counts: a matrix whose linear programs have whole vertices.
    for _ in range(int(rng.integers(1, 4))):
        first = int(rng.integers(0, size))
        at = np.arange(first, int(rng.integers(first, size)) + 1)
        low = float(rng.integers(0, 6)) - 0.5
        region.keep(at, 1, low, low + float(rng.integers(0, 5)) + 0.25)
        held = points[:, at].sum(axis=1)
        points = points[(held >= low) & (held <= region.bounds[-1].high)]
    found = region.interval()
    if not points.size:
        assert found is None
        return
    sums = points @ region.wanted
    if np.all(np.diff(np.flatnonzero(region.wanted)) == 1):  # consecutive, too
        assert found == (sums.min(), sums.max())
    assert found is not None
    assert found[0] <= sums.min()
    assert found[1] >= sums.max()


def test_an_end_that_nothing_bounds_is_not_invented():
    region = Region(np.array([math.inf, 5.0]), np.array([1, 1]))
    region.keep(np.array([1]), 1, 2, 4)
    assert region.interval() == (2, math.inf)
    region.keep(np.array([0, 1]), [1, -1], -math.inf, 2)
    assert region.interval() == (2, 10)


TEXTS = [
    "origin.state=A",
    "origin=A0",
    "destination=B1",
    "origin=A0|B1; destination=B0|B2",
    "origin=A1; destination=B7",
]


def true_answers(counts):
    """Of `TEXTS`."""
    return [
        counts[:3].sum(),
        counts[0].sum(),
        counts[:, 4].sum(),
        counts[[0, 4]][:, [3, 5]].sum(),
        counts[1, 10],
    ]


def test_linear_programs_are_never_wider_than_the_closed_form_for_flows_and_narrower_somewhere():
    narrower = 0
    for seed in range(3):
        there = as_written(flows(seed, 0.2)[1])
        chosen = selections(there, TEXTS)
        closed, programs = (
            np.array([*accuracy_of(there, chosen, 0.9, method=method).values()][-2:])
            for method in ("estimate", "linear-programs")
        )
        assert np.all(programs[0] >= closed[0])
        assert np.all(programs[1] <= closed[1])
        narrower += int((programs[1] < closed[1]).sum())
    assert narrower > 0


def questions_of(kind):
    """Questions, and their true answers."""
    if kind == "flows":
        return TEXTS, true_answers(flows(0)[0])
    if kind == "table":
        texts = [
            "county=A",
            "town=A0; group=x",
            "town=A2; group=x",
            "county=B; group=y",
            "town=B1|B2; group=y",
        ]
        return texts, [27, 0, 18, 6, 4]
    return ["county=A; size=1", "town=A0; size=4", "town=B1; size=1:3", "county=B; size=2"], [4, 0, 4, 4]


@pytest.mark.parametrize("kind", ["flows", "table", "homes"])
def test_without_noise_the_true_counts_keep_all_bounds(kind):
    """Bounds that contradict are not used, which would hide wrong ones."""
    texts, truth = questions_of(kind)
    make = {
        "flows": lambda: flows(1, 1e7)[1],
        "table": lambda: table(epsilon=300),
        "homes": lambda: homes(epsilon=300),
    }
    there = as_written(make[kind]())
    source = released_by(there.manifest["mechanism"]).intervals_of(there)
    for selection, true in zip(selections(there, texts), truth, strict=True):
        region = source.region(selection, 0.1)
        if region is not None:
            low, high = region.interval()
            assert low <= true <= high <= low + 40  # half a step or one is added to each of few answers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flows", "table", "homes"])
def test_linear_programs_cover_as_often_as_they_say(kind):
    texts, truth = questions_of(kind)
    makes = {"flows": lambda seed: flows(seed)[1], "table": table, "homes": homes}
    runs, covered = 40, np.zeros(len(truth))
    for seed in range(runs):
        there = as_written(makes[kind](seed))
        found = accuracy_of(there, selections(there, texts), 0.9, method="linear-programs")
        covered += (np.array(found["lower"]) <= truth) & (truth <= np.array(found["upper"]))
    # Each is missed with a probability of at most 0.1; 4 standard deviations for these seeds.
    assert covered.min() >= 0.9 * runs - 4 * math.sqrt(0.09 * runs)


@pytest.mark.parametrize("make", [table, homes])
def test_unbiased_estimates_add_up_along_the_hierarchy(make):
    there = as_written(make())
    source = released_by(there.manifest["mechanism"]).intervals_of(there)
    towns = "|".join(sorted(name for name in there.regions["region"].names[2] if name.startswith("A")))
    whole, *parts = (
        source.unbiased(one).value
        for one in selections(there, ["county=A", *(f"town={name}" for name in towns.split("|"))])
    )
    (together,) = (source.unbiased(one).value for one in selections(there, [f"town={towns}"]))
    assert sum(parts) == pytest.approx(whole, abs=1e-3)  # a public sum has a variance of 2⁻¹⁶, not of 0
    assert together == pytest.approx(whole, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "text", "truth"),
    [
        (table, "town=A0; group=x", 0),
        (table, "county=B; group=y", 6),
        (homes, "town=A0; size=4", 0),
        (lambda seed: homes(seed, "M_c^dp"), "county=B; size=1:3", 8),
    ],
)
def test_unbiased_estimates_are_right_on_average_for_small_counts_too(make, text, truth):
    runs, values, variance = 40, [], 0.0
    for seed in range(runs):
        there = as_written(make(seed))
        source = released_by(there.manifest["mechanism"]).intervals_of(there)
        (found,) = (source.unbiased(one) for one in selections(there, [text]))
        values.append(found.value)
        variance = found.variance
    assert abs(np.mean(values) - truth) < 4 * math.sqrt(variance / runs)
    assert 0.2 < np.var(values) / variance < 2.2  # of 40 draws, 4 standard deviations: 0.9, or more


def test_the_command_adds_unbiased_estimates_and_refuses_what_it_cannot_do(tmp_path):
    _, made = flows(1, 0.2)
    path = made.write(tmp_path / "flows")
    words = ["query", str(path), "--where", "origin.state=A", "--where", "origin=A0; destination=B2"]
    done = CliRunner().invoke(
        main, [*words, "--unbiased", "--method", "linear-programs", "--confidence", "0.9"]
    )
    assert done.exit_code == 0, done.output
    assert "not known" in done.output
    found = query(path, ["origin.state=A", "origin=A0"], unbiased=True, confidence=0.9)
    assert found["unbiased"].isna().tolist() == [False, True]  # parts of the second were never measured
    assert open_release(path).query("origin.state=A", unbiased=True)["unbiased_error"].notna().all()
    with pytest.raises(InputError, match=r"no method of intervals 'programs'"):
        query(path, "origin.state=A", confidence=0.9, method="programs")
    counts = pd.DataFrame({"x": [1, 1, 3]})
    options = {"axes": [Numbers("x", 0, 4, 4)], "method": "Flat"}
    bins = release(counts, "range-query", epsilon=1, noise=SimulatedNoise(1), **options).write(tmp_path / "x")
    with pytest.raises(InputError, match="are for releases of regions"):
        query(bins, "0:2", unbiased=True)
    done = CliRunner().invoke(main, ["query", str(bins), "--range", "0:2", "--unbiased"])
    assert done.exit_code == 2
