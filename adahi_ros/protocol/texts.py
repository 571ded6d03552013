# SPDX-License-Identifier: Apache-2.0
"""Texts that may be a stranger's, for people to read."""

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
