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

ε and δ are added as the decimals that were typed, without rounding: three releases of ε = 0.1 cost 0.3. A
float differs from its decimal by at most 2⁻⁵³ of it; scales of noise are larger than needed by more than that
(`hierdp.privacy.noise.UPWARDS`), so that a release costs at most its decimal.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
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
from hierdp.privacy.rounding import below, typed
from hierdp.privacy.whom import COUNT, PERSON, ROW, Whom

FIRST_LINE = 65_536
"""Bytes of a file that are read to tell whether it is an account."""

FORMAT = 1
"""The format of an account, which its first line names."""

OPENED, CHARGED, WRITTEN, FAILED = "opened", "charged", "written", "failed"
"""The states that a line of the file can record."""

STAYS_CHARGED = "stays charged"
"""In a note on every failure after a charge."""

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
    """

    data: str
    epsilon: float
    delta: float = 0.0
    set_aside: float = 0.0
    unit: str = ROW
    replaces: bool = False
    column: str | None = None

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
        return sum((typed(loss.epsilon or 0) for loss in self.losses), Fraction(0))

    @property
    def taken(self) -> Fraction:
        """The δ that releases spent by themselves."""
        return sum((typed(loss.delta) for loss in self.losses), Fraction(0))

    @property
    def share(self) -> float:
        """The share of the budget that is spent, by the rule that leaves more."""
        parts = [] if self.pure is None else [self.pure / typed(self.terms.epsilon)]
        if self.terms.rest and self.allowed > 0:
            parts.append(self.divergence / self.allowed)
        return float(min(parts))

    @property
    def left_epsilon(self) -> float:
        """The largest ε of a further pure release: by the first rule, or the second if some ρ was spent."""
        if self.pure is not None:
            return max(0.0, below(typed(self.terms.epsilon) - self.pure, typed))
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
        return below(typed(self.terms.set_aside) - self.taken, typed)

    def holds(self) -> bool:
        """Whether the charges are within the budget."""
        if self.taken > typed(self.terms.set_aside):
            return False
        within = self.pure is not None and self.pure <= typed(self.terms.epsilon)
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
        if not self.path.exists():
            raise InputError(f"there is no account {self.path}; open one with `{_opening(self, data, loss)}`")
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
        loss = Loss.from_dict(line["loss"]).in_words
        self.stays_charged = f"entry {self.number} of {account.path} {STAYS_CHARGED}, {loss}"

    def written(self, fingerprint: str) -> None:
        """Record that the release is in a folder, which is about to be renamed to its name."""
        self.account.add(WRITTEN, self.number, fingerprint=fingerprint)

    def failed(self, failure: BaseException) -> None:
        """Record a failure after the charge, and note on it what stays charged.

        If that cannot be written, the release stays "not finished".
        """
        failure.add_note(self.stays_charged)
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
    """The accounts in the folder of a table's files that are for one, or for data that are not a file there.

    - source: a file, or an object with `files_read`, such as a `Database`; other tables have no files.

    Of a symbolic link, also those in the folder of the file that it leads to. Hard links are one file.
    """
    if isinstance(source, str | PathLike):
        files = [Path(source)]
    else:
        read = getattr(source, "files_read", None)
        files = read() if callable(read) else []
    found = set[Path]()
    for given in files:
        if not given.is_file():
            continue
        for path in (given.absolute(), given.resolve()):
            for other, name in _accounts_in(path.parent):
                is_other_file = os.path.exists(path.parent / name)
                theirs = _same_data(name, path.name, path.parent) or not is_other_file
                if theirs and other.resolve() not in found:
                    found.add(other.resolve())
                    yield other


def _accounts_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """The accounts in a folder, with the names of their data sets."""
    for path in sorted(folder.iterdir()):
        name = _account_of(path)
        if name is not None:
            yield path, name


def _same_data(one: str, other: str, folder: Path) -> bool:
    """Whether two names are those of one data set: the same, of one file, or a file's without its suffix."""
    paths = folder / one, folder / other
    there = [os.path.isfile(path) for path in paths]
    if one == other or (all(there) and paths[0].samefile(paths[1])):
        return True
    return (there[0] and paths[0].stem == other) or (there[1] and paths[1].stem == one)


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


def refuse_protected(source: Any, public: str | None, account: str | Path | None = None) -> None:
    """Refuse to read a table that has an account without charging it. Whatever reads a table calls this.

    - source: the table; see `accounts_beside`. None: no table.
    - public: why it is public although it has an account; then it is not refused.
    - account: its account, if it is known.

    Raises `InputError` if there is an account and no reason, or the reason is not a text.
    """
    _check_reason("public", "why the data are public", public)
    if account is not None:
        Account(account).statement()  # which checks that it is one
    found = next(accounts_beside(source), None) if account is None else Path(account)
    if found is not None and public is None:
        raise InputError(
            f"these data have an account, {found}, so they are to be protected: what is chosen by them "
            "without a charge reveals something that no budget covers. Use public data; if these are public, "
            "say why (`public=REASON`)"
        )


def _check_reason(name: str, what: str, given: Any) -> None:
    if given is not None and (not isinstance(given, str) or not given.strip()):
        raise InputError(f"`{name}` is {what}, in words")


