"""VIPR certificates: hierdp's reader and, if VIPR_CHECKER names it, VIPR's own checker find them right.

The checker is `viprchk` of VIPR, in C++: ``VIPR_CHECKER=vipr/viprchk pytest tests/models/test_vipr.py``.
"""

import importlib.util
import math
import os
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from models import CostTable, GroupMatching, Isotonic, MinCostFlow, SimplexQP, adapters, lagrangian_bound
from models.claim import Claim
from models.witnesses.read_vipr import check_vipr
from models.witnesses.row_proofs import exact_proofs, general_proof
from models.witnesses.vipr import SKIPPED, ViprFiles, vipr_lines, write_vipr
from solvers import fast, prove
from tests.marks import quick
from tests.models.test_plain_text import MODELS

CASES = int(os.environ.get("HIERDP_CASES", "1000"))
ROOT = Path(__file__).parents[2]
EXTRACTED = ROOT / "build" / "theorem" / "checker"
CHECKER = os.environ.get("VIPR_CHECKER")
needs_checker = pytest.mark.skipif(not CHECKER, reason="VIPR_CHECKER does not name VIPR's checker")


def theirs(path):
    """Whether VIPR's checker accepts a certificate."""
    done = subprocess.run([CHECKER, path], capture_output=True, text=True, check=False, timeout=600)
    return done.returncode == 0 and "Successfully verified" in done.stdout


def ours(path):
    try:
        return check_vipr(path)
    except ValueError:
        return None


@pytest.fixture(scope="module")
def random_case():
    """The random programs of the comparison in docs/theorem."""
    spec = importlib.util.spec_from_file_location("agree", ROOT / "docs" / "theorem" / "agree.py")
    sys.modules["agree"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["agree"])
    return sys.modules["agree"].random_case


def proofs():
    """Proved answers of models."""
    for model, x in MODELS:
        yield from exact_proofs(type(model).__name__, model, np.array(x), prove(model, x).witness)
    for kind in (Isotonic, MinCostFlow, SimplexQP):
        for seed in range(3):
            model = kind.random(np.random.default_rng(seed), 8)
            yield from exact_proofs(f"{kind.__name__} {seed}", model, *fast.answer(model))


def test_a_certificate_states_the_cost_of_the_answer(tmp_path):
    written = 0
    for name, proof in proofs():
        if isinstance(proof, str):
            continue
        path = tmp_path / "one.vipr"
        write_vipr(path, name, *proof)
        cost = proof[0].value(proof[1])
        assert ours(path) == (cost, cost), name
        written += 1
    assert written >= 12


