"""What a tabulation counts, measures and keeps: its plan, from options or from a TOML file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from hierdp.errors import InputError, listed
from hierdp.mechanisms.option import read_toml

TOTAL, DETAILED = "total", "detailed"
"""The queries that every plan can name: one sum of all cells, and every cell alone."""

COLUMNS = ("level", "level_name", "region", "parent", "count", "standard_error")
"""Columns of a release, which no attribute can be named for."""

MOST_WEIGHT = 1_000_000
"""The largest weight of a query."""

SHIPPED = "plans"
"""The folder of the plans that come with hierdp."""

Shares = Mapping[str, Fraction]
Cells = Mapping[str, tuple[str, ...]]
"""Some cells: for each attribute or recode, the categories allowed. Those not named have any category."""


@dataclass(frozen=True)
class Recode:
    """An attribute in coarser categories: for each of these, the attribute's categories that it holds."""

    attribute: str
    categories: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Bound:
    """A public lower or upper bound on answers of a query in the regions of a level.

    - lower, upper: one number for every region of the level, or a number for each region by name; a region
      that is not named has no bound.
    - answer: the answers that are bounded; default: all.
    """

    level: str
    query: str
    lower: int | Mapping[str, int] | None = None
    upper: int | Mapping[str, int] | None = None
    answer: Cells = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TabulationPlan:
    """A tabulation's plan. All of it is public.

    Attributes
    ----------
    attributes : mapping of str to tuple of str, or None
        The attributes in the order of the histogram's axes, with their categories; None: those in the data.
    recodes : mapping of str to Recode
        Attributes in coarser categories, by name.
    queries : tuple of str
        "total", "detailed" (every cell), or attributes and recodes joined by "*": "group*age". Default: the
        total, each attribute, and every cell.
    level_shares : mapping of str to Fraction, optional
        Each level's share of ρ; 0: not measured. Default: equal.
    query_shares : mapping of str to Fraction, or of str to mapping
        For all levels, each query's share of the level's ρ; or, for a level by name, such shares. Default:
        equal.
    invariants : tuple of (level, query)
        Answers that are published as they are.
    bounds : tuple of Bound
    zeros : tuple of Cells
        Structural zeros: cells that are known to be empty.
    passes : tuple of tuples of str, optional
        The queries of each pass of least squares. Default: the method's.
    rounding : tuple of str, optional
        The queries that rounding keeps near. Default: the method's.
    weights : mapping of str to Fraction
        How much TopDown's least squares counts each query's squares, relative to the inverse of their
        variance. Default: 1.

    Raises
    ------
    InputError
        If a name, a share, a bound or a combination of categories contradicts the rest.

    Examples
    --------
    >>> plan = plan_of({"attributes": {"group": ["a", "b"], "age": ["old", "young"]}},
    ...                queries=["total", "group * age"], bounds=["county:total:0..100"])
    >>> plan.queries, plan.bounds[0].upper
    (('total', 'group*age'), 100)
    """

    attributes: Mapping[str, tuple[str, ...] | None]
    recodes: Mapping[str, Recode] = field(default_factory=dict)
    queries: tuple[str, ...] = ()
    level_shares: Shares | None = None
    query_shares: Mapping[str, Fraction | Shares] = field(default_factory=dict)
    invariants: tuple[tuple[str, str], ...] = ()
    bounds: tuple[Bound, ...] = ()
    zeros: tuple[Cells, ...] = ()
    passes: tuple[tuple[str, ...], ...] | None = None
    rounding: tuple[str, ...] | None = None
    weights: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.attributes:
            raise InputError("no attributes: name at least one column of categories (--attribute)")
        for name, categories in self.attributes.items():
            _check_name("attribute", name)
            if categories is not None:
                _check_categories(f"attribute {name!r}", categories)
        for name, recode in self.recodes.items():
            self._check_recode(name, recode)
        if not self.queries:
            several = (DETAILED,) if len(self.attributes) > 1 else ()
            object.__setattr__(self, "queries", (TOTAL, *self.attributes, *several))
        for query in self.queries:
            self.variables(query)
        _refuse_repeats("query", self.queries)
        for group in (*(self.passes or ()), self.rounding or (), self.weights):
            for query in group:
                self._check_measured(query)
        for where, shares in self.query_shares.items():
            if isinstance(shares, Mapping):
                self._check_shares(f"level {where!r}", shares)
        self._check_shares("every level", self.shares_of_every_level or None)
        if self.level_shares is not None:
            _check_sum("the levels", self.level_shares)
        for _, query in (*self.invariants, *((bound.level, bound.query) for bound in self.bounds)):
            self.variables(query)
        _refuse_repeats("invariant", [":".join(one) for one in self.invariants])
        for cells in (*self.zeros, *(bound.answer for bound in self.bounds)):
            for variable in cells:
                self._check_variable(variable, "the plan")

    @property
    def shares_of_every_level(self) -> dict[str, Fraction]:
        """The shares of queries on levels without shares of their own."""
        return {name: part for name, part in self.query_shares.items() if isinstance(part, Fraction)}

    def variables(self, query: str) -> tuple[str, ...]:
        """The attributes and recodes whose combinations a query counts.

        Raises
        ------
        InputError
            If it names something else, or one attribute twice.
        """
        if query == TOTAL:
            return ()
        if query == DETAILED:
            return tuple(self.attributes)
        named = tuple(query.split("*"))
        for variable in named:
            self._check_variable(variable, f"query {query!r}")
        used = [self.attribute_of(variable) for variable in named]
        if len(set(used)) < len(used):
            twice = next(name for name in used if used.count(name) > 1)
            raise InputError(f"query {query!r} names attribute {twice!r} twice, itself or by a recode")
        return named

    def attribute_of(self, variable: str) -> str:
        """The attribute that an attribute or recode is about."""
        return self.recodes[variable].attribute if variable in self.recodes else variable

    def with_categories(self, found: Mapping[str, Sequence[str]]) -> TabulationPlan:
        """The plan with the categories of attributes that had none."""
        return replace(self, attributes={**self.attributes, **{name: tuple(c) for name, c in found.items()}})

    @property
    def unlisted(self) -> tuple[str, ...]:
        """The attributes without a list of categories."""
        return tuple(name for name, categories in self.attributes.items() if categories is None)

    def check_levels(self, levels: Sequence[str]) -> None:
        """Check that the plan names no level but these.

        Raises
        ------
        InputError
            If it does, or if it has shares of some levels and not of others.
        """
        shared = [name for name, part in self.query_shares.items() if isinstance(part, Mapping)]
        named = [*shared, *(level for level, _ in self.invariants), *(bound.level for bound in self.bounds)]
        for level in (*named, *(self.level_shares or ())):
            if level not in levels:
                raise InputError(f"the plan names level {level!r}; {_there_are('levels', level, levels)}")
        missing = [level for level in levels if self.level_shares and level not in self.level_shares]
        if missing:
            raise InputError(
                f"level {missing[0]!r} has no share, and other levels have: give it one, or 0 to measure "
                "nothing there"
            )

    def as_dict(self) -> dict[str, Any]:
        """The plan in the form of a TOML file, ready for JSON; `plan_of` reads it."""
        whole: dict[str, Any] = {
            "attributes": {name: list(categories or ()) for name, categories in self.attributes.items()},
            "recodes": {
                name: {
                    "attribute": recode.attribute,
                    "categories": {coarse: list(fine) for coarse, fine in recode.categories.items()},
                }
                for name, recode in self.recodes.items()
            },
            "queries": list(self.queries),
            "level_shares": _texts(self.level_shares or {}),
            "query_shares": {
                name: _texts(part) if isinstance(part, Mapping) else str(part)
                for name, part in self.query_shares.items()
            },
            "invariants": [":".join(one) for one in self.invariants],
            "bounds": [_bound_as_dict(bound) for bound in self.bounds],
            "zeros": [{name: list(chosen) for name, chosen in cells.items()} for cells in self.zeros],
            "passes": [list(one) for one in self.passes or ()],
            "rounding": list(self.rounding or ()),
            "weights": _texts(self.weights),
        }
        return {name: value for name, value in whole.items() if value}

    def _check_variable(self, name: str, where: str) -> None:
        if name not in self.attributes and name not in self.recodes:
            there = [*self.attributes, *self.recodes]
            raise InputError(f"{where} names attribute {name!r}; {_there_are('attributes', name, there)}")

    def _check_recode(self, name: str, recode: Recode) -> None:
        _check_name("recode", name)
        if name in self.attributes:
            raise InputError(f"recode {name!r} has the name of an attribute; choose another")
        if recode.attribute not in self.attributes:
            there = _there_are("attributes", recode.attribute, list(self.attributes))
            raise InputError(f"recode {name!r} is of attribute {recode.attribute!r}; {there}")
        _check_categories(f"recode {name!r}", tuple(recode.categories))
        fine = [category for part in recode.categories.values() for category in part]
        if len(set(fine)) < len(fine):
            twice = next(category for category in fine if fine.count(category) > 1)
            raise InputError(f"recode {name!r} has category {twice!r} twice; a category has one coarser one")

    def _check_measured(self, query: str) -> None:
        if query not in self.queries:
            raise InputError(
                f"a pass, the rounding, a weight or a share is of query {query!r}, which is not in the plan; "
                f"{_there_are('queries', query, self.queries)}"
            )

    def _check_shares(self, where: str, shares: Shares | None) -> None:
        if shares is None:
            return
        for query in shares:
            self._check_measured(query)
        missing = [query for query in self.queries if query not in shares]
        if missing:
            raise InputError(
                f"{where}: query {missing[0]!r} has no share, and others have: give it one, or 0 to leave it "
                "out"
            )
        _check_sum(f"the queries on {where}", shares)


