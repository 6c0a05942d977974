"""Read zip files from untrusted sources: contents are read only if their size is as expected."""

from __future__ import annotations

import struct
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_END, _END_64, _LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_ENTRY = 128
"""Upper bound on the bytes of a directory entry: 46, a name of 10, and the fields for files above 4 GB."""


def check_entries(file: IO[bytes], most: int) -> None:
    """Refuse a file whose directory has more than `most` entries, before it is parsed.

    Raises `ValueError` if there are more, or the file is not a zip file without a comment, as Python writes
    it.
    """
    size = _directory(file)
    if size > _ENTRY * most:
        raise ValueError(f"its directory takes {size:,} bytes, and {most} files are expected")


def _directory(file: IO[bytes]) -> int:
    length = file.seek(0, 2)
    file.seek(max(0, length - 98))  # the last record, and the two before it in a large file
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
    """The contents of a compressed member, which must unpack to the size in its entry.

    `ZipFile.read` would unpack everything before it compares sizes.

    Raises `ValueError`, `BadZipFile` if the sizes differ.
    """
    if member.compress_type != ZIP_DEFLATED:
        raise ValueError(f"{member.filename} is compressed in another way")
    with file.open(member) as opened:
        found = opened.read(member.file_size)
    if len(found) != member.file_size:
        raise ValueError(f"{member.filename} is shorter than it says")
    return found
