# SPDX-License-Identifier: Apache-2.0
"""Makes untrusted texts printable and short."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

ABRIDGED = 1000  # characters
NEAR = 0.7  # similarity of names, as difflib measures it
MISSPELT = 0.85  # of a name that is otherwise allowed; start and state have 0.8

NAME_LENGTH = 64
"""Name of a robot or a target, in characters, as in `VerifyDraft.srv`."""
TEXT_LENGTH = 512
"""Message about a request or a step, as in `VerifyDraft.srv` and `DraftStatus.msg`."""

INSTRUCTION_LENGTH = 512
"""Instruction of a target, as in `VerifyDraft.srv`."""


def printable(text: str) -> str:
    """Return a text with printable characters only."""
    # It must not be a command for a terminal, nor a new line in a log.
    return "".join(character if character.isprintable() else "?" for character in text)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return a suggestion of a name near to a wrong one; empty without one."""
    near = get_close_matches(word, list(allowed), 1, NEAR)
    return f" (did you mean {near[0]!r}?)" if near else ""


def misspelt(names: Collection[str], allowed: Collection[str]) -> str:
    """Return the fault of the first name that is nearly an allowed one, which is absent; empty without one.

    Names that begin with an underscore are private, and no fault.
    """
    absent = sorted(set(allowed) - set(names))
    for name in sorted(name for name in set(names) - set(allowed) if not name.startswith("_")):
        near = get_close_matches(name, absent, 1, MISSPELT)
        if near:
            return f"{name}: has no meaning here (did you mean {near[0]!r}?); another name must differ more"
    return ""


def abridged(text: str, length: int = ABRIDGED) -> str:
    """Return a printable text of at most this many characters: both ends of a longer one.

    So an error still has the field, which comes first, and what is allowed, which comes last.
    """
    if len(text) > length:
        left = length - len(" ... ")
        text = f"{text[: left - left // 2]} ... {text[len(text) - left // 2 :]}"
    return printable(text)


def shortened(text: str, length: int = TEXT_LENGTH) -> str:
    """Return an untrusted text, printable and of at most this many characters."""
    if len(text) > length:
        text = f"{text[: length - 3]}..."
    return printable(text)
