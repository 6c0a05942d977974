"""A post-processing problem that is solved and proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from numpy.typing import NDArray

from hierdp import execution
from hierdp.execution import progress
from models import Certificate, Model
from models.arithmetic.exact import Number
from models.certificate import Witness

if TYPE_CHECKING:
    from solvers import Solution

T = TypeVar("T")

ACCURACY = 1e-4
"""Relative tolerance, larger than any solver's: a claimed optimum with a larger excess cost is wrong."""


class NotProved(RuntimeError):
    """The certificate does not prove a fast path's answer: a bug. Nothing is released."""


class NotSolved(RuntimeError):
    """A step was not solved, by the chosen solver or by any. Nothing is released."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status

    @property
    def broken(self) -> bool:
        """Whether the solver does not work here, rather than needing more time or accuracy."""
        return self.status in ("crashed", "error")

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, because it may be raised in another process."""
        return type(self), (self.status, str(self))


def solved(name: str, found: Solution, limit: float | None = None) -> Solution:
    """Check that a chosen solver solved a step; return its solution. `limit` is the time limit in seconds.

    Raises
    ------
    NotSolved
        If the solution is not optimal.
    """
    if found.status != "optimal" or found.x is None:
        late = found.status in ("time_limit", "feasible")
        of = "" if limit is None else f"the step's time limit is {limit:g} s; "
        more = f"{of}give it more time (time_limit, --time-limit), or choose another backend" if late else ""
        why = [found.status, *filter(None, (found.message, more))]
        raise NotSolved(found.status, f"{name}: {found.backend}: {'; '.join(why)}")
    return found


class Answered(Protocol):
    """What a step needs of an answer: a `solvers.Solution`, or the part of one that a release saved."""

    @property
    def x(self) -> NDArray[Any] | None:
        """The answer, in the model's shape."""

    @property
    def objective(self) -> Number | None:
        """The model's objective at the answer."""

    @property
    def bound(self) -> Number | None:
        """A lower bound on the optimum."""

    @property
    def certificate(self) -> Certificate | None:
        """The model's certificate of the answer."""

    @property
    def witness(self) -> Witness | None:
        """What the certificate needs in addition to the answer; None if it needs nothing."""

    @property
    def solve_seconds(self) -> float:
        """Time spent finding the answer."""


@dataclass(frozen=True, eq=False)
class Step:
    """One post-processing problem of a release: a model of noisy counts, and its proved answer."""

    name: str
    model: Model
    solution: Answered
    problems: tuple[str, ...] = ()
    """Names of the model's problems, if it has many side by side: one a region, for example."""

    @classmethod
    def solve(
        cls, name: str, model: Model, problems: Sequence[str] = (), known: NDArray[Any] | None = None
    ) -> Step:
        """Solve by the fast path, unless its answer is `known` already: then it is only proved.

        Raises
        ------
        NotProved
            If the certificate does not prove the answer optimal.
        NotSolved
            If there is no answer.
        """
        from solvers import Solution, solve

        progress.watch_compiler()
        if known is None:
            return cls.of(name, model, solve(model), problems)
        proof = model.certificate(known)
        found = Solution(
            "fast",
            "",
            "optimal" if proof.optimal else "feasible",
            known,
            proof.objective,
            proof.bound,
            message=proof.reason,
            certificate=proof,
        )
        return cls.of(name, model, found, problems)

    @classmethod
    def of(cls, name: str, model: Model, solution: Solution, problems: Sequence[str] = ()) -> Step:
        """The step with a fast path's answer.

        Raises
        ------
        NotProved, NotSolved
            As `solve`.
        """
        if solution.status == "infeasible":
            raise NotSolved("infeasible", f"{name} has no answer: {solution.message}")
        if solution.status != "optimal":
            raise NotProved(f"{name}: {solution.status}; {solution.message}. Please report this.")
        return cls(name, model, solution, tuple(problems))

    @property
    def parts(self) -> Sequence[Callable[[], tuple[str, Model]]]:
        """One function for each problem, which returns its name and model."""
        if not self.problems:
            return [lambda: (self.name, self.model)]
        several: Any = self.model
        return [partial(_part, several, k, name) for k, name in enumerate(self.problems)]

    @property
    def proved(self) -> Proved:
        """The step's line in the manifest."""
        proof, x = self.solution.certificate, self.solution.x
        return Proved(
            self.name,
            type(self.model).__name__,
            int(x.size) if x is not None else 0,
            str(self.solution.objective),
            str(self.solution.bound if proof is None or proof.bound is None else proof.bound),
            bool(proof),
            round(self.solution.solve_seconds, 6),
            len(self.problems) or 1,
        )


