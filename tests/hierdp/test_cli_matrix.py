"""The table of verdicts that the demo prints."""

import pytest

from hierdp.cli.common import console
from hierdp.cli.matrix import cell, print_matrix, seconds
from hierdp.verification.table import Row, Verification


def row(step="s", model="Chebyshev", backend="highs", verdict="solved", took=0.1, status="optimal", why=""):
    return Row(step, model, 9, backend, status, 1.0, 1.0, 0.0, took / 2, took / 2, 1.0, True, verdict, why)


def printed(rows, capsys, width=120):
    screen = console()
    screen.width = width
    print_matrix(screen, Verification(tuple(rows), "a sample"))
    return capsys.readouterr().out


def test_a_line_a_backend_and_a_column_a_model(capsys):
    rows = [
        row("a", backend="fast", took=1.4e-5),
        row("b", backend="fast", took=1.6e-5),
        row("a", took=0.2),
        row("b", took=2.04, verdict="stopped"),
        row("q", model="HierarchyQIP", backend="fast", took=0.00123),
        row("q", model="HierarchyQIP", verdict="unsupported"),
    ]
    lines = [line.split("  ") for line in printed(rows, capsys).splitlines()]
    cells = [[part.strip() for part in line if part.strip()] for line in lines]
    assert cells[1:4] == [
        ["backend", "2 Chebyshev", "HierarchyQIP"],
        ["fast", "solved 15 µs", "solved 1.2 ms"],
        ["highs", "stopped 1/2 1.1 s", "–"],
    ]


def test_failures_are_shown_with_their_reason(capsys):
    rows = [
        row(backend="fast"),
        row("zone", backend="osqp", verdict="failed", status="numerical", why="it ended inaccurate"),
        row("zone", backend="scs", verdict="wrong", status="optimal"),
    ]
    out = printed(rows, capsys)
    assert "failed: osqp on Chebyshev, zone: numerical: it ended inaccurate\n" in out
    assert "wrong: scs on Chebyshev, zone: optimal\n" in out


def test_lines_are_no_wider_than_the_screen(capsys):
    kinds = ("Isotonic", "Isotonic (relaxed)", "HierarchyQIP", "HierarchyQIP (relaxed)", "Chebyshev")
    rows = [row(step, kind, verdict="bound") for kind in kinds for step in "abcd"]
    rows.append(row(backend="x", verdict="failed", why="long " * 50))
    assert max(map(len, printed(rows, capsys).splitlines())) <= 120


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["solved", "solved"], "solved 100 ms"),
        (["solved", "unsupported"], "solved 100 ms"),
        (["solved", "bound"], "bound 1/2 100 ms"),
        (["stopped", "bound"], "stopped 1/2 100 ms"),
        (["failed", "stopped", "stopped"], "failed 1/3 100 ms"),
        (["failed", "wrong", "solved"], "wrong 1/3 100 ms"),
        (["unsupported"], "–"),
        ([], "–"),
    ],
)
def test_a_cell_shows_the_worst_verdict(verdicts, expected):
    assert cell([row(verdict=verdict) for verdict in verdicts])[0] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4.14e-6, "4.1 µs"),
        (0.000358, "358 µs"),
        (0.0123, "12 ms"),
        (0.578, "578 ms"),
        (2.04, "2 s"),
        (123, "123 s"),
    ],
)
def test_times(value, expected):
    assert seconds(value) == expected
