"""The environment that every test may rely on, wherever the tests are started from."""

import gc
import os
import signal
import threading
import zlib

import duckdb
import hypothesis
import pytest

from hierdp.execution import progress
from hierdp.tables import databases
from models.arithmetic import kernels


def pytest_addoption(parser):
    """`--share`, which `make test-all SHARE=…` and `make test PART=…` pass on."""
    parser.addoption("--share", default="1/1", help="a share of the tests: 2/3 is the second of three")


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other shares; names decide, so each test is in one share."""
    number, shares = map(int, config.option.share.split("/"))
    chosen = [item for item in items if zlib.crc32(item.nodeid.encode()) % shares == number - 1]
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def pytest_configure(config):
    """Let Python run kernels for longer in the quick tests: most use tiny arrays, and compiling takes longer.

    The slow tests compile kernels when a release would.
    """
    if "not slow" in config.option.markexpr:
        kernels.PATIENCE_SECONDS = kernels.LOADING_SECONDS = 60.0
        kernels.SMALL, kernels.LINEAR_TIMES = 30_000, 1
        kernels.REORDERS = ""


def pytest_collection():
    """Do not search what is being collected for garbage: thousands of tests are made, and all are kept."""
    gc.disable()


def pytest_collection_finish():
    """From now on collect garbage, but not among the tests and modules."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Skip files whose tests all have a mark that is deselected."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    marks = [m for m in ("slow", "attack", "spark") if f"not {m}" in config.option.markexpr]
    text = collection_path.read_text(encoding="utf-8") if marks else ""
    return any(f"\npytestmark = pytest.mark.{m}\n" in text for m in marks) or None


hypothesis.settings.register_profile("hierdp", max_examples=30)
hypothesis.settings.load_profile("hierdp")


SIGNALS = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""These act as in a terminal. Background jobs, `nohup` and some CI runners start programs with them ignored,
and every program that a test starts would inherit that."""


@pytest.fixture(autouse=True, scope="session")
def usual_signals():
    """Signals act as they do in a terminal."""
    if threading.current_thread() is not threading.main_thread():
        yield  # if a plugin runs the tests in another thread, signals cannot be set
        return
    before = {number: signal.signal(number, usual) for number, usual in SIGNALS.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


TERMINAL_VARIABLES = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""Variables that change the printed tables that tests read."""


@pytest.fixture(autouse=True, scope="session")
def usual_output():
    """Output has the width of a pipe and no colours."""
    with pytest.MonkeyPatch.context() as patch:
        for name in TERMINAL_VARIABLES:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="session")
def compiled_before():
    """Commands run in this process do not mention compiling, whether or not kernels are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_watched", True)
        yield


@pytest.fixture(autouse=True, scope="session")
def usual_umask():
    """New files are readable by everyone and written by their owner."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True, scope="session")
def one_duckdb():
    """All reads in this process use one DuckDB, as starting another for each takes 35 ms of CPU time."""
    shared = ":memory:tests"
    with pytest.MonkeyPatch.context() as patch, duckdb.connect(shared, config={"temp_directory": ""}):
        patch.setattr(databases, "_IN_MEMORY", shared)
        yield


@pytest.fixture(autouse=True, scope="session")
def one_second_release():
    """A manifest's simulated errors come from one more release in place of five."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hierdp.questions.bias.TIMES", 1)
        yield
