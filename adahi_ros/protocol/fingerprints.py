# SPDX-License-Identifier: Apache-2.0
"""Fingerprints as they are sent: one number in every message. Files and people have 16 hexadecimal digits."""

from __future__ import annotations

NO_FINGERPRINT = 0
"""Where there is nothing to have one."""


def fingerprint_number(fingerprint: str) -> int:
    """Return the number of a fingerprint, `NO_FINGERPRINT` of an empty one."""
    return int(fingerprint, 16) if fingerprint else NO_FINGERPRINT


def fingerprint_text(number: int) -> str:
    """Return a fingerprint by its number, empty of `NO_FINGERPRINT`."""
    return "" if number == NO_FINGERPRINT else f"{number:016x}"
