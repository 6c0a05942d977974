"""Descriptions of mechanisms, which can be listed without loading any mechanism's code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hierdp.errors import InputError
from hierdp.privacy.loss import Loss
from hierdp.privacy.whom import whom_in

if TYPE_CHECKING:
    from pandas import DataFrame

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
    checks : str, optional
        The module with the ``CHECKING`` of its releases for `hierdp check`, loaded only for these. If None,
        their budgets and tables are not checked against the mechanism.
    released_as : str, optional
        A regular expression for the names in its releases. Default: the names of its methods.
    audit : str, optional
        The module whose ``CASES`` `hierdp audit` runs.
    expected : str, optional
        The module whose ``expected(*, epsilon, …)`` gives what to expect of a release without data, as
        `hierdp.mechanisms.expected.Expected`; its signature declares the options of `hierdp plan`.
    truth : str, optional
        The module whose ``TRUTH`` says how releases are compared with true counts.
    bootstrap : str, optional
        The module whose ``bootstrap(table, manifest, regions, noise)`` takes a release's counts as the
        truth and releases them again, for what the report says of small counts. It may also have ``bounds``.
    intervals : str, optional
        The module whose ``intervals(release)`` gives the intervals of its counts, as
        `hierdp.mechanisms.intervals.Intervals`.
    help : str
        Help for `hierdp release NAME --help`: a summary, what a user needs to know, and examples with
        indented commands.
    """

    name: str
    module: str
    releases: str
    guarantee: str
    neighbours: str
    methods: tuple[MethodInfo, ...]
    checks: str | None = None
    released_as: str | None = None
    audit: str | None = None
    expected: str | None = None
    truth: str | None = None
    bootstrap: str | None = None
    intervals: str | None = None
    help: str = ""

    @property
    def checking(self) -> Checking | None:
        """What `hierdp check` needs for its releases, if it is defined."""
        if self.checks is None:
            return None
        found: Checking = import_module(self.checks).CHECKING
        return found

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases for `hierdp audit`."""
        found: tuple[Case, ...] = () if self.audit is None else import_module(self.audit).CASES
        return found

    @property
    def compared(self) -> TruthReader:
        """How its releases are compared with true counts.

        Raises
        ------
        InputError
            If that is not defined.
        """
        if self.truth is None:
            raise InputError(f"releases of {self.name} cannot be compared with true counts")
        found: TruthReader = import_module(self.truth).TRUTH
        return found

    def released(self, name: str) -> bool:
        """Whether its releases may have that name."""
        if self.released_as is not None:
            return re.fullmatch(self.released_as, name) is not None
        return any(name == method.name for method in self.methods)

    @property
    def expecting(self) -> Callable[..., Expected]:
        """The function that gives what to expect of a release without data."""
        assert self.expected is not None
        function: Callable[..., Expected] = import_module(self.expected).expected
        return function

    @property
    def released_again(self) -> Callable[..., DataFrame] | None:
        """The function that takes a release's counts as the truth and releases them again."""
        return None if self.bootstrap is None else getattr(import_module(self.bootstrap), "bootstrap", None)

    @property
    def most_simulated(self) -> int:
        """The most rows of a release whose errors the report simulates by second releases."""
        return (
            0 if self.bootstrap is None else int(getattr(import_module(self.bootstrap), "MOST_SIMULATED", 0))
        )

    def intervals_of(self, release: Written) -> Intervals:
        """The intervals for sums of a release's counts.

        Raises
        ------
        InputError
            If none are known; the message says why.
        """
        if self.intervals is None:
            raise InputError(f"there are no intervals for releases of {self.name}")
        found: Intervals = import_module(self.intervals).intervals(release)
        return found

    @property
    def bounds(self) -> Callable[..., list[float] | None] | None:
        """The function that bounds the errors of a release's levels, if a theorem does."""
        return None if self.bootstrap is None else getattr(import_module(self.bootstrap), "bounds", None)

    @property
    def from_table(self) -> Callable[..., Any]:
        """The function that makes the release."""
        function: Callable[..., Any] = import_module(self.module).from_table
        return function

    def loss(self, epsilon: float, options: Mapping[str, Any]) -> Loss:
        """The most that a release with these options costs; ε if the module has no ``loss_of``."""
        own = getattr(import_module(self.module), "loss_of", None)
        if own is None:
            return Loss.of(whom_in(options), epsilon)
        found: Loss = own(epsilon=epsilon, **options)
        return found


def member(package: str, name: str) -> Any:
    """A member of a mechanism's package that its module ``mechanism`` defines, loaded on first use.

    Raises `AttributeError` if the package does not list the name in ``__all__``.
    """
    if name not in import_module(package).__all__:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.mechanism"), name)
