"""Messages to a terminal during long work."""

import io
import re

import numba
import pandas as pd
import pytest
from rich.console import Console

from hierdp import SimulatedNoise, evaluate, release, repair
from hierdp.analysis.methods import matrix_rows
from hierdp.analysis.queries import Regular
from hierdp.checking import check, effort
from hierdp.counts.axes import Numbers
from hierdp.execution import progress
from hierdp.privacy import noise
from hierdp.privacy.tabulated import TabulatedNoise


@pytest.mark.parametrize("terminal", [True, False])
def test_the_compiler_message_is_printed_once(monkeypatch, terminal):
    monkeypatch.setattr(progress, "_watched", False)
    screen = Console(file=io.StringIO(), force_terminal=terminal)
    progress.show_on(screen)
    try:
        progress.watch_compiler()
        progress.watch_compiler()
        for k in range(2):
            numba.njit(lambda x, k=k: x + k)(1)
    finally:
        progress.show_on(None)
    assert screen.file.getvalue().split("\n") == [progress.COMPILING, ""]


@pytest.fixture
def lines(monkeypatch):
    """The output to a file while the clock advances by a number of seconds per step."""
    clock, screen = [0.0], Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "_console", screen)

    def run(total, seconds, inside=lambda: None):
        def items():
            for k in range(total):
                clock[0] += seconds
                inside()
                yield k

        assert list(progress.steps(items(), "noise", total)) == list(range(total))
        return screen.file.getvalue().splitlines()

    return run


def test_slow_work_prints_lines_at_increasing_intervals(lines):
    expected = lines(221, 2.6)
    assert expected[0] == "noise: 1 of 221 done"  # after the second of 221, too early for an estimate
    assert expected[1] == "noise: 3 of 221 done, about 13 minutes left"
    assert all(line.startswith("noise: ") and line.endswith(" left") for line in expected[1:])
    assert 8 <= len(expected) <= 14


def test_work_of_a_few_seconds_prints_no_line(lines):
    assert lines(50, 0.1) == []


def test_work_inside_other_work_is_silent(lines):
    inner = lambda: list(progress.steps(iter(range(3)), "inner", 3))  # noqa: E731
    assert all(line.startswith("noise: ") for line in lines(100, 2.0, inner))


def test_work_inside_a_single_step_may_be_shown(lines):
    live = []
    for total in (1, 2):
        lines(total, 1.0, lambda: live.append(progress._current is not None))
    assert live == [False, True, True]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.2, []), (7.0, ["0 of 2 done, now a", "0 of 2 done, now b", "1 of 2 done, now b"])],
)
def test_a_long_first_step_says_what_it_is_doing(monkeypatch, seconds, expected):
    clock, screen = [0.0], Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "_console", screen)
    for _ in progress.steps(range(2), "models", 2):
        clock[0] += seconds
        progress.doing("a")
        clock[0] += seconds
        progress.doing("b")
    assert screen.file.getvalue().splitlines() == [f"models: {line}" for line in expected]


def test_a_bar_appears_during_a_long_first_step(monkeypatch):
    clock, screen = [0.0], Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "_console", screen)
    for _ in progress.steps(range(2), "models", 2):
        clock[0] += 1.5
        progress.doing("the solver")
        assert progress._current.live
        assert list(progress.steps(range(3), "inner", 3)) == [0, 1, 2]
    assert "models, now the solver" in screen.file.getvalue()
    assert "inner" not in screen.file.getvalue()
    assert progress._current is None


def test_nothing_is_printed_without_a_console(lines, monkeypatch):
    monkeypatch.setattr(progress, "_console", None)
    assert lines(50, 10.0) == []


@pytest.mark.parametrize(("draws", "expected"), [(noise.MANY, 1), (noise.MANY - 1, 0)])
def test_many_exact_draws_are_announced(monkeypatch, draws, expected):
    screen = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress, "_console", screen)
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    noise.announce(draws, noise.ExactNoise())
    assert screen.file.getvalue().count(f"{draws:,} draws of exact noise will take about ") == expected


def test_draw_time_estimate_uses_the_samplers_sample_size():
    """Preparing the draws takes milliseconds, longer than a thousand draws from tables."""
    drawn = []

    class Sampler:
        sample = 7

        def geometric(self, counts, *_):
            drawn.append(counts.size)

    noise.announce(noise.MANY, Sampler())
    assert drawn == [1, 7]
    assert TabulatedNoise.sample > noise.SAMPLE


def test_only_long_work_is_announced(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress, "_console", screen)
    progress.announce("A short check", 4.9)
    progress.announce("The check", 89, " on 2 cores")
    assert screen.file.getvalue() == "The check will take about 89 s on 2 cores\n"


def test_a_long_check_is_announced_and_shows_its_steps(monkeypatch, tmp_path):
    rows = pd.DataFrame({"age": range(8)})
    made = release(rows, "range-query", epsilon=1, axes=[Numbers("age", 0, 8)], noise=SimulatedNoise(1))
    folder, shown = made.write(tmp_path / "out", report=False), []
    screen = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress, "_console", screen)
    monkeypatch.setattr(effort, "_OF_A_PROBLEM", 20.0)
    monkeypatch.setattr(progress, "steps", lambda items, what, total: shown.append((what, total)) or items)
    check(folder, limit=10**9)
    assert "problems will take about 20 s" in screen.file.getvalue()
    assert ("steps checked", 1) in shown


@pytest.mark.slow
def test_long_repairs_evaluations_and_analyses_are_announced_in_plain_lines(monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(progress, "_console", screen)
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    given = pd.DataFrame({"state": ["A", "B", "A", "B"], "town": [None, None, "A1", "B1"], "n": [3, 2, 3, 2]})
    made = repair(given, levels=["state", "town"], count="n", fixed=["state"])
    evaluate(made, given[given.town.notna()], count="n")
    matrix_rows(Regular.ranges(4), 1.0, steps=2)
    expected = screen.file.getvalue()
    assert "\x1b" not in expected
    found = [re.sub(" about .*", "", line) for line in expected.splitlines()]
    for line in (
        "The repair of 5 regions will take",
        "problems solved: 1 of 2 done,",
        "The comparison of 5 counts will take",
        "levels compared: 1 of 3 done,",
        "The matrix mechanism on 4 bins will take",
        "strategies: 1 of 3 done,",
    ):
        assert line in found
