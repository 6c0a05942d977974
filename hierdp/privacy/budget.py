"""Privacy budgets: the allowed loss, the loss of each measurement, and the check that it is not exceeded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from hierdp.errors import InputError, listed
from hierdp.privacy.conversion import CONVERSIONS, TIGHTER, rho_of
from hierdp.privacy.rounding import below, root_of
from hierdp.privacy.threshold import EXACT, THRESHOLDS
from hierdp.privacy.whom import Whom, whom_of

GEOMETRIC, GAUSSIAN, CHOICE = "double-geometric", "discrete Gaussian", "permute-and-flip"
"""The names of noises in a budget."""


@dataclass(frozen=True)
class Spend:
    """One noisy measurement: its query, its noise and its privacy loss.

    `epsilon` is the pure-DP loss, `rho` the zCDP loss; one of them is None. A measurement that is (ε, δ)-DP
    by itself also has its `delta`. `private` is False where the noise was simulated: then the loss is what
    the same noise, drawn exactly, would have cost. The loss is for `times` measurements in sequence.
    `sampler` names the sampler of exact noise, with its version; None if the noise was simulated.
    """

    query: str
    noise: str
    sensitivity: float
    scale: float
    epsilon: float | None
    rho: float | None
    private: bool
    delta: float | None = None
    times: int = 1
    sampler: str | None = None


def spends_of(budget: Mapping[str, Any]) -> tuple[Spend, ...]:
    """The measurements in a manifest's budget; other entries are ignored."""
    names = {field.name for field in fields(Spend)}
    return tuple(Spend(**{k: v for k, v in line.items() if k in names}) for line in budget["spends"])


@dataclass(frozen=True)
class PersonRows:
    """How the rows of one person are counted, for a guarantee for persons, or what one row counts.

    - column: the column that names the person of each row. None: the guarantee is for a row of a table with a
      column of numbers.
    - rows: the most rows of a person that are counted, or the most that a row counts.
    - spends_are_for: "one person" if the sensitivities are those of a person, or of a whole row. "one row"
      otherwise, a row that counts 1: then the loss is `rows` times as much (group privacy: two tables that
      differ in a person are `rows` steps of one such row apart).
    """

    column: str | None
    rows: int
    spends_are_for: str

    def __post_init__(self) -> None:
        whole = isinstance(self.rows, int) and not isinstance(self.rows, bool)
        if not whole or self.rows < 1 or self.spends_are_for not in (ONE_ROW, ONE_PERSON):
            raise InputError(
                f"a guarantee for persons cannot rest on {self.rows!r} rows, {self.spends_are_for!r}"
            )

    @property
    def times(self) -> int:
        """A person's loss as a multiple of the loss on record."""
        return self.rows if self.spends_are_for == ONE_ROW else 1


ONE_ROW, ONE_PERSON = "one row", "one person"

BOUNDED = "person", "bounded_row"
"""The entry of a manifest's budget that holds `PersonRows`: of persons, or of rows."""


