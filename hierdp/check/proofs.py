"""The certificates of a release's steps, made again from the models and answers it keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from hierdp.check.noise import check_noise
from hierdp.check.result import FAILS, HOLDS, OPEN, REPLAY, CheckResult
from hierdp.errors import listed
from hierdp.execution import progress
from hierdp.mechanisms.checking import Checking
from hierdp.privacy.twice import Twice
from hierdp.record.files import PROOFS
from hierdp.record.proofs import SavedStep, read
from hierdp.record.replay import Differs, NotKept, Replay
from hierdp.record.step import ACCURACY, Steps
from hierdp.record.written import LIMIT, TooLarge, Written
from hierdp.reports.solved import problems_of
from models import Certificate, CumulativeQIP
from models.instances import UnknownModel

CLOSE = 1e-9
"""Relative, of objectives that are no whole numbers: sums of floats may be taken in another order."""


BOUND = 1e-7
"""Relative, of bounds in floats: a certificate asks no more of them, and other prices give others."""


Again = Callable[[Replay], str]
"""From a release's steps to words on how they give the table; raises `Differs` if they do not."""


def check_proofs(
    folder: Path, release: Written, checking: Checking | None, limit: int = LIMIT
) -> Iterator[CheckResult]:
    """Check each step, then repeat the mechanism's post-processing, if it says how."""
    manifest = release.manifest
    replay, optimal = None, False
    if checking is not None:
        replay = _again(checking, release)
        optimal = manifest["mechanism"] not in checking.rounded
    told = list(manifest["solved"])
    path = folder / PROOFS
    claim = all(line["proved_optimal"] for line in told)
    if claim != manifest["all_proved_optimal"]:
        yield CheckResult("certificates", FAILS, "the manifest's summary is not that of its steps")
    if not told:
        yield CheckResult(
            "certificates", HOLDS, "nothing was solved: the noisy counts are released as they are"
        )
        replayed, twice = (None, []) if replay is None else _replayed(replay, iter(()))
        if replayed is not None:
            yield CheckResult(REPLAY, FAILS, str(replayed)) if isinstance(replayed, NotKept) else replayed
        yield from check_noise(twice)
    elif not path.is_file():
        yield CheckResult(
            "certificates", OPEN, f"{PROOFS} was left out (--no-proofs), so they cannot be made again"
        )
    else:
        yield from _check_each(_Proofs(path, told, optimal, limit), told, replay)


def _again(checking: Checking, release: Written) -> Again:
    return lambda saved: checking.replay(saved, release.table, release.manifest, release.regions)


def _check_each(
    proofs: _Proofs, told: list[Mapping[str, Any]], replay: Again | None
) -> Iterator[CheckResult]:
    steps = iter(proofs)
    replayed, twice = (None, []) if replay is None else _replayed(replay, steps)
    for _ in steps:  # those that the replay left
        pass
    if proofs.foreign and replay is None:
        yield CheckResult("certificates", OPEN, proofs.foreign)
        return
    left = told[proofs.seen :]
    wrong = ([proofs.foreign] if proofs.foreign else []) + proofs.wrong
    wrong += [] if proofs.broken or proofs.foreign else _lost(told, proofs.seen)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield CheckResult("certificates", FAILS, wrong[0] + more)
        return
    if proofs.unwitnessed:
        old = f"{proofs.unwitnessed} of {proofs.seen} steps were made before witnesses were kept"
        yield CheckResult("certificates", OPEN, f"{old}, and their certificates need them")
    else:
        again = f"{proofs.proved} of {proofs.problems} steps proved optimal again, as the manifest says"
        yield CheckResult("certificates", HOLDS, again)
    if left:
        yield CheckResult(
            "certificates", OPEN, f"{len(left)} steps are in the manifest alone: too large to be kept"
        )
    if replayed is None:
        yield CheckResult(
            REPLAY, OPEN, "this version does not know how this mechanism's table is made of its steps"
        )
    elif isinstance(replayed, NotKept):
        yield (
            CheckResult(REPLAY, OPEN, "not all steps are kept")
            if _told(replayed, left)
            else CheckResult(REPLAY, FAILS, str(replayed))
        )
    elif left and replayed.verdict == HOLDS:
        yield CheckResult(REPLAY, FAILS, f"the table is made without the step {left[0]['step']!r}")
    else:
        yield replayed
    yield from check_noise(twice)


def _replayed(replay: Again, steps: Iterator[SavedStep]) -> tuple[CheckResult | NotKept, list[Twice]]:
    """Whether the steps give the table, or which is wanted and not there; and what was measured twice."""
    try:
        saved = Replay(steps)
        return CheckResult(REPLAY, HOLDS, replay(saved)), saved.twice
    except NotKept as missing:
        return missing, []
    except Differs as differs:
        return CheckResult(REPLAY, FAILS, str(differs)), []
    except TooLarge:
        raise
    except Exception as error:  # an edited file may hold anything
        why = f"a file does not hold what it should: {type(error).__name__} {error}"
        return CheckResult(REPLAY, FAILS, why), []