def plan_of(plan: str | Path | Mapping[str, Any] | None = None, **options: Any) -> TabulationPlan:
    """The plan in a TOML file, a shipped plan by its name, or a mapping of the same form; and options.

    Parameters
    ----------
    plan : path, str or mapping, optional
    **options
        Fields of `TabulationPlan`, as on the command line or in the form of the file; each replaces the
        file's. None leaves it.

    Raises
    ------
    InputError
        If the file cannot be read, or an entry is not what it should be.
    """
    entries = {} if plan is None else dict(plan) if isinstance(plan, Mapping) else _read(plan)
    known = [each.name for each in fields(TabulationPlan)]
    for name in entries:
        if name not in known:
            raise InputError(f"the plan has an entry {name!r}; {_there_are('entries', name, known)}")
    entries |= {name: value for name, value in options.items() if value is not None}
    attributes = _attributes(entries.get("attributes", {}))
    recodes = {
        name: _recode(name, one) for name, one in _mapping("recodes", entries.get("recodes", {})).items()
    }
    names = (*attributes, *recodes)
    return TabulationPlan(
        attributes,
        recodes,
        tuple(map(query_name, _list("queries", entries.get("queries", ())))),
        _shares_by_name("level_shares", entries["level_shares"]) if entries.get("level_shares") else None,
        _query_shares(entries.get("query_shares", {})),
        tuple(_invariant(one) for one in _list("invariants", entries.get("invariants", ()))),
        tuple(_bound(one, names) for one in _list("bounds", entries.get("bounds", ()))),
        tuple(_cells("zeros", one, names) for one in _list("zeros", entries.get("zeros", ()))),
        tuple(_pass(one) for one in _list("passes", entries["passes"])) if entries.get("passes") else None,
        tuple(map(query_name, _list("rounding", entries["rounding"]))) if entries.get("rounding") else None,
        {
            query_name(name): _weight(name, one)
            for name, one in _mapping("weights", entries.get("weights", {})).items()
        },
    )


