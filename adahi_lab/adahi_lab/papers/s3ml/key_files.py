# SPDX-License-Identifier: Apache-2.0
"""Files of keys: read and written for this user alone, and packed to be sealed."""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from adahi_ros.core.files import read_bytes

SECRET_BYTES = 32
MOST_FILES, MOST_BYTES = 64, 1 << 20


def secret_of(path: Path) -> bytes:
    """Return the secret in a file, 32 bytes in hex; create it if it is missing.

    Raises:
        ValueError: the file has something else; names it.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(file, "w") as new:
            new.write(secrets.token_hex(SECRET_BYTES))
    try:
        found = bytes.fromhex(read_bytes(path, 4 * SECRET_BYTES).decode().strip())
    except ValueError:
        found = b""
    if len(found) != SECRET_BYTES:
        raise ValueError(f"{path}: no secret, must be {SECRET_BYTES} bytes in hexadecimal digits")
    return found


def packed(folder: Path) -> bytes:
    """Return the files of a folder, with their paths.

    Raises:
        ValueError: there are none, or they are too many or too large, or one is a symbolic link, which may
            lead out of the folder; names it.
    """
    found = sorted(folder.rglob("*"))
    for path in found:
        if path.is_symlink():
            raise ValueError(f"{path}: a symbolic link, must be a copy")
    files = [path for path in found if path.is_file()]
    if not 0 < len(files) <= MOST_FILES:
        raise ValueError(f"{folder}: {len(files)} files, must be 1 to {MOST_FILES}")
    content = {
        path.relative_to(folder).as_posix(): base64.b64encode(read_bytes(path, MOST_BYTES)).decode()
        for path in files
    }
    made = json.dumps(content).encode()
    if len(made) > MOST_BYTES:
        raise ValueError(f"{folder}: {len(made)} bytes, must be at most {MOST_BYTES}")
    return made


def unpack(content: bytes, folder: Path) -> None:
    """Write packed files into a new folder that only this user can read.

    Raises:
        ValueError: it is no such content, or a path leaves the folder; nothing is written.
        FileExistsError: the folder exists.
    """
    try:
        read = json.loads(content)
        files = {name: base64.b64decode(text, validate=True) for name, text in read.items()}
    except (ValueError, AttributeError, TypeError):
        raise ValueError("keys: not packed files") from None
    _check_names(files)
    folder.mkdir(mode=0o700, parents=True)
    for name, each in files.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(each)


def _check_names(files: Mapping[str, bytes]) -> None:
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name or "\0" in name:
            raise ValueError(f"keys: {name!r}, must be a path below the folder")
