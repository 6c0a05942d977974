"""The papers' experiments, repeated: measured tables and figures beside the published ones."""

from __future__ import annotations

PAPERS = {
    "kuo2018": "Kuo et al. 2018: count-of-counts histograms, the tables of §6.2, Figures 1, 4, 5, 6",
    "fioretto2019": "Fioretto & Van Hentenryck 2019: group sizes, Table 1 and Figures 8–10",
    "boninsegna2025": "Boninsegna & Silvestri 2025: trips from origin to destination, Figures 3–6",
    "zhang2014": "Zhang et al. 2014: histograms by clusters, Tables 2–4 and Figures 2–5",
    "qardaji2013": "Qardaji, Yang & Li 2013: range queries, Tables 1–3 and Figures 2–4",
}
"""The papers that `hierdp reproduce` accepts; each is a package here."""
