# SPDX-License-Identifier: Apache-2.0
"""Health that a node reports."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple


class Level(IntEnum):
    """Severity. The numbers are those of `DiagnosticStatus.msg`."""

    OK = 0
    WARN = 1
    ERROR = 2


class Health(NamedTuple):
    """A node's health.

    Attributes:
        level: severity.
        message: human-readable.
        values: figures by their names.
    """

    level: Level
    message: str
    values: Mapping[str, object]
