"""A privacy account: the budget for all releases of a data set, and what they have spent, in a file.

A release is charged before it draws noise, for the most that it may cost, and is refused if that is more than
what is left. A release that fails afterwards, or is killed, stays charged, because some of its noise may have
been drawn.

How losses add up. The account allows ε and δ. A part of δ may be set aside for releases that spend some of δ
by themselves. A release is allowed if, together with all earlier charges, either

- the sum of all pure losses is at most ε, and none is a ρ; or
- the Rényi divergences of order α add up to what α and the rest of δ allow within ε,

and the δ taken by releases themselves add up to at most the part set aside. α is fixed when the account is
opened, as are both parts of δ, since the choice of a release may depend on earlier releases: with fixed
parts, both rules hold for such adaptive choices (Rogers, Roth, Ullman & Vadhan 2016; Feldman & Zrnic 2021).
They also hold together: outcomes that end under the first rule are bounded by e^ε each, and all others by the
second rule, whose sums can only have grown. Outside events whose probability is at most the part set aside,
releases that spend δ are as pure ones (Kairouz, Oh & Viswanath 2015).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from hierdp.errors import InputError
from hierdp.privacy import chain
from hierdp.privacy.budget import check_delta, check_epsilon
from hierdp.privacy.conversion import best_order, divergence_of
from hierdp.privacy.loss import Loss
from hierdp.privacy.rounding import below
from hierdp.privacy.whom import COUNT, PERSON, ROW, Whom

TERMS_OF_FORMAT_1 = "data", "epsilon", "delta", "set_aside", "unit", "replaces"
FIRST_LINE = 65_536
"""Bytes of a file that are read to tell whether it is an account."""

FORMAT = 2
"""Of an account that names the column of its persons or numbers; in format 1 that is not recorded."""

OPENED, CHARGED, WRITTEN, FAILED = "opened", "charged", "written", "failed"
"""The states that a line of the file can record."""

NOT_FINISHED = "not finished"
"""The state of a release that is charged and neither written nor failed: it still runs, or was killed."""


@dataclass(frozen=True)
class Terms:
    """What an account is for, and how much it allows: its first line.

    - epsilon, delta: δ may be 0: then only ε-DP releases are taken.
    - set_aside: the part of `delta` for releases that spend δ by themselves, such as a stability histogram.
    - unit: whom it protects: "row"; "person", with all rows; or "count", one of what a column of numbers
      counts.
    - replaces: whether neighbouring tables differ by replacing a unit, rather than by adding or removing one.
    - column: the column that names the person of each row; without it, persons are those of releases in which
      no column names them, such as ``top-down --trips``. Or the column of numbers.
    - recorded: whether the account says which column it is. Accounts of format 1 do not.
    """

    data: str
    epsilon: float
    delta: float = 0.0
    set_aside: float = 0.0
    unit: str = ROW
    replaces: bool = False
    column: str | None = None
    recorded: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.data, str) or not self.data.strip():
            raise InputError("the account needs the name of its data set")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.delta != 0:
            object.__setattr__(self, "delta", check_delta(self.delta))
        if not 0 <= self.set_aside <= self.delta:
            raise InputError(
                f"`set_aside` is {self.set_aside}: it must lie between 0 and `delta`, {self.delta}"
            )
        if self.unit not in (ROW, PERSON, COUNT):
            raise InputError(f"the unit is {self.unit!r}: it must be {ROW!r}, {PERSON!r} or {COUNT!r}")
        if self.column is not None and (not isinstance(self.column, str) or not self.column):
            raise InputError(f"the column is {self.column!r}: it must be the name of a column")
        if (self.unit == ROW and self.column is not None) or (self.unit == COUNT and self.column is None):
            raise InputError(
                "an account for one of what a column counts names that column, and one for a row names none"
            )

    @property
    def whom(self) -> Whom:
        """Whom it protects."""
        named = {"column": self.column} if self.unit == PERSON else {"counts": self.column}
        return Whom(self.unit, rows=None, **named)

    @property
    def rest(self) -> float:
        """The rest of δ, which converts Rényi divergences into ε."""
        return below(Fraction(self.delta) - Fraction(self.set_aside))


@dataclass(frozen=True)
class Charge:
    """A release in an account.

    - entry: its line.
    - at: when, as an ISO 8601 time in UTC.
    - what: the mechanism.
    - loss: what it is charged.
    - state: "written", "failed" or "not finished".
    - fingerprints: of what was written, first to last.
    - digest: of its line.
    """

    entry: int
    at: str
    what: str
    loss: Loss
    state: str
    fingerprints: tuple[str, ...]
    digest: str

    @property
    def fingerprint(self) -> str | None:
        """Of the release that was written; of several writings the last."""
        return self.fingerprints[-1] if self.fingerprints else None


@dataclass(frozen=True)
class Statement:
    """The contents of an account.

    Attributes
    ----------
    terms : Terms
    order : Decimal
        α − 1, or 0 if δ is 0.
    charges : tuple of Charge
    digest : str
        Digest of the last line. A copy kept elsewhere shows whether the account was replaced.
    """

    terms: Terms
    order: Decimal
    charges: tuple[Charge, ...]
    digest: str

    @property
    def losses(self) -> list[Loss]:
        """The losses of all charges."""
        return [charge.loss for charge in self.charges]

    @property
    def whom(self) -> Whom | None:
        """Whom it protects: by its terms, or, if these do not say, by its charges; None if none says."""
        if self.terms.recorded:
            return self.terms.whom
        return next((loss.whom for loss in self.losses if loss.recorded), None)

    @property
    def unrecorded(self) -> list[int]:
        """The entries whose charges do not say by which column they protect."""
        return [charge.entry for charge in self.charges if not charge.loss.recorded]

    @property
    def divergence(self) -> Fraction:
        """The sum of all Rényi divergences."""
        return sum((Fraction(loss.divergence(self.order)) for loss in self.losses), Fraction(0))

    @property
    def allowed(self) -> Fraction:
        """The largest sum of Rényi divergences; negative if δ allows none."""
        if not self.terms.rest:
            return Fraction(-1)
        return Fraction(divergence_of(self.terms.epsilon, self.terms.rest, self.order))

    @property
    def pure(self) -> Fraction | None:
        """The sum of ε, if all losses are pure."""
        if any(loss.rho is not None for loss in self.losses):
            return None
        return sum((Fraction(loss.epsilon or 0) for loss in self.losses), Fraction(0))

    @property
    def taken(self) -> Fraction:
        """The δ that releases spent by themselves."""
        return sum((Fraction(loss.delta) for loss in self.losses), Fraction(0))

    @property
    def share(self) -> float:
        """The share of the budget that is spent, by the rule that leaves more."""
        parts = [] if self.pure is None else [self.pure / Fraction(self.terms.epsilon)]
        if self.terms.rest and self.allowed > 0:
            parts.append(self.divergence / self.allowed)
        return float(min(parts))

    @property
    def left_epsilon(self) -> float:
        """The largest ε of a further pure release: by the first rule, or the second if some ρ was spent."""
        if self.pure is not None:
            return max(0.0, below(Fraction(self.terms.epsilon) - self.pure))
        return max(0.0, below(self.allowed - self.divergence))  # its divergence is at most its ε

    @property
    def left_rho(self) -> float:
        """The largest ρ of a further zCDP release."""
        if not self.terms.rest:
            return 0.0
        left = (self.allowed - self.divergence) / (1 + Fraction(self.order))
        return max(0.0, below(left / (1 + Fraction(1, 10**30))))

    @property
    def left_delta(self) -> float:
        """The rest of the δ that was set aside."""
        return below(Fraction(self.terms.set_aside) - self.taken)

    def holds(self) -> bool:
        """Whether the charges are within the budget."""
        if self.taken > Fraction(self.terms.set_aside):
            return False
        within = self.pure is not None and self.pure <= Fraction(self.terms.epsilon)
        return within or (bool(self.terms.rest) and self.divergence <= self.allowed)

    def with_charge(self, loss: Loss) -> Statement:
        """As if a release were charged for."""
        more = Charge(0, "", "", loss, NOT_FINISHED, (), "")
        return Statement(self.terms, self.order, (*self.charges, more), self.digest)


class Account:
    """An account in a file, made by `open_account`.

    Parameters
    ----------
    path : path
        The file.
    data : str, optional
        The name of the data that are released; it must be the account's. Default: the name of the table that
        a release reads.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from hierdp import release
    >>> homes = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
    >>> folder = tempfile.TemporaryDirectory()
    >>> account = open_account(f"{folder.name}/homes.account", data="homes", epsilon=1)
    >>> about = {"levels": ["state"], "group": ["home"], "groups": homes.drop_duplicates(), "max_size": 3}
    >>> made = release(homes, "group-size", epsilon=0.75, account=account, **about)
    >>> account.statement().left_epsilon
    0.25
    >>> release(homes, "group-size", epsilon=0.5, account=account, **about)
    Traceback (most recent call last):
    hierdp.errors.InputError: ... has ε = 0.25 left, and this release costs ε = 0.5: nothing is released
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, data: str | None = None) -> None:
        self.path, self.data = Path(path), data

    def statement(self) -> Statement:
        """Read the file.

        Raises
        ------
        InputError
            If it is missing, is not an account, was changed, or was cut short.
        """
        return _statement(self.path, chain.read(self.path))

    def check(self, loss: Loss, data: str | None = None) -> None:
        """Check that a release fits within the budget now; it may still be refused when it is charged.

        Raises
        ------
        InputError
            If it does not fit, or the account is for other data or another unit, or cannot be written to.
        """
        with chain.appending(self.path) as (entries, _):
            self._checked_loss(entries, loss, data)

    def charge(self, loss: Loss, what: str, data: str | None = None, **about: Any) -> Entry:
        """Charge a release; the charge is on the disk when this returns. Call it before noise is drawn.

        Parameters
        ----------
        loss : Loss
            The most that it may cost.
        what : str
            The mechanism.
        data : str, optional
            The name of its data, if the `Account` was created without one.
        **about
            Public facts to record with the charge.

        Raises
        ------
        InputError
            See `check`; then nothing is charged.
        """
        with chain.appending(self.path) as (entries, append):
            charged = self._checked_loss(entries, loss, data)
            line = append({"kind": CHARGED, "what": what, "loss": charged.as_dict(), **about})
        return Entry(self, line, entries[0]["data"])

    def _checked_loss(self, entries: Sequence[chain.Entry], loss: Loss, data: str | None) -> Loss:
        """The loss, converted to the account's neighbouring relation."""
        now = _statement(self.path, entries)
        charged = _loss_by_terms(now, loss, self.data or data, self.path)
        if not now.with_charge(charged).holds():
            raise InputError(f"{self.path} has {_left_in_words(now, charged)}: nothing is released")
        return charged

    def add(self, kind: str, entry: int, **about: Any) -> None:
        """Record the outcome of a charge."""
        with chain.appending(self.path) as (_, append):
            append({"kind": kind, "charge": entry, **about})


