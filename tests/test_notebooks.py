"""Each notebook runs from top to bottom, and was committed with the outputs of such a run."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
FILES = sorted(FOLDER.glob("*.ipynb"))
DATA = Path(os.environ.get("HIERDP_DATA", FOLDER / "../../shared/data")).resolve()
PAPERS = ("boninsegna2025", "fioretto2019", "kuo2018", "qardaji2013", "zhang2014")

each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def code(path):
    """The code cells."""
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def outputs(path):
    return [output for cell in code(path) for output in cell["outputs"]]


def test_all_are_there():
    others = {"forecasts", "solvers", "tabulation", "tour", "your-own-model"}
    assert {path.stem for path in FILES} == {*PAPERS, *others}


@each
def test_committed_as_it_ran(path):
    assert [cell["execution_count"] for cell in code(path)] == list(range(1, len(code(path)) + 1))
    assert outputs(path)
    assert [output for output in outputs(path) if output["output_type"] == "error"] == []
    assert [output["text"] for output in outputs(path) if output.get("name") == "stderr"] == []


@each
def test_figures_are_pictures(path):
    shown = [output["data"] for output in outputs(path) if "<Figure" in str(output.get("data", {}))]
    assert [data for data in shown if "image/png" not in data] == []


@each
def test_under_a_megabyte(path):
    assert path.stat().st_size < 1_000_000


@each
def test_kernel_is_any_python_3(path):
    assert json.loads(path.read_text())["metadata"]["kernelspec"]["name"] == "python3"


@each
def test_committed_with_data(path):
    """The notebooks of the papers print "no …" if data are missing."""
    printed = ["".join(output["text"]) for output in outputs(path) if "text" in output]
    assert [text for text in printed if text.startswith("no ")] == []


ELSEWHERE = re.compile(r"(?:/(?:work|tmp|home|root|Users|private|opt|usr)|[A-Z]:\\{1,2})[/\\][\w./-]*")


@each
def test_nothing_of_this_machine_in_outputs(path):
    for output in outputs(path):
        data = output.get("data", {})
        texts = [output.get("text", ""), *(text for kind, text in data.items() if "image" not in kind)]
        assert ELSEWHERE.findall(json.dumps(texts)) == []


@each
def test_links_lead_somewhere(path):
    cells = json.loads(path.read_text())["cells"]
    text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    linked = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in linked if not (FOLDER / target).exists()] == []


@pytest.mark.notebooks
@pytest.mark.parametrize("data", ["with data", "without data"])
@each
def test_runs(path, data, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'hierdp[notebooks]'")
    nbformat = pytest.importorskip("nbformat")
    uses_data = "HIERDP_DATA" in path.read_text()
    if data == "with data" and not uses_data:
        pytest.skip("it uses no data")
    if data == "with data" and not DATA.is_dir():
        pytest.skip(f"there are no data in {DATA}: set HIERDP_DATA")
    monkeypatch.setenv("HIERDP_QUICK", "1")
    monkeypatch.setenv("HIERDP_DATA", str(DATA if data == "with data" else tmp_path / "none"))
    copy = Path(shutil.copy(path, tmp_path))
    notebook = nbformat.read(copy, as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=where).execute()
