"""Signed releases: verification with the right key, and the message for a wrong one."""

import json
import shutil
import subprocess
import sys

import pandas as pd
import pytest
from click.testing import CliRunner

from hierdp import SimulatedNoise, release
from hierdp.checking import FAILS, HOLDS, OPEN, check
from hierdp.cli import main
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.record import files, signature
from tests.hierdp.changing import change_manifest

pytest.importorskip("cryptography")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

from tests.marks import quick

HOMES = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
SIZES = {"levels": ["state"], "group": ["home"], "max_size": 3, "regions_from_data": True,
    "groups_from_data": True}  # fmt: skip


def write_pair(folder, name, kind=ed25519.Ed25519PrivateKey, password=None):
    key = kind.generate()
    lock = serialization.NoEncryption()
    if password is not None:
        lock = serialization.BestAvailableEncryption(password)
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / f"{name}.pem").write_bytes(key.private_bytes(*pem, lock))
    public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / f"{name}-public.pem").write_bytes(key.public_key().public_bytes(*public))
    return folder / f"{name}.pem", folder / f"{name}-public.pem"


@pytest.fixture
def signed(tmp_path):
    private, public = write_pair(tmp_path, "ours")
    made = release(HOMES, "group-size", epsilon=1, noise=SimulatedNoise(1), **SIZES)
    return made.write(tmp_path / "out", sign=private), public


def verdict(folder, **options):
    return {line.check: line.verdict for line in check(folder, **options)}.get("signature")


def test_a_signed_release_is_by_its_signer(signed, tmp_path):
    folder, public = signed
    _, other = write_pair(tmp_path, "others")
    assert verdict(folder, public_key=public) == HOLDS
    assert verdict(folder, public_key=other) == FAILS
    assert verdict(folder) == OPEN
    found = {line.check: line.verdict for line in check(folder, public_key=public)}
    assert FAILS not in found.values()
    assert found["files"] == HOLDS


def test_a_release_that_is_not_signed(signed):
    folder, public = signed
    (folder / seal.SIGNATURE).unlink()
    assert verdict(folder, public_key=public) == FAILS
    assert verdict(folder) == FAILS  # the manifest says that it was


@pytest.mark.parametrize("at", quick([31, 0, 63]))
def test_a_changed_signature_fails(signed, at):
    folder, public = signed
    path = folder / seal.SIGNATURE
    content = path.read_bytes()
    assert len(content) == 64
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert verdict(folder, public_key=public) == FAILS
    for wrong in (b"", content[:-1], content + b"\0"):
        path.write_bytes(wrong)
        assert verdict(folder, public_key=public) == FAILS


def test_a_resealed_release_has_no_valid_signature(signed):
    folder, public = signed
    (folder / "report.html").write_text("another report")
    seal.seal(folder)
    found = {line.check: line.verdict for line in check(folder, public_key=public)}
    assert (found["files"], found["signature"]) == (HOLDS, FAILS)


def test_a_signature_that_was_removed_is_missed(signed):
    """The manifest names the key, so nobody needs it to see that the signature is gone."""
    folder, public = signed
    assert verdict(folder) == OPEN
    (folder / seal.SIGNATURE).unlink()
    (line,) = [line for line in check(folder) if line.check == "signature"]
    assert line.verdict == FAILS
    assert "somebody removed it" in line.why
    manifest = json.loads((folder / files.MANIFEST).read_text())
    assert manifest["signed_with"] == signature.name_of(signature.public_key(public))


def test_a_manifest_that_names_another_key_fails(signed):
    folder, public = signed
    change_manifest(folder, lambda manifest: manifest.update(signed_with="0" * 64))
    lines = [line for line in check(folder, public_key=public) if line.check == "signature"]
    assert any("names another key" in line.why for line in lines)


def test_a_signed_release_may_be_replaced(signed):
    folder, _ = signed
    assert seal.why_not_ours(folder) == ""
    made = release(HOMES, "group-size", epsilon=1, noise=SimulatedNoise(2), **SIZES)
    made.write(folder, overwrite=True)
    assert verdict(folder) is None
    (folder / seal.SIGNATURE).mkdir()
    assert "was not written by hierdp" in seal.why_not_ours(folder)


def keys(tmp_path):
    (tmp_path / "text.pem").write_text("hello")
    write_pair(tmp_path, "other", x25519.X25519PrivateKey)
    write_pair(tmp_path, "locked", password=b"secret")
    _, public = write_pair(tmp_path, "ours")
    return {
        "none.pem": "cannot be read",
        "text.pem": "is not a private key in PEM format",
        "other.pem": "is not an Ed25519 key",
        "locked.pem": "needs a password",
        public.name: "is not a private key in PEM format",
    }


def test_a_key_that_does_not_fit_is_named(signed, tmp_path):
    folder, _ = signed
    made = release(HOMES, "group-size", epsilon=1, noise=SimulatedNoise(1), **SIZES)
    for name, why in keys(tmp_path).items():
        with pytest.raises(InputError, match=f"{name}.*{why}|the key .*{name} {why}"):
            made.write(tmp_path / "new", sign=tmp_path / name)
        assert not (tmp_path / "new").exists()
    for name in ("none.pem", "text.pem", "locked.pem", "other-public.pem"):
        with pytest.raises(InputError, match=name):
            check(folder, public_key=tmp_path / name)


def test_without_the_package_it_says_which(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    for options in (signature.private_key, signature.public_key):
        with pytest.raises(InputError, match=r"pip install 'hierdp\[sign\]'"):
            options(tmp_path / "key.pem")


def test_the_command_line_verifies(signed, tmp_path):
    folder, public = signed
    _, other = write_pair(tmp_path, "others")
    done = CliRunner().invoke(main, ["check", str(folder), "--public-key", str(public)])
    assert done.exit_code == 0, done.output
    assert "made by the owner of that key" in done.output
    done = CliRunner().invoke(main, ["check", str(folder), "--public-key", str(other)])
    assert done.exit_code == 1
    assert "not made with that key" in done.output


@pytest.mark.skipif(shutil.which("openssl") is None, reason="OpenSSL is not installed")
def test_openssl_makes_the_keys_and_verifies(tmp_path):
    def openssl(*arguments):
        return subprocess.run(["openssl", *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True)

    if openssl("genpkey", "-algorithm", "ed25519", "-out", "private.pem").returncode:
        pytest.skip("this OpenSSL has no Ed25519")
    openssl("pkey", "-in", "private.pem", "-pubout", "-out", "public.pem")
    made = release(HOMES, "group-size", epsilon=1, noise=SimulatedNoise(1), **SIZES)
    folder = made.write(tmp_path / "out", sign=tmp_path / "private.pem")
    assert verdict(folder, public_key=tmp_path / "public.pem") == HOLDS
    files = "-in", folder / seal.SUMS, "-sigfile", folder / seal.SIGNATURE
    done = openssl("pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", *files)
    if "unknown option" in done.stderr.lower():
        pytest.skip("this OpenSSL verifies no raw input")
    assert done.returncode == 0, done.stderr