class Entry:
    """A charge in an account, whose outcome can be recorded."""

    def __init__(self, account: Account, line: Mapping[str, Any], data: str) -> None:
        self.account, self.data = account, data
        self.number, self.digest = int(line["entry"]), str(line["digest"])

    def written(self, fingerprint: str) -> None:
        """Record that the release is in a folder, which is about to be renamed to its name."""
        self.account.add(WRITTEN, self.number, fingerprint=fingerprint)

    def failed(self, failure: BaseException) -> None:
        """Record a failure after the charge. If that cannot be written, the release stays "not finished"."""
        with suppress(OSError, InputError):
            self.account.add(FAILED, self.number, why=type(failure).__name__)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Record a failure of the block; the exception propagates."""
        try:
            yield
        except BaseException as failure:
            self.failed(failure)
            raise

    def as_dict(self) -> dict[str, Any]:
        """The charge as an entry of the manifest."""
        return {"data": self.data, "entry": self.number, "digest": self.digest}


def accounts_beside(source: Any) -> Iterator[Path]:
    """The accounts in the folder of a file that are for it, or for a data set that is not a file there.

    Of a symbolic link, also those in the folder of the file that it leads to.
    """
    if not isinstance(source, str | PathLike) or not Path(source).is_file():
        return
    given, found = Path(source).absolute(), set[Path]()
    for path in (given, given.resolve()):
        for other in sorted(path.parent.iterdir()):
            name = _account_of(other)
            theirs = name is not None and (
                name in (path.name, path.stem) or not (other.parent / name).exists()
            )
            if theirs and other.resolve() not in found:
                found.add(other.resolve())
                yield other


def _account_of(path: Path) -> str | None:
    """The data set that a file is the account of; None if it is not an account."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            start = file.read(FIRST_LINE)
        if not start.startswith(b"{"):
            return None
        line = json.loads(start.partition(b"\n")[0])
    except (OSError, ValueError, RecursionError):
        return None
    named = isinstance(line, dict) and line.get("kind") == OPENED and "data" in line
    return str(line["data"]) if named else None


