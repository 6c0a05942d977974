"""The figures of the attacks, printed when all are done."""

import pytest
from attacked import FIGURES, TABLE
from zygote import Zygote


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder of its own with a small table in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(TABLE)
    return tmp_path


@pytest.fixture(scope="session")
def zygote():
    """What forks command lines, with everything loaded."""
    with Zygote() as process:
        yield process


def pytest_terminal_summary(terminalreporter):
    """One line a figure."""
    if FIGURES:
        terminalreporter.section("attacks")
        for what, value in FIGURES.items():
            terminalreporter.write_line(f"{value:>12,}  {what}")
