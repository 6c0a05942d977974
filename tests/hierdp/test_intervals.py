"""Intervals by parametric bootstrap: repeatable, from released counts, and off where coverage failed."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import InputError, SimulatedNoise, release
from hierdp.analysis.utility import error_bound_by_nodes
from hierdp.cli import main
from hierdp.mechanisms.registry import released_by
from hierdp.questions import intervals
from hierdp.questions.intervals import Intervals, class_of, coverage, deviations
from hierdp.questions.tables import Questions

TRIPS = pd.DataFrame(
    [(f"{a}{i}", a, f"{b}{j}", b, 400 + 100 * i) for a in "AB" for i in (0, 1) for b in "AB" for j in (0, 1)],
    columns=["from", "from_state", "to", "to_state", "n"],
)  # fmt: skip
AXES = {"origin": ["from_state", "from"], "destination": ["to_state", "to"]}
TRIP_OPTIONS = {"axes": AXES, "count": "n", "delta": 1e-6, "regions_from_data": True}
TABLE_OPTIONS = {
    "attributes": ["to_state"],
    "attributes_from_data": True,
    "levels": ["from_state", "from"],
    "count": "n",
    "delta": 1e-6,
    "regions_from_data": True,
}


def trips(method="InfTDA", **more):
    noise = SimulatedNoise(1)
    return release(TRIPS, "top-down", epsilon=1, noise=noise, method=method, **{**TRIP_OPTIONS, **more})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("top-down", {**TRIP_OPTIONS, "method": "TDA", "shares": [1, 2, 3, 4], "first": "origin"}),
        ("top-down", {**TRIP_OPTIONS, "bounded": False, "trips": 2}),
        ("tabulation", {**TABLE_OPTIONS, "method": "BlueDown"}),
    ],
)
def test_counts_are_released_again_by_the_same_mechanism(mechanism, options):
    made = release(TRIPS, mechanism, epsilon=1e6, noise=SimulatedNoise(1), **options)
    function = released_by(made.mechanism).released_again
    again = function(made.table, made.manifest(), made.regions, SimulatedNoise(2))
    pd.testing.assert_frame_equal(again, made.table)  # next to no noise: the released counts come back
    options["method"] = made.mechanism
    less = release(TRIPS, mechanism, epsilon=1, noise=SimulatedNoise(1), **options)
    first = function(less.table, less.manifest(), less.regions, SimulatedNoise(2))
    assert not first.equals(less.table)
    pd.testing.assert_frame_equal(
        first, function(less.table, less.manifest(), less.regions, SimulatedNoise(2))
    )


def test_an_interval_is_the_spread_of_second_releases_with_its_coverage():
    made = trips(axes={"origin": ["from_state"], "destination": ["to_state"]})
    texts = ["origin=A; destination=B", "origin=A", "destination=A"]
    settings = made.manifest()["settings"]
    questions = Questions(made.table, settings, made.regions)
    answers = [questions.ask(text) for text in texts]
    found = Intervals(made.table, made.manifest(), made.regions, times=20, seed=5).of(texts, answers)
    function = released_by("InfTDA").released_again
    second = [
        function(made.table, made.manifest(), made.regions, SimulatedNoise(5 * 1_000_003 + number))
        for number in range(20)
    ]
    values = [Questions(table, settings, made.regions).ask(texts[0]).estimate for table in second]
    away = 1.645 * np.sqrt(np.mean((np.array(values) - answers[0].estimate) ** 2))
    assert (found[0].low, found[0].high) == (
        np.floor(answers[0].estimate - away),
        np.ceil(answers[0].estimate + away),
    )
    assert found[0].in_words.endswith(" %")
    scales = [spend.scale for spend in made.ledger.spends]
    assert found[0].bound == error_bound_by_nodes(scales, [2, 4], 0.05)
    assert found[2].bound == error_bound_by_nodes(scales[:1], [2], 0.05)
    assert answers[1].cells > 1
    assert np.isnan(found[1].bound)  # the bound is on single counts


def test_classes_of_size_and_where_coverage_fails(monkeypatch):
    estimate, error = np.array([0, 1, 3, 9, 90, 5]), np.array([2, 2, 2, 2, 2, 0])
    assert class_of(estimate, error).tolist() == [0, 1, 2, 3, 5, 5]
    assert deviations(np.array([1.0]), np.array([[1], [4]])).tolist() == [np.sqrt(4.5)]
    rows = [("m", False, 3, 500, 0.84), ("m", False, 3, 500, 0.9), ("m", False, 4, 500, 0.9)]
    rows += [
        ("m", False, 5, 500, 0.91),
        ("m", False, 5, 500, 0.88),
        ("m", False, 5, 9, 0.1),
        ("m", False, 1, 500, 1.0),
    ]
    table = pd.DataFrame(rows, columns=["method", "sum", "class", "counts", "covered"])
    table["positive"], table["covered_positive"] = table["counts"], table["covered"]
    monkeypatch.setattr(intervals, "measured", lambda: table)
    assert coverage("m", 90.0, 2.0, False) == (0.88, 0.91)  # rows of few counts do not count
    assert coverage("m", 9.0, 2.0, False) is None  # too low
    assert coverage("m", 1.0, 2.0, False) is None  # too low for larger counts
    assert coverage("m", 90.0, 2.0, True) is None  # not measured
    assert coverage("other", 90.0, 2.0, False) is None
    table["covered_positive"] = 0.8
    assert coverage("m", 90.0, 2.0, False) is None  # positive counts are covered too rarely


def test_small_counts_have_no_interval_with_the_measured_coverage():
    for method in intervals.measured()["method"].unique():
        assert coverage(method, 1e6, 1.0, False) is not None
    for method in ("InfTDA", "TDA", "TDA_L2"):
        assert coverage(method, 0.0, 1.0, False) is None
        assert coverage(method, 3.0, 1.0, False) is None


def test_releases_without_intervals_say_so():
    made = trips("VanillaGauss")
    with pytest.raises(InputError, match="there are no intervals for VanillaGauss"):
        Intervals(made.table, made.manifest(), made.regions)
    with pytest.raises(InputError, match="too few"):
        Intervals(made.table, made.manifest(), made.regions, times=3)


@pytest.mark.slow
def test_the_command_prints_intervals(tmp_path):
    trips().write(tmp_path / "out")

    def run(*words):
        done = CliRunner().invoke(
            main, ["query", str(tmp_path / "out"), *words, "--interval", "--times", "20"]
        )
        assert done.exit_code == 0, done.output
        return done.stdout

    words = ["--where", "origin=A1; destination=B0", "--where", "origin=A"]
    head, first, _ = run(*words, "--csv").splitlines()
    assert head == "query,estimate,standard_error,low,high,coverage,bound"
    assert "–" in first
    assert "not known" in run(*words)
