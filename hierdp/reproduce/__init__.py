"""The papers' experiments again: their tables and figures from measured runs, beside what was published."""

from __future__ import annotations

PAPERS = {
    "fioretto2019": "Fioretto & Van Hentenryck 2019: group sizes, Table 1 and Figures 8–10",
    "boninsegna2025": "Boninsegna & Silvestri 2025: trips from origin to destination, Figures 3–6",
}
"""What `hierdp reproduce` takes; a module of this package each."""
