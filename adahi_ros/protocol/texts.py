# SPDX-License-Identifier: Apache-2.0
"""Texts that may be a stranger's, for people to read; fingerprints as messages have them."""

from __future__ import annotations

from adahi_ros.core.texts import printable

NAME_LENGTH = 64
"""Of a robot or a target, in characters, as in `VerifyDraft.srv`."""
TEXT_LENGTH = 512
"""Of what is said of a request or a step, as in `VerifyDraft.srv` and `DraftStatus.msg`."""

INSTRUCTION_LENGTH = 512
"""Of what a target is told to do, as in `VerifyDraft.srv`."""


def shortened(text: str, length: int = TEXT_LENGTH) -> str:
    """Return a text that may be a stranger's, of so many characters at most, each of which can be printed."""
    if len(text) > length:
        text = f"{text[: length - 3]}..."
    return printable(text)


NO_FINGERPRINT = 0
"""Where there is nothing to have one."""


def fingerprint_number(fingerprint: str) -> int:
    """Return the number of a fingerprint, `NO_FINGERPRINT` of an empty one."""
    return int(fingerprint, 16) if fingerprint else NO_FINGERPRINT


def fingerprint_text(number: int) -> str:
    """Return a fingerprint by its number, empty of `NO_FINGERPRINT`."""
    return "" if number == NO_FINGERPRINT else f"{number:016x}"
