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
from hierdp.privacy.loss import Loss

if TYPE_CHECKING:
    from hierdp.mechanisms.checking import Checking
    from hierdp.mechanisms.expected import Expected
    from hierdp.mechanisms.intervals import Intervals
    from hierdp.mechanisms.option import Keyword
    from hierdp.mechanisms.truth import TruthReader
    from hierdp.privacy.noise import Noise
    from hierdp.record.case import Case
    from hierdp.record.release import Release
    from hierdp.record.written import ReleaseFolder


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
        The module of the class, and of what else is named below; it is loaded on first use.
    value : str or type
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
    - ``intervals.intervals(mechanism, facts, allowed, release)``: the intervals of its counts.
    - ``bootstrap.bounds``, which bounds the errors of a release's levels, if a theorem does.
    """

    name: str
    module: str
    releases: str
    guarantee: str
    neighbours: str
    methods: tuple[MethodInfo, ...]
    value: str | type = ""
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
    def kind(self) -> Any:
        """The class whose values are releases' options."""
        return getattr(import_module(self.module), self.value) if isinstance(self.value, str) else self.value

    @property
    def _generic(self) -> Any:
        """What all classes of mechanisms have in common, loaded on first use."""
        return import_module("hierdp.mechanisms.mechanism")

    @property
    def keywords(self) -> Mapping[str, Keyword]:
        """The options of a release, in the order of the help."""
        from hierdp.mechanisms.option import keywords_of

        return keywords_of(self.kind)

    def release(self, source: Any, *, epsilon: float, noise: Noise | None = None, **options: Any) -> Release:
        """Measure the true counts of a table, and repair the noisy ones."""
        release: Release = self._generic.release(self.kind(epsilon=epsilon, **options), source, noise)
        return release

    @property
    def checking(self) -> Checking:
        """What `hierdp check` needs for its releases."""
        checking: Checking = self._generic.checking_of(self.kind)
        return checking

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
        reader: TruthReader | None
        reader = self.part("truth", "TRUTH") if self.truth is None else import_module(self.truth).TRUTH
        if reader is None and self.kind.MEASURES:
            from hierdp.mechanisms.truth import reader_of

            reader = reader_of(self.kind)
        if reader is None:
            raise InputError(f"releases of {self.name} cannot be compared with true counts")
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
        keywords: Mapping[str, Keyword] = self._generic.planning_keywords(self.kind)
        return keywords

    def expected(self, *, epsilon: float, **options: Any) -> Expected:
        """What to expect of a release without data."""
        expected: Expected = self._generic.plan(self.kind, epsilon=epsilon, **options)
        return expected

    @property
    def most_simulated(self) -> int:
        """The most rows of a release whose errors the report simulates by second releases."""
        return int(self.kind.MOST_SIMULATED)

    @property
    def bootstrap(self) -> Any:
        """The function that takes a release's counts as the truth and releases them again; or None."""
        return partial(self._generic.bootstrap, self.kind) if self.most_simulated else None

    @property
    def bounds(self) -> Any:
        """The function that bounds the errors of a release's levels, if a theorem does; or None."""
        return self.part("bootstrap", "bounds")

    @property
    def intervals(self) -> Callable[..., Intervals] | None:
        """The function that gives the intervals for sums of a release's counts; None if none are known."""
        intervals: Callable[..., Intervals] | None = self.part("intervals", "intervals")
        return intervals

    def intervals_of(self, release: ReleaseFolder) -> Intervals:
        """The intervals for sums of a release's counts.

        Raises
        ------
        InputError
            If none are known; the message says why.
        """
        intervals = self.intervals
        if intervals is None:
            raise InputError(f"there are no intervals for releases of {self.name}")
        return intervals(*self._generic.facts_of_release(self.kind, release), release)

    def loss(self, epsilon: float, options: Mapping[str, Any]) -> Loss:
        """The most that a release with these options costs."""
        loss: Loss = self.kind.without_table(epsilon=epsilon, **options).loss
        return loss


def member(package: str, name: str) -> Any:
    """A member of a mechanism's package that its module ``mechanism`` defines, loaded on first use.

    Raises `AttributeError` if the package does not list the name in ``__all__``.
    """
    if name not in import_module(package).__all__:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(f"{package}.mechanism"), name)


BOTTOM_UP = "bottom-up"
"""Prefix of the name of a count-of-counts method that measures only the last level."""
