"""Progress of long work on a terminal and in a file: what is printed, by the seconds that each step takes."""

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


class Screen(Console):
    """A console in memory, with a clock that only `run` advances."""

    def __init__(self, terminal):
        super().__init__(file=io.StringIO(), force_terminal=terminal, width=100)
        self.now = 0.0

    def run(self, total, *parts):
        """The lines of a loop. A step takes all seconds of `parts`, and names each part: a, b, …"""
        for _ in progress.steps(range(total), "work", total):
            for name, seconds in zip("abc", parts, strict=False):
                self.now += seconds
                if len(parts) > 1:
                    progress.doing(name)
                assert list(progress.steps(iter("xyz"), "inner", 3)) == ["x", "y", "z"]
        return self.lines

    @property
    def text(self):
        return self.file.getvalue()

    @property
    def lines(self):
        return self.text.splitlines()


@pytest.fixture
def screen(monkeypatch, request):
    terminal = getattr(request, "param", False)
    console = Screen(terminal)
    monkeypatch.setattr(progress.time, "monotonic", lambda: console.now)
    progress.show_on(console)
    yield console
    progress.show_on(None)


on_a_terminal = pytest.mark.parametrize("screen", [True], indirect=True, ids=["terminal"])


@pytest.mark.parametrize(
    ("total", "parts", "expected"),
    [
        (50, [0.1], []),
        (1, [99.0], []),
        (2, [0.2, 0.2], []),
        (2, [7.0, 7.0], ["0 of 2 done, now a", "0 of 2 done, now b", "1 of 2 done, now b"]),
        (3, [30.0], ["1 of 3 done, about 60 s left", "2 of 3 done, about 30 s left"]),
        (4, [2.0], ["1 of 4 done, about 6 s left"]),
        (12, [0.9], ["2 of 12 done, about 9 s left", "8 of 12 done, about 4 s left"]),
        (3, [2.0], []),  # less than five seconds are left
    ],
)
def test_lines_of_a_loop_in_a_file(screen, total, parts, expected):
    assert screen.run(total, *parts) == [f"work: {line}" for line in expected]


def test_slow_work_prints_lines_at_increasing_intervals(screen):
    first, second, *others = screen.run(221, 2.6)
    assert first == "work: 1 of 221 done"  # too early for an estimate
    assert second == "work: 3 of 221 done, about 9 minutes left"
    assert all(re.fullmatch("work: .* left", line) for line in others)
    assert [int(line.split()[1]) for line in others] == [7, 15, 31, *range(55, 221, 24)]


@pytest.mark.parametrize("total", [1, 2])
def test_only_the_outermost_loop_is_shown_unless_it_has_one_step(screen, total):
    for _ in progress.steps(range(total), "outer", total):
        for _ in progress.steps(range(3), "inner", 3):
            screen.now += 30
    assert ("inner: 1 of 3 done, about 60 s left" in screen.lines) == (total == 1)


@on_a_terminal
def test_a_bar_appears_during_a_long_first_step_and_disappears(screen):
    for _ in progress.steps(range(2), "models", 2):
        screen.now += 0.9
        progress.doing("the start")
        screen.now += 0.9
        progress.doing("the solver")
        for _ in progress.steps(range(3), "inner", 3):
            screen.now += 2.0
    assert "models, now the solver" in screen.text
    assert screen.text.index("models") == screen.text.index("models, now the solver")
    assert "1/2" in screen.text
    assert "inner" not in screen.text
    assert screen.text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # shows the cursor, erases the bar


def test_nothing_is_printed_without_a_console(screen):
    progress.show_on(None)
    progress.announce("The check", 1000)
    assert screen.run(50, 10.0) == []


@pytest.mark.parametrize("screen", [True, False], indirect=True, ids=["terminal", "file"])
def test_the_message_about_compiling_is_printed_once(screen, monkeypatch):
    monkeypatch.setattr(progress, "_watched", False)
    for added in range(2):
        progress.watch_compiler()
        numba.njit(lambda x, added=added: x + added)(1)
    assert screen.lines == [progress.COMPILING]


class Sampler:
    """Records how many draws are requested at once."""

    sample = 7

    def __init__(self):
        self.draws = []

    def draw(self, query, true):
        del query
        self.draws.append(true.size)


def test_only_long_work_is_announced(screen):
    progress.announce("A short check", 4.9)
    progress.announce("The check", 89, " on 2 cores")
    assert screen.lines == ["The check will take about 89 s on 2 cores"]


def test_many_exact_draws_are_announced(screen, monkeypatch):
    sampler = Sampler()
    noise.announce(noise.MANY, sampler)
    assert sampler.draws == [1, 7]  # the first draw loads the library
    assert TabulatedNoise.sample > noise.SAMPLE
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    for draws in (noise.MANY - 1, noise.MANY):
        noise.announce(draws, noise.ExactNoise())
    (line,) = screen.lines
    assert line.startswith(f"{noise.MANY:,} draws of exact noise will take about ")


def test_a_long_check_is_announced_and_shows_its_steps(screen, monkeypatch, tmp_path):
    rows = pd.DataFrame({"age": range(8)})
    released = release(rows, "range-query", epsilon=1, axes=[Numbers("age", 0, 8)], noise=SimulatedNoise(1))
    folder, loops = released.write(tmp_path / "out", report=False), []
    monkeypatch.setattr(effort, "_OF_A_PROBLEM", 20.0)
    monkeypatch.setattr(progress, "steps", lambda items, what, total: loops.append((what, total)) or items)
    check(folder, limit=10**9)
    assert "problems will take about 20 s" in screen.text
    assert ("steps checked", 1) in loops


@pytest.mark.slow
def test_long_repairs_evaluations_and_analyses_are_announced_in_plain_lines(screen, monkeypatch):
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    table = pd.DataFrame({"state": ["A", "B", "A", "B"], "town": [None, None, "A1", "B1"], "n": [3, 2, 3, 2]})
    repaired = repair(table, levels=["state", "town"], count="n", fixed=["state"])
    evaluate(repaired, table[table.town.notna()], count="n")
    matrix_rows(Regular.ranges(4), 1.0, steps=2)
    assert "\x1b" not in screen.text
    assert {re.sub(" about .*", "", line) for line in screen.lines} >= {
        "The repair of 5 regions will take",
        "problems solved: 1 of 2 done,",
        "The comparison of 5 counts will take",
        "levels compared: 1 of 3 done,",
        "The matrix mechanism on 4 bins will take",
        "strategies: 1 of 3 done,",
    }
