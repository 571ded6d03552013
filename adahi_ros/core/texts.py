# SPDX-License-Identifier: Apache-2.0
"""Texts that hold what a stranger wrote, for people to read."""

from __future__ import annotations

ABRIDGED = 1000  # characters


def printable(text: str) -> str:
    """Return a text, each character of which can be printed."""
    # A terminal that shows it must not take it for a command, nor a log for another line.
    return "".join(character if character.isprintable() else "?" for character in text)


def abridged(text: str, length: int = ABRIDGED) -> str:
    """Return a printable text of so many characters at most: of a longer one both ends.

    So an error still names the field, which comes first, and says what is allowed, which comes last.
    """
    if len(text) > length:
        left = length - len(" ... ")
        text = f"{text[: left - left // 2]} ... {text[len(text) - left // 2 :]}"
    return printable(text)
