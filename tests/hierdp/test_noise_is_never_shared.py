"""No option of a release can reuse noise, by its signatures, its imports, and the observed draws.

The published Taxi column of Kuo et al. 2018 uses one seed in all regions (docs/kuo2018.md).
"""

import ast
import inspect
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import pytest

import hierdp
from hierdp.cli import main
from hierdp.counts.hierarchy import Hierarchy
from hierdp.counts.size_runs import Runs, SizeRuns
from hierdp.experiments.papers.kuo2018.shared_seed import OneSeed, TheirDraws
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.count_of_counts import count_of_counts
from hierdp.mechanisms.group_size import group_size
from hierdp.privacy import noise
from hierdp.privacy.noise import ExactNoise, Noise, SimulatedNoise, geometric
from hierdp.tables import GroupSizes

SEEDS = ("seed", "random", "rng", "generator", "state", "share_noise", "reuse", "draws")


def names_a_seed(name):
    return any(word in name.lower().replace("-", "_").split("_") or word == name for word in SEEDS)


def commands(command, path=()):
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*path, name))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_release_takes_a_seed(mechanism):
    assert not [name for name in MECHANISMS[mechanism].keywords if names_a_seed(name)]


def test_noise_is_exact_by_default():
    noise = inspect.signature(hierdp.release).parameters["noise"]
    assert noise.default is None
    assert noise.annotation == "Noise | None"


def test_no_command_that_releases_takes_a_seed():
    found = [(path, command) for path, command in commands(main) if "release" in path]
    assert len(found) > 3
    for path, command in found:
        options = [
            name for one in command.params for name in (one.name, *one.opts) if isinstance(one, click.Option)
        ]
        assert not [name for name in options if names_a_seed(name.strip("-"))], path


def test_exact_noise_has_nothing_to_seed_and_nothing_to_repeat():
    assert not inspect.signature(ExactNoise).parameters
    assert vars(ExactNoise()) == {}
    assert not [
        name
        for name in vars(ExactNoise)
        if not name.startswith("__") and not callable(vars(ExactNoise)[name])
    ]
    for name, method in inspect.getmembers(ExactNoise, inspect.isfunction):
        assert not [p for p in inspect.signature(method).parameters if names_a_seed(p)], name
    assert {name for name in vars(Noise) if not name.startswith("_")} <= set(dir(ExactNoise))


@pytest.mark.slow
def test_nothing_else_imports_the_shared_seed():
    """It belongs to one reproduction, which only `hierdp reproduce` loads, by the paper's name."""
    home = Path(hierdp.__file__).parent
    for file in home.rglob("*.py"):
        if (home / "experiments/papers") in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names.append((node.module or "") if isinstance(node, ast.ImportFrom) else "")
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names.append(node.value)
            assert not [n for n in names if "kuo2018" in n or "shared_seed" in n], file
            if "hierdp.experiments.papers." in names[-1] and isinstance(node, ast.Constant):
                assert file.name == "reproduce.py", file


@pytest.mark.slow
def test_a_release_does_not_load_them():
    code = """
import sys, pandas as pd, hierdp
rows = pd.DataFrame({"state": ["A", "A", "B"], "home": [1, 1, 2]})
made = hierdp.release(rows, "count-of-counts", epsilon=1.0, levels=["state"], group=["home"], max_size=5,
                      regions_from_data=True, groups_from_data=True)
assert made.ledger.private
print(sorted(name for name in sys.modules if name.startswith("hierdp.experiments.papers")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def watched(monkeypatch):
    """Every call of the one function that draws exact noise, with its input and output."""
    calls = []
    draw = noise._draw

    def spy(drawing, counts, query):
        out = draw(drawing, counts, query)
        calls.append((np.array(counts), out))
        return out

    monkeypatch.setattr(noise, "_draw", spy)
    return calls


def like_regions(depth):
    """A tree whose leaves are all equal, so that shared noise would give equal answers."""
    columns = {"state": [f"s{i // 3}" for i in range(6)], "county": [f"c{i}" for i in range(6)]}
    names = list(columns)[:depth]
    places = Hierarchy.from_columns({name: columns[name] for name in names}, names)
    one = (np.array([1, 2, 9]), np.array([40, 20, 2]))
    return SizeRuns(places, Runs.from_rows([one] * places.tree.leaves.size).summed_up(places.tree))


def drawn_apart(calls, cells):
    """Check that measurements share no draw: one draw per cell, no common memory, no similar noise."""
    added = [(out - counts).ravel() for counts, out in calls]
    assert sum(one.size for one in added) == cells
    for (_, one), (_, other) in combinations(calls, 2):
        assert not np.shares_memory(one, other)
    for one, other in combinations(added, 2):
        n = min(one.size, other.size)
        assert (one[:n] != other[:n]).any()
        assert abs(np.corrcoef(one[:n], other[:n])[0, 1]) < 0.5


@pytest.mark.parametrize(
    ("method", "cells"),
    [("Hc", 9 * 400), ("Hc2", 9 * 400), ("naive", 9 * 401), ("bottom-up", 6 * 400), ("Hg", 3 * 6 * 62)],
)
def test_no_two_regions_of_a_count_of_counts_share_a_draw(watched, method, cells):
    made = count_of_counts(like_regions(2), 1.0, method=method, max_size=400)
    assert made.ledger.private
    drawn_apart(watched, cells)


def test_no_two_levels_of_the_other_mechanisms_share_a_draw(watched):
    data = like_regions(2)
    dense = GroupSizes(data.hierarchy, data.runs.dense(60))
    for method in ("M_c^dp", "M_H^dp"):
        watched.clear()
        group_size(dense, 1.0, method=method)
        drawn_apart(watched, 9 * 61)
        # Two regions of one level do not share noise either: it is drawn cell by cell.
        for counts, out in watched:
            rows = (out - counts).reshape(-1, 61)
            assert all((a != b).any() for a, b in combinations(rows, 2))


def test_two_releases_of_the_same_table_differ():
    data = like_regions(1)
    first, second = (count_of_counts(data, 0.5, max_size=400).table for _ in range(2))
    assert not first.equals(second)


@pytest.mark.parametrize("source", [OneSeed(3), TheirDraws(3)])
def test_shared_seed_fails_these_checks(source):
    """The experiment fails every check that a release passes, and its results are marked as not private."""
    data = like_regions(2)
    made = count_of_counts(data, 1.0, source, max_size=400)
    assert not made.ledger.private
    assert "NOT private" in made.manifest()["warning"]
    counts = np.zeros(400, np.int64)
    calls = [(counts, source.draw(geometric("q", 1, 1.0), counts).answers) for _ in range(2)]
    with pytest.raises(AssertionError):
        drawn_apart(calls, 800)
    leaf = made.table[made.table.level == 2].groupby("region")["size"].apply(list)
    assert leaf.map(tuple).nunique() < 6  # equal regions get equal results


def test_simulated_noise_goes_on_from_region_to_region():
    one = SimulatedNoise(0)
    zeros = np.zeros(400, np.int64)
    drawn_apart([(zeros, one.draw(geometric("q", 1, 1.0), zeros).answers) for _ in range(4)], 1600)
