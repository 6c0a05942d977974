"""Shared by the attacks: releases of every mechanism to attack, the command line, and the figures."""

import sys

TABLE = "town,home,n\n" + "".join(f"town{i % 5},{i},{i % 7}\n" for i in range(40))

SEEN = "--regions-from-data --groups-from-data"
MECHANISMS = {
    "group-size": f"--levels town --group home --max-size 5 --epsilon 1 {SEEN}",
    "count-of-counts": f"--levels town --group home --epsilon 1 --max-size 9 {SEEN}",
    "top-down": "--axis place=town --count n --epsilon 1 --delta 1e-8 --regions-from-data",
    "range-query": "--numbers n=0:8 --epsilon 1",
    "clustering": "--numbers n=0:8 --epsilon 1",
    "tabulation": "--levels town --attribute n=0,1,2,3,4,5,6 --epsilon 1 --delta 1e-8 --regions-from-data",
}

GIGABYTE = 1_000_000_000

FIGURES: dict[str, int] = {}
"""Figures of what the suite did, printed at its end."""


def counted(what, more=1):
    """Add to a figure."""
    FIGURES[what] = FIGURES.get(what, 0) + more


def largest(what, value):
    """Keep the largest value of a figure."""
    FIGURES[what] = max(FIGURES.get(what, 0), value)


def releasing(mechanism, out, seed, table="in.csv", more=()):
    """The arguments of `hierdp` for a release."""
    chosen = MECHANISMS[mechanism].split()
    return ["release", mechanism, str(table), *chosen, "--simulate", str(seed), "--out", str(out), *more]


def hierdp(*arguments):
    """The command that runs `hierdp` in a process of its own."""
    return [sys.executable, "-m", "hierdp", *map(str, arguments)]


def assert_no_traceback(said):
    """Check that the output contains hierdp's own messages, and no sign of a bug."""
    assert "Traceback" not in said, said
    assert "unforeseen" not in said, said
    counted("commands whose output was searched for tracebacks")
