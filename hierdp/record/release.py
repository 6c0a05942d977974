"""A release: tables to publish, with the record of what was spent, solved and proved."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from numpy.typing import NDArray

from hierdp.counts.hierarchy import Hierarchy
from hierdp.errors import InputError
from hierdp.execution import folder, progress, seal
from hierdp.privacy.budget import Ledger
from hierdp.privacy.noise import deviation_of
from hierdp.record import files
from hierdp.versions import versions
from models import Certificate, Model
from models.arithmetic.exact import Number
from models.certificate import Witness

if TYPE_CHECKING:
    from pandas import DataFrame

    from solvers import Solution

ENTRIES = (
    *("title", "note", "mechanism", "warning", "created", "budget", "settings", "taken_as_public", "holds"),
    *("standard_errors", "solved", "all_proved_optimal", "csv_safe", "versions"),
)
"""What every manifest has, and nothing else."""


ACCURACY = 1e-4
"""Relative, beyond that of any solver in floats: a claimed optimum that costs so much too much is wrong."""


class NotProved(RuntimeError):
    """A fast path gave an answer that its certificate does not prove: a bug in hierdp, and no release."""


class NotSolved(RuntimeError):
    """A step was not solved, by a solver of the user's choice or at all; nothing is released."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        """It may come from another process."""
        return type(self), (self.status, str(self))


def solved(name: str, found: Solution, limit: float | None = None) -> Solution:
    """What a solver of choice found, within a time limit in seconds.

    Raises
    ------
    NotSolved
        If that is not an optimal answer.
    """
    if found.status != "optimal" or found.x is None:
        late = found.status in ("time_limit", "feasible")
        of = "" if limit is None else f"the step's time limit is {limit:g} s; "
        more = f"{of}give it more time (time_limit, --time-limit), or take another backend" if late else ""
        why = [found.status, *filter(None, (found.message, more))]
        raise NotSolved(found.status, f"{name}: {found.backend}: {'; '.join(why)}")
    return found


class Answered(Protocol):
    """What is known of an answer: a `solvers.Solution`, or what a release kept of one."""

    @property
    def x(self) -> NDArray[Any] | None:
        """The answer, in the model's own shape."""

    @property
    def objective(self) -> Number | None:
        """The model's objective there."""

    @property
    def bound(self) -> Number | None:
        """A lower bound on the optimum."""

    @property
    def certificate(self) -> Certificate | None:
        """What the model says of it."""

    @property
    def witness(self) -> Witness | None:
        """What the certificate takes beside the answer; None where the answer is enough."""

    @property
    def solve_seconds(self) -> float:
        """How long it took to find."""


@dataclass(frozen=True, eq=False)
class Step:
    """One post-processing problem that a release met: a model of noisy counts, and its proved answer."""

    name: str
    model: Model
    solution: Answered

    @classmethod
    def solve(cls, name: str, model: Model) -> Step:
        """Solve by the fast path.

        Raises
        ------
        NotProved
            If the certificate does not prove the answer optimal.
        NotSolved
            If there is no answer.
        """
        from solvers import solve

        progress.watch_compiler()
        solution = solve(model)
        if solution.status == "infeasible":
            raise NotSolved("infeasible", f"{name} has no answer: {solution.message}")
        if solution.status != "optimal":
            raise NotProved(f"{name}: {solution.status}; {solution.message}. Please report this.")
        return cls(name, model, solution)

    @property
    def proved(self) -> Proved:
        """What the manifest says of it."""
        proof, x = self.solution.certificate, self.solution.x
        return Proved(
            self.name,
            type(self.model).__name__,
            int(x.size) if x is not None else 0,
            str(self.solution.objective),
            str(self.solution.bound if proof is None or proof.bound is None else proof.bound),
            bool(proof),
            round(self.solution.solve_seconds, 6),
        )


def upheld(
    name: str, model: Model, claimed: Solution, fast: Callable[[Model], Solution] | None = None
) -> Step:
    """The step that a solver of choice calls optimal, with what is proved of its answer, and the witness.

    If that is no proof of optimality, the answer is accepted when it costs no more than that of `fast`.

    Raises
    ------
    NotSolved
        If it costs more: the solver's claim is false, and nothing is released.
    """
    from solvers import prove, solve

    proof, witness = claimed.certificate, claimed.witness
    if proof is None:
        alone = model.certificate(claimed.x)
        proof = alone if alone else prove(model, claimed.x)
        witness = None if proof.bound == alone.bound else proof.witness
    if not proof:
        better = (fast or solve)(model)
        if better.x is not None and _under(better.objective, proof.objective):
            lie = f"{claimed.backend} calls its answer optimal, and there are better ones"
            raise NotSolved("error", f"{name}: {lie} ({proof.reason}); choose another solver")
    return Step(name, model, replace(claimed, certificate=proof, witness=witness))


