"""Data included in hierdp: the flights that left New York in 2013 (CC0). PROVENANCE.md names the source."""

from pathlib import Path

FLIGHTS = Path(__file__).with_name("flights.parquet")
"""336,776 flights: ``aircraft`` (null for 2,512 flights), ``origin``, ``destination``, ``flights``."""

AIRPORTS = Path(__file__).with_name("airports.parquet")
"""The airports that have a time zone: ``airport``, ``name``, ``zone``. Four destinations are missing."""