def bound_of(budget: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The entry of `BOUNDED` in a manifest's budget, if there is one."""
    return next((budget[name] for name in BOUNDED if budget.get(name)), None)


@dataclass(frozen=True)
class Ledger:
    """The whole budget of a release and every spend from it.

    Sequential composition: losses add up, ε under pure differential privacy, ρ under zCDP. If a measurement
    is itself (ε, δ)-DP, both its ε and its δ add up. Sums are compared exactly, as fractions.

    Attributes
    ----------
    epsilon : float
    delta : float
        0 for pure differential privacy.
    neighbours : str
        How two neighbouring tables may differ, in words.
    spends : tuple of Spend
    conversion : str
        Which of `hierdp.privacy.conversion.CONVERSIONS` converts (ε, δ) into ρ, under zCDP.
    person : PersonRows, optional
        The persons, if the guarantee is for persons: then ε and δ are those of a person. Or what is counted
        of a row, if that is bounded.
    threshold : str
        Which of `hierdp.privacy.threshold.THRESHOLDS` set the threshold, if a measurement has one.
    counts : str, optional
        The column of numbers that are counted; by default each row counts as one.
    trips : int
        The number of rows of a person, if the publisher states it and no column names persons.

    Raises
    ------
    InputError
        If the spends add up to more than the budget, there is no such conversion, or a measurement has a δ
        and the spends are for one row: then the loss of several rows is not a multiple.
    """

    epsilon: float
    delta: float
    neighbours: str
    spends: tuple[Spend, ...]
    conversion: str = TIGHTER
    person: PersonRows | None = None
    threshold: str = EXACT
    counts: str | None = None
    trips: int = 1

    def __post_init__(self) -> None:
        if self.delta and not self.zcdp and self._times > 1:
            raise InputError("with a threshold, the sensitivities must be those of a person with all rows")
        if self.conversion not in CONVERSIONS:
            raise InputError(f"no conversion {self.conversion!r}; there are {listed(CONVERSIONS)}")
        if self.threshold not in THRESHOLDS:
            raise InputError(f"no rule {self.threshold!r} for thresholds; there are {listed(THRESHOLDS)}")
        allowed = self.rho if self.zcdp else self.epsilon
        over = _excess(self._losses, allowed, self._times)
        if over > 0:
            much = f"the measurements cost {self.spent:.12g}, more than the budget of {allowed:.12g}"
            raise InputError(f"{much} (by {over:.3g})")
        over = _excess([spend.delta or 0.0 for spend in self.spends], self.delta)
        if over > 0:
            raise InputError(
                f"the measurements cost a δ of {self.spent_delta:.12g}, more than the budget's "
                f"{self.delta:.12g} (by {over:.3g})"
            )

    @property
    def zcdp(self) -> bool:
        """Whether losses add up as ρ: there is a δ, and no measurement spends part of it."""
        return self.delta > 0 and all(spend.delta is None for spend in self.spends)

    @property
    def has_threshold(self) -> bool:
        """Whether a measurement hides small counts by a threshold."""
        return any(spend.delta is not None for spend in self.spends)

    @property
    def spent_delta(self) -> float:
        """Sum of the δ of the measurements themselves; 0 under zCDP, where δ enters only at the end."""
        return math.fsum(spend.delta or 0 for spend in self.spends)

    @property
    def rho(self) -> float:
        """The zCDP budget; meaningful if delta > 0."""
        return CONVERSIONS[self.conversion](self.epsilon, self.delta)

    @property
    def spent(self) -> float:
        """Sum of a person's losses: ρ under zCDP, else ε."""
        if self._times == 1:
            return math.fsum(self._losses)
        return -below(-self._times * sum(map(Fraction, self._losses), Fraction(0)))

    @property
    def _losses(self) -> list[float]:
        losses = [s.rho if self.zcdp else s.epsilon for s in self.spends]
        if any(loss is None for loss in losses):
            raise InputError("a measurement's loss is of another kind than the budget's")
        return [loss for loss in losses if loss is not None]

    @property
    def _times(self) -> int:
        times = 1 if self.person is None else self.person.times
        return steps(times, zcdp=self.zcdp)

    @property
    def whom(self) -> Whom:
        """Whose presence is protected."""
        if self.person is None:
            return whom_of(counts=self.counts, trips=self.trips)
        column, rows = self.person.column, self.person.rows
        most = rows if column is None else None
        return whom_of(column, rows, most_per_row=most, counts=self.counts)

    @property
    def private(self) -> bool:
        """Whether all noise was drawn exactly, so that the guarantee holds."""
        return all(spend.private for spend in self.spends)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Ledger:
        """Read the result of `as_dict`; sums are computed again."""
        bound = bound_of(saved)
        person = None if bound is None else PersonRows(**{"column": None, **bound})
        relation = saved["neighbouring_relation"]
        spends = spends_of(saved)
        named, rule = rules_of(saved)
        more = {name: saved[name] for name in ("counts", "trips") if name in saved}
        return cls(saved["epsilon"], saved["delta"], relation, spends, named, person, rule, **more)

    def as_dict(self) -> dict[str, Any]:
        """The budget for the manifest."""
        pure = "pure differential privacy" if self.delta == 0 else "(ε, δ)-differential privacy"
        kind = "zero-concentrated differential privacy" if self.zcdp else pure
        return {
            "private": self.private,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "composition": kind,
            **({"rho": self.rho} if self.zcdp else {}),
            **({"conversion": self.conversion} if self.zcdp else {}),
            **({"threshold": self.threshold} if self.has_threshold else {}),
            "spent": self.spent,
            **({"spent_delta": self.spent_delta} if self.delta and not self.zcdp else {}),
            "protects": str(self.whom),
            **self._bound(),
            **({} if self.counts is None else {"counts": self.counts}),
            **({} if self.trips == 1 else {"trips": self.trips}),
            "neighbouring_relation": self.neighbours,
            "spends": [asdict(spend) for spend in self.spends],
        }

    def _bound(self) -> dict[str, Any]:
        if self.person is None:
            return {}
        person, (persons, rows) = asdict(self.person), BOUNDED
        if self.person.column is not None:
            return {persons: person}
        del person["column"]
        return {rows: person}


def rules_of(budget: Mapping[str, Any]) -> tuple[str, str]:
    """The conversion from (ε, δ) to ρ and the rule for thresholds that a manifest's budget names, if any."""
    return budget.get("conversion", TIGHTER), budget.get("threshold", EXACT)


def check_epsilon(epsilon: Any) -> float:
    """A positive finite ε.

    Raises `InputError` if it is zero, negative, NaN, infinite or not a number.
    """
    return _positive("epsilon", epsilon)


def check_delta(delta: Any) -> float:
    """A δ strictly between 0 and 1.

    Raises `InputError` if it is not.
    """
    return _between("delta", delta, "far below 1 / (number of people)")


class Allowed(NamedTuple):
    """What the measurements of a release may cost together, for one row, or for what sensitivities are for.

    - loss: ε, or ρ under zCDP, which `conversion` makes of `epsilon` and `delta`.
    - noise: double-geometric for ε, discrete Gaussian for ρ.
    - threshold: the rule of thresholds; see `Ledger`.
    """

    loss: float
    noise: str = GEOMETRIC
    epsilon: float = math.nan
    delta: float = 0.0
    conversion: str = TIGHTER
    threshold: str = EXACT

    def sensitivity(self, changed: int) -> float:
        """The sensitivity of numbers of which one row changes so many, each by 1: in L1 norm, or in L2."""
        return changed if self.noise == GEOMETRIC else root_of(changed)

    def part(self, loss: float) -> Allowed:
        """A part of it, with the same noise."""
        return self._replace(loss=loss)

    @classmethod
    def of(cls, epsilon: float, delta: float | None = None, rows: int = 1) -> Allowed:
        """For each of `rows` rows that together have ε; with a δ, by zCDP.

        Raises `InputError` if ε or δ is out of range.
        """
        epsilon = check_epsilon(epsilon)
        if delta is None:
            return cls(of_one_row(epsilon, rows), GEOMETRIC, epsilon)
        rho = of_one_row(rho_of(epsilon, check_delta(delta)), steps(rows, zcdp=True))
        return cls(rho, GAUSSIAN, epsilon, delta)

    @classmethod
    def stated(cls, budget: Mapping[str, Any]) -> Allowed:
        """That of a manifest's budget, which is for one row."""
        loss, noise = (budget["rho"], GAUSSIAN) if "rho" in budget else (budget["epsilon"], GEOMETRIC)
        return cls(loss, noise, budget["epsilon"], budget["delta"], *rules_of(budget))


def steps(rows: int, *, zcdp: bool) -> int:
    """By what the loss of one row is multiplied for several: group privacy.

    The ε of m rows is mε. Their ρ is m²ρ (Bun & Steinke 2016, Proposition 1.9).
    """
    return rows**2 if zcdp else rows


def check_share(share: Any) -> float:
    """A share of the budget, strictly between 0 and 1.

    Raises `InputError` if it is not.
    """
    return _between("share", share, "the rest of ε is for the sums")


def _between(name: str, value: Any, why: str) -> float:
    number = _number(name, value)
    if not 0 < number < 1:
        raise InputError(f"`{name}` is {number}: it must lie between 0 and 1, {why}")
    return number


def _positive(name: str, value: Any) -> float:
    number = _number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"`{name}` is {number}: it must be a positive finite number")
    return number


