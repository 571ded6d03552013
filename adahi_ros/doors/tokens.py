# SPDX-License-Identifier: Apache-2.0
"""The tokens by which a door knows its clients.

    arm_1   f0c2d1e6b3a94f5d8e7c6b5a49382716
    arm_2   9b1d0c5f2e4a47b68c3d2e1f0a9b8c7d

A line has a client's name and its token; two lines of one name let it change its token. The file is read
again when it has changed, so that a token which was removed opens nothing any more.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from pathlib import Path

from adahi_ros.core.files import read_bytes
from adahi_ros.core.texts import abridged

LARGEST = 65536  # bytes of the file
NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
TOKEN = re.compile(r"[!-~]{16,256}")
SCHEMES = ("api-key", "bearer")  # as openpi's client and others send them


class Tokens:
    """Names clients by their tokens.

    Args:
        path: of the file.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is wrong; names it, and what is allowed, but no token.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._names: dict[bytes, str] = {}
        self._read()

    def _read(self) -> None:
        """Read the file if it has changed."""
        found = self._path.stat()
        state = found.st_mtime_ns, found.st_size, found.st_ino
        if state != self._state:
            self._names = {}  # where the file is wrong, no client enters
            self._state = state
            self._names = parsed(read_bytes(self._path, LARGEST).decode(errors="replace"))

    def client(self, authorization: str) -> str | None:
        """Return the name of a client by its header `Authorization`; None for an unknown one.

        The time that this takes does not depend on how much of a token is right.
        """
        try:
            self._read()
        except (OSError, ValueError):
            self._names = {}
        scheme, _, token = authorization.partition(" ")
        wanted = _digest(token.strip())
        name = None
        for digest, its in self._names.items():
            if hmac.compare_digest(digest, wanted):
                name = its
        return name if scheme.lower() in SCHEMES else None


def parsed(text: str) -> dict[bytes, str]:
    """Return the clients' names by the digests of their tokens.

    Raises:
        ValueError: see `Tokens`.
    """
    names: dict[bytes, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if not NAME.fullmatch(words[0]):
            raise ValueError(
                f"line {number}: {abridged(words[0], 40)!r}, must be a name of 1 to 32 letters, digits, _ . -"
            )
        if len(words) != 2 or not TOKEN.fullmatch(words[1]):
            raise ValueError(
                f"line {number}: must be a name and a token of 16 to 256 characters without spaces"
            )
        digest = _digest(words[1])
        if names.setdefault(digest, words[0]) != words[0]:
            raise ValueError(f"line {number}: has the token of {names[digest]!r}, must be another one")
    if not names:
        raise ValueError("no line with a name and a token, must be one at least")
    return names


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()