def query_name(text: Any) -> str:
    """A query's name without blanks around its attributes."""
    return "*".join(part.strip() for part in _text("a query", text).split("*"))


def shipped() -> list[str]:
    """The names of the plans that come with hierdp."""
    folder = resources.files(__package__).joinpath(SHIPPED)
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def _read(plan: str | Path) -> dict[str, Any]:
    if isinstance(plan, str) and plan in shipped():
        return tomllib.loads(
            resources.files(__package__).joinpath(SHIPPED, f"{plan}.toml").read_text(encoding="utf-8")
        )
    path = Path(plan)
    if not path.is_file():
        raise InputError(
            f"no plan {str(plan)!r}: there is no such file, and hierdp comes with {listed(shipped())}"
        )
    return read_toml(path)


# --- entries, as options or in the form of the file ------------------------------------------------------


def _attributes(given: Any) -> dict[str, tuple[str, ...] | None]:
    """Attributes with their categories: a mapping, or texts such as ``age=old,young``, ``age=ages.csv``."""
    if isinstance(given, Mapping):
        return {_text("an attribute", name): _categories(name, one) for name, one in given.items()}
    found: dict[str, tuple[str, ...] | None] = {}
    for one in _list("attributes", given):
        name, equals, text = _text("an attribute", one).partition("=")
        if name in found:
            raise InputError(f"attribute {name!r} is given twice")
        if text.lower().endswith((".csv", ".parquet")):
            found[name] = _categories(name, Path(text))
        else:
            found[name] = tuple(part.strip() for part in text.split(",")) if equals else None
    return found


def _categories(name: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, Path):
        from hierdp.tables.sources import read, run

        table = read(given)
        if name not in table.columns:
            raise InputError(
                f"the file {str(given)!r} has no column {name!r}, with that attribute's categories"
            )
        return tuple(_text(f"attribute {name!r}", one) for one in run(table.select(name))[name].to_pylist())
    return tuple(_text(f"attribute {name!r}", one) for one in _list(f"attribute {name!r}", given))


