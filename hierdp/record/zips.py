"""Zip files from anywhere: what they hold is read only if it is as much as was expected."""

from __future__ import annotations

import struct
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_END, _END_64, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENTRY = 128
"""Bytes of an entry of the directory, no more: 46, a name of 10, and what files beyond 4 GB add."""


def check_entries(file: IO[bytes], most: int) -> None:
    """Refuse a file with a directory of more entries than that, before it is parsed.

    Raises
    ------
    ValueError
        Also if it is not a zip file that ends as Python writes it: without a comment.
    """
    size = _directory(file)
    if size > _ENTRY * most:
        raise ValueError(f"its directory takes {size:,} bytes, and {most} files are expected")


def _directory(file: IO[bytes]) -> int:
    """Bytes of the directory, by the end of the file."""
    length = file.seek(0, 2)
    file.seek(max(0, length - 98))  # the last record, and the two before it of a large file
    end = file.read()
    if end[-22:-18] != _END or end[-2:] != b"\0\0":
        raise ValueError("it is not a zip file")
    size: int
    if end[-42:-38] != _LOCATOR_64:
        (size,) = struct.unpack("<L", end[-10:-6])
        return size
    (where,) = struct.unpack("<Q", end[-34:-26])
    if end[-98:-94] != _END_64 or where != length - 98:
        raise ValueError("its directory is not where it should be")
    (size,) = struct.unpack("<Q", end[-58:-50])
    return size


def contents(file: ZipFile, member: ZipInfo) -> bytes:
    """A compressed file within: it unpacks to as much as its entry says.

    `ZipFile.read` unpacks all there is before it compares.

    Raises
    ------
    ValueError, BadZipFile
        If it does not.
    """
    if member.compress_type != ZIP_DEFLATED:
        raise ValueError(f"{member.filename} is compressed in another way")
    with file.open(member) as opened:
        found = opened.read(member.file_size)
    if len(found) != member.file_size:
        raise ValueError(f"{member.filename} is shorter than it says")
    return found
