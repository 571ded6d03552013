# SPDX-License-Identifier: Apache-2.0
"""A folder of episodes, a bag each: which bag is next, and what keys mean. Knows no clock, writes no bag."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from adahi_ros.bags.bag_files import is_bag
from adahi_ros.bags.definitions import BagError
from adahi_ros.core.texts import INSTRUCTION_LENGTH

GB = 10**9
LEAST_FREE_BYTES = GB  # to start an episode
PAUSE_S = 0.3  # a key that repeats, or is pressed twice, counts once
NUMBERED = re.compile(r"episode_(\d+)")
SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*([A-Za-z~])")  # of a terminal, for an arrow key
ARROWS = {"C": "s", "D": "d"}  # right and left, as in lerobot-record
ENTER, ESCAPE, BACKSPACE = "\r\n", "\x1b", "\x7f\b"
TOGGLE, DISCARD, QUIT, INSTRUCT = "toggle", "discard", "quit", "instruct"
KEYS = {"s": TOGGLE, "\r": TOGGLE, "\n": TOGGLE, "d": DISCARD, "q": QUIT}


class EpisodeError(ValueError):
    """An episode cannot start or end now; the message says why."""


class Episodes:
    """The episodes of a folder, numbered from the highest number that is there.

    Attributes:
        running: the bag of the episode that is being recorded; None between episodes.
        saved: how many of this run are kept.

    Raises:
        BagError: the folder is a bag itself.
    """

    def __init__(self, folder: Path) -> None:
        if is_bag(folder):
            raise BagError(f"{folder}: is a bag, expected a folder for bags")
        self.folder = folder
        self.running: Path | None = None
        self.saved = 0

    @property
    def number(self) -> int:
        """The running episode's number, or the next one's."""
        there = list(self.folder.iterdir()) if self.folder.is_dir() else []
        found = [int(match[1]) for each in there if (match := NUMBERED.match(each.name))]
        return max(found, default=-1) + (self.running is None)

    @property
    def outcome(self) -> str:
        """How many episodes are saved, for people."""
        return f"{self.folder}: {self.saved} episode{'s' * (self.saved != 1)} saved"

    def next(self, free_bytes: int) -> Path:
        """Return the bag to write for a new episode.

        Raises:
            EpisodeError: one is running, or the disk is nearly full.
        """
        if self.running is not None:
            raise EpisodeError(f"{self.running}: is being recorded; save or discard it first")
        if free_bytes < LEAST_FREE_BYTES:
            raise EpisodeError(
                f"{self.folder}: {free_bytes / GB:.1f} GB free, must be at least "
                f"{LEAST_FREE_BYTES / GB:.0f} GB to start an episode"
            )
        return self.folder / f"episode_{self.number:06d}"

    def end(self, kept: bool) -> Path:
        """Return the bag of the running episode, which ends.

        Raises:
            EpisodeError: none is running.
        """
        if self.running is None:
            raise EpisodeError("no episode is being recorded; start one first")
        ended, self.running = self.running, None
        self.saved += kept
        return ended


class Keys:
    """Keys of a terminal, and the instruction that is being typed.

    Attributes:
        typed: the line so far; None while keys are commands.
        instruction: the line that was typed last.
    """

    def __init__(self) -> None:
        self.typed: str | None = None
        self.instruction = ""
        self._last_s = -PAUSE_S

    def take(self, text: str, now_s: float) -> str | None:
        """Return the command of the keys that came, or None; of several commands the first counts."""
        found = None
        for key in SEQUENCE.sub(lambda match: ARROWS.get(match[1], ""), text):
            if self.typed is not None:
                found = self._type(self.typed, key) or found
            elif key == "i":
                self.typed = ""
            elif key in KEYS:
                if now_s - self._last_s >= PAUSE_S:
                    found = found or KEYS[key]
                self._last_s = now_s
        return found

    def _type(self, typed: str, key: str) -> str | None:
        if key in ENTER:
            self.instruction, self.typed = typed.strip() or self.instruction, None
            return INSTRUCT if typed.strip() else None
        if key == ESCAPE:
            self.typed = None
        elif key in BACKSPACE:
            self.typed = typed[:-1]
        elif key.isprintable():
            self.typed = (typed + key)[:INSTRUCTION_LENGTH]
        return None


def status_lines(
    episodes: Episodes, passed_s: float, rates: Mapping[str, float], instruction: str, free_bytes: int
) -> tuple[str, str]:
    """Return what is recorded: the episode, its seconds, the instruction and the disk; Hz of each topic."""
    running = episodes.running is not None
    state = f"RECORDING {passed_s:.0f} s" if running else "waiting"
    sentence = repr(instruction) if instruction else "no instruction"
    parts = f"episode {episodes.number}", state, sentence, f"{free_bytes / GB:.0f} GB free"
    return " | ".join(parts), " | ".join(f"{name} {hz:.0f} Hz" for name, hz in rates.items())