def _number(name: str, value: Any) -> float:
    try:
        if isinstance(value, str | bytes | bool | np.bool_):  # `float` would accept these
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must be a number, got {value!r}") from None


def split(budget: float, parts: int, shares: Sequence[float] | None = None) -> list[float]:
    """Divide a budget over levels, equally or by shares; parts are rounded down, so that the sum fits.

    Raises
    ------
    InputError
        If there is not one positive finite share per part.

    Examples
    --------
    >>> sum(split(0.7, 3)), sum(map(Fraction, split(0.7, 3))) <= Fraction(0.7)
    (0.7, True)
    """
    if shares is None:
        return [below(Fraction(budget) / parts)] * parts
    checked = [Fraction(_positive(f"share {i}", share)) for i, share in enumerate(shares)]
    if len(checked) != parts:
        raise InputError(f"{len(checked)} shares for {parts} levels; give one share per level")
    whole = sum(checked)
    return [below(Fraction(budget) * share / whole) for share in checked]


def of_one_row(epsilon: float, rows: int) -> float:
    """The ε of one row such that a person with `rows` rows has `epsilon`, rounded down; or ρ, with `steps`.

    >>> of_one_row(1.0, 4)
    0.25
    >>> 49 * Fraction(of_one_row(1.0, 49)) <= 1
    True
    """
    return below(Fraction(epsilon) / rows)


def rest_of(budget: float, *parts: float) -> float:
    """The rest of a budget after subtracting some parts, rounded down."""
    return below(Fraction(budget) - sum(map(Fraction, parts)))


def sum_of(losses: Iterable[float]) -> float:
    """The sum of several losses, rounded up."""
    return -below(-sum(map(Fraction, losses), Fraction(0)))


def _excess(losses: Sequence[float], allowed: float, times: int = 1) -> float:
    """By how much `times` the losses exceed what is allowed. The sign is right, however small it is."""
    if not all(map(math.isfinite, losses)):
        return math.inf
    over = times * sum(map(Fraction, losses), Fraction(0)) - Fraction(allowed)
    return -below(-over)