def refuse_uncharged(source: Any, without: str | None) -> None:
    """Refuse a release that is charged to no account, although one lies beside its table.

    - source: the table; see `accounts_beside`.
    - without: why it is not charged; then it is not refused.

    Raises `InputError` if there is an account and no reason, or the reason is not a text.
    """
    if without is not None:
        if not isinstance(without, str) or not without.strip():
            raise InputError("`without_account` is the reason for charging no account, in words")
        return
    found = next(accounts_beside(source), None)
    if found is not None:
        raise InputError(
            f"these data have an account, {found}: charge the release to it (`account={found}`), or say why "
            "not (`without_account=REASON`), which the manifest then says"
        )


def open_account(path: str | Path, data: str, epsilon: float, delta: float = 0.0, **terms: Any) -> Account:
    """Create an account.

    Parameters
    ----------
    path : path
        A file that does not exist. ``NAME.head`` beside it belongs to it.
    data : str
        The data set's name: the file name of the table, as a release reads it, or any other.
    epsilon, delta : float
        The budget for all releases together.
    **terms
        `set_aside`, `unit`, `column` and `replaces` of `Terms`.

    Raises
    ------
    InputError
        If a term is out of its range, or no file can be created there.
    """
    agreed = Terms(data, epsilon, delta, **terms)
    order = str(best_order(agreed.epsilon, agreed.rest)) if agreed.rest else "0"
    about = {name: getattr(agreed, name) for name in Terms.__dataclass_fields__ if name != "recorded"}
    named = {"kind": OPENED, "format": FORMAT, "id": secrets.token_hex(8)}
    chain.create(Path(path), {**named, **about, "order": order})
    return Account(path, data)


