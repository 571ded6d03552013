# SPDX-License-Identifier: Apache-2.0
"""Texts that hold what a stranger wrote, for people to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ABRIDGED = 1000  # characters
NEAR = 0.7  # likeness of names, as difflib measures it

NAME_LENGTH = 64
"""Of a robot or a target, in characters, as in `VerifyDraft.srv`."""
TEXT_LENGTH = 512
"""Of what is said of a request or a step, as in `VerifyDraft.srv` and `DraftStatus.msg`."""

INSTRUCTION_LENGTH = 512
"""Of what a target is told to do, as in `VerifyDraft.srv`."""


def printable(text: str) -> str:
    """Return a text, each character of which can be printed."""
    # A terminal that shows it must not take it for a command, nor a log for another line.
    return "".join(character if character.isprintable() else "?" for character in text)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return a question for a name that is near to a wrong one; empty where none is."""
    near = get_close_matches(word, list(allowed), 1, NEAR)
    return f" (did you mean {near[0]!r}?)" if near else ""


def abridged(text: str, length: int = ABRIDGED) -> str:
    """Return a printable text of so many characters at most: of a longer one both ends.

    So an error still names the field, which comes first, and says what is allowed, which comes last.
    """
    if len(text) > length:
        left = length - len(" ... ")
        text = f"{text[: left - left // 2]} ... {text[len(text) - left // 2 :]}"
    return printable(text)


def shortened(text: str, length: int = TEXT_LENGTH) -> str:
    """Return a text that may be a stranger's, of so many characters at most, each of which can be printed."""
    if len(text) > length:
        text = f"{text[: length - 3]}..."
    return printable(text)
