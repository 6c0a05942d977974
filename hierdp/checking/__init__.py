"""Check a written release from its files alone: counts, budget, certificates and digests.

Whoever changes a release can recompute its digests, but can hardly make its sums, budget and proofs agree as
well. Against a forger who recomputes all of them, keep the fingerprint that was printed at the release.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierdp.checking.account import check_account
from hierdp.checking.budget import check_budget
from hierdp.checking.claims import check_public, check_report, check_same_noise, check_shape
from hierdp.checking.effort import refuse_or_announce
from hierdp.checking.manifest import check_manifest, check_warnings
from hierdp.checking.proofs import check_proofs
from hierdp.checking.rerun import QUERIES
from hierdp.checking.result import FAILS, HOLDS, OPEN, UNCLAIMED, CheckResult
from hierdp.counts.rows import laid_out
from hierdp.counts.size_table import aligned, same_rows
from hierdp.errors import InputError
from hierdp.execution import seal
from hierdp.mechanisms.description import MechanismInfo
from hierdp.mechanisms.registry import released_by
from hierdp.record import files, signature, written
from hierdp.record.written import Unreadable
from hierdp.versions import version_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from hierdp.mechanisms.mechanism import Mechanism

__all__ = ["FAILS", "HOLDS", "OPEN", "UNCLAIMED", "CheckResult", "check"]

_MOST_SUMS, _MOST_OF_A_FILE = 10_000, 200
"""The most characters to read of a list of digests: a release has ten files, a large one more."""


def check(
    path: str | Path,
    fingerprint: str | None = None,
    limit: int | None = None,
    public_key: str | Path | None = None,
    account: str | Path | None = None,
    mechanism: type[Mechanism[Any]] | None = None,
) -> list[CheckResult]:
    """Check a written release from its files alone.

    Parameters
    ----------
    path : path
        The folder.
    fingerprint : str, optional
        The fingerprint that was printed at the release. Without it, a changed release with recomputed digests
        is detected only by contradictions in its contents.
    limit : int, optional
        Limit on the memory for reading the release, in bytes; each gigabyte also allows a minute, and ten
        minutes are always allowed. Default: what the size of its files justifies (`written.justified`).
    public_key : path, optional
        The publisher's Ed25519 public key, in PEM format. If given, a release not signed with it fails.
    account : path, optional
        The data set's account. If given, a release fails unless the account records it as written, with its
        fingerprint and cost.
    mechanism : type, optional
        The class of a mechanism outside of hierdp, which made the release. Its code is run.

    Returns
    -------
    list of CheckResult
        One line for each check. The release passes if none says `FAILS`.

    Raises
    ------
    InputError
        If there is no release at that path, the fingerprint is not one, or it takes more memory or time than
        `limit`.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from hierdp import release
    >>> homes = pd.DataFrame({"state": ["A", "A", "A", "B"], "home": [1, 1, 2, 3]})
    >>> made = release(homes, "group-size", epsilon=1, groups=homes.drop_duplicates(), levels=["state"],
    ...                group=["home"], max_size=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = check(made.write(f"{folder}/out"))
    >>> [line.check for line in found if line.verdict != "holds"]
    ['fingerprint']
    """
    whole = None if fingerprint is None else _digits(fingerprint)
    key = None if public_key is None else signature.public_key(public_key)
    ledger = None if account is None else Path(account)
    if mechanism is not None:
        from hierdp.mechanisms.own import describe

        describe(mechanism)
    return _on_trust(list(_checks(Path(path), whole, limit, key, ledger)))


def _on_trust(found: list[CheckResult]) -> list[CheckResult]:
    """Say of what rests on the manifest's own word that it was not checked.

    How much one person changes, and so every loss, is known only if the mechanism was run again to its end.
    Of an unknown mechanism, the losses and their sum were only added up.
    """
    queries = [line.verdict for line in found if line.check == QUERIES]
    if HOLDS in queries:
        return found
    why = "whether these are all measurements, and what one person changes in them, was not checked"
    trusted = {"privacy"} if queries else {"budget: each loss", "budget: sum", "privacy"}
    return [
        replace(line, verdict=OPEN, why=f"{line.why}; {why}")
        if line.check in trusted and line.verdict == HOLDS
        else line
        for line in found
    ]


def _digits(fingerprint: str) -> str:
    """Check that a fingerprint is complete; part of one would prove little."""
    digits = fingerprint.strip().lower()
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        why = "is not 64 hexadecimal digits; give all that were printed"
        raise InputError(f"the fingerprint {fingerprint!r} {why}")
    return digits


def _checks(
    folder: Path,
    fingerprint: str | None,
    given: int | None,
    key: Ed25519PublicKey | None,
    account: Path | None,
) -> Iterator[CheckResult]:
    try:
        names = written.names_in(folder)
    except Unreadable as strange:
        yield CheckResult("files", FAILS, str(strange))
        return
    limit = written.limit_for(folder, given)
    size = sum((folder / name).stat().st_size for name in names)
    if size > limit:
        raise written.TooLarge("its files", size, limit)
    yield from _check_seal(folder, fingerprint)
    yield from _check_signature(folder, key)
    try:
        release = written.read(folder, limit, named=True)
    except Unreadable as broken:
        yield CheckResult("readable", FAILS, str(broken))
        return
    manifest, table, regions = release.manifest, release.table, release.regions
    yield from _check_signed_with(folder, manifest, key)
    mechanism = released_by(manifest["mechanism"])
    checking = None if mechanism is None else mechanism.checking
    refuse_or_announce(manifest, table, given or written.justified(folder))
    yield from _check_version(manifest)
    yield from _check_own(manifest, mechanism)
    parts: list[tuple[str, Callable[[], Iterator[CheckResult]]]] = [
        ("shape", lambda: check_shape(table, manifest, regions, mechanism)),
        ("tables", lambda: _check_tables(folder, release, limit)),
        ("manifest", lambda: check_manifest(table, manifest, regions, checking)),
        ("budget", lambda: check_budget(manifest)),
        ("warnings", lambda: check_warnings(folder, manifest)),
        ("same noise", lambda: check_same_noise(folder, manifest)),
        ("public", lambda: check_public(manifest)),
        ("report", lambda: check_report(folder, release.with_ends, manifest)),
        ("certificates", lambda: check_proofs(folder, release, checking, limit)),
    ]
    if account is not None:
        sealed = seal.digest(folder / seal.SUMS) if (folder / seal.SUMS).is_file() else ""
        parts.append(("account", lambda: iter([check_account(account, manifest, sealed, checking)])))
    for name, part in parts:
        try:
            yield from part()
        except written.TooLarge:
            raise
        except Exception as error:  # an edited file may hold anything
            yield CheckResult(name, FAILS, f"a file has unexpected contents: {type(error).__name__} {error}")


def _check_version(manifest: Any) -> Iterator[CheckResult]:
    """Report that another version made the release, which may explain differences."""
    made, ours = manifest.get("versions", {}).get("hierdp"), version_of("hierdp")
    if made != ours:
        why = f"made by hierdp {made}, checked by {ours}: this may explain differences"
        yield CheckResult("version", OPEN, why)


def _check_own(manifest: Any, mechanism: MechanismInfo | None) -> Iterator[CheckResult]:
    """Say whose word the sensitivities of a user's own mechanism are, and compare its file's digest."""
    stated = manifest.get("own_mechanism") if isinstance(manifest, Mapping) else None
    own = None if mechanism is None else mechanism.own
    if stated is None and own is None:
        return
    if not isinstance(stated, Mapping) or set(stated) != {"class", "sha256"}:
        yield CheckResult("mechanism", FAILS, "the manifest does not name its class and the digest")
    elif mechanism is None:
        name = f"{stated['class']}, which is not part of hierdp"
        yield CheckResult("mechanism", OPEN, f"{name}: read its code, then give --mechanism to run it")
    elif own is None:
        yield CheckResult("mechanism", FAILS, f"it is hierdp's own, not {stated['class']}")
    elif own == stated and own["sha256"] is None:
        yield CheckResult("mechanism", OPEN, f"{own['class']} is in no file: nothing says it is the same")
    elif own["sha256"] != stated["sha256"]:
        yield CheckResult("mechanism", FAILS, f"{own['class']} is not the file that made it, by its digest")
    else:
        trusted = "what one person changes in a query, and what is public, is its author's word"
        yield CheckResult("mechanism", HOLDS, f"{own['class']}, as when it was made; {trusted}")


def _check_seal(folder: Path, fingerprint: str | None) -> Iterator[CheckResult]:
    sums = folder / seal.SUMS
    if not sums.is_file():
        yield CheckResult("files", FAILS, f"there is no {seal.SUMS}")
        return
    wrong = []
    known = {seal.SUMS, seal.SIGNATURE}
    names = written.names_in(folder)
    with sums.open(encoding="utf-8", errors="replace") as text:
        lines = text.read(_MOST_SUMS + _MOST_OF_A_FILE * len(names)).splitlines()
    for line in lines:
        listed, _, name = line.partition("  ")
        known.add(name)
        file = folder / Path(name).name
        if not file.is_file():
            wrong.append(f"{name} is missing")
        elif seal.digest(file) != listed:
            wrong.append(f"{name} is not the file that was released")
    wrong += [f"{name} was added" for name in names if name not in known or name not in written.NAMES]
    yield CheckResult("files", FAILS if wrong else HOLDS, "; ".join(wrong) or f"{len(lines)} files as sealed")
    found = seal.digest(sums)
    if fingerprint is None:
        yield CheckResult(
            "fingerprint", OPEN, f"{found}: compare it with the publisher's, or give --fingerprint"
        )
    elif found != fingerprint:
        yield CheckResult("fingerprint", FAILS, f"it is {found}: this is not the release that was published")
    else:
        yield CheckResult("fingerprint", HOLDS, "as published")


def _check_signature(folder: Path, key: Ed25519PublicKey | None) -> Iterator[CheckResult]:
    """Check who made it: one line if there is a signature, or if a public key was given."""
    signed = (folder / seal.SIGNATURE).is_file()
    if key is None:
        if signed:
            yield CheckResult("signature", OPEN, "signed; give --public-key to see whether by the publisher")
    elif not signed:
        yield CheckResult("signature", FAILS, f"there is no {seal.SIGNATURE}: the release is not signed")
    elif signature.is_signed_by(folder, key):
        yield CheckResult("signature", HOLDS, "made by the owner of that key")
    else:
        yield CheckResult("signature", FAILS, "it was not made with that key, or is not for this release")


def _check_signed_with(folder: Path, manifest: Any, key: Ed25519PublicKey | None) -> Iterator[CheckResult]:
    """Compare the signature with the manifest, which names the key that a release was signed with."""
    signer = manifest.get("signed_with") if isinstance(manifest, Mapping) else None
    if signer is None:
        return
    if not (folder / seal.SIGNATURE).is_file():
        why = f"the manifest says that it was signed, with the key {signer}, but there is no {seal.SIGNATURE}"
        yield CheckResult("signature", FAILS, f"{why}: somebody removed it")
    elif key is not None and signature.name_of(key) != signer:
        yield CheckResult("signature", FAILS, f"the manifest names another key, {signer}")


def _check_tables(folder: Path, release: written.ReleaseFolder, limit: int) -> Iterator[CheckResult]:
    """Check that Parquet, CSV and the finest level agree; a large table needs no CSV."""
    wrong, regions = [], release.regions
    safe, finest = bool(release.manifest.get("csv_safe")), folder / f"{files.FINEST}.parquet"
    table = laid_out(release.with_ends)
    last = [] if table.large or not regions else [*table.finest(regions)]
    if regions:
        due = map(files.arrow_of, last or table.finest(regions))
        pieces = aligned(written.read_parts(finest, limit, named=True), due)
        if not all(same_rows(one, other) for one, other in pieces):
            wrong.append(f"{finest.name} is not the last level of {files.TABLE}.parquet")
    for name in (files.TABLE, files.FINEST) if regions else (files.TABLE,):
        path = folder / f"{name}.csv"
        if not files.as_csv(release.table) and not path.is_file():
            continue
        parts = table.parts() if name == files.TABLE else last or table.finest(regions)
        if not files.is_csv_of(parts, path, safe):
            wrong.append(f"{name}.csv differs from {files.TABLE}.parquet")
    yield CheckResult("tables", FAILS if wrong else HOLDS, "; ".join(wrong) or "all files and levels agree")
