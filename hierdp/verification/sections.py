"""A verification as sections of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hierdp.reports.page import Bars, Section, number

if TYPE_CHECKING:
    from pandas import DataFrame

    from hierdp.verification.table import Verification

STOPPED = ["feasible", "time_limit"]
"""How solves end that were stopped at the time limit."""


def verification_section(found: Verification) -> Section:
    """The verdict of the cross-verification, and the times of the backends."""
    rows = found.frame()
    seconds = (rows["build_seconds"] + rows["solve_seconds"]).map(lambda value: float(f"{value:.3g}"))
    ran = rows.assign(seconds=seconds, stopped=rows["status"].isin(STOPPED))
    ran = ran[ran["stopped"] | rows["status"].isin(["optimal", "relaxed"])]
    times = ran.groupby("backend", sort=False).agg(
        models=("seconds", "size"), stopped=("stopped", "sum"), fastest=("seconds", "min"),
        slowest=("seconds", "max"), median=("seconds", "median"),
    ).reset_index()  # fmt: skip
    title = "Time by backend: median seconds to state and solve a model, from the fastest to the slowest"
    bars = Bars(title, times, "median", (times["fastest"], times["slowest"]))
    verdict = "No answer is wrong." if not found.disagreements else f"{len(found.disagreements)} are WRONG."
    return Section("Verified by exact backends", [verdict, found.note], pictures=[bars])


def solves_section(found: Verification) -> Section:
    """Every solve of the cross-verification."""
    return Section("Every solve", frames=[verification_frame(found)])


def verification_frame(found: Verification) -> DataFrame:
    """The columns for readers, in words and round numbers."""
    from hierdp.verification.judge import ACCURACY

    frame = found.frame().drop(columns="message")
    frame["proved"] = ["yes" if proved else "no" for proved in frame["proved"]]
    # A backend's bound is a float: a gap within its tolerance, of either sign, counts as none.
    scale = frame["objective"].abs().clip(lower=1)
    frame["gap"] = frame["gap"].mask(frame["gap"].abs() <= ACCURACY * scale, 0.0)
    for column, digits in (("objective", 9), ("bound", 9), ("gap", 3), ("ratio", 3)):
        frame[column] = [
            "" if value != value else number(value, digits) for value in frame[column].astype(float)
        ]
    for column in ("build_seconds", "solve_seconds"):
        frame[column] = [f"{value:.3g}" if value else "" for value in frame[column]]
    front = ["step", "model", "variables", "backend", "status", "verdict", "proved"]
    frame = frame[[*front, *(column for column in frame.columns if column not in front)]]
    return frame.rename(columns={"build_seconds": "build s", "solve_seconds": "solve s", "ratio": "× fast"})
