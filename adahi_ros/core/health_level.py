# SPDX-License-Identifier: Apache-2.0
"""What a node says of how it does."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """How bad it is. The numbers are those of `DiagnosticStatus.msg`."""

    OK = 0
    WARN = 1
    ERROR = 2


class Health(NamedTuple):
    """What a node says of itself.

    Attributes:
        level: how bad it is.
        message: for people.
        values: figures by their names.
    """

    level: Level
    message: str
    values: Mapping[str, object]