def _statement(path: Path, entries: Sequence[chain.Entry]) -> Statement:
    """The statement that follows from the lines of an account.

    Raises `InputError` if they are not the lines of an account.
    """
    try:
        first, *others = entries
        if first["kind"] != OPENED or first["format"] not in (1, FORMAT):
            raise ValueError
        recorded = first["format"] == FORMAT
        names = [*TERMS_OF_FORMAT_1, *(["column"] if recorded else [])]
        terms = Terms(**{name: first[name] for name in names}, recorded=recorded)
        charges: dict[int, Charge] = {}
        for line in others:
            if line["kind"] == CHARGED:
                about = line["entry"], line["at"], line["what"], Loss.from_dict(line["loss"])
                charges[line["entry"]] = Charge(*about, NOT_FINISHED, (), line["digest"])
            elif line["kind"] in (WRITTEN, FAILED):
                charges[line["charge"]] = _with_outcome(charges[line["charge"]], line)
            else:
                raise ValueError
        order = Decimal(first["order"])
    except (ValueError, KeyError, TypeError, ArithmeticError):
        raise InputError(f"{path} is not an account of this version of hierdp") from None
    return Statement(terms, order, tuple(charges.values()), entries[-1]["digest"])


def _with_outcome(charge: Charge, line: chain.Entry) -> Charge:
    written = (line["fingerprint"],) if line["kind"] == WRITTEN else ()
    return replace(charge, state=line["kind"], fingerprints=(*charge.fingerprints, *written))


def _loss_by_terms(now: Statement, loss: Loss, data: str | None, path: Path) -> Loss:
    """The loss of a release by the account's terms; refuses other data or another unit."""
    terms = now.terms
    if data is None:
        raise InputError(f"{path} is an account for {terms.data!r}: give the name of the data (`data`)")
    if data != terms.data:
        raise InputError(
            f"{path} is an account for {terms.data!r}, but {data!r} is to be released. If both contain the "
            "same people, give the account's name (`data`)"
        )
    _check_whom(now, loss.whom, path)
    if terms.replaces:
        return loss.of_a_replacement()
    if loss.replaces:
        raise InputError(
            f"{path} protects whether a {terms.unit} is in the data at all, and this release takes the total "
            "as public: release with --unbounded, or use an account opened with --replaces"
        )
    return loss


def _check_whom(now: Statement, whom: Whom, path: Path) -> None:
    ours, old = now.whom, {ROW: (ROW, COUNT), PERSON: (PERSON,)}
    if ours is None:
        if whom.unit not in old[now.terms.unit]:
            raise InputError(
                f"{path} protects a {now.terms.unit} (opened before accounts named a column), but this "
                f"release protects {whom.name}: their losses cannot be added. Open an account for that"
            )
        return
    if whom.key == ours.key:
        return
    how = {
        PERSON: f"release with --person {ours.column}" if ours.column else "release with --trips",
        COUNT: f"release with --count {ours.counts} (or --entities), without --person and --most-per-row",
        ROW: "bound what a row counts by --most-per-row" if whom.unit == COUNT else "leave out --person",
    }
    raise InputError(
        f"{path} protects {ours.name}, but this release protects {whom.name}: their losses cannot be added. "
        f"For this account, {how[ours.unit]}; or open an account for the other"
    )


def _left_in_words(now: Statement, loss: Loss) -> str:
    if Fraction(loss.delta) > Fraction(now.left_delta):
        return (
            f"δ = {now.left_delta:g} left of the part set aside, and this release spends "
            f"{loss.delta:g} by itself"
        )
    if loss.rho is not None:
        return f"ρ = {now.left_rho:.6g} left, and this release costs ρ = {loss.rho:.6g}"
    return f"ε = {now.left_epsilon:.6g} left, and this release costs ε = {loss.epsilon:.6g}"
