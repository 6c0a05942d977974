"""The general theorem beside the models' certificates: both must give the same cost and the same bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hierdp.checking.result import FAILS, GENERAL, HOLDS, OPEN, CheckResult
from hierdp.record.proofs import SavedStep
from hierdp.record.written import LIMIT
from models import Certificate
from models.witnesses.row_proofs import MOST_VARIABLES, general_proof, proofs_of

MOST_PROBLEMS = 1_000
"""Most problems that are compared by default, in all steps, those side by side included."""

BYTES_OF_A_VARIABLE = 850
"""Memory of a comparison, rounded up; measured on steps with 0.2 and 0.4 million variables."""


class GeneralCheck:
    """Compares the certificates of a release's steps with the general theorem.

    Where a witness reads as prices of the program's rows, the program gives the cost and tells whether the
    answer is feasible, and `models.lagrangian_bound` computes the bound, in whole numbers and fractions. The
    model's own certificate, cost and constraints are not used.

    - every: compare every step. Otherwise every k-th, with the least power of two k such that these are at
      most `MOST_PROBLEMS`, and have at most `MOST_VARIABLES` variables in all. Programs may have more
      variables than answers: these are limited to twice as many, evenly over the steps.
    - limit: limit on the memory, in bytes: the programs of larger steps are left out.
    """

    def __init__(self, lines: Sequence[Mapping[str, Any]], every: bool, limit: int = LIMIT) -> None:
        self.every, self.steps, self.most, self.spent = every, len(lines), limit // BYTES_OF_A_VARIABLE, 0
        self.stride = 1 if every else _stride([int(line["variables"]) for line in lines])
        self.apart = max(1, MOST_PROBLEMS // max(1, len(lines[:: self.stride])))
        self.seen = self.compared = self.in_part = 0
        self.reasons: Counter[str] = Counter()
        self.wrong: list[str] = []

    def look(self, step: SavedStep, model: Any, proof: Certificate) -> None:
        """Compare a step's certificate, if the step is in the sample; every step must be given, in order."""
        self.seen += 1
        if (self.seen - 1) % self.stride:
            return
        try:
            reason, difference = self._compared(model, step.x, proof)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # files may hold anything
            reason, difference = "", f"the general theorem cannot be applied: {type(error).__name__} {error}"
        if difference:
            self.wrong.append(f"step {step.name!r} ({type(model).__name__}): {difference}")
        elif reason:
            self.reasons[reason] += 1
        else:
            self.compared += 1

    def _compared(self, model: Any, x: Any, proof: Certificate) -> tuple[str, str]:
        """``(reason, difference)``: why there is nothing to compare, or how the proofs differ; else empty."""
        stride = 1 if self.every else self._stride_within(model, x, proof)
        cost = Fraction(0)
        for part, found in proofs_of("", model, x, proof, self._allowed, stride):
            if isinstance(found, str):
                return found, ""
            general = general_proof(*found)
            where = part.removeprefix(", ")
            if general.bound is None:
                return "", f"{where}{': ' if where else ''}by its program: {general.reason}"
            if general.bound != general.objective:
                whose = f" of {where}" if where else ""
                return "", (
                    f"the general theorem proves the bound {general.bound}, for a cost{whose} of "
                    f"{general.objective}; by its certificate, the bound is {proof.bound}"
                )
            cost += Fraction(general.objective)
        if stride > 1:
            self.in_part += 1
        elif not cost == proof.objective == proof.bound:
            return "", (
                f"the general theorem proves the cost {cost}; by its certificate, the cost is "
                f"{proof.objective} and the bound {proof.bound}"
            )
        return "", ""

    def _allowed(self, variables: int) -> bool:
        """Whether a program of this size is compared, and count it."""
        room = MOST_VARIABLES * (1 + self.seen / max(1, self.steps))
        if variables > self.most or not (self.every or self.spent + variables <= room):
            return False
        self.spent += variables
        return True

    def _stride_within(self, model: Any, x: Any, proof: Certificate) -> int:
        """Which of the problems side by side are compared: every one, or every k-th."""
        if not proof or not hasattr(model, "apart"):
            return 1
        return max(1, -(-sum(1 for _ in model.apart(x, proof.witness)) // self.apart))

    def result(self) -> Iterator[CheckResult]:
        """The line of the check; none if there were no steps."""
        if self.wrong:
            more = f" (and {len(self.wrong) - 1} more)" if len(self.wrong) > 1 else ""
            yield CheckResult(GENERAL, FAILS, self.wrong[0] + more)
            return
        if not self.seen:
            return
        words = []
        if self.compared:
            have = "steps have" if self.compared > 1 else "step has"
            words.append(f"{self.compared:,} {have} the same cost and bound by the general theorem")
        if self.stride > 1:
            words.append(f"a sample, step 1 of every {self.stride:,}; --all compares all {self.seen:,}")
        if self.in_part:
            words.append(f"in {self.in_part:,} of them, a sample of the problems side by side; or --all")
        if self.reasons:
            left = sum(self.reasons.values())
            words.append(f"{left:,} not compared: {_listed(self.reasons)}")
        yield CheckResult(GENERAL, HOLDS if self.compared else OPEN, "; ".join(words))


def _stride(sizes: Sequence[int]) -> int:
    stride = 1
    while (
        len(sizes[::stride]) > MOST_PROBLEMS
        or sum(size for size in sizes[::stride] if size <= MOST_VARIABLES) > MOST_VARIABLES
    ):
        stride *= 2
    return stride


def _listed(reasons: Counter[str]) -> str:
    """The most frequent reasons, each with its number if there are several."""
    if len(reasons) == 1:
        return next(iter(reasons))
    named = [f"{reason} ({count:,})" for reason, count in reasons.most_common(2)]
    return ", ".join(named + (["other reasons"] if len(reasons) > 2 else []))
