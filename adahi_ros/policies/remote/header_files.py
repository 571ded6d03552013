# SPDX-License-Identifier: Apache-2.0
"""Headers of a websocket's request with content of files, so that no token is in a target file or a log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from adahi_ros.policies.remote.remote import ServerFault

LONGEST = 8192  # bytes of a file; servers refuse longer headers
NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
VALUE = re.compile(r"([A-Za-z0-9-]+ )?@(\S.*)")


class HeaderFiles:
    """Reads the headers of a target file.

    Args:
        folder: that relative paths are below.
        headers: by name `@FILE`, or a word and `@FILE`, unchecked.

    Raises:
        ValueError: a name or value is not allowed, or a file cannot be used; never has a value, which may be
            a token, nor the content of a file.
    """

    def __init__(self, folder: Path, headers: Mapping[str, object]) -> None:
        self._files: dict[str, tuple[str, Path]] = {}
        for name, value in headers.items():
            if not NAME.fullmatch(name):
                raise ValueError(f"headers: {name!r}, must be letters, digits and hyphens, at most 64")
            found = VALUE.fullmatch(value) if isinstance(value, str) else None
            if found is None:
                raise ValueError(
                    f"headers.{name}: must be '@FILE', or a word and a file, such as Bearer @FILE"
                )
            word, path = found.groups(default="")
            self._files[name] = word, folder / Path(path).expanduser()
        self._read()

    def __call__(self) -> dict[str, str]:
        """Return the headers.

        Raises:
            ServerFault: a file cannot be used any more.
        """
        try:
            return self._read()
        except ValueError as error:
            raise ServerFault(f"not reachable: {error}") from None

    def _read(self) -> dict[str, str]:
        return {name: word + _secret(name, path) for name, (word, path) in self._files.items()}


def _secret(name: str, path: Path) -> str:
    """Return the content of a file, without white space around it."""
    where = f"headers.{name}: {str(path)!r}"
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is no path"
        raise ValueError(f"{where}, cannot be read: {reason}") from None
    text = content.decode("latin-1").strip()
    if not text or len(content) > LONGEST or not text.isascii() or not text.isprintable():
        allowed = f"one line of 1 to {LONGEST} printable ASCII characters"
        raise ValueError(f"{where}, of {len(content)} bytes, must have {allowed}")
    return text
