"""A post-processing problem that is solved and proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from hierdp import execution
from hierdp.execution import progress
from models import Certificate, Model
from models.arithmetic.exact import Number
from models.certificate import Witness

if TYPE_CHECKING:
    from solvers import Solution


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
    problems: tuple[str, ...] = ()
    """Names of the model's problems, if it has many side by side: one a region, for example."""

    @classmethod
    def solve(cls, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
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
        return cls(name, model, solution, tuple(problems))

    @property
    def parts(self) -> Sequence[Callable[[], tuple[str, Model]]]:
        """The name and the model of each problem alone, made when they are called for."""
        if not self.problems:
            return [lambda: (self.name, self.model)]
        several: Any = self.model
        return [partial(_part, several, k, name) for k, name in enumerate(self.problems)]

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
            len(self.problems) or 1,
        )


def _part(model: Any, problem: int, name: str) -> tuple[str, Model]:
    return name, model.part(problem)[0]


def require_proved(
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
    """A solved problem, or many of a kind solved at once, without the arrays: a line of the manifest.

    Of many, variables, objective and bound are sums, and `proved_optimal` says that each is proved.
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
        """For the manifest, which names the number of problems only if there are several."""
        line = asdict(self)
        return line if self.problems > 1 else {name: line[name] for name in line if name != "problems"}


Problem = tuple[str, Model, Sequence[str]]
"""The name of a step, its model, and the names of the problems that the model has side by side."""


class Solving(Protocol):
    """How a problem, by the name it has in a release, is solved: `Step.solve`, or an answer looked up."""

    def __call__(self, name: str, model: Model, problems: Sequence[str] = (), /) -> Step:
        """The step; `problems` names those of a model that has many side by side."""


def solve_each(
    make: Callable[..., Sequence[Problem]], tasks: Sequence[tuple[Any, ...]], solving: Solving, what: str
) -> Iterator[Step]:
    """Solve problems that do not depend on each other, in their order.

    Parameters
    ----------
    make : callable
        From a task to its problems; a function of a module.
    tasks : sequence of tuple
        For the fast path, which may solve them elsewhere, as `execution.each` takes them.
    solving : callable
    what : str
        For the progress bar.
    """
    if solving == Step.solve:
        for steps in execution.each(_solve_task, tasks, what, (make,)):
            yield from steps
    else:
        yield from (solving(*problem) for task in tasks for problem in make(*task))


def _solve_task(make: Callable[..., Sequence[Problem]], *task: Any) -> list[Step]:
    return [Step.solve(*problem) for problem in make(*task)]


class Steps:
    """Steps as they are solved; where they grow too large to be kept, what was proved of the rest."""

    MOST = 10_000_000
    """Variables of all the steps kept: some 250 MB with data, answers and prices."""

    def __init__(self) -> None:
        self.kept: list[Step] = []
        self.proved: list[Proved] = []
        self._room = self.MOST

    def solve(self, name: str, model: Model, problems: Sequence[str] = ()) -> Step:
        """`Step.solve`, and keep it."""
        step = Step.solve(name, model, problems)
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
