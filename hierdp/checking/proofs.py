"""Check a release's saved answers by their certificates, on the problems that its mechanism makes rerun."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from hierdp.checking.noise import check_noise
from hierdp.checking.rerun import QUERIES, Rerun
from hierdp.checking.result import FAILS, HOLDS, OPEN, REPLAY, CheckResult
from hierdp.errors import listed
from hierdp.execution import progress
from hierdp.measurements.measuring import Differs
from hierdp.mechanisms.checking import Checking
from hierdp.record.files import PROOFS
from hierdp.record.proofs import SavedStep, read
from hierdp.record.replay import NotKept, Replay
from hierdp.record.step import ACCURACY
from hierdp.record.written import LIMIT, ReleaseFolder, TooLarge
from hierdp.reports.solved import problems_of
from models import Certificate, CumulativeQIP, JointTables, Model

NOISE = "noise"
"""The line about the test of scales."""

UNREPLAYED = "the table was not made again from its measurements"

CLOSE = 1e-9
"""Relative tolerance for objectives that are not whole: floats may be added in another order."""


BOUND = 1e-7
"""Relative tolerance for bounds in floats, as in certificates; other prices give other bounds."""


def check_proofs(
    folder: Path, release: ReleaseFolder, checking: Checking | None, limit: int = LIMIT
) -> Iterator[CheckResult]:
    """Repeat the mechanism's post-processing, and check each answer on the problem that it makes."""
    rerun = None if checking is None else Rerun(checking, release)
    found = [*_check_steps(folder, release, checking, rerun, limit)]
    yield from found
    if release.manifest["budget"] is not None and all(line.check != NOISE for line in found):
        again = {line.check: line.verdict for line in found}.get(REPLAY) == HOLDS
        why = (
            "no sum was measured twice, and single counts with this noise show nothing"
            if again
            else UNREPLAYED
        )
        yield CheckResult(NOISE, OPEN, f"whether the noise has the claimed scales was not tested: {why}")
    if rerun is not None and checking is not None:
        yield rerun.queries() if checking.measures else CheckResult(QUERIES, HOLDS, "nothing was measured")


def _check_steps(
    folder: Path, release: ReleaseFolder, checking: Checking | None, rerun: Rerun | None, limit: int
) -> Iterator[CheckResult]:
    manifest, path = release.manifest, folder / PROOFS
    optimal = checking is not None and manifest["mechanism"] not in checking.rounded
    lines = list(manifest["solved"])
    if not lines:
        yield CheckResult(
            "certificates", HOLDS, "nothing was solved: the noisy counts are released unchanged"
        )
        if rerun is not None:
            replayed = _replayed(rerun, Replay(iter(())))
            yield CheckResult(REPLAY, FAILS, str(replayed)) if isinstance(replayed, NotKept) else replayed
            yield from _check_noise(rerun, replayed, manifest)
    elif not path.is_file():
        yield _without_proofs(manifest)
        if rerun is not None:
            replayed = _replayed(rerun, Replay(iter(())))  # as far as the first step
            if isinstance(replayed, CheckResult):
                needless = CheckResult(
                    REPLAY, FAILS, f"the table does not depend on the step {lines[0]['step']!r}"
                )
                yield replayed if replayed.verdict == FAILS else needless
    else:
        saved = read(path, lines, limit)
        proofs = _Proofs(saved, lines, optimal)
        yield from _check_each(proofs, rerun, manifest)


def _without_proofs(manifest: Mapping[str, Any]) -> CheckResult:
    """Whether proofs may be missing: the manifest records it if they were left out."""
    if PROOFS in manifest.get("left_out", ()):
        why = f"{PROOFS} was left out (--no-proofs), so they cannot be checked"
        return CheckResult("certificates", OPEN, why)
    why = f"the manifest claims {len(manifest['solved'])} solved steps, and there is no {PROOFS}"
    return CheckResult("certificates", FAILS, f"{why}, which it does not say was left out")


