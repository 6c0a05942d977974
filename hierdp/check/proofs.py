"""The certificates of a release's steps, made again from the models and answers it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hierdp.check.found import FAILS, HOLDS, OPEN, Found
from hierdp.check.ties import Tie
from hierdp.errors import listed
from hierdp.files import PROOFS
from hierdp.proofs import Kept, read
from hierdp.record import Steps
from models.instances import UnknownModel

CLOSE = 1e-9
"""Relative, of objectives that are no whole numbers: sums of floats may be taken in another order."""


def check_proofs(folder: Path, manifest: Mapping[str, Any], tie: Tie) -> Iterator[Found]:
    """Each step: the problem that the manifest names, its objective and certificate; then the tie."""
    told = list(manifest["solved"])
    path = folder / PROOFS
    claim = all(line["proved_optimal"] for line in told)
    if claim != manifest["all_proved_optimal"]:
        yield Found("certificates", FAILS, "the manifest's summary is not that of its steps")
    if not told:
        yield Found("certificates", HOLDS, "nothing was solved: the noisy counts are released as they are")
    elif not path.is_file():
        yield Found(
            "certificates", OPEN, f"{PROOFS} was left out (--no-proofs), so they cannot be made again"
        )
    else:
        yield from _check_each(path, told, tie)


def _check_each(path: Path, told: list[Mapping[str, Any]], tie: Tie) -> Iterator[Found]:
    wrong: list[str] = []
    proved = at = 0
    try:
        for at, kept in enumerate(read(path), start=1):
            if at > len(told):
                wrong.append(f"{PROOFS} has more steps than the manifest")
                break
            why = _wrong(kept, told[at - 1])
            wrong += [why] if why else []
            proved += told[at - 1]["proved_optimal"]
            tie.see(kept)
    except UnknownModel as foreign:  # of whoever made the release
        wrong += [] if told[at]["model"] == foreign.name else [f"{foreign}, nor does the manifest name it"]
        yield Found("certificates", FAILS if wrong else OPEN, wrong[0] if wrong else str(foreign))
        return
    except ValueError as broken:
        yield Found("certificates", FAILS, str(broken))
        return
    left = len(told) - at
    wrong += _lost(told, at)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield Found("certificates", FAILS, wrong[0] + more)
        return
    yield Found("certificates", HOLDS, f"{proved} of {at} steps proved optimal again, as the manifest says")
    if left > 0:
        yield Found("certificates", OPEN, f"{left} steps are in the manifest alone: too large to be kept")
    yield tie.verdict(complete=left <= 0)


def _lost(told: list[Mapping[str, Any]], kept: int) -> list[str]:
    """The steps that are in the manifest alone, and not too large to be kept."""
    room = Steps.MOST - sum(int(line["variables"]) for line in told[:kept])
    small = [line["step"] for line in told[kept:] if int(line["variables"]) <= room]
    return [f"{PROOFS} lacks the steps {listed(small)}"] if small else []


def _wrong(kept: Kept, line: Mapping[str, Any]) -> str:
    """In words what is wrong with a step; empty if nothing is."""
    where = f"step {kept.step!r}"
    if kept.step != line["step"] or type(kept.model).__name__ != line["model"]:
        return f"{where}, a {type(kept.model).__name__}: the manifest has {line['step']!r}, a {line['model']}"
    if kept.x.size != line["variables"]:
        return f"{where}: {kept.x.size} variables, the manifest says {line['variables']}"
    proof = kept.model.certificate(kept.x)
    if bool(proof) != line["proved_optimal"]:
        return f"{where}: {proof.reason}, and the manifest says proved_optimal is {line['proved_optimal']}"
    if not _same(str(proof.objective), line["objective"]):
        return f"{where}: its objective is {proof.objective}, the manifest says {line['objective']}"
    if proof and not _same(str(proof.bound), line["bound"]):
        return f"{where}: its bound is {proof.bound}, the manifest says {line['bound']}"
    return ""


def _same(found: str, told: str) -> bool:
    if found == told:
        return True
    try:
        return ("." in found or "e" in found) and math.isclose(float(found), float(told), rel_tol=CLOSE)
    except ValueError:
        return False
