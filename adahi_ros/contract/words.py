# SPDX-License-Identifier: Apache-2.0
"""Names of topics and types in a contract."""

from __future__ import annotations

import re
from typing import Annotated

from adahi_ros.core.schema import must

NAME = "[A-Za-z_][A-Za-z0-9_]*"
TOPIC = re.compile(f"/?{NAME}(/{NAME})*")
TYPE = re.compile(f"{NAME}/msg/{NAME}")
LONGEST_S = 1e6  # of any time, and the fastest rate

LONGEST = 200
_ALLOWED = f"of 1 to {LONGEST} printable characters without < > & or quotes"


def _is_plain(text: str) -> bool:
    return 0 < len(text) <= LONGEST and text.isprintable() and not set("<>&\"'") & set(text)


def _is_entry(text: str) -> bool:
    return _is_plain(text) and all(part == part.strip() for part in text.split("."))


Entry = Annotated[str, must(f"be a text {_ALLOWED}, and no space at an end", _is_entry)]
"""Name of a joint, or path of a field: URDF files have `left/shoulder-pan.joint` and `Revolute 39`."""
Word = Annotated[str, must(f"be a word {_ALLOWED}", lambda text: _is_plain(text) and " " not in text)]