def refuse_uncharged(source: Any, without: str | None, account: Account | None = None) -> None:
    """Refuse a release that is not charged to an account that lies beside its table.

    - source: the table; see `accounts_beside`.
    - without: why it is not charged; then it is not refused.
    - account: the account that it is charged to, if any. Then a reason has to name every other one.

    Raises `InputError` if there is such an account and no reason, or the reason is not a text.
    """
    _check_reason("without_account", "the reason for charging no account", without)
    if account is not None:
        ours = account.path
        others = [one for one in accounts_beside(source) if not (ours.exists() and one.samefile(ours))]
        if without is not None and not others:
            raise InputError("the release is charged to an account: leave out `without_account`")
        if unnamed := [one for one in others if one.name not in (without or "")]:
            raise InputError(
                f"these data have another account, {unnamed[0]}: charge the release to it "
                f"(`account={unnamed[0]}`), or give a reason that names {unnamed[0].name} "
                "(`without_account=REASON`), which the manifest then says"
            )
        return
    if without is None and (found := next(accounts_beside(source), None)) is not None:
        raise InputError(
            f"these data have an account, {found}: charge the release to it (`account={found}`), or say why "
            "not (`without_account=REASON`), which the manifest then says"
        )


def _refuse_second(path: Path, data: str) -> None:
    """Refuse to open a second account for data: its releases would not be charged to the first."""
    folder = path.absolute().parent
    if not folder.is_dir() or os.path.lexists(path):
        return  # `chain.create` says so
    for where in {folder} if os.path.isfile(folder / data) else {folder, Path.cwd()}:
        for other, name in _accounts_in(where):
            if _same_data(name, data, where):
                raise InputError(
                    f"{data!r} has an account, {other}, and one account limits what all its releases cost: "
                    "charge them to it. If it is no longer in use, move it away"
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
        If a term is out of its range, the data have an account there, or no file can be created.
    """
    agreed = Terms(data, epsilon, delta, **terms)
    _refuse_second(Path(path), data)
    order = str(best_order(agreed.epsilon, agreed.rest)) if agreed.rest else "0"
    named = {"kind": OPENED, "format": FORMAT, "id": secrets.token_hex(8)}
    chain.create(Path(path), {**named, **asdict(agreed), "order": order})
    return Account(path, data)


def _statement(path: Path, entries: Sequence[chain.Entry]) -> Statement:
    """The statement that follows from the lines of an account.

    Raises `InputError` if they are not the lines of an account, or its format is another one.
    """
    first: chain.Entry = entries[0] if entries else {}
    if first.get("kind") == OPENED and first.get("format") != FORMAT:
        found = repr(first.get("format"))[:40]
        raise InputError(
            f"{path} is an account of the format {found}; this version of hierdp reads the format {FORMAT}: "
            "use the version that opened it"
        )
    try:
        first, *others = entries
        if first["kind"] != OPENED:
            raise ValueError
        terms = Terms(**{field.name: first[field.name] for field in fields(Terms)})
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
        raise InputError(f"{path} is not an account") from None
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
    _check_whom(terms.whom, loss.whom, path)
    if terms.replaces:
        return loss.of_a_replacement()
    if loss.replaces:
        raise InputError(
            f"{path} protects whether a {terms.unit} is in the data at all, and this release takes the total "
            "as public: release with --unbounded, or use an account opened with --replaces"
        )
    return loss


def _check_whom(ours: Whom, whom: Whom, path: Path) -> None:
    if whom.key == ours.key:
        return
    how = {
        PERSON: f"release with --person {ours.column}" if ours.column else "release by top-down with --trips",
        COUNT: f"release with --count {ours.counts} (or --entities), without --person and --most-per-row",
        ROW: "bound what a row counts by --most-per-row" if whom.unit == COUNT else "leave out --person",
    }
    raise InputError(
        f"{path} protects {ours.name}, but this release protects {whom.name}: their losses cannot be added. "
        f"For this account, {how[ours.unit]}"
    )


def _opening(account: Account, data: str | None, loss: Loss) -> str:
    """The command that opens an account for releases such as one of this loss."""
    named = account.data or data or "NAME"
    words = ["hierdp account open", shlex.quote(str(account.path)), "--data", shlex.quote(named)]
    if loss.unit != ROW:
        column = f"--{loss.unit} {shlex.quote(loss.column or loss.counts or '')}"
        words.append(column if loss.column or loss.unit == COUNT else f"--unit {loss.unit}")
    words.append("--epsilon NUMBER")
    words += ["--delta NUMBER"] if loss.rho is not None or loss.delta else []
    words += ["--set-aside NUMBER"] if loss.delta else []
    return " ".join([*words, "--replaces"] if loss.replaces else words)


def _left_in_words(now: Statement, loss: Loss) -> str:
    if loss.delta > now.left_delta:
        left, cost = _apart(now.left_delta, loss.delta)
        return f"δ = {left} left of the part set aside, and this release spends {cost} by itself"
    if loss.rho is not None:
        left, cost = _apart(now.left_rho, loss.rho)
        return f"ρ = {left} left, and this release costs ρ = {cost}"
    left, cost = _apart(now.left_epsilon, loss.epsilon or 0.0)
    return f"ε = {left} left, and this release costs ε = {cost}"


def _apart(left: float, cost: float) -> tuple[str, str]:
    """Both numbers as texts: of six digits, or of all if these are the same."""
    short = f"{left:.6g}", f"{cost:.6g}"
    return short if short[0] != short[1] else (repr(left), repr(cost))
