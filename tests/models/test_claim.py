"""Claims as files: every number comes back, and a damaged file is refused or proves nothing false."""

import json

import numpy as np
import pytest
from scipy import optimize

import models
from models import Isotonic, adapters
from models.claim import Claim, digest
from models.programs.read_lp import read_lp
from solvers import fast
from tests.marks import quick
from tests.models.families import CONTRACTS

NAMES = sorted({name.partition(",")[0] for name in CONTRACTS} - {"JointTables"})


def claimed(name, seed=3):
    model = getattr(models, name).random(np.random.default_rng(seed), 12)
    return Claim(model, *fast.answer(model))


def lp():
    problem = {"c": [-1, -2], "A_ub": [[1, 1], [1, 3]], "b_ub": [4, 6]}
    return adapters.linprog(optimize.linprog(**problem), **problem)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("name", quick(NAMES, every=3))
def test_a_claim_comes_back_whole(name, suffix, tmp_path):
    claim = claimed(name)
    if suffix == ".json" and np.asarray(claim.x).dtype.kind == "V":
        with pytest.raises(ValueError, match=r"save it as \.npz"):
            claim.save(tmp_path / "claim.json")
        return
    again = Claim.load(claim.save(tmp_path / f"claim{suffix}"))
    assert digest(again.model) == digest(claim.model)
    assert repr(again.certificate()) == repr(claim.certificate())


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_linear_program_and_its_prices(suffix, tmp_path):
    claim = lp()
    assert claim.certificate().optimal
    path = claim.save(tmp_path / f"claim{suffix}")
    assert Claim.load(path).certificate().optimal
    path = claim.save(tmp_path / f"hash{suffix}", by_hash=True)
    assert Claim.load(path, claim.model).certificate().optimal
    with pytest.raises(ValueError, match="has only the hash of its model"):
        Claim.load(path)
    with pytest.raises(ValueError, match="another model"):
        Claim.load(path, Isotonic([1, 2]))


def test_the_format_is_what_it_was(tmp_path):
    path = Claim(Isotonic([3, 1, 4], integer=True), np.array([2, 2, 4])).save(tmp_path / "claim.json")
    text = json.loads(path.read_text())
    assert text["format"] == "hierdp claim 1"
    assert text["sha256"] == "a07ebc4e8896cde2ae3b8ab1e19287c274794f00a441e98fd268d287101cbcb1"
    assert text["arrays"]["noisy"] == {"dtype": "i8", "shape": [3], "values": [3, 1, 4]}
    assert text["arrays"]["answer of the model"]["values"] == [2, 2, 4]


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = lp().save(tmp_path / "claim.json")
    good = path.read_text()
    text = json.loads(good)
    for name, part in text["arrays"].items():
        for wrong in (10**6, -7, "x", None):
            tried = json.loads(good)
            tried["arrays"][name]["values"] = [wrong, *part["values"][1:]]
            path.write_text(json.dumps(tried))
            try:
                claim = Claim.load(path)
                proof = claim.certificate()
            except ValueError:
                continue
            assert not proof.optimal, name
            assert name.startswith(("answer", "witness")), name
    for broken in ("", "{}", "[]", good[:-20], good.replace("claim 1", "claim 9")):
        path.write_text(broken)
        with pytest.raises(ValueError, match=r"no claim|format"):
            Claim.load(path)
    with pytest.raises(ValueError, match=r"a \.json, \.npz, \.txt or \.vipr file"):
        lp().save(tmp_path / "claim.csv")
    (tmp_path / "claim.npz").write_bytes(b"PK\x03\x04 no zip file")
    with pytest.raises(ValueError, match="no claim"):
        Claim.load(tmp_path / "claim.npz")


def places(part, before=()):
    """Where the parts of a JSON document are."""
    yield before
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inside:
        yield from places(value, (*before, key))


def test_a_changed_file_is_refused_or_proves_the_same(tmp_path):
    """Whatever one part of the file becomes: a claim of the same hash, or a ValueError."""
    program = read_lp("max 0.1 x + y\nst\n c: 0.1 x + 0.2 y <= 0.3\nbinary\n x y\nend\n").program()
    path = Claim(program, np.array([1, 1]), {"prices": np.array([0])}).save(tmp_path / "a.json")
    text = path.read_text()
    others = [
        None,
        -1,
        "x",
        1.5,
        [],
        {},
        "1/2",
        True,
        10**30,
        ["plain", None],
        ["tuple", [["plain", 3]]],
        0,
        "0",
    ]
    whole = [place for place in places(json.loads(text)) if place]
    kept = 0
    for k, place in enumerate(whole):
        for other in others[k % 4 :: 4]:
            document = json.loads(text)
            part = document
            for key in place[:-1]:
                part = part[key]
            part[place[-1]] = other
            path.write_text(json.dumps(document))
            try:
                claim = Claim.load(path)
                proof = claim.certificate()
            except ValueError:
                continue
            kept += 1
            assert digest(claim.model) == digest(program)
            assert not proof.optimal or claim.x.tolist() == [1, 1]
    assert 0 < kept < 100 < len(whole)
