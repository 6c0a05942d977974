"""The options of every mechanism are declared once, for Python, the command line and the help."""

import inspect
import re
from collections.abc import Sequence
from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from hierdp import InputError, release
from hierdp.cli import main
from hierdp.cli.forms import FORMS, arguments_of, flags_of
from hierdp.cli.release import shared
from hierdp.mechanisms import MECHANISMS
from hierdp.mechanisms.option import Keyword, Option, check_options, documented, keywords_of
from hierdp.mechanisms.registry import PACKAGES, REPAIR

KEYWORDS = {name: mechanism.keywords for name, mechanism in MECHANISMS.items()}
EACH = [(name, keyword) for name, keywords in KEYWORDS.items() for keyword in keywords]


def words(text):
    """A text without line breaks, indents and code marks."""
    return " ".join(text.replace("`", "").split())


def help_of(mechanism):
    done = CliRunner().invoke(main, ["release", mechanism, "--help"], terminal_width=10_000)
    assert done.exit_code == 0
    return words(done.output)


@pytest.mark.parametrize(("mechanism", "name"), EACH)
def test_every_option_is_described_in_python(mechanism, name):
    keyword = KEYWORDS[mechanism][name]
    assert len(keyword.option.help.split()) > 3
    described = words(inspect.getdoc(MECHANISMS[mechanism].kind))
    assert words(keyword.option.help) in described


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_option_is_described_in_the_help(mechanism):
    shown, keywords = help_of(mechanism), KEYWORDS[mechanism]
    for flag in flags_of(keywords):
        assert flag.opts[0] in shown
        assert words(flag.help) in shown
    for keyword in keywords.values():
        if keyword.option.form in (None, "columns"):
            assert f"{keyword.flag} " in shown
            text = re.sub(
                r"`(\w+)`",
                lambda one, of=keywords: of[one[1]].flag if one[1] in of else one[1],
                keyword.option.help,
            )
            assert words(text) in shown
            default = keyword.default
            if not keyword.required and default is not None and keyword.set_by_flag is None:
                assert re.search(rf"default: {re.escape(str(default))}[;\]]", shown)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_there_is_no_second_list_of_options(mechanism):
    """A command has only the options of all commands, and the flags derived from the signature."""
    command = main.commands["release"].commands[mechanism]
    names = [one.name for one in shared.params]
    common = sorted(
        (one for one in command.params if one.name in names), key=lambda one: names.index(one.name)
    )
    for one, usual in zip(common, shared.params, strict=True):
        assert one.name == usual.name
        assert set(one.opts) <= set(usual.opts)
    flags = [flag for option in command.params for flag in option.opts]
    assert len(set(flags)) == len(flags)
    lost = {flag for option in shared.params for flag in option.opts} - set(flags)
    assert lost == set()  # each has another name, if a mechanism uses it for an option of its own
    own = sorted(one.opts for one in command.params if one.name not in (*names, "plan_file"))
    assert own == sorted(flag.opts for flag in flags_of(KEYWORDS[mechanism]))
    assert [one.required for one in command.params] == sorted(
        (one.required for one in command.params), reverse=True
    )
    names = [option.name for option in command.params]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_python_takes_what_is_declared(mechanism):
    """Exactly the declared options are accepted; the error for any other lists them all."""
    keywords = KEYWORDS[mechanism]
    with pytest.raises(InputError) as refused:
        release(None, mechanism, epsilon=1, no_such_option=1)
    said = str(refused.value)
    assert said.startswith(f"{mechanism} takes no no_such_option; it takes ")
    assert said.partition("it takes ")[2].split(", ") == list(keywords)
    parameters = inspect.signature(MECHANISMS[mechanism].kind).parameters
    assert list(keywords) == [name for name in parameters if name not in ("source", "epsilon", "noise")]
    for name, keyword in keywords.items():
        assert keyword.default is parameters[name].default


def test_every_form_is_known():
    planned = [mechanism.planning_keywords for mechanism in MECHANISMS.values()]
    declared = *KEYWORDS.values(), *planned, REPAIR.keywords
    forms = {keyword.option.form for keywords in declared for keyword in keywords.values()}
    assert forms - {None} == set(FORMS)


def test_signatures_show_plain_types():
    shown = {name: str(inspect.signature(mechanism.kind)) for name, mechanism in MECHANISMS.items()}
    assert "max_size: 'int', " in shown["group-size"]
    assert not [name for name, text in shown.items() if "Annotated" in text or "Option" in text]


def test_the_registry_is_a_line_each():
    assert [mechanism.module for mechanism in MECHANISMS.values()] == list(PACKAGES)
    for name, mechanism in MECHANISMS.items():
        assert mechanism.module.split(".")[-1] == name.replace("-", "_")
        assert mechanism.help.strip()
        for flag in re.findall(r"--[a-z-]+", mechanism.help):
            assert f"{flag} " in help_of(name)