def _under(better: Number | None, claimed: Number) -> bool:
    """Whether the first is truly less: exactly for whole numbers, beyond any solver's accuracy for others."""
    if isinstance(better, int) and isinstance(claimed, int):
        return better < claimed
    return better is not None and float(better) < float(claimed) - ACCURACY * max(1.0, abs(float(claimed)))


@dataclass(frozen=True)
class Proved:
    """A solved problem without its arrays: a line of the manifest."""

    step: str
    model: str
    variables: int
    objective: str
    bound: str
    proved_optimal: bool
    seconds: float


Solving = Callable[[str, Model], Step]
"""How a problem, by the name it has in a release, is solved: `Step.solve`, or else an answer looked up."""


class Steps:
    """Steps as they are solved; where they grow too large to be kept, what was proved of the rest."""

    MOST = 10_000_000
    """Variables of all the steps kept: some 250 MB with data, answers and prices."""

    def __init__(self) -> None:
        self.kept: list[Step] = []
        self.proved: list[Proved] = []
        self._room = self.MOST

    def solve(self, name: str, model: Model) -> Step:
        """`Step.solve`, and keep it."""
        step = Step.solve(name, model)
        self.add(step)
        return step

    def add(self, step: Step) -> None:
        """Keep a step, or what was proved of it."""
        proved = step.proved
        if proved.variables <= self._room:
            self._room -= proved.variables
            self.kept.append(step)
        else:
            self.proved.append(proved)


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What a mechanism hands back. It holds no true counts.

    Attributes
    ----------
    mechanism : str
        By the paper's name.
    table : DataFrame
        The released counts, in a column `count`, or, beside region and size, `groups`.
    ledger : Ledger
        The budget, the neighbouring relation, every measurement.
    steps : tuple of Step
        Every post-processing problem with its proved answer.
    settings : mapping
        The mechanism's public parameters.
    without_arrays : tuple of Proved
        Post-processing problems that were solved and proved, too, but are too large to be kept whole.
    regions : mapping of str to Hierarchy
        The regions, which are public, by axis; of a release with one hierarchy as "region".
    taken_as_public : mapping of str to str
        What the publisher says, in words, of where public facts such as the regions come from. Nothing in a
        release depends on it.
    """

    mechanism: str
    table: DataFrame
    ledger: Ledger
    steps: tuple[Step, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    without_arrays: tuple[Proved, ...] = ()
    regions: Mapping[str, Hierarchy] = field(default_factory=dict)
    taken_as_public: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """In a line: the tables are long."""
        spent = f"ε = {self.ledger.epsilon:g}" + (f", δ = {self.ledger.delta:g}" if self.ledger.delta else "")
        proved = sum(line.proved_optimal for line in self.proved)
        private = "" if self.ledger.private else "; simulated noise: NOT private"
        steps = f"{proved:,} of {len(self.proved):,} steps proved optimal"
        return f"Release({self.mechanism}: {len(self.table):,} rows, {spent}, {steps}{private})"

    @property
    def proved(self) -> tuple[Proved, ...]:
        """A line a post-processing problem, kept whole or not."""
        return (*(step.proved for step in self.steps), *self.without_arrays)

    def taking_as_public(self, **words: str) -> Self:
        """The same release, with more of what it takes as public in its manifest."""
        return replace(self, taken_as_public={**self.taken_as_public, **words})

    def finest(self) -> DataFrame | None:
        """The counts of the last level, with a column for each level of regions, as the data may have them.

        None where the release has no regions.
        """
        return files.finest(self.table, self.regions)

    @cached_property
    def holds(self) -> dict[str, bool | None]:
        """What is so of the counts; see `hierdp.check.counts`."""
        from hierdp.check.counts import holds

        return holds(self.table, self.settings, self.regions)

    def manifest(
        self, title: str | None = None, note: str | None = None, csv_safe: bool = False
    ) -> dict[str, Any]:
        """What a reader needs to judge the release; JSON-ready, and safe to publish.

        `title` and `note` are the publisher's own words, for the report; `csv_safe` says how the CSVs are
        written.
        """
        check_words(title=title, note=note)
        return {
            "title": title,
            "note": note,
            "mechanism": self.mechanism,
            "warning": None if self.ledger.private else WARNING,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "budget": _with_deviations(self.ledger.as_dict(), self.ledger),
            "settings": dict(self.settings),
            "taken_as_public": dict(self.taken_as_public),
            "holds": self.holds,
            "standard_errors": KNOWN if "standard_error" in self.table else NOT_KNOWN,
            "solved": [asdict(line) for line in self.proved],
            "all_proved_optimal": all(line.proved_optimal for line in self.proved),
            "csv_safe": csv_safe,
            "versions": {"python": platform.python_version(), **dict(versions())},
        }

    def write(
        self,
        path: str | Path,
        overwrite: bool = False,
        report: bool = True,
        proofs: bool = True,
        title: str | None = None,
        note: str | None = None,
        csv_safe: bool = False,
    ) -> Path:
        """Write the tables, the manifest, the report, and what `hierdp check` needs to check them.

        ``released`` and, of the last level alone, ``finest``, both as Parquet and CSV; ``regions.csv``,
        ``manifest.json``, ``proofs.zip``, ``report.html`` and ``SHA256SUMS``. All is written to a folder
        beside the wanted one, which is then renamed: there is never half a release under the name.

        Parameters
        ----------
        path : path
            The folder to make.
        overwrite : bool
            Replace a folder that exists; by default it is kept, and this is an error.
        report : bool
            Whether to draw the report.
        proofs : bool
            Whether to keep the models and answers of all steps: noisy counts, safe to publish, but large.
        title, note : str, optional
            The publisher's own words, kept in the manifest: a title for the report, and what stands under it.
        csv_safe : bool
            Put an apostrophe before names in the CSVs that a spreadsheet would run as a formula, such as
            ``=cmd|…`` or ``@SUM``. The Parquet files have the names as they are.

        Raises
        ------
        InputError
            If the folder exists, or its parent does not, or the title or note is not text.
        OSError
            If the disk is full or the like; nothing is left under the name.
        """
        check_words(title=title, note=note)
        with folder.appearing(Path(path), overwrite) as aside:
            self.fill(aside, report, proofs, title, note, csv_safe)
        return Path(path)

    def fill(
        self,
        into: Path,
        report: bool = True,
        proofs: bool = True,
        title: str | None = None,
        note: str | None = None,
        csv_safe: bool = False,
    ) -> str:
        """Write the files of `write` into a folder that exists, and seal it; returns its fingerprint."""
        manifest = self.manifest(title, note, csv_safe)
        if report:
            from hierdp.reports.release import release_report

            text = release_report(self.table, manifest)
            (into / files.REPORT).write_text(text, encoding="utf-8", newline="\n")
        if proofs:
            write_proofs(self, into)
        return write_tables(self, manifest, into)


def check_words(**words: str | None) -> None:
    """That the publisher's words are text that can be written.

    Raises
    ------
    InputError
        Naming the first that is not.
    """
    for name, text in words.items():
        if text is not None and not isinstance(text, str):
            raise InputError(f"the {name} must be text, got {type(text).__name__}")
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"the {name} is not valid Unicode text: write it in UTF-8") from None


WARNING = "SIMULATED NOISE: this release is NOT private"
"""Of a manifest, where not all noise was drawn exactly."""

KNOWN = "in the column standard_error"
NOT_KNOWN = "not known after post-processing; of each measurement, see standard_deviation in the budget"


def write_proofs(release: Release, into: Path) -> None:
    """The models and answers of a release's steps, into a folder that exists."""
    from hierdp.record.proofs import write

    if release.steps:
        write(release.steps, into / files.PROOFS)


def write_tables(release: Release, manifest: Mapping[str, Any], into: Path) -> str:
    """The tables and the manifest of a release, into a folder that exists; all that is there is sealed.

    Returns
    -------
    str
        The fingerprint.
    """
    safe = bool(manifest["csv_safe"])
    files.write_frame(release.table, into, files.TABLE, safe)
    last = release.finest()
    if last is not None:
        files.write_frame(last, into, files.FINEST, safe)
    files.write_regions(release.regions, into, safe)
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    (into / files.MANIFEST).write_text(text + "\n", encoding="utf-8")
    return seal.seal(into)


def _with_deviations(budget: dict[str, Any], ledger: Ledger) -> dict[str, Any]:
    """The budget, with the standard deviation of each measurement's noise."""
    for line, spend in zip(budget["spends"], ledger.spends, strict=True):
        line["standard_deviation"] = deviation_of(spend)
    return budget