def _part(model: Any, problem: int, name: str) -> tuple[str, Model]:
    return name, model.part(problem)[0]


def require_proved(
    name: str, model: Model, claimed: Solution, fast: Callable[[Model], Solution] | None = None
) -> Step:
    """Accept an answer that a chosen solver calls optimal; return it with its certificate and witness.

    If the certificate does not prove it optimal, it is accepted when it costs no more than that of `fast`.

    Raises
    ------
    NotSolved
        If it costs more; then the solver's claim is false, and nothing is released.
    NotProved
        If the bound exceeds the cost of the feasible answer; then the certificate is wrong.
    """
    from solvers import prove, solve

    proof, witness = claimed.certificate, claimed.witness
    if proof is None:
        alone = model.certificate(claimed.x)
        proof = alone if alone else prove(model, claimed.x)
        witness = None if proof.bound == alone.bound else proof.witness
    if proof.contradiction:
        raise NotProved(f"{name}: {proof.reason}. Please report this.")
    if not proof:
        better = (fast or solve)(model)
        if better.x is not None and _costs_less(better.objective, proof.objective):
            wrong = f"{claimed.backend} calls its answer optimal, but there are better ones"
            raise NotSolved("error", f"{name}: {wrong} ({proof.reason}); choose another solver")
    return Step(name, model, replace(claimed, certificate=proof, witness=witness))


def _costs_less(better: Number | None, claimed: Number) -> bool:
    """Whether the first cost is lower: compared exactly if whole, otherwise beyond solvers' tolerances."""
    if isinstance(better, int) and isinstance(claimed, int):
        return better < claimed
    return better is not None and float(better) < float(claimed) - ACCURACY * max(1.0, abs(float(claimed)))


@dataclass(frozen=True)
class Proved:
    """A solved problem, or many solved at once, without the arrays: a line of the manifest.

    For many problems, variables, objective and bound are sums, and `proved_optimal` says that all are proved.
    """

    step: str
    model: str
    variables: int
    objective: str
    bound: str
    proved_optimal: bool
    seconds: float
    problems: int = 1

    @property
    def line(self) -> dict[str, Any]:
        """The line of the manifest, which has the number of problems only if there are several."""
        line = asdict(self)
        return line if self.problems > 1 else {name: line[name] for name in line if name != "problems"}


class Solving(Protocol):
    """Solves a named problem of a release: `Step.solve`, or a function that looks up saved answers."""

    def __call__(self, name: str, model: Model, problems: Sequence[str] = (), /) -> Step:
        """Return the solved step; `problems` are the names if the model has many problems side by side."""


@runtime_checkable
class SolvingTasks(Protocol):
    """Solves the problems of tasks that do not depend on each other as it finds best."""

    def solve_all(
        self, work: Callable[..., T], tasks: Sequence[tuple[Any, ...]], what: str, /
    ) -> Iterator[T]:
        """See `solve_all`."""


def solve_all(
    work: Callable[..., T], tasks: Iterable[tuple[Any, ...]], solving: Solving, what: str
) -> Iterator[T]:
    """The results of tasks that do not depend on each other, but whose problems may, in their order.

    - work: takes what solves problems and a task's arguments; a module-level function.
    - tasks: a release, and the fast path, may run them in other processes; see `execution.each`. Each is
      taken when its turn comes.
    """
    if not isinstance(solving, SolvingTasks) and solving != Step.solve:
        return (work(solving, *task) for task in tasks)
    items = tasks if isinstance(tasks, Sequence) else list(tasks)
    if isinstance(solving, SolvingTasks):
        return solving.solve_all(work, items, what)
    return execution.each(work, items, what, (solving,))


def keeping_steps(work: Callable[..., T], solving: Any, *task: Any) -> tuple[T, list[Step]]:
    """The result of a task, and the steps that it solved."""
    steps: list[Step] = []

    def solve(name: str, model: Model, problems: Sequence[str] = (), **known: Any) -> Step:
        steps.append(solving(name, model, problems, **known))
        return steps[-1]

    return work(solve, *task), steps
