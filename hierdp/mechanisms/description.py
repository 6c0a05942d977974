"""Descriptions of mechanisms, which can be listed without loading any mechanism's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
    from hierdp.mechanisms.truth import TruthReader
    from hierdp.record.case import Case
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
class Mechanism:
    """A kind of release. Each package of a mechanism has one, named ``MECHANISM``.

    Attributes
    ----------
    name : str
        The name for `hierdp release` and `hierdp.release`.
    module : str
        A module whose ``from_table(source, *, epsilon, noise, …)`` makes the release, and declares the
        options in its signature (`hierdp.mechanisms.option`). It is loaded on first use.
    releases, guarantee, neighbours : str
        What it publishes, its guarantee, and its neighbouring tables.
    methods : tuple of MethodInfo
    released_as : str, optional
        A regular expression for the names in its releases. Default: the names of its methods.
    truth : str, optional
        The module whose ``TRUTH`` says how releases are compared with true counts, if it is another
        mechanism's.
    help : str
        Help for `hierdp release NAME --help`: a summary, what a user needs to know, and examples with
        indented commands.

    Notes
    -----
    All else is found by its name in a module of the package, or the module itself, and loaded on first use:

    - ``checking.CHECKING``: what `hierdp check` needs. Without it, budgets and tables of its releases are not
      checked against the mechanism.
    - ``audit.CASES``: what `hierdp audit` runs.
    - ``expected.expected(*, epsilon, …)``: what to expect of a release without data, as
      `hierdp.mechanisms.expected.Expected`; its signature declares the options of `hierdp plan`.
    - ``truth.TRUTH``: how releases are compared with true counts.
    - ``bootstrap.bootstrap(table, manifest, regions, noise)``: a second release that takes the counts of one
      as the truth, of up to ``bootstrap.MOST_SIMULATED`` rows, for what the report says of small counts; and
      ``bootstrap.bounds``, which bounds the errors of a release's levels, if a theorem does.
    - ``intervals.intervals(release)``: the intervals of its counts, `hierdp.mechanisms.intervals.Intervals`.
    """

    name: str
    module: str
    releases: str
    guarantee: str
    neighbours: str
    methods: tuple[MethodInfo, ...]
    released_as: str | None = None
    truth: str | None = None
    help: str = ""

    def part(self, module: str, name: str) -> Any:
        """What a module of its package, or the module itself, has of that name; None if there is none."""
        package = import_module(self.module.removesuffix(".mechanism"))
        own = f"{package.__name__}.{module}"
        there = hasattr(package, "__path__") and find_spec(own) is not None
        return getattr(import_module(own) if there else package, name, None)

    @property
    def checking(self) -> Checking | None:
        """What `hierdp check` needs for its releases, if it is defined."""
        found: Checking | None = self.part("checking", "CHECKING")
        return found

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
        if found is None:
            raise InputError(f"releases of {self.name} cannot be compared with true counts")
        reader: TruthReader = found
        return reader

    def released(self, name: str) -> bool:
        """Whether its releases may have that name."""
        if self.released_as is not None:
            return re.fullmatch(self.released_as, name) is not None
        return any(name == method.name for method in self.methods)

    @property
    def expecting(self) -> Callable[..., Expected]:
        """The function that gives what to expect of a release without data."""
        function: Callable[..., Expected] = self.part("expected", "expected")
        return function

    @property
    def released_again(self) -> Any:
        """The function that takes a release's counts as the truth and releases them again; or None."""
        return self.part("bootstrap", "bootstrap")

    @property
    def most_simulated(self) -> int:
        """The most rows of a release whose errors the report simulates by second releases."""
        return int(self.part("bootstrap", "MOST_SIMULATED") or 0)

    @property
    def bounds(self) -> Any:
        """The function that bounds the errors of a release's levels, if a theorem does; or None."""
        return self.part("bootstrap", "bounds")

    @property
    def intervals(self) -> Any:
        """The function that gives the intervals for sums of a release's counts; None if none are known."""
        return self.part("intervals", "intervals")

    def intervals_of(self, release: Written) -> Intervals:
        """The intervals for sums of a release's counts.

        Raises
        ------
        InputError
            If none are known; the message says why.
        """
        if self.intervals is None:
            raise InputError(f"there are no intervals for releases of {self.name}")
        found: Intervals = self.intervals(release)
        return found

    @property
    def from_table(self) -> Callable[..., Any]:
        """The function that makes the release."""
        function: Callable[..., Any] = import_module(self.module).from_table
        return function

    def loss(self, epsilon: float, options: Mapping[str, Any]) -> Loss:
        """The most that a release with these options costs; ε, or ρ with a δ, without a ``loss_of``."""
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
