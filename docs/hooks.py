"""For the site alone: notebooks as pages, commands as their help has them, mathematics without scripts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

from hierdp.cli import main
from hierdp.verification.matrix import kinds

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
COMMANDS = "<!-- commands -->"
MODELS = "<!-- models -->"


def on_files(files: Files, *, config: Any) -> Files:
    """Each notebook becomes a page, its pictures files beside it."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        folder = {"output_files_dir": f"{path.stem}_files"}
        body, resources = MarkdownExporter().from_filename(str(path), resources=folder)
        body = re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", body.replace("](../docs/", "](../"))
        pages = {f"{path.stem}.md": body, **resources["outputs"]}
        for name, content in pages.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to notebooks, which are beside docs/, lead to their pages; every model has its place."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(rf"\]\({up}\.\./notebooks/([\w-]+)\.ipynb\)", rf"]({up}notebooks/\1.md)", markdown)
    markdown = markdown.replace(MODELS, "\n\n".join(_reference(kind) for kind in kinds().values()))
    return markdown.replace(COMMANDS, "\n".join(_helps(main, "hierdp"))) if COMMANDS in markdown else markdown


def _reference(kind: Any) -> str:
    return f"::: {kind.__module__}.{kind.__name__}"


def _helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    """A section a command, with what `--help` prints."""
    context = click.Context(command, parent, name, terminal_width=88, **command.context_settings)
    level = 3 if parent else 2
    yield f"{'#' * level} {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    for below, child in sorted(getattr(command, "commands", {}).items()):
        yield from _helps(child, below, context)


def on_page_content(content: str, **_: Any) -> str:
    r"""What `arithmatex` left as ``\(M_c^{dp}\)`` becomes MathML, which browsers draw themselves."""
    for begin, end, kind in (
        (r'<span class="arithmatex">\\\(', r"\\\)</span>", "inline"),
        (r'<div class="arithmatex">\s*\\\[', r"\\\]\s*</div>", "block"),
    ):
        found = re.compile(f"{begin}(.*?){end}", re.DOTALL)
        content = found.sub(lambda one, kind=kind: convert(html.unescape(one[1]), kind), content)
    content = content.replace('<table border="1" class="dataframe">', "<table>")  # a theme's table is plain
    # A parameter whose name and type say all has no description; defaults are in the signature, and for names
    # that share a line in a docstring here they are the first one's.
    content = re.sub(r'–\s*<div class="doc-md-description">\s*</div>', "", content)
    content = re.sub(r", default:\s*<code>.*?</code>\s*\)", ")", content, flags=re.DOTALL)
    content = re.sub(r"\(<code>\((.*?)\)</code>\)", r"(<code>\1</code>)", content)
    dotted = r"<code>((?:hierdp|models|solvers)\.[\w.]+)</code>"
    return re.sub(dotted, r'<autoref identifier="\1" optional><code>\1</code></autoref>', content)