def _recode(name: str, given: Any) -> Recode:
    entries = _mapping(f"recode {name!r}", given)
    if set(entries) != {"attribute", "categories"}:
        raise InputError(
            f"recode {name!r} has the entries {listed(entries)}; it needs 'attribute' and 'categories' (for "
            "each coarser category, a list of the attribute's)"
        )
    parts = _mapping(f"the categories of recode {name!r}", entries["categories"])
    categories = {coarse: _texts_of(f"recode {name!r}", fine) for coarse, fine in parts.items()}
    return Recode(_text(f"recode {name!r}", entries["attribute"]), categories)


def _query_shares(given: Any) -> dict[str, Fraction | Shares]:
    """Shares for all levels and by level: a mapping, or texts: ``total=1/2``, ``state:total=1/2``."""
    if isinstance(given, Mapping):
        found: dict[str, Fraction | Shares] = {}
        for name, part in given.items():
            if isinstance(part, Mapping):
                found[name] = _shares_by_name(f"query_shares of level {name!r}", part, query_name)
            else:
                found[query_name(name)] = _share(name, part)
        return found
    by_level: dict[str, dict[str, Any]] = {}
    for one in _list("query_shares", given):
        named, equals, share = _text("a share", one).rpartition("=")
        level, _, query = named.rpartition(":")
        if not equals or not query or query_name(query) in by_level.get(level, {}):
            raise InputError(f"query share {one!r}: give each once, as QUERY=SHARE or LEVEL:QUERY=SHARE")
        by_level.setdefault(level, {})[query_name(query)] = share
    return _query_shares({**by_level.pop("", {}), **by_level})


def _shares_by_name(where: str, given: Any, spelt: Any = str) -> Shares:
    if isinstance(given, Mapping):
        return {spelt(name): _share(name, part) for name, part in given.items()}
    found: dict[str, Fraction] = {}
    for one in _list(where, given):
        name, equals, share = _text("a share", one).rpartition("=")
        if not equals or not name or name in found:
            raise InputError(f"{where}, {one!r}: give each once, as NAME=SHARE")
        found[name] = _share(name, share)
    return found


def _share(name: str, given: Any) -> Fraction:
    """A share as an exact fraction: 3/4, 0.75, or nothing for 0."""
    share = Fraction(0) if given == "" else _fraction(given)
    if share is None or not 0 <= share <= 1:
        raise InputError(
            f"the share of {name!r} is {given!r}: write a number from 0 to 1, such as 0.25 or 3/4"
        )
    return share


def _weight(name: str, given: Any) -> Fraction:
    weight = _fraction(given)
    if weight is None or not 0 < weight <= MOST_WEIGHT:
        raise InputError(
            f"the weight of {name!r} is {given!r}: write a number above 0, at most {MOST_WEIGHT:,}"
        )
    return weight


def _fraction(given: Any) -> Fraction | None:
    """A number as an exact fraction; a float counts as the decimal shown. None if it is no number."""
    if isinstance(given, bool) or not isinstance(given, str | int | float | Fraction):
        return None
    try:
        return Fraction(str(given).replace(" ", ""))
    except (ValueError, ZeroDivisionError):
        return None


def _invariant(given: Any) -> tuple[str, str]:
    level, colon, query = _text("an invariant", given).rpartition(":")
    if not colon or not level:
        raise InputError(f"invariant {given!r}: write LEVEL:QUERY, such as state:total")
    return level, query_name(query)


def _bound(given: Any, names: Sequence[str]) -> Bound:
    """A bound: a mapping, or a text such as ``county:total:0..1000``, where either end may be missing."""
    if isinstance(given, str):
        found = re.fullmatch(r"(.+):([^:]+):(\d*)\.\.(\d*)", given)
        if found is None or not (found[3] or found[4]):
            raise InputError(f"bound {given!r}: write LEVEL:QUERY:LOWER..UPPER, such as county:total:0..1000")
        lower, upper = (int(end) if end else None for end in (found[3], found[4]))
        return _kept(Bound(found[1], query_name(found[2]), lower, upper))
    entries = _mapping("a bound", given)
    known = [each.name for each in fields(Bound)]
    for name in entries:
        if name not in known:
            raise InputError(f"a bound has an entry {name!r}; {_there_are('entries', name, known)}")
    if not {"level", "query"} <= set(entries) or not {"lower", "upper"} & set(entries):
        raise InputError(f"bound {dict(entries)!r} needs a level, a query, and lower or upper or both")
    ends = (_end(entries.get("lower")), _end(entries.get("upper")))
    answer = _cells("a bound's answer", entries.get("answer", {}), names)
    return _kept(Bound(_text("a level", entries["level"]), query_name(entries["query"]), *ends, answer))


