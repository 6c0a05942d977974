"""What a terminal is told while nothing moves."""

import io

import numba
import pytest
from rich.console import Console

from hierdp import progress


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_told_once_and_on_a_terminal(monkeypatch, terminal):
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
    assert screen.file.getvalue().count("Compiling, once on this machine") == terminal