def _told(missing: NotKept, left: list[Mapping[str, Any]]) -> bool:
    """Whether a step that is not kept is one of those too large to be: by name, and no larger than can be."""
    for line in left:
        if str(line["step"]).startswith(missing.name):
            return int(line["variables"]) <= missing.most
    return False


class _Proofs:
    """The kept steps one after the other, each checked on its way, in one reading of the file."""

    def __init__(self, path: Path, told: list[Mapping[str, Any]], optimal: bool, limit: int) -> None:
        """`optimal`: that all answers are meant to be optimal."""
        self.path, self.told, self.optimal, self.limit = path, told, optimal, limit
        self.seen = self.problems = self.proved = self.unwitnessed = 0
        self.wrong: list[str] = []
        self.foreign, self.broken = "", False

    def __iter__(self) -> Iterator[SavedStep]:
        """Up to the first that cannot be read; what is wrong with any is in `wrong`."""
        try:
            for kept in read(self.path, self.told, self.limit):
                if self.seen == len(self.told):
                    self.wrong.append(f"{PROOFS} has more steps than the manifest")
                    return
                line = self.told[self.seen]
                self.seen += 1
                self._look(kept, line)
                yield kept
        except UnknownModel as unknown:  # of whoever made the release
            if self.told[self.seen]["model"] == unknown.name:
                self.foreign = str(unknown)
            else:
                self.wrong.insert(0, f"{unknown}, nor does the manifest name it")
                self.broken = True
        except TooLarge:
            raise
        except ValueError as broken:
            self.wrong.insert(0, str(broken))
            self.broken = True

    def _look(self, kept: SavedStep, line: Mapping[str, Any]) -> None:
        """Check a step; what is wrong is added to `wrong`."""
        why = _differs(kept, line)
        if not why:
            progress.watch_compiler()
            proof = kept.model.certificate(kept.x, kept.witness)
            if line["proved_optimal"] and not proof and not kept.witnessed and proof.bound is not None:
                self.unwitnessed += 1
                line = {**line, "proved_optimal": False}
            why = _wrong(kept, proof, line, self.optimal and kept.witnessed)
        self.wrong += [why] if why else []
        self.problems += problems_of(line)
        self.proved += problems_of(line) * line["proved_optimal"]


def _lost(told: list[Mapping[str, Any]], kept: int) -> list[str]:
    """The steps that are in the manifest alone, and not too large to be kept."""
    room = Steps.MOST - sum(int(line["variables"]) for line in told[:kept])
    small = [line["step"] for line in told[kept:] if int(line["variables"]) <= room]
    return [f"{PROOFS} lacks the steps {listed(small)}"] if small else []


def _differs(kept: SavedStep, line: Mapping[str, Any]) -> str:
    """In words what a step is that the manifest has otherwise; empty if nothing."""
    where = f"step {kept.step!r}"
    if kept.step != line["step"] or type(kept.model).__name__ != line["model"]:
        return f"{where}, a {type(kept.model).__name__}: the manifest has {line['step']!r}, a {line['model']}"
    if kept.x.size != line["variables"]:
        return f"{where}: {kept.x.size} variables, the manifest says {line['variables']}"
    own = int(getattr(kept.model, "problems", 1)) if kept.problems else 1
    if not (len(kept.problems) or 1) == own == problems_of(line):
        return f"{where}: {own} problems, the manifest says {problems_of(line)}"
    return ""


def _wrong(kept: SavedStep, proof: Certificate, line: Mapping[str, Any], optimal: bool) -> str:
    """In words what is wrong with a step's proof; empty if nothing is."""
    where = f"step {kept.step!r}"
    if kept.problems and proof.unproved is not None:
        where += f", {kept.problems[proof.unproved]!r}"
    if bool(proof) != line["proved_optimal"]:
        return f"{where}: {proof.reason}, and the manifest says proved_optimal is {line['proved_optimal']}"
    if not _same(str(proof.objective), line["objective"]):
        return f"{where}: its objective is {proof.objective}, the manifest says {line['objective']}"
    if proof and not _same(str(proof.bound), line["bound"], BOUND):
        return f"{where}: its bound is {proof.bound}, the manifest says {line['bound']}"
    if optimal and not proof and _misses(kept, proof):
        return f"{where}: its answer may be improved by up to {proof.gap}, and none such is released"
    return ""


def _misses(kept: SavedStep, proof: Certificate) -> bool:
    """Whether an unproved answer costs more than any release lets pass, which a solver's floats may do.

    Over whole numbers, bounds of `CumulativeQIP` need not reach the optimum: there, a gap is no fault.
    """
    if isinstance(kept.model, CumulativeQIP) and kept.model.integer:
        return False
    if proof.gap is None or not math.isfinite(proof.gap):
        return True
    exact = isinstance(proof.gap, int | Fraction)
    return proof.gap > (0 if exact else ACCURACY * max(1.0, abs(float(proof.objective))))


def _same(found: str, told: str, close: float = CLOSE) -> bool:
    if found == told:
        return True
    try:
        return ("." in found or "e" in found) and math.isclose(float(found), float(told), rel_tol=close)
    except ValueError:
        return False