def _check_each(proofs: _Proofs, rerun: Rerun | None, manifest: Mapping[str, Any]) -> Iterator[CheckResult]:
    steps = iter(proofs)
    replayed = None if rerun is None else _replayed(rerun, Replay(steps, proofs.prove))
    for _ in steps:  # those that the mechanism did not ask for
        pass
    wrong = proofs.wrong if proofs.broken else proofs.wrong + proofs.missing
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        yield CheckResult("certificates", FAILS, wrong[0] + more)
        if isinstance(replayed, CheckResult) and replayed.verdict == FAILS:
            yield replayed
        return
    if rerun is None or replayed is None:
        unknown = f"this version does not know the mechanism {manifest['mechanism']!r}"
        yield CheckResult("certificates", OPEN, f"{unknown}, which makes the problems from the measurements")
        yield CheckResult(REPLAY, OPEN, unknown)
        return
    yield proofs.result()
    yield CheckResult(REPLAY, FAILS, str(replayed)) if isinstance(replayed, NotKept) else replayed
    yield from _check_noise(rerun, replayed, manifest)


def _check_noise(
    rerun: Rerun, replayed: CheckResult | NotKept, manifest: Mapping[str, Any]
) -> Iterator[CheckResult]:
    """Test the claimed scales by the answers; nothing if the table does not follow from them."""
    follows = isinstance(replayed, CheckResult) and replayed.verdict == HOLDS
    if follows and manifest["budget"] is not None:
        found = rerun.recorded
        yield from check_noise(found.redundant, found.recovered, manifest["budget"]["spends"])


def _replayed(rerun: Rerun, saved: Replay) -> CheckResult | NotKept:
    try:
        return CheckResult(REPLAY, HOLDS, rerun(saved))
    except NotKept as missing:
        return missing
    except Differs as differs:
        return CheckResult(REPLAY, FAILS, str(differs))
    except TooLarge:
        raise
    except Exception as error:  # an edited file may hold anything
        why = f"a file has unexpected contents: {type(error).__name__} {error}"
        return CheckResult(REPLAY, FAILS, why)


class _Proofs:
    """The saved steps of a file that is read once; `prove` checks the one that was read last.

    - optimal: whether all answers must be optimal.

    - wrong: what is wrong with any step, in words.
    - broken: whether the file cannot be read to its end.
    - read: how many steps were read.
    """

    def __init__(
        self,
        saved: Iterator[SavedStep],
        lines: list[Mapping[str, Any]],
        optimal: bool,
    ) -> None:
        self.lines = lines
        self._saved, self._optimal = saved, optimal
        self.wrong: list[str] = []
        self.broken, self.read = False, 0
        self._checked = self._problems = self._proved = 0
        self._unproved: list[str] = []

    def __iter__(self) -> Iterator[SavedStep]:
        try:
            for saved in progress.steps(self._saved, "steps checked", len(self.lines)):
                line = self.lines[self.read]
                self.read += 1
                self.wrong += _differs(saved, line)
                yield saved
                del saved  # it may be large
        except TooLarge:
            raise
        except ValueError as broken:
            self.wrong.insert(0, str(broken))
            self.broken = True

    def prove(self, saved: SavedStep, model: Model, problems: Sequence[str]) -> Certificate:
        """Check the answer to a problem, and compare it with its line in the manifest.

        Raises `Differs` if something is wrong with it, or with a step before it: the mechanism must not go on
        from there.
        """
        line = self.lines[self.read - 1]
        self.wrong += _other_problem(saved, model, problems, line)
        if self.wrong:
            raise Differs(self.ends)
        progress.watch_compiler()
        try:
            proof = model.certificate(saved.x, saved.witness)
        except Exception as error:  # a file may hold anything
            self.wrong.append(f"step {saved.name!r} cannot be checked: {type(error).__name__} {error}")
            raise Differs(self.ends) from None
        self._checked += 1
        self._problems += problems_of(line)
        self._proved += problems_of(line) * line["proved_optimal"]
        if why := _wrong(saved, model, problems, proof, line, self._optimal):
            self.wrong.append(why)
        elif not proof and isinstance(model, JointTables):
            gap = f"its answer may cost up to {proof.gap} more than the optimum"
            self._unproved.append(f"step {saved.name!r} is not proved, as the manifest says: {gap}")
        if why:
            raise Differs(self.ends)
        return proof

    @property
    def missing(self) -> list[str]:
        """Which steps are in the manifest only."""
        left = [line["step"] for line in self.lines[self.read :]]
        return [f"{PROOFS} lacks the steps {listed(left)}"] if left else []

    @property
    def ends(self) -> str:
        """Why the mechanism does not go on, in words."""
        return f"it does not follow: step {self.lines[self.read - 1]['step']!r} or one before it is wrong"

    def result(self) -> CheckResult:
        """The line of the certificates, if nothing is wrong."""
        if self._unproved:
            more = f" (and {len(self._unproved) - 1} more)" if len(self._unproved) > 1 else ""
            return CheckResult("certificates", OPEN, self._unproved[0] + more)
        proved = f"{self._proved} of {self._problems} steps proved optimal again, as the manifest says"
        if self._checked < self.read:
            others = f"the mechanism did not ask for {self.read - self._checked} more: see {REPLAY!r}"
            return CheckResult("certificates", OPEN, f"{proved}; {others}")
        return CheckResult("certificates", HOLDS, proved)


