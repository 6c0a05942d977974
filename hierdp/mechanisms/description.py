"""Descriptions of mechanisms, which can be listed without loading any mechanism's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError
from hierdp.privacy.budget import check_delta, check_epsilon
from hierdp.privacy.conversion import rho_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.whom import whom_in

if TYPE_CHECKING:
    from hierdp.mechanisms.checking import Checking
    from hierdp.mechanisms.expected import Expected
    from hierdp.mechanisms.intervals import Intervals
    from hierdp.mechanisms.mechanism import Mechanism
    from hierdp.mechanisms.option import Keyword
    from hierdp.mechanisms.truth import TruthReader
    from hierdp.privacy.noise import Noise
    from hierdp.record.case import Case
    from hierdp.record.release import Release
    from hierdp.record.written import Written


@dataclass(frozen=True)
class MethodInfo:
    """A method of a mechanism: its name, the models that it solves, and its source."""

    name: str
    models: str
    source: str
    guarantee: str | None = None
    """The guarantee, if it differs from the mechanism's."""


@dataclass(frozen=True)
class MechanismInfo:
    """A kind of release. Each package of a mechanism has one, named ``MECHANISM``.

    Attributes
    ----------
    name : str
        The name for `hierdp release` and `hierdp.release`.
    module : str
        The module of the rest, which is loaded on first use: of the class `value`; without one, of a function
        ``from_table(source, *, epsilon, noise, …)`` that makes the release, and declares the options in its
        signature (`hierdp.mechanisms.option`).
    value : str or type, optional
        The class, or its name in `module`, whose values are releases' options: `hierdp.mechanisms.Mechanism`.
    releases, guarantee, neighbours : str
        What it publishes, its guarantee, and its neighbouring tables.
    methods : tuple of MethodInfo
    released_as : str, optional
        A regular expression for the names in its releases. Default: the names of its methods.
    truth : str, optional
        The module whose ``TRUTH`` says how releases are compared with true counts, if it is another
        mechanism's.
    own : mapping, optional
        Of a mechanism outside of hierdp: what a manifest says of where it is from (`hierdp.mechanisms.own`).
    help : str
        Help for `hierdp release NAME --help`: a summary, what a user needs to know, and examples with
        indented commands.

    Notes
    -----
    The class has all that follows from the options. Some is found by its name in a module of the package, or
    in the module itself, and loaded on first use:

    - ``audit.CASES``: what `hierdp audit` runs.
    - ``truth.TRUTH``: how releases are compared with true counts.
    - ``bootstrap.bounds``, which bounds the errors of a release's levels, if a theorem does.

    A mechanism without a class has ``checking.CHECKING``, ``expected.expected(*, epsilon, …)``,
    ``bootstrap.bootstrap(table, manifest, regions, noise)`` and ``intervals.intervals(release)`` besides.
    """

    name: str
    module: str
    releases: str
    guarantee: str
    neighbours: str
    methods: tuple[MethodInfo, ...]
    value: str | type[Mechanism[Any]] | None = None
    released_as: str | None = None
    truth: str | None = None
    help: str = ""
    own: Mapping[str, str | None] | None = field(default=None, hash=False)

    def part(self, module: str, name: str) -> Any:
        """What a module of its package, or the module itself, has of that name; None if there is none."""
        package = import_module(self.module.removesuffix(".mechanism"))
        own = f"{package.__name__}.{module}"
        there = hasattr(package, "__path__") and find_spec(own) is not None
        return getattr(import_module(own) if there else package, name, None)

    @property
    def kind(self) -> type[Mechanism[Any]] | None:
        """The class whose values are releases' options."""
        if not isinstance(self.value, str):
            return self.value
        kind: type[Mechanism[Any]] = getattr(import_module(self.module), self.value)
        return kind

    @property
    def declaring(self) -> Callable[..., Any]:
        """What declares and documents the options of a release: the class, or ``from_table``."""
        function: Callable[..., Any] = self.kind or import_module(self.module).from_table
        return function

    @property
    def keywords(self) -> Mapping[str, Keyword]:
        """The options of a release, in the order of the help."""
        from hierdp.mechanisms.option import keywords_of

        return keywords_of(self.declaring)

    def release(self, source: Any, *, epsilon: float, noise: Noise | None = None, **options: Any) -> Release:
        """Measure the true counts of a table, and repair the noisy ones."""
        made: Release
        if self.kind is None:
            made = import_module(self.module).from_table(source, epsilon=epsilon, noise=noise, **options)
        else:
            from hierdp.mechanisms.mechanism import release

            made = release(self.declaring(epsilon=epsilon, **options), source, noise)
        return made

    @property
    def checking(self) -> Checking | None:
        """What `hierdp check` needs for its releases, if it is defined."""
        if self.kind is None:
            found: Checking | None = self.part("checking", "CHECKING")
            return found
        from hierdp.mechanisms.checking import checking_of

        return checking_of(self.kind)

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases for `hierdp audit`."""
        return self.part("audit", "CASES") or ()

    @property
    def compared(self) -> TruthReader:
        """How its releases are compared with true counts.

        Raises
        ------
        InputError
            If that is not defined.
        """
        found = self.part("truth", "TRUTH") if self.truth is None else import_module(self.truth).TRUTH
        if found is None and self.kind is not None:
            from hierdp.mechanisms.truth import reader_of

            found = reader_of(self.kind)
        if found is None:
            raise InputError(f"releases of {self.name} cannot be compared with true counts")
        reader: TruthReader = found
        return reader

    def released(self, name: str) -> bool:
        """Whether its releases may have that name."""
        if self.released_as is not None:
            return re.fullmatch(self.released_as, name) is not None
        return any(name == method.name for method in self.methods)

    def by(self, method: str) -> dict[str, str]:
        """The option that chooses a method; none, if there is only one."""
        return {"method": method} if "method" in self.keywords else {}

    @property
    def planning_keywords(self) -> Mapping[str, Keyword]:
        """The options of a plan, in the order of the help."""
        if self.kind is None:
            from hierdp.mechanisms.option import keywords_of

            return keywords_of(self.part("expected", "expected"))
        from hierdp.mechanisms.mechanism import planning_keywords

        return planning_keywords(self.kind)

    def expected(self, *, epsilon: float, **options: Any) -> Expected:
        """What to expect of a release without data."""
        found: Expected
        if self.kind is None:
            found = self.part("expected", "expected")(epsilon=epsilon, **options)
        else:
            from hierdp.mechanisms.mechanism import plan

            found = plan(self.kind, epsilon=epsilon, **options)
        return found

    @property
    def released_again(self) -> Any:
        """The function that takes a release's counts as the truth and releases them again; or None."""
        if self.kind is None or not self.kind.MOST_SIMULATED:
            return self.part("bootstrap", "bootstrap")
        from hierdp.mechanisms.mechanism import release_again

        return partial(release_again, self.kind)

    @property
    def most_simulated(self) -> int:
        """The most rows of a release whose errors the report simulates by second releases."""
        return (
            int(self.part("bootstrap", "MOST_SIMULATED") or 0)
            if self.kind is None
            else self.kind.MOST_SIMULATED
        )

    @property
    def bounds(self) -> Any:
        """The function that bounds the errors of a release's levels, if a theorem does; or None."""
        return self.part("bootstrap", "bounds")

    @property
    def intervals(self) -> Callable[[Written], Intervals] | None:
        """The function that gives the intervals for sums of a release's counts; None if none are known."""
        if self.kind is None:
            found: Callable[[Written], Intervals] | None = self.part("intervals", "intervals")
            return found
        from hierdp.mechanisms.mechanism import Mechanism, intervals_of

        return None if self.kind.intervals is Mechanism.intervals else partial(intervals_of, self.kind)

    def intervals_of(self, release: Written) -> Intervals:
        """The intervals for sums of a release's counts.

        Raises
        ------
        InputError
            If none are known; the message says why.
        """
        if self.intervals is None:
            raise InputError(f"there are no intervals for releases of {self.name}")
        return self.intervals(release)

    def loss(self, epsilon: float, options: Mapping[str, Any]) -> Loss:
        """The most that a release with these options costs; ε, or ρ with a δ, without a ``loss_of``."""
        if self.kind is not None:
            return self.kind.without_table(epsilon=epsilon, **options).loss
        own = getattr(import_module(self.module), "loss_of", None)
        if own is None:
            whom, delta = whom_in(options), options.get("delta")
            if delta is None:
                return Loss.of(whom, epsilon)
            return Loss.of(whom, rho=rho_of(check_epsilon(epsilon), check_delta(delta)))
        found: Loss = own(epsilon=epsilon, **options)
        return found


def member(package: str, name: str) -> Any:
    """A member of a mechanism's package that its module ``mechanism`` defines, loaded on first use.

    Raises `AttributeError` if the package does not list the name in ``__all__``.
    """
    if name not in import_module(package).__all__:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.mechanism"), name)


BOTTOM_UP = "bottom-up"
"""Prefix of the name of a count-of-counts method that measures only the last level."""

ENTITY = "one entity joins or leaves a group; regions and groups are public"
PERSON = "one person joins or leaves, in one bin; the bins are public"
TRIP = "one trip is replaced by another; regions and the total are public"