def _kept(bound: Bound) -> Bound:
    """Refuse a bound that no table can keep."""
    lower, upper = bound.lower, bound.upper
    regions = {*(lower if isinstance(lower, Mapping) else ()), *(upper if isinstance(upper, Mapping) else ())}
    for region in sorted(regions) or [None]:
        low, high = end_of(lower, region), end_of(upper, region)
        if (high is not None and high < 0) or (low is not None and high is not None and low > high):
            where = "" if region is None else f", region {region!r}"
            raise InputError(
                f"no table can keep the bound on {bound.level}:{bound.query}{where}: from {low} to {high}"
            )
    return bound


def end_of(end: int | Mapping[str, int] | None, region: str | None) -> int | None:
    """The end of a bound in a region; None if there is none."""
    return end.get(region or "") if isinstance(end, Mapping) else end


def _end(given: Any) -> int | dict[str, int] | None:
    if isinstance(given, Mapping):
        return {name: _whole(name, number) for name, number in given.items()}
    return None if given is None else _whole("a bound", given)


def _whole(name: str, number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) >= 2**53:
        raise InputError(f"the bound of {name!r} is {number!r}: bounds are whole numbers")
    return number


def _cells(what: str, given: Any, names: Sequence[str]) -> Cells:
    """Some cells: a mapping, or a text such as ``hhgq=nursing,votingage=under 18``."""
    if isinstance(given, str):
        parts = re.split(rf",\s*(?=(?:{'|'.join(map(re.escape, names))})\s*=)", given)
        entries: dict[str, Any] = {}
        for part in parts:
            name, equals, category = (text.strip() for text in part.partition("="))
            if not equals or name in entries:
                raise InputError(f"{what}, {given!r}: write ATTRIBUTE=CATEGORY,ATTRIBUTE=CATEGORY")
            entries[name] = category
        given = entries
    return {
        name: (chosen,) if isinstance(chosen, str) else _texts_of(f"{what}, {name!r}", chosen)
        for name, chosen in _mapping(what, given).items()
    }


def _pass(given: Any) -> tuple[str, ...]:
    queries = given.split(",") if isinstance(given, str) else _list("passes", given)
    return tuple(map(query_name, queries))


# --- checks ----------------------------------------------------------------------------------------------


def _check_name(what: str, name: str) -> None:
    if not name or name != name.strip() or set(name) & set("*:=,") or name in (TOTAL, DETAILED, *COLUMNS):
        raise InputError(
            f"{what} {name!r}: choose another name, without *, :, = or a comma, and not {TOTAL!r}, "
            f"{DETAILED!r} or a column of the release ({', '.join(COLUMNS)})"
        )


def _check_categories(where: str, categories: Sequence[str]) -> None:
    if not categories or "" in categories:
        raise InputError(f"{where} needs categories, none of them empty")
    _refuse_repeats(f"{where}: category", categories)


def _check_sum(what: str, shares: Shares) -> None:
    whole = sum(shares.values(), Fraction(0))
    if whole > 1:
        raise InputError(
            f"the shares of {what} add up to {whole}, more than the budget: at most 1 is allowed"
        )


def _refuse_repeats(what: str, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InputError(f"{what} {name!r} is given twice")


def _there_are(what: str, name: str, there: Iterable[str]) -> str:
    """What there is in place of a name that is not known, and the nearest."""
    known = list(there)
    near = get_close_matches(name, known, n=1)
    return f"its {what} are {listed(known, most=30)}" + (f". Did you mean {near[0]!r}?" if near else "")


def _text(what: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InputError(f"{what} must be a text, got {given!r}")
    return given


def _list(what: str, given: Any) -> Sequence[Any]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise InputError(f"{what} must be a list, got {given!r}")
    return list(given)


def _texts_of(what: str, given: Any) -> tuple[str, ...]:
    return tuple(_text(what, one) for one in _list(what, given))


def _mapping(what: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must be a table of names and values, got {given!r}")
    return given


def _texts(shares: Shares) -> dict[str, str]:
    return {name: str(share) for name, share in shares.items()}


def _bound_as_dict(bound: Bound) -> dict[str, Any]:
    ends = {
        name: dict(end) if isinstance(end, Mapping) else end
        for name, end in (("lower", bound.lower), ("upper", bound.upper))
        if end is not None
    }
    answer = {name: list(chosen) for name, chosen in bound.answer.items()}
    return {"level": bound.level, "query": bound.query, **ends, **({"answer": answer} if answer else {})}