def _differs(saved: SavedStep, line: Mapping[str, Any]) -> list[str]:
    if saved.name != line["step"]:
        return [f"step {saved.name!r}: the manifest has {line['step']!r}"]
    if saved.x.size != line["variables"]:
        return [f"step {saved.name!r}: {saved.x.size} variables, the manifest says {line['variables']}"]
    return []


def _other_problem(
    saved: SavedStep, model: Model, problems: Sequence[str], line: Mapping[str, Any]
) -> list[str]:
    kind, number = type(model).__name__, len(problems) or 1
    if kind != line["model"]:
        return [f"step {saved.name!r}: a {kind}, the manifest says {line['model']}"]
    if number != problems_of(line):
        return [f"step {saved.name!r}: {number} problems, the manifest says {problems_of(line)}"]
    return []


def _wrong(
    saved: SavedStep,
    model: Model,
    problems: Sequence[str],
    proof: Certificate,
    line: Mapping[str, Any],
    optimal: bool,
) -> str:
    where = f"step {saved.name!r}"
    if problems and proof.unproved is not None:
        where += f", {problems[proof.unproved]!r}"
    if proof.contradiction:
        return f"{where}: {proof.reason}"
    if bool(proof) != line["proved_optimal"]:
        return f"{where}: {proof.reason}, but the manifest says proved_optimal is {line['proved_optimal']}"
    if not _same(str(proof.objective), line["objective"]):
        return f"{where}: its objective is {proof.objective}, the manifest says {line['objective']}"
    if proof and not _same(str(proof.bound), line["bound"], BOUND):
        return f"{where}: its bound is {proof.bound}, the manifest says {line['bound']}"
    if optimal and not proof and _gap_too_large(model, proof):
        return f"{where}: its answer may cost up to {proof.gap} more than the optimum"
    return ""


def _gap_too_large(model: Model, proof: Certificate) -> bool:
    """Whether the gap of an unproved answer exceeds what solvers' floating-point tolerances explain.

    Bounds of `CumulativeQIP` over whole numbers and of `JointTables` need not reach the optimum, so a gap is
    allowed there; the manifest says that the step is not proved optimal.
    """
    if isinstance(model, JointTables) or (isinstance(model, CumulativeQIP) and model.integer):
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
