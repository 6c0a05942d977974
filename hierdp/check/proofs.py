"""The certificates of a release's steps, made again from the models and answers it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hierdp.check.found import FAILS, HOLDS, OPEN, TIE, Found
from hierdp.check.replay import Differs
from hierdp.check.ties import Tie
from hierdp.errors import listed
from hierdp.files import PROOFS
from hierdp.proofs import Kept, read
from hierdp.record import Steps
from models.instances import UnknownModel

CLOSE = 1e-9
"""Relative, of objectives that are no whole numbers: sums of floats may be taken in another order."""


def check_proofs(folder: Path, manifest: Mapping[str, Any], tie: Tie | None) -> Iterator[Found]:
    """Each step: the problem that the manifest names, its objective and certificate; then the tie."""
    told = list(manifest["solved"])
    path = folder / PROOFS
    claim = all(line["proved_optimal"] for line in told)
    if claim != manifest["all_proved_optimal"]:
        yield Found("certificates", FAILS, "the manifest's summary is not that of its steps")
    if not told:
        yield Found("certificates", HOLDS, "nothing was solved: the noisy counts are released as they are")
        if tie is not None:
            yield _tied(tie, iter(()))
    elif not path.is_file():
        yield Found(
            "certificates", OPEN, f"{PROOFS} was left out (--no-proofs), so they cannot be made again"
        )
    else:
        yield from _check_each(path, told, tie)


def _check_each(path: Path, told: list[Mapping[str, Any]], tie: Tie | None) -> Iterator[Found]:
    proofs = _Proofs(path, told)
    steps = iter(proofs)
    tied = None if tie is None else _tied(tie, steps)
    for _ in steps:  # those that the tie left
        pass
    if proofs.foreign:
        yield Found("certificates", OPEN, proofs.foreign)
        return
    left = len(told) - proofs.seen
    wrong = proofs.wrong + ([] if proofs.broken else _lost(told, proofs.seen))
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield Found("certificates", FAILS, wrong[0] + more)
        return
    again = f"{proofs.proved} of {proofs.seen} steps proved optimal again, as the manifest says"
    yield Found("certificates", HOLDS, again)
    if left > 0:
        yield Found("certificates", OPEN, f"{left} steps are in the manifest alone: too large to be kept")
    if tied is None:
        yield Found(TIE, OPEN, "this version does not know how this mechanism's table is made of its steps")
    else:
        yield tied if left <= 0 else Found(TIE, OPEN, "not all steps are kept")


def _tied(tie: Tie, steps: Iterator[Kept]) -> Found:
    """Whether the steps give the table."""
    try:
        return Found(TIE, HOLDS, tie(steps))
    except Differs as differs:
        return Found(TIE, FAILS, str(differs))
    except Exception as error:  # an edited file may hold anything
        return Found(TIE, FAILS, f"a file does not hold what it should: {type(error).__name__} {error}")


class _Proofs:
    """The kept steps one after the other, each checked on its way, in one reading of the file."""

    def __init__(self, path: Path, told: list[Mapping[str, Any]]) -> None:
        self.path, self.told = path, told
        self.seen = self.proved = 0
        self.wrong: list[str] = []
        self.foreign, self.broken = "", False

    def __iter__(self) -> Iterator[Kept]:
        """Up to the first that cannot be read; what is wrong with any is in `wrong`."""
        try:
            for kept in read(self.path):
                if self.seen == len(self.told):
                    self.wrong.append(f"{PROOFS} has more steps than the manifest")
                    return
                line = self.told[self.seen]
                self.seen += 1
                why = _wrong(kept, line)
                self.wrong += [why] if why else []
                self.proved += line["proved_optimal"]
                yield kept
        except UnknownModel as unknown:  # of whoever made the release
            if self.told[self.seen]["model"] == unknown.name:
                self.foreign = str(unknown)
            else:
                self.wrong.insert(0, f"{unknown}, nor does the manifest name it")
                self.broken = True
        except ValueError as broken:
            self.wrong.insert(0, str(broken))
            self.broken = True


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
