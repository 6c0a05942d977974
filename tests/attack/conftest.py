"""The figures of the attacks, printed when all are done."""

import pytest
from attacked import FIGURES, TABLE
from zygote import Zygote


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A separate working folder that contains a small table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text(TABLE)
    return tmp_path


@pytest.fixture(scope="session")
def zygote():
    """The process that forks command lines, with everything loaded."""
    with Zygote() as process:
        yield process


def pytest_terminal_summary(terminalreporter):
    """Print one line per figure."""
    if FIGURES:
        terminalreporter.section("attacks")
        for what, value in FIGURES.items():
            terminalreporter.write_line(f"{value:>12,}  {what}")
