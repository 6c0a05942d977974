"""Check the certificates of a release's steps again, from its saved models and answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from hierdp.check.again import Again
from hierdp.check.general import GeneralCheck
from hierdp.check.noise import check_noise
from hierdp.check.result import FAILS, HOLDS, OPEN, REPLAY, CheckResult
from hierdp.errors import listed
from hierdp.execution import progress
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.record.files import PROOFS
from hierdp.record.proofs import SavedStep, read
from hierdp.record.replay import NotKept, Replay
from hierdp.record.spool import Steps
from hierdp.record.step import ACCURACY
from hierdp.record.written import LIMIT, TooLarge, Written
from hierdp.reports.solved import problems_of
from models import Certificate, CumulativeQIP, JointTables
from models.instances import UnknownModel

CLOSE = 1e-9
"""Relative tolerance for objectives that are not whole: floats may be added in another order."""


BOUND = 1e-7
"""Relative tolerance for bounds in floats, as in certificates; other prices give other bounds."""


def check_proofs(
    folder: Path, release: Written, checking: Checking | None, limit: int = LIMIT, every: bool = False
) -> Iterator[CheckResult]:
    """Check each step, then repeat the mechanism's post-processing, if the mechanism supports that.

    Certificates are compared with the general theorem: all if `every`, otherwise in large releases a sample;
    see `GeneralCheck`.
    """
    manifest = release.manifest
    again, optimal, one_by_one = None, False, False
    if checking is not None:
        again = Again(checking, release, folder / PROOFS, limit)
        if checking.one_by_one is not None:
            one_by_one = checking.one_by_one(manifest, release.regions)
        optimal = manifest["mechanism"] not in checking.rounded
    lines = list(manifest["solved"])
    path = folder / PROOFS
    claim = all(line["proved_optimal"] for line in lines)
    if claim != manifest["all_proved_optimal"]:
        yield CheckResult("certificates", FAILS, "the manifest's summary does not agree with its steps")
    if not lines:
        yield CheckResult(
            "certificates", HOLDS, "nothing was solved: the noisy counts are released unchanged"
        )
        if again is not None:
            replayed = _replayed(again, iter(()))
            yield CheckResult(REPLAY, FAILS, str(replayed)) if isinstance(replayed, NotKept) else replayed
            yield from _check_noise(again, replayed, manifest)
    elif not path.is_file():
        yield CheckResult(
            "certificates", OPEN, f"{PROOFS} was left out (--no-proofs), so they cannot be checked"
        )
        if again is not None:
            replayed = _replayed(again, iter(()))  # as far as the first step
            if isinstance(replayed, CheckResult):
                needless = CheckResult(
                    REPLAY, FAILS, f"the table does not depend on the step {lines[0]['step']!r}"
                )
                yield replayed if replayed.verdict == FAILS else needless
    else:
        general = GeneralCheck(lines, every, limit)
        proofs = _Proofs(path, lines, optimal, limit, one_by_one, general)
        yield from _check_each(proofs, lines, again, manifest)
    if again is not None and checking is not None and checking.measures:
        yield again.queries()


def _check_each(
    proofs: _Proofs,
    lines: list[Mapping[str, Any]],
    again: Again | None,
    manifest: Mapping[str, Any],
) -> Iterator[CheckResult]:
    steps = iter(proofs)
    replayed = None if again is None else _replayed(again, steps)
    for _ in steps:  # the steps that the replay did not take
        pass
    if proofs.foreign and again is None:
        yield CheckResult("certificates", OPEN, proofs.foreign)
        return
    left = lines[proofs.seen :]
    wrong = ([proofs.foreign] if proofs.foreign else []) + proofs.wrong
    wrong += [] if proofs.broken or proofs.foreign else _missing_steps(lines, proofs.seen)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield CheckResult("certificates", FAILS, wrong[0] + more)
        yield from proofs.general.result()
        return
    if proofs.unwitnessed:
        old = f"{proofs.unwitnessed} of {proofs.seen} steps were saved by a version without witnesses"
        yield CheckResult("certificates", OPEN, f"{old}, which their certificates need")
    elif proofs.unproved:
        more = f" (and {len(proofs.unproved) - 1} more)" if len(proofs.unproved) > 1 else ""
        yield CheckResult("certificates", OPEN, proofs.unproved[0] + more)
    else:
        proved = f"{proofs.proved} of {proofs.problems} steps proved optimal again, as the manifest says"
        yield CheckResult("certificates", HOLDS, proved)
    yield from proofs.general.result()
    if left:
        yield CheckResult(
            "certificates",
            OPEN,
            f"{len(left)} steps are listed in the manifest only, because they were too large to save",
        )
    if again is None or replayed is None:
        why = "this version does not know how this mechanism computes its table from its steps"
        yield CheckResult(REPLAY, OPEN, why)
        return
    if isinstance(replayed, NotKept):
        yield (
            CheckResult(REPLAY, OPEN, "not all steps were saved")
            if _was_too_large(replayed, left)
            else CheckResult(REPLAY, FAILS, str(replayed))
        )
    elif left and replayed.verdict == HOLDS:
        yield CheckResult(REPLAY, FAILS, f"the table does not depend on the step {left[0]['step']!r}")
    else:
        yield replayed
    yield from _check_noise(again, replayed, manifest)


def _check_noise(
    again: Again, replayed: CheckResult | NotKept, manifest: Mapping[str, Any]
) -> Iterator[CheckResult]:
    """Test the claimed scales by the answers; nothing if the table does not follow from them."""
    follows = isinstance(replayed, CheckResult) and replayed.verdict == HOLDS
    if follows and manifest["budget"] is not None:
        found = again.recorded
        yield from check_noise(found.twice, found.recovered, manifest["budget"]["spends"])


def _replayed(again: Again, steps: Iterator[SavedStep]) -> CheckResult | NotKept:
    """Whether the steps give the table, or which step is missing."""
    try:
        return CheckResult(REPLAY, HOLDS, again(Replay(steps)))
    except NotKept as missing:
        return missing
    except Differs as differs:
        return CheckResult(REPLAY, FAILS, str(differs))
    except TooLarge:
        raise
    except Exception as error:  # an edited file may hold anything
        why = f"a file has unexpected contents: {type(error).__name__} {error}"
        return CheckResult(REPLAY, FAILS, why)


def _was_too_large(missing: NotKept, left: list[Mapping[str, Any]]) -> bool:
    """Whether a missing step is among those that were too large to save: by its name and its size."""
    for line in left:
        if str(line["step"]).startswith(missing.name):
            return int(line["variables"]) <= missing.most
    return False


class _Proofs:
    """Iterate over the saved steps and check each of them, reading the file once."""

    def __init__(
        self,
        path: Path,
        lines: list[Mapping[str, Any]],
        optimal: bool,
        limit: int,
        one_by_one: bool,
        general: GeneralCheck,
    ) -> None:
        """`optimal`: whether all answers must be optimal; `one_by_one`: see `hierdp.record.proofs.read`."""
        self.path, self.lines, self.optimal, self.limit = path, lines, optimal, limit
        self.one_by_one, self.general = one_by_one, general
        self.seen = self.problems = self.proved = self.unwitnessed = 0
        self.wrong: list[str] = []
        self.unproved: list[str] = []
        self.foreign, self.broken = "", False

    def __iter__(self) -> Iterator[SavedStep]:
        """Stop at the first step that cannot be read; `wrong` says what is wrong with any step."""
        try:
            saved = read(self.path, self.lines, self.limit, self.one_by_one)
            for kept in progress.steps(saved, "steps checked", len(self.lines)):
                line = self.lines[self.seen]
                self.seen += 1
                self._check_step(kept, line)
                yield kept
                del kept  # it may be large
        except UnknownModel as unknown:  # a model of the release's author
            if self.lines[self.seen]["model"] == unknown.name:
                self.foreign = str(unknown)
            else:
                self.wrong.insert(0, f"{unknown}, nor does the manifest name it")
                self.broken = True
        except TooLarge:
            raise
        except ValueError as broken:
            self.wrong.insert(0, str(broken))
            self.broken = True

    def _check_step(self, kept: SavedStep, line: Mapping[str, Any]) -> None:
        """Check a step; add what is wrong to `wrong`."""
        why = _differs(kept, line)
        if not why:
            progress.watch_compiler()
            proof = kept.model.certificate(kept.x, kept.witness)
            if line["proved_optimal"] and not proof and not kept.witnessed and proof.bound is not None:
                self.unwitnessed += 1
                line = {**line, "proved_optimal": False}
            why = _wrong(kept, proof, line, self.optimal and kept.witnessed)
            if not why and not proof and isinstance(kept.model, JointTables):
                gap = f"its answer may cost up to {proof.gap} more than the optimum"
                self.unproved.append(f"step {kept.step!r} is not proved, as the manifest says: {gap}")
            self.general.look(kept, proof)
        self.wrong += [why] if why else []
        self.problems += problems_of(line)
        self.proved += problems_of(line) * line["proved_optimal"]


def _missing_steps(lines: list[Mapping[str, Any]], kept: int) -> list[str]:
    """Steps that are in the manifest only, although they were not too large to save."""
    room = Steps.MOST - sum(int(line["variables"]) for line in lines[:kept])
    room = Steps.MOST if room < 0 else room  # then steps were saved one by one, and only larger ones left out
    small = [line["step"] for line in lines[kept:] if int(line["variables"]) <= room]
    return [f"{PROOFS} lacks the steps {listed(small)}"] if small else []


def _differs(kept: SavedStep, line: Mapping[str, Any]) -> str:
    """How a step differs from its line in the manifest, in words; empty if it does not."""
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
    """What is wrong with a step's proof, in words; empty if nothing is."""
    where = f"step {kept.step!r}"
    if kept.problems and proof.unproved is not None:
        where += f", {kept.problems[proof.unproved]!r}"
    if proof.contradiction:
        return f"{where}: {proof.reason}"
    if bool(proof) != line["proved_optimal"]:
        return f"{where}: {proof.reason}, but the manifest says proved_optimal is {line['proved_optimal']}"
    if not _same(str(proof.objective), line["objective"]):
        return f"{where}: its objective is {proof.objective}, the manifest says {line['objective']}"
    if proof and not _same(str(proof.bound), line["bound"], BOUND):
        return f"{where}: its bound is {proof.bound}, the manifest says {line['bound']}"
    if optimal and not proof and _gap_too_large(kept, proof):
        return f"{where}: its answer may cost up to {proof.gap} more than the optimum"
    return ""


def _gap_too_large(kept: SavedStep, proof: Certificate) -> bool:
    """Whether the gap of an unproved answer exceeds what solvers' floating-point tolerances explain.

    Bounds of `CumulativeQIP` over whole numbers and of `JointTables` need not reach the optimum, so a gap is
    allowed there; the manifest says that the step is not proved optimal.
    """
    if isinstance(kept.model, JointTables) or (isinstance(kept.model, CumulativeQIP) and kept.model.integer):
        return False
    if proof.gap is None or not math.isfinite(proof.gap):
        return True
    exact = isinstance(proof.gap, int | Fraction)
    return proof.gap > (0 if exact else ACCURACY * max(1.0, abs(float(proof.objective))))


def _same(found: str, claimed: str, close: float = CLOSE) -> bool:
    if found == claimed:
        return True
    try:
        return ("." in found or "e" in found) and math.isclose(float(found), float(claimed), rel_tol=close)
    except ValueError:
        return False