# --- any mechanism ----------------------------------------------------------------------------------------


@documented
def counted(
    source,
    *,
    epsilon,
    noise=None,
    columns: Annotated[Sequence[str], Option("What is counted.", "COLUMN", flag="--column")],
    among: Annotated[Sequence[str] | None, Option("What there is.", form="columns")] = None,
    width: Annotated[int, Option("Of a bin, see `columns`.", least=1)] = 4,
    height: Annotated[
        float | None, Option("In place of `width`.", above=0, most=9, instead_of="width")
    ] = None,
    share: Annotated[float | None, Option("A share.")] = None,
    rule: Annotated[Literal["near", "far"], Option("Which.")] = "near",
    closed: Annotated[bool, Option("Leave the ends open.", flag="--open")] = True,
    whole: Annotated[bool, Option("Round.")] = False,
    smallest: Annotated[int, Option("No zeros.", flag="--no-zeros", value=1)] = 0,
):
    """Count something."""


def given(line):
    keywords = keywords_of(counted)

    @click.pass_context
    def command(context, **values):
        found.append(arguments_of(keywords, values, context.get_parameter_source))

    found = []
    made = click.Command("counted", params=[*flags_of(keywords)], callback=command)
    done = CliRunner().invoke(made, line.split())
    return found[0] if found else done.output


@pytest.mark.parametrize(
    ("line", "keywords"),
    [
        ("--column a", {"columns": ("a",)}),
        ("--column a --column b", {"columns": ("a", "b")}),
        ("--column a --among x,y", {"columns": ("a",), "among": ["x", "y"]}),
        ("--column a --width 4", {"columns": ("a",), "width": 4}),
        ("--column a --height 0.5 --share x", {"columns": ("a",), "height": 0.5, "share": "x"}),
        ("--column a --share 0.25 --rule far", {"columns": ("a",), "share": 0.25, "rule": "far"}),
        (
            "--column a --open --whole --no-zeros",
            {"columns": ("a",), "closed": False, "whole": True, "smallest": 1},
        ),
    ],
)
def test_flags_become_keywords(line, keywords):
    """Given flags are passed with their values; defaults are left to the function."""
    assert given(line) == keywords


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Missing option '--column'"),
        ("--column a --width 0", "0 is not in the range x>=1"),
        ("--column a --width 1.5", "'1.5' is not a valid integer"),
        ("--column a --height 0", "0.0 is not in the range 0<x<=9"),
        ("--column a --rule nearby", "'nearby' is not one of 'near', 'far'"),
        ("--columns a", "No such option"),
    ],
)
def test_flags_are_checked(line, said):
    assert said in given(line)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "counting needs columns"),
        ({"columns": "a", "depth": 1}, "counting takes no depth; it takes columns, among, width"),
        ({"columns": "a", "width": "4"}, "width must be a whole number, got '4'"),
        ({"columns": "a", "width": None}, "width must be a whole number, got one of type NoneType"),
        ({"columns": "a", "share": "x"}, "share must be a number, got 'x'"),
        ({"columns": [1]}, "columns must be a text or a list of texts, got one of type list"),
        ({"columns": "a", "width": 3, "height": 1.0}, "height replaces width: leave out one of them"),
    ],
)
def test_keywords_are_checked(options, said):
    with pytest.raises(InputError, match=f"^{re.escape(said)}"):
        check_options("counting", keywords_of(counted), options)


def test_keywords_that_fit():
    options = {"columns": "a", "among": None, "height": None, "width": 3, "closed": False, "rule": "far"}
    check_options("counting", keywords_of(counted), options)


def test_the_docstring_of_a_declared_function():
    lines = inspect.getdoc(counted).splitlines()
    assert lines[:4] == ["Count something.", "", "Parameters", "----------"]
    assert [line for line in lines[4:] if not line.startswith(" ")] == [
        "epsilon : float",
        "columns : Sequence[str]",
        "among : Sequence[str], optional",
        "width : int, default 4",
        "height : float, optional",
        "share : float, optional",
        'rule : "near" or "far", default \'near\'',
        "closed : bool, default True",
        "whole : bool, default False",
        "smallest : int, default 0",
    ]
    assert "    With False: Leave the ends open." in lines
    assert "    With 1: No zeros." in lines


def test_a_keyword_without_a_declaration():
    def plain(source, *, epsilon, question, answers=()): ...

    assert keywords_of(plain)["answers"] == Keyword(
        "answers", keywords_of(plain)["answers"].type, (), Option("")
    )
    assert [flag.opts for flag in flags_of(keywords_of(plain))] == [["--question"], ["--answers"]]
