# SPDX-License-Identifier: Apache-2.0
"""The rooms of papers: folders here, of which each may have files of the same names.

Nothing outside a room names it, so a room can be added or removed without any other change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from adahi_ros.core.schema import load

T = TypeVar("T")
ROOMS = Path(__file__).parent


def of_rooms(kind: type[T], file: str) -> Iterator[T]:
    """Yield the content of the rooms' files of this name; raises as `load`."""
    for path in sorted(ROOMS.glob(f"*/{file}")):
        yield load(kind, path)