@pytest.mark.parametrize("seeds", quick([range(150), range(150, CASES)]), ids=str)
def test_random_programs(random_case, tmp_path, seeds):
    """Squares, bends and tables of any sign: proved, not proved, and not feasible."""
    path, counts = tmp_path / "one.vipr", dict.fromkeys(("proved", "bound", "bound alone", "left out"), 0)
    for seed in seeds:
        program, x, prices = random_case(np.random.default_rng(seed), seed).proof
        bound = lagrangian_bound(program, prices)
        if abs(bound) == np.inf:
            with pytest.raises(ValueError, match="prove no bound"):
                write_vipr(path, "random", program, x, prices)
            continue
        try:
            write_vipr(path, "random", program, x, prices)
        except ValueError:  # a real variable with a cost that is not convex
            assert any((np.asarray(term.weight) < 0).any() for term in program.objective)
            assert not path.exists()
            counts["left out"] += 1
            continue
        general, found = general_proof(program, x, prices), ours(path)
        assert found is not None
        assert found.lower in (bound, general.bound, -(-bound // 1))
        assert found.upper == (np.inf if general.bound is None else general.objective)
        kind = "bound alone" if general.bound is None else "bound"
        counts["proved" if found.lower == found.upper else kind] += 1
        path.unlink()
    assert min(counts.values()) >= len(seeds) / 100, counts


def moved(words, at, step):
    words = list(words)
    words[at] = str(Fraction(words[at]) + step)
    return words


def tampered(text, rng):
    """The certificate with one number made wrong, such that the bound or the answer no longer follows."""
    lines = text.splitlines()
    place = {
        line.split()[0]: k for k, line in enumerate(lines) if line[:4] in ("OBJ ", "CON ", "RTP ", "DER ")
    }
    last = len(lines) - 1
    words = lines[last].split()
    parts = words[words.index("{") + 3 : -2]
    rows = lines[place["CON"] + 1 : place["RTP"]]
    used = {
        int(k): (Fraction(part), at)
        for at, (k, part) in enumerate(zip(parts[::2], parts[1::2], strict=True))
        if len(rows[int(k)].split()) > 4
    }
    step = int(rng.choice([-1, 1]))
    kind = str(rng.choice(["multiplier", "bound", "answer", "coefficient", "side", "objective"]))
    relation = lines[place["RTP"]].split()
    if kind in ("multiplier", "coefficient", "side") and not used:
        kind = "bound"
    if (kind == "answer" and relation[3] == "inf") or (kind == "side" and words[5] == "rnd"):
        kind = "bound"
    if kind == "objective" and lines[place["OBJ"] + 1] == "0":
        kind = "bound"
    if kind == "multiplier":
        k = int(rng.choice(list(used)))
        words = moved(words, words.index("{") + 4 + 2 * used[k][1], step)
    elif kind == "bound":
        words, relation = moved(words, 2, 1), moved(relation, 2, 1)
    elif kind == "answer":
        relation = moved(relation, 3, -1)
    elif kind == "objective":
        at = place["OBJ"] + 1
        lines[at] = " ".join(moved(lines[at].split(), 2, step))
    else:
        k = int(rng.choice(list(used)))
        at = place["CON"] + 1 + k
        constraint = lines[at].split()
        if kind == "side":  # the bound gets less
            constraint = moved(constraint, 2, -1 if used[k][0] > 0 else 1)
        else:
            constraint = moved(constraint, 5, step)
        lines[at] = " ".join(constraint)
    lines[last], lines[place["RTP"]] = " ".join(words), " ".join(relation)
    return kind, "\n".join([*lines, ""])


@pytest.mark.parametrize("seeds", quick([range(100), range(100, 1_000)]), ids=str)
def test_tampered_certificates_are_refused(random_case, tmp_path, seeds):
    path = tmp_path / "one.vipr"
    models = [list(vipr_lines(name, *proof)) for name, proof in proofs() if not isinstance(proof, str)]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        lines = models[seed % len(models)]
        if seed % 2:
            program, x, prices = random_case(rng, seed).proof
            with suppress(ValueError):
                lines = list(vipr_lines("random", program, x, prices))
        kind, text = tampered("\n".join([*lines, ""]), rng)
        path.write_text(text)
        assert ours(path) is None, (kind, seed)
        if CHECKER:
            assert not theirs(path), (kind, seed)


WRONG = {
    "rounded over the reals": """VER 1.1\nVAR 1\nx\nINT 0\nOBJ min\n1 0 1\nCON 1 1\nlow G 1/2 1 0 1
        RTP range 1 inf\nSOL 0\nDER 1\nbound G 1 OBJ { rnd 1 0 1 } -1""",
    "an assumption that is kept": """VER 1.1\nVAR 1\nx\nINT 1\n0\nOBJ min\n1 0 1\nCON 1 1\nlow G 0 1 0 1
        RTP range 1 inf\nSOL 0\nDER 1\nbound G 1 OBJ { asm } -1""",
    "a disjunction with a gap": """VER 1.1\nVAR 1\nx\nINT 1\n0\nOBJ min\n0\nCON 1 1\nlow G 0 1 0 1
        RTP infeas\nSOL 0\nDER 4\na L -1 1 0 1 { asm } -1\nb G 1 1 0 1 { asm } -1
        c G 1 0 { lin 2 0 1 1 -1 } -1\nd G 1 0 { uns 3 1 2 2 } -1""",
    "an incomplete step": """VER 1.1\nVAR 1\nx\nINT 0\nOBJ min\n1 0 1\nCON 1 1\nlow G 1 1 0 1
        RTP range 1 inf\nSOL 0\nDER 1\nbound G 1 OBJ { lin incomplete 0 } -1""",
    "a cut without an answer": """VER 1.1\nVAR 1\nx\nINT 0\nOBJ min\n1 0 1\nCON 1 1\nlow G 1 1 0 1
        RTP infeas\nSOL 0\nDER 2\ncut L 0 OBJ { sol } -1\nno G 1 0 { lin 2 0 1 1 -1 } -1""",
    "a constraint that comes later": """VER 1.1\nVAR 1\nx\nINT 0\nOBJ min\n1 0 1\nCON 1 1\nlow G 1 1 0 1
        RTP range 2 inf\nSOL 0\nDER 1\nbound G 2 OBJ { lin 1 1 1 } -1""",
    "half a file": "VER 1.1\nVAR 1\nx\nINT 0\nOBJ",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_derivation_is_refused(wrong, tmp_path):
    (tmp_path / "one.vipr").write_text(WRONG[wrong])
    reasons = "rounded|not derived|gap|incomplete|no answer is known|no constraint 1 yet|too early"
    with pytest.raises(ValueError, match=reasons):
        check_vipr(tmp_path / "one.vipr")


def test_branches_and_bounds_of_other_writers(tmp_path):
    """min x + y over whole numbers with 2x + 2y ≥ 3: split at x + y ≤ 1; and the same with weak steps."""
    head = """% a comment\nVER 1.0\nVAR 2\nx y\nINT 2\n0 1\nOBJ min\n2 0 1 1 1\nCON 3 2
        x0 G 0 1 0 1\ny0 G 0 1 1 1\nrow G 3 2 0 2 1 2\nRTP range 2 2\nSOL 1\nbest 1 0 2\n"""
    split = """DER 4\na L 1 2 0 1 1 1 { asm } -1\nb G 2 2 0 1 1 1 { asm } -1 % the other side
        c G 1 0 { lin 2 2 1 3 -2 } -1\nd G 2 OBJ { uns 5 3 4 4 } -1"""
    weak = """DER 2\ne G 3 2 0 2 1 3 { lin weak { 1 L 1 1 0 } 1 2 1 } -1 global
        d G 2 OBJ { rnd 1 2 1/2 } -1"""
    for text in (split, weak):
        (tmp_path / "one.vipr").write_text(head + text)
        assert check_vipr(tmp_path / "one.vipr") == (2, 2)
        if CHECKER and "weak" not in text:
            assert theirs(tmp_path / "one.vipr")


def test_a_claim_is_written(tmp_path):
    model = SimplexQP([5, 3], total=4)
    path = Claim(model, *fast.answer(model)).save(tmp_path / "claim.vipr")
    assert ours(path) == (8, 8)
    with pytest.raises(ValueError, match="its own certificate does not prove it"):
        Claim(model, np.array([4, 0])).save(tmp_path / "wrong.vipr")
    assert not (tmp_path / "wrong.vipr").exists()


def test_what_is_left_out_of_a_folder_has_a_reason(tmp_path):
    files, model = ViprFiles(tmp_path), SimplexQP([5, 3], total=4)
    files.add("good", model, np.array([3, 1]), {"total": [-4]})
    files.add("bad", model, np.array([4, 0]), {"total": [-4]})
    assert (files.written, files.skipped) == (1, 1)
    assert ours(tmp_path / "000001.vipr") == (8, 8)
    assert (tmp_path / SKIPPED).read_text() == "bad: its own certificate does not prove it\n"


def claims():
    """Proved claims about models and programs, from other libraries and ours."""
    for kind in (Isotonic, MinCostFlow, SimplexQP, CostTable, GroupMatching):
        model = kind.random(np.random.default_rng(1), 8)
        yield Claim(model, *fast.answer(model))
    lp = {"c": [-1, -2], "A_ub": [[1, 1], [1, 3]], "b_ub": [4, 6]}
    claim = adapters.linprog(optimize.linprog(**lp), **lp)
    yield claim._replace(x=claim.x.astype(int))


@needs_checker
@pytest.mark.slow
@pytest.mark.skipif(not EXTRACTED.exists(), reason="make theorem builds the extracted checker")
def test_three_programs_check_a_claim(tmp_path):
    """Python, OCaml that was extracted from a proof in Coq, and VIPR's C++ share no line."""
    for claim in claims():
        text, certificate = (claim.save(tmp_path / f"claim.{end}") for end in ("txt", "vipr"))
        assert claim.certificate().optimal
        assert theirs(certificate)
        assert subprocess.run([EXTRACTED, text], capture_output=True, check=False).returncode == 0
        words = text.read_text().splitlines()  # a value too low: not feasible, or another cost
        at = max(k for k, line in enumerate(words) if line.startswith("value "))
        words[at] = f"value {Fraction(words[at].split()[1]) - 1}"
        text.write_text("\n".join([*words, ""]))
        assert subprocess.run([EXTRACTED, text], capture_output=True, check=False).returncode == 1
        wrong = tampered(certificate.read_text(), np.random.default_rng(0))[1]
        certificate.write_text(wrong)
        assert not theirs(certificate)


@needs_checker
@pytest.mark.slow
@pytest.mark.parametrize("which", ["small", "medium"])
def test_another_checker_accepts_every_proof_of_the_sets(which, tmp_path):
    from hierdp.bench.problems import problems

    files = ViprFiles(tmp_path)
    for problem in problems(which):
        with suppress(fast.NoFastPath):
            files.add(problem.name, problem.model, *fast.answer(problem.model))
    assert files.written > 20
    wrong = [path.name for path in sorted(tmp_path.glob("*.vipr")) if not theirs(path) or not ours(path)]
    assert not wrong


@needs_checker
@pytest.mark.slow
def test_another_checker_accepts_random_programs(random_case, tmp_path):
    for seed in range(1_000):
        program, x, prices = random_case(np.random.default_rng(seed), seed).proof
        with suppress(ValueError):
            write_vipr(tmp_path / "one.vipr", "random", program, x, prices)
            assert theirs(tmp_path / "one.vipr"), seed


@pytest.mark.parametrize(
    ("stated", "bound"), [("range 5 5", None), ("range 9 9", "better"), ("infeas", "better")]
)
def test_a_cut_by_an_answer_proves_nothing_about_that_answer(tmp_path, stated, bound):
    text = f"""VER 1.1 VAR 1 x INT 1 0 OBJ min 1 0 1 CON 1 1 low G 5 1 0 1
    RTP {stated} SOL 1 best 1 0 5 DER 2
    cut L 4 OBJ {{ sol }} -1
    none G 1 0 {{ lin 2 0 1 1 -1 }} -1"""
    path = tmp_path / "a.vipr"
    path.write_text(text)
    if bound is None:
        assert check_vipr(path) == (5, 5)
    else:
        with pytest.raises(ValueError, match="an answer is better than the certificate states"):
            check_vipr(path)


@pytest.mark.parametrize("stated", ["inf inf", "-inf -inf", "inf -inf", "nan nan", "1 inf", "-inf 1"])
def test_a_range_that_nothing_derives_proves_nothing(tmp_path, stated):
    text = "VER 1.1 VAR 1 x INT 0 OBJ min 1 0 1 CON 1 1 low G 0 1 0 1 RTP range {} SOL 0 DER 0"
    (tmp_path / "a.vipr").write_text(text.format(stated))
    with pytest.raises(ValueError, match=r"Invalid literal|not derived|no answer is as good"):
        check_vipr(tmp_path / "a.vipr")
    (tmp_path / "a.vipr").write_text(text.format("-inf inf"))
    assert check_vipr(tmp_path / "a.vipr") == (-math.inf, math.inf)
