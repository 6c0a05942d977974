"""The guide, privacy and tabulation: each page's code runs in a separate folder and gives the outputs shown.

A block of `python` is run, with `>>>` as a doctest; a block with a title is a file of that name. In a block
of `console`, each `$` starts a command, followed by its output, in which `...` stands for any text.
"""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner

sybil = pytest.importorskip("sybil", reason="no sybil: pip install 'hierdp[test]'")
from sybil.parsers.abstract import AbstractCodeBlockParser  # noqa: E402
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser  # noqa: E402
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer  # noqa: E402

import hierdp  # noqa: E402
import models  # noqa: E402
import solvers  # noqa: E402
from hierdp.cli import main  # noqa: E402
from hierdp.verification.matrix import kinds  # noqa: E402
from tests.marks import but_for_compiling, quick  # noqa: E402

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("guide/*.md")),
    *(ROOT / "docs" / f"{name}.md" for name in ("intervals", "measurements", "privacy", "tabulation")),
]
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = {"python", "console", "toml"}
SHOWN = {"text"}
"""Blocks that are not code: mathematics, a picture made of characters."""


class FileParser(AbstractCodeBlockParser):
    """Writes a block with a title to a file of that name."""

    def __init__(self, language):
        self.language = language
        info = re.compile(rf'(?P<arguments>{language}) title="(?P<name>[^"]+)"$\n', re.MULTILINE)
        super().__init__([RawFencedCodeBlockLexer(info)])

    def evaluate(self, example):
        Path(example.region.lexemes["name"]).write_text(example.parsed)


def commands(text):
    """Each command of a block, with the output shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        yield command, shown


IN_A_SHELL = "add-mechanism"
"""The page whose commands load code, so that each needs a process of its own."""


def ran(command, apart=False):
    """Output and exit status of a command; hierdp runs in this process, to save the time of its import."""
    program, *arguments = shlex.split(command)
    if program == "hierdp" and not apart and not re.search(r"[|>]", command):
        done = CliRunner().invoke(main, arguments)
        return but_for_progress(done.output), done.exit_code
    path = f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH;"
    done = subprocess.run(path + command, shell=True, text=True, capture_output=True, check=False)
    return done.stdout + but_for_progress(but_for_compiling(done.stderr)), done.returncode


def but_for_progress(output):
    """A busy machine has lines of progress that the page does not show."""
    return re.sub(r"^.*: [\d,]+ of [\d,]+ done.*\n", "", output, flags=re.MULTILINE)


def console(example):
    """Run all commands of a block; a command that shows an error must fail."""
    for command, shown in commands(example.parsed):
        output, status = ran(command, Path(example.path).stem == IN_A_SHELL)
        alike = doctest.OutputChecker().check_output(shown or "...", output, ALIKE)
        message = f"{example.path}:{example.line}: {command}\n{output}"
        assert alike, f"{message}\nis not\n{shown}"
        assert (status != 0) == (shown.startswith("Error: ") or "FAILS" in shown), message


PARSERS = [
    PythonCodeBlockParser(doctest_optionflags=ALIKE),
    FileParser("python"),
    FileParser("toml"),
    CodeBlockParser("console", console),
]


def evaluate(page):
    for example in sybil.Sybil(PARSERS).parse(page).examples():
        example.evaluate()


@pytest.fixture
def aside(tmp_path, monkeypatch):
    """A separate folder for a page, whose Python files can be imported during the test."""
    from hierdp.mechanisms import MECHANISMS
    from solvers import fast

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    with patch.dict(MECHANISMS), patch.dict(fast.PATHS):
        yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.usefixtures("aside")
@pytest.mark.parametrize(
    "page",
    quick(PAGES, slow=lambda page: page.stem not in ("certificate", "first-release")),
    ids=lambda page: page.stem,
)
def test_the_outputs_on_a_page_are_correct(page):
    evaluate(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_all_code_of_a_page_is_run(page):
    text = page.read_text()
    blocks = re.findall(r"^ *```(\w*)(.*)\n", text, re.MULTILINE)
    opened = [(language, rest) for language, rest in blocks if language]
    assert {language for language, _ in opened} <= RUN | SHOWN
    examples = list(sybil.Sybil(PARSERS).parse(page).examples())
    covered = {example.line for example in examples}
    code = [m for m in re.finditer(r"^ *```(\w+).*\n", text, re.MULTILINE) if m[1] in RUN]
    for block in code:
        line = text[: block.start()].count("\n") + 1
        end = text.index("```", block.end())
        last = text[:end].count("\n") + 1
        assert any(line <= at <= last for at in covered), f"{page}:{line} is not run"


def neighbours():
    """The table of privacy.md: for each mechanism and option, its guarantee and the manifest's words."""
    from hierdp.mechanisms import MECHANISMS
    from hierdp.mechanisms.count_of_counts.mechanism import PRIVATE_GROUPS
    from hierdp.mechanisms.tabulation import budget
    from hierdp.mechanisms.unit import trips_of_a_person

    many = {
        "count-of-counts": {"--group-budget": PRIVATE_GROUPS},
        "top-down": {
            "--trips 3": trips_of_a_person(3).neighbours,
            "--unbounded": trips_of_a_person(bounded=False).neighbours,
            "--unbounded --trips 3": trips_of_a_person(3, bounded=False).neighbours,
        },
        "tabulation": {
            "": budget.REPLACED,
            "--unbounded": budget.relation_of(budget.person_unit(False), []),
            "--unbounded --person … --rows-per-person 3": budget.relation_of(
                budget.person_unit(False, 3), []
            ),
        },
    }
    yield "| `hierdp release` | guarantee | neighbouring tables: |"
    yield "| --- | --- | --- |"
    for name, mechanism in MECHANISMS.items():
        usual = mechanism.neighbours.partition("; or --")[0]
        for options, words in {"": usual, **many.get(name, {})}.items():
            yield f"| `{f'{name} {options}'.strip()}` | {mechanism.guarantee} | {words} |"


def test_the_table_of_neighbours_has_the_words_of_the_manifests():
    text = (ROOT / "docs/privacy.md").read_text()
    (shown,) = re.findall(r"<!-- neighbours -->\n(.*?)\n<!-- /neighbours -->", text, re.DOTALL)
    assert shown.strip() == "\n".join(neighbours())


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text() for page in (ROOT / "docs/api").glob("*.md"))
    listed = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", pages, re.MULTILINE)}
    if "<!-- models -->" in pages:  # replaced by all models when the site is built (docs/hooks.py)
        listed |= {kind.__name__ for kind in kinds().values()}
    assert {*hierdp.__all__, *models.__all__, *solvers.__all__} - listed == set()


@pytest.mark.usefixtures("aside")
@pytest.mark.parametrize(
    "block",
    [
        "```python\n>>> 1 + 1\n3\n\n```\n",
        "```python\nassert False\n```\n",
        "```console\n$ echo two\nthree\n```\n",
        "```console\n$ hierdp release nothing\n```\n",
        "```console\n$ echo Error: none\nError: none\n```\n",
        "```console\n$ true\n$ hierdp --version\nhierdp, version none\n```\n",
    ],
)
def test_a_wrong_page_is_detected(block, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises((AssertionError, Exception)) as wrong:
        evaluate(page)
    assert not isinstance(wrong.value, FileNotFoundError)
