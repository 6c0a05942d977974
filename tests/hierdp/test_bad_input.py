"""Mistakes that a user can make, each with its message: what is wrong, and what to do.

Mistakes in a table's rows and in files are in `test_tables`, those of budgets in `test_budget`.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_cli import AGES, FILES, FLOWS, GROUPS, SIZES, TABLED

from hierdp import Hierarchy, Names, Numbers, SimulatedNoise, release
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.tables import Prefixes, flows, group_sizes, read, read_parents, read_regions
from models import Chebyshev, HierarchyQIP, Isotonic, Tree
from solvers import solve
from tests.marks import quick


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HIERDP_DEBUG", "1")  # unexpected failures give a traceback here
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("blank.csv").write_text(FILES["people.csv"] + "B, b,9,1\n")
    Path("blank columns.csv").write_text(FILES["people.csv"].replace(",", ", ", 3))
    Path("wide.csv").write_text("o_state,o,d,n\n" + "".join(f"A,a{i},x{i},1\n" for i in range(5000)))
    np.savez("odd.npz", a=np.arange(3))
    Path("mine").mkdir()
    Path("mine", "thesis.txt").write_text("years of work")
    return tmp_path


def sizes_of(file):
    return SIZES.replace("people.csv", shlex.quote(file))


RANGES = "release range-query ages.csv --epsilon 1 --out out"
OPENED = "account open a.account"
COMMANDS = {
    "no file": (sizes_of("peple.csv"), "no file 'peple.csv'"),
    "a folder for a file": (sizes_of("mine"), "no file 'mine'"),
    "a region with a blank": (
        sizes_of("blank.csv"),
        "row 5, column 'county': the name ' b' begins or ends with a blank; strip names in the data",
    ),
    "columns with blanks": (
        sizes_of("blank columns.csv"), "the name of column ' n' of the data begins or ends with a blank"
    ),
    "a range beyond the bins": ("analyze 120 --epsilon 1 --range 90:200", "range '90:200' must contain"),
    "no paper": ("reproduce", "PAPER is missing; there are 'kuo2018'"),
    "a region that is not in the table": (
        TABLED.replace("people.csv", "'no such region.csv'"),
        "column 'county' has 1 region(s) not in the table of regions: 'zz'",
    ),
    "no table of regions": (TABLED.replace("regions.csv", "gone.csv"), "no file 'gone.csv'"),
    "a level that is not there": (
        SIZES.replace("state,county", "state,conty"),
        "no column 'conty' in the data; its columns are 'state', 'county', 'home', 'n'. "
        "Did you mean 'county'?",
    ),
    "a group that is not there": (SIZES.replace("--group home", "--group hom"), "Did you mean 'home'?"),
    "counts that are not there": (SIZES.replace("--entities n", "--entities m"), "no column 'm'"),
    "ε zero": (SIZES.replace("--epsilon 1", "--epsilon 0"), "epsilon is 0.0: it must be a positive"),
    "ε with a comma": (SIZES.replace("--epsilon 1", "--epsilon 0,5"), "epsilon must be a number"),
    "ε smallest": (SIZES.replace("--epsilon 1", "--epsilon 5e-324"), "epsilon is so small"),
    "no ε": (SIZES.replace("--epsilon 1", ""), "Missing option '--epsilon'"),
    "δ one": (FLOWS.replace("1e-8", "1"), "delta is 1.0: it must lie between 0 and 1"),
    "no δ": (FLOWS.replace("--delta 1e-8", ""), "Missing option '--delta'"),
    "δ where there is none": (RANGES + " --delta 1e-8", "No such option"),
    "no size": (SIZES.replace("--max-size 5", "--max-size 0"), "--max-size must be a whole number from 1"),
    "half a size": (SIZES.replace("--max-size 5", "--max-size 1.5"), "'1.5' is not a valid integer"),
    "too many sizes": (SIZES.replace("--max-size 5", "--max-size 2147483647"), "choose a smaller --max-size"),
    "a seed below 0": (SIZES + " --simulate -1", "--simulate"),
    "a name that is taken": (SIZES + " --unknown a", "level 'county' already has a region 'a'"),
    "an empty name": (SIZES + " --unknown ''", "must be a non-empty text"),
    "a group's name": (SIZES + " --unknown 3", "a group is already called '3'"),
    "nowhere": (SIZES.replace("--levels state,county", ""), "no regions: name their columns by --levels"),
    "both ways": (TABLED.replace("--levels ", "--levels state,"), "with --regions, name one column"),
    "half of one way": (TABLED.replace("--levels county", ""), "no regions: name their columns by --levels"),
    "no levels of the table": (
        TABLED.replace("--region-levels state,county", ""),
        "name its columns by --region-levels",
    ),
    "an axis without a column": (FLOWS.replace("to=d", "to"), "--axis to: give each axis once, as NAME="),
    "an axis twice": (FLOWS.replace("to=d", "origin=d"), "--axis origin=d: give each axis once"),
    "an axis without a name": (FLOWS.replace("to=d", "=d"), "--axis =d"),
    "an axis called level": (FLOWS.replace("to=d", "level=d"), "an axis cannot be called 'level'"),
    "an axis called count": (FLOWS.replace("to=d", "count=d"), "an axis cannot be called 'count'"),
    "two columns with a table": (
        FLOWS + " --regions ends.csv --region-levels end", "with --regions, name one column"
    ),
    "no axis": (FLOWS.replace("--axis origin=o_state,o --axis to=d", ""), "Missing option '--axis'"),
    "no such axis": (FLOWS + " --first form", "there is no axis 'form'; there are 'origin', 'to'"),
    "a folder that is not there": (SIZES.replace("--out out", "--out no/out"), "create it first"),
    "a file for a folder": (SIZES.replace("--out out", "--out 'a file'"), "a file exists; choose"),
    "a folder of mine": (SIZES.replace("--out out", "--out mine"), "mine exists; choose"),
    "a folder of mine, overwritten": (
        SIZES.replace("--out out", "--out mine --overwrite"), "mine is not an unchanged release"
    ),
    "here": (SIZES.replace("--out out", "--out . --overwrite"), ". is, or contains, the current directory"),
    "no folder": (SIZES.replace("--out out", ""), "Missing option '--out'"),
    "no such command": ("relese", "No such command 'relese'"),
    "no such mechanism": ("release group-sizes", "No such command 'group-sizes'"),
    "no such model": ("verify Isotone", "no model Isotone. Did you mean Isotonic? The models are"),
    "no such backend": ("verify --backends hihgs", "there is no backend 'hihgs'. Did you mean highs?"),
    "a backend that is not installed": (
        "verify Chebyshev --backends pyomo:no_such",
        "the backend pyomo:no_such is not installed. To get it: pip install pyomo",
    ),
    "no time": ("verify --time-limit 0", "--time-limit"),
    "no time for the demo": ("demo --out out --time-limit -1", "--time-limit"),
    "NaN seconds for the demo": ("demo --out out --time-limit nan", "--time-limit must be a number"),
    "no instances": ("verify --instances 0", "--instances"),
    "a table that cannot be written": ("verify --out no/v.parquet", "create it first"),
    "the demo over a file": ("demo --out 'a file'", "a file exists; choose"),
    "the demo over a folder of mine": ("demo --out mine --overwrite", "mine is not an unchanged"),
    "no workers": (SIZES + " --workers 0", "--workers"),
    "half a worker": (SIZES + " --workers 0.5", "'0.5' is not a valid integer"),
    "more workers than anybody has": (SIZES + " --workers 100000", "workers must be a whole number"),
    "workers here and there": (SIZES + " --workers 2 --scheduler tcp://x:1", "not both"),
    "no such scheduler": (SIZES + " --scheduler nowhere:x", "no Dask scheduler answers"),
    "a method of another mechanism": (SIZES + " --method InfTDA", "no method 'InfTDA'; there are 'M_H'"),
    "a solver that the method does not take": (SIZES + " --backend highs", "takes no --backend; it takes"),
    "a solver that there is not": (SIZES + " --method M_H --backend hihgs", "no backend 'hihgs'. Did you"),
    "a window below 0": (SIZES + " --window -1", "--window"),
    "no time for a solver": (SIZES + " --method M_H --time-limit 0", "--time-limit"),
    "NaN seconds for a solver": (SIZES + " --method M_H --time-limit nan", "--time-limit is nan"),
    "two budgets": (SIZES + " --epsilon", "Option '--epsilon' requires an argument"),
    "an unknown option": (SIZES + " --fast", "No such option"),
    "another table": (SIZES + " trips.csv", "unexpected extra argument"),
    "shares for one level": (FLOWS + " --share 1", "1 shares for 3 levels"),
    "no trips": (FLOWS + " --trips 0", "--trips"),
    "too many trips": (FLOWS + " --trips 99999999999", "trips per person is 99999999999"),
    "too many cells": (
        FLOWS.replace("trips.csv", "wide.csv") + " --method VanillaGauss",
        "VanillaGauss draws noise for every possible finest cell",
    ),
    "an instance that is not there": ("verify --instance gone.npz", "there is no file gone.npz"),
    "an instance that is none": ("verify --instance 'a file'", "a file holds no instance of a model"),
    "an instance that is another archive": ("verify --instance odd.npz", "odd.npz"),
    "no such paper": ("reproduce smith1999", "unknown paper 'smith1999'; there are 'kuo2018'"),
    "a paper over a folder of mine": ("reproduce fioretto2019 --out mine", "mine exists; choose"),
    "runs kept among files of mine": (
        "verify Chebyshev --backends highs --resume mine", "mine exists, but is not a folder of finished runs"
    ),
    "a small-letter method": (AGES + " --method sf", "no method 'sf'; did you mean 'SF'? There are 'AHP'"),
    "a share for NF": (AGES + " --method NF --share 0.3", "NF takes no --share; it takes no options"),
    "a share of all and more": (AGES + " --share 1.5", "share is 1.5: it must lie between 0 and 1"),
    "more clusters than bins": (
        AGES + " --method SF --clusters 9", "clusters is 9: 8 bins form 1 to 8 runs"
    ),
    "no width": (AGES + " --method GS --width 0", "'--width': 0 is not in the range x>=1"),
    "two methods for three levels": (
        GROUPS + " --method 'Hc x Hc'", "2 methods for 3 levels ('root', 'state', 'county')"
    ),
    "no such method of a level": (GROUPS + " --method Hx", "no method 'Hx'"),
    "a largest size twice": (GROUPS + " --size-budget 0.1 --max-size 9", "leave out one of them"),
    "a part beyond the budget": (
        GROUPS + " --size-budget 2", "--size-budget is 2.0: it must be a part of --epsilon (1.0)"
    ),
    "one share for three levels": (GROUPS + " --share 1", "1 shares for 3 levels"),
    "no size of a group": (GROUPS + " --max-size 0", "--max-size must be a whole number from 1"),
    "no such merging": (GROUPS + " --merge best", "Invalid value for '--merge'"),
    "all at once without a size": (
        GROUPS + " --merge 'at once' --size-budget 0.1", "needs a public largest size, without --size-budget"
    ),
    "all at once with millions of sizes": (
        GROUPS + " --merge 'at once' --max-size 9000000", "6 regions and sizes up to 9,000,000"
    ),
    "nothing for groups": (GROUPS + " --group-budget 0", "Invalid value for '--group-budget'"),
    "no columns of bins": (RANGES, "no columns to divide into bins: give --numbers, --dates or --names"),
    "bins without ends": (RANGES + " --numbers age", "--numbers age: write COLUMN=LOW:HIGH"),
    "a number of bins in words": (RANGES + " --numbers age=0:100:x", "write COLUMN=LOW:HIGH"),
    "no bins between ends": (RANGES + " --numbers age=0:100:0", "the number of bins must be at least 1"),
    "bins from a word": (RANGES + " --numbers age=a:100", "'a' is not a number"),
    "bins that end too early": (RANGES + " --numbers age=0:50", "the value is outside the bins"),
    "bins to some day": (RANGES + " --dates town=2013-01-01:soon", "'soon' is not a date"),
    "a budget and shares": (
        RANGES + " --numbers age=0:100 --budget equal --share 1", "give --budget or --share, not both"
    ),
    "no such method of ranges": (RANGES + " --numbers age=0:100 --method H_9", "no method 'H_9'"),
    "regions of no file": (
        RANGES + " --numbers age=0:100 --regions r.csv --region-levels state", "no file"
    ),
    "an analysis of words": ("analyze abc --epsilon 1", "got 'abc'"),
    "an analysis of far too many bins": ("analyze 2^99 --epsilon 1", "got '2^99'"),
    "an analysis of no bins": ("analyze 0 --epsilon 1", "bins must be at least 1, got 0"),
    "an analysis without a budget": ("analyze 10 --epsilon 0", "epsilon is 0"),
    "a range of one end": ("analyze 10 --epsilon 1 --range 5", "write LOW:HIGH"),
    "a range from a word": ("analyze 10 --epsilon 1 --range a:5", "write LOW:HIGH"),
    "a range over the end": (
        "analyze 10 --epsilon 1 --range 3:11", "range '3:11' must contain a bin and lie within"
    ),
    "a box for a line": ("analyze 10 --epsilon 1 --range 1:2,3:4", "each of 1 dimension"),
    "ranges and a workload": ("analyze 10 --epsilon 1 --range 1:2 --workload ranges", "not both"),
    "no such workload": ("analyze 10 --epsilon 1 --workload boxes", "choose ranges, prefixes"),
    "prefixes of a plane": ("analyze 10 --epsilon 1 --dimensions 2 --workload prefixes", "use 2-way"),
    "marginals of a line": ("analyze 10 --epsilon 1 --workload 2-way", "2-way marginals of 1"),
    "branching by x": ("analyze 10 --epsilon 1 --branching x", "--branching x"),
    "branching by one": ("analyze 10 --epsilon 1 --branching 1", "must be at least 2, got 1"),
    "too many bins for a matrix": ("analyze 1000 --epsilon 1 --matrix-mechanism", "512 bins"),
    "an account of much": (OPENED + " --data homes.csv --epsilon much", "epsilon must be a number"),
    "an account with a δ of no": (
        OPENED + " --data homes.csv --epsilon 1 --delta no", "delta must be a number"
    ),
    "an account of no data": (OPENED + " --epsilon 1", "Missing option '--data'"),
    "no account": ("account none.account", "there is no account none.account"),
    "runs kept nowhere": ("verify Chebyshev --backends highs --resume no/kept", "create it first"),
}  # fmt: skip

# 777 is a valid count, so no message may quote it.
ROWS = pd.DataFrame({"s": ["A", "A", "B"], "c": ["a", "b", "d"], "g": ["x", "y", "z"], "n": [777, 777, 777]})
PLACES = Hierarchy.flat("c", ["a", "b", "d"])


def sizes(rows=ROWS, **options):
    usual = {"levels": ["s", "c"], "group": ["g"], "entities": "n", "max_size": 5}
    return group_sizes(rows, **(usual | options))


def trips(rows=ROWS, **options):
    return flows(rows, **({"axes": {"at": ["s", "c"]}, "count": "n"} | options))


SEEN = {"regions_from_data": True, "groups_from_data": True}


def of_sizes(rows=ROWS, **options):
    given = {"epsilon": 1, "levels": ["s"], "group": ["g"], "max_size": 5, **SEEN} | options
    return release(rows, "group-size", noise=SimulatedNoise(1), **given)


def of_trips(rows=ROWS, **options):
    given = {"epsilon": 1, "delta": 1e-8, "axes": {"at": ["s"]}, "count": "n"}
    given |= {"regions_from_data": True} | options
    return release(rows, "top-down", noise=SimulatedNoise(1), **given)


def of_bins(axes, mechanism="range-query", **options):
    given = {"epsilon": 1, "count": "n", "noise": SimulatedNoise(1)} | options
    return release(ROWS, mechanism, axes=axes, **given)


PADDED = pd.DataFrame({"s": ["06", "06", "06"], "c": ["06037", " 06037", None], " n ": [777, 777, 777]})
FIPS = Prefixes("c", {"s": 2, "c": 6})

CALLS = {
    "a list": (lambda: read([1, 2]), "cannot read a table from list"),
    "two columns of one name in a frame": (
        lambda: read(pd.DataFrame([[1, 2]], columns=["c", "C"])), "two columns are called 'C'"
    ),
    "a frame without columns": (lambda: trips(pd.DataFrame()), "the table has no columns"),
    "a count beyond 64 bits in a frame": (
        lambda: trips(ROWS.assign(n=pd.Series([777, 2**63, 777], dtype=object))),
        "incompatible types, or numbers beyond 64 bits",
    ),
    "a hierarchy without levels": (lambda: Hierarchy.from_columns(ROWS, []), "level"),
    "bins that are a name": (lambda: of_bins(["g"]), "axis 0 is the text 'g'; give an axis such as Numbers"),
    "bins that are one name": (lambda: of_bins("g"), "axes is the text 'g'; give a list"),
    "bins by name": (lambda: of_bins({"g": "g"}), "axes is of type dict; give a list"),
    "bins of three": (lambda: of_bins([("n", 0, 120)]), "axis 0 is of type tuple; give an axis"),
    "bins not in a list": (lambda: of_bins(Numbers("n", 0, 9)), "axes is of type Numbers; give a list"),
    "no bins": (lambda: of_bins([]), "no axes; give at least one, such as Numbers"),
    "bins of names without regions": (
        lambda: of_bins([Names("g", np.array(["x", "y"], object))], "clustering"), "axis 0 is of type Names"
    ),
    "bins of a number": (lambda: of_bins([("g", 5)], "clustering"), "an axis is .* not of type int"),
    "a hierarchy without its column": (
        lambda: of_bins([("c", PLACES)]), r"with a hierarchy, give the column .*: \(hierarchy, 'county'\)"
    ),
    "axes in a list": (lambda: of_trips(axes=["s"]), "axes is of type list; give the columns of each by"),
    "axes that are a name": (lambda: of_trips(axes="s"), "axes is of type str; give the columns of each"),
    "an axis that is a number": (lambda: of_trips(axes={"at": 5}), "an axis is .* not of type int"),
    "a mechanism in a list": (lambda: release(ROWS, ["group-size"], epsilon=1), "no mechanism \\['group-s"),
    "noise that is a seed": (
        lambda: release(ROWS, "top-down", epsilon=1, noise=5), r"noise must be None .* not int"
    ),
    "noise without a seed": (
        lambda: release(ROWS, "top-down", epsilon=1, noise=SimulatedNoise), "not the class SimulatedNoise"
    ),
    "a column in a list": (
        lambda: trips(count=["n"]), r"name of a column must be a text, such as 's'; got \['n'\]"
    ),
    "a region with a blank before it": (
        lambda: trips(PADDED.iloc[:2], axes={"at": ["s", "c"]}, count=None),
        "row 2, column 'c': the name ' 06037' begins or ends with a blank; strip names in the data",
    ),
    "a region with a blank after it, and others unknown": (
        lambda: trips(PADDED.replace(" 06037", "06037\u00a0"), axes={"at": ["c"]}, count=None, unknown="?"),
        r"row 2, column 'c': the name '06037\\xa0' begins or ends with a blank",
    ),
    "a code with a blank for a zero": (
        lambda: trips(PADDED.iloc[1:2], axes={"at": FIPS}, count=None), "row 1, column 'c': the name ' 0'"
    ),
    "a region with a blank in the table of regions": (
        lambda: read_regions(PADDED.iloc[:2], ["s", "c"]), "row 2, column 'c': .* in the table of regions"
    ),
    "a parent with a blank": (
        lambda: read_parents(pd.DataFrame({"id": ["a", "b"], "in": ["x", "x "]}), "id", "in"),
        "row 2, column 'in': the name 'x ' begins or ends with a blank; strip names in the table of regions",
    ),
    "a column with blanks": (
        lambda: trips(PADDED.iloc[:1], count=" n "), "the name of column ' n ' of the data begins or ends"
    ),
    "a column that has blanks in the data": (
        lambda: trips(PADDED.iloc[:1], count="n"), "column ' n ' of the data begins or ends with a blank"
    ),
    "a method that there is not": (lambda: of_sizes(method="M_x"), "no method 'M_x'; did you mean 'M_c'"),
    "a window that is none": (lambda: of_sizes(method="M_H", window=-1), "window is -1"),
    "a time that is none": (lambda: of_sizes(method="M_H", time_limit=0), "time_limit is 0"),
    "a solver that is not here": (lambda: of_sizes(method="M_H", backend="x"), "there is no backend 'x'"),
    "trips in halves": (lambda: of_trips(trips=1.5), "trips must be a whole number, got 1.5"),
    "branching in words": (lambda: of_bins([Numbers("n", 0, 9)], branching="4"), "branching must be a whole"),
    "a budget of a number": (
        lambda: of_bins([Numbers("n", 0, 9)], budget=5), "budget must be a text or a list of numbers"
    ),
    "a method in a list": (lambda: of_sizes(method=["M_H"]), "method must be a text, got one of type list"),
    "levels that are a number": (lambda: of_sizes(levels=5), "levels must be a text or a list of texts"),
    "a group that is a number": (lambda: of_sizes(group=5), "group must be a text or a list of texts, got 5"),
    "entities in a list": (lambda: of_sizes(entities=["n"]), "entities must be a text, got one of type list"),
    "regions that are a file": (
        lambda: of_sizes(levels=None, regions="r.csv", region="c"), "regions must be a Hierarchy, got 'r.csv'"
    ),
    "a window in words": (lambda: of_sizes(method="M_H", window="a"), "window must be a whole number"),
    "a time in words": (lambda: of_sizes(method="M_H", time_limit="a"), "time_limit must be a number"),
    "a solver that is a number": (lambda: of_sizes(method="M_H", backend=5), "backend must be a text, got 5"),
    "a truth in words": (lambda: of_trips(bounded="no"), "bounded must be True or False, got 'no'"),
    "shares that are a word": (lambda: of_trips(shares="1"), "shares must be a list of numbers, got '1'"),
    "an axis named by a number": (lambda: of_trips(axes={5: ["s"]}), "an axis is named by a text, not by 5"),
    "shares that do not fit": (lambda: of_trips(shares=[1, 2]), "2 shares for 1 levels"),
    "an axis that there is not": (lambda: of_trips(first="to"), "there is no axis 'to'; there are 'at'"),
    "an axis by a name that is taken": (
        lambda: of_trips(axes={"count": ["s"]}), "an axis cannot be called 'count'"
    ),
    "shares where there are no levels": (lambda: of_trips(method="SH", shares=[1]), "SH takes no shares"),
    "a tree with an orphan": (lambda: Tree([[0, 0], [0, 2]]), "parent"),
    "counts of another shape": (lambda: HierarchyQIP(Tree([[0, 0]]), [[1, 2]], 3), "row|shape|node"),
    "a total below 0": (lambda: Chebyshev([1, 2], -1), "total"),
    "a norm that there is not": (lambda: Isotonic([1, 2], p=3), "p "),
    "bounds that cross": (lambda: Isotonic([1, 2], lower=3, upper=2), "lower|upper"),
    "a backend that there is not": (lambda: solve(Isotonic([1]), "hihgs"), "no backend 'hihgs'"),
    "no time to solve": (lambda: solve(Isotonic([1]), "highs", time_limit=0), "time_limit must be positive"),
    "no thread to solve": (lambda: solve(Isotonic([1]), "highs", threads=0), "threads must be at least 1"),
}  # fmt: skip

KINDS = {**COMMANDS, **CALLS}


STATES = Hierarchy.from_columns({"state": ["A", "A", "B"], "county": ["a", "b", "c"]}, ["state", "county"])


@pytest.mark.parametrize(
    ("mechanism", "given", "message"),
    [
        ("group-size", {"levels": ["s", "c"], "shares": [1, 1]}, "2 shares for 3 levels"),
        ("group-size", {"regions": STATES, "region": "c", "shares": [1]}, "1 shares for 3 levels"),
        ("count-of-counts", {"levels": ["s", "c"], "shares": [1, 1]}, "2 shares for 3 levels"),
        (
            "top-down",
            {"axes": {"from": ["s", "c"], "to": (STATES, "d")}, "shares": [1]},
            "1 shares for 4 lev",
        ),
        ("top-down", {"axes": {"to": ["s"]}, "bounded": False, "shares": [1]}, "1 shares for 2 levels"),
        ("top-down", {"axes": {"to": ["s"]}, "method": "SH", "shares": [1]}, "SH takes no shares"),
        ("top-down", {"axes": {"to": ["s"]}, "method": "SH", "zeros": "a=b"}, "SH takes no zeros"),
        (
            "range-query",
            {"axes": [Numbers("x", 0, 8, 8)], "branching": 2, "budget": [1]},
            "1 shares for 3 lev",
        ),
        (
            "range-query",
            {"axes": [("to", (STATES, "d"))], "method": "H_tree", "budget": [1]},
            "1 shares for 2",
        ),
    ],
)
def test_shares_that_do_not_fit_are_refused_before_a_table_is_read(mechanism, given, message):
    """There is no such table."""
    if mechanism in ("group-size", "count-of-counts"):
        given = {"group": ["h"], "groups_from_data": True, "max_size": 3, **given}
        given |= {} if "regions" in given else {"regions_from_data": True}
    elif mechanism == "top-down":
        given = {"delta": 1e-6, "regions_from_data": True, **given}
    with pytest.raises(InputError, match=message):
        release("no-such-table.parquet", mechanism, epsilon=1.0, **given)


@pytest.mark.parametrize(("what", "message"), quick(KINDS.values(), every=2), ids=list(KINDS))
def test_bad_input(place, what, message):
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
    if callable(what):
        with pytest.raises(ValueError, match=message) as caught:
            what()
        said, error = "", caught.value
        while error is not None:  # as a log of exceptions would show it
            said, error = said + repr(error), error.__cause__ or error.__context__
    else:
        done = CliRunner().invoke(main, shlex.split(what), prog_name="hierdp")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        said = " ".join(done.output.split())
        assert done.exit_code == 2, said
        assert len(re.findall(r"^Error: .*", done.output, re.M)) == 1
        assert message in said
        assert not Path("out").exists()
    assert "777" not in said.replace(str(place), "")  # its name has the number of the test run
    assert {p: p.read_bytes() for p in place.rglob("*") if p.is_file()} == before


def test_there_are_many_kinds():
    assert len(KINDS) == len(COMMANDS) + len(CALLS)  # names do not repeat
    assert len(KINDS) >= 175
