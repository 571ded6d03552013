# SPDX-License-Identifier: Apache-2.0
"""Which episodes are for what. Episodes are told by seed and number; numbers keep apart what must not meet.

Demonstrations have the numbers from 0, of their recipe's seed.
"""

from __future__ import annotations

CALIBRATION = 1_000_000
EVALUATION = 2_000_000
LESSONS = 3_000_000
TUNING = 4_000_000
HELD_OUT_SEED_OFFSET = 7_000_000  # the expert's own, to compare actions with: numbers from 0 of another seed


def calibration_episodes(count: int) -> range:
    """Return the numbers of so many calibration episodes."""
    return range(CALIBRATION, CALIBRATION + count)


def evaluation_episodes(count: int) -> range:
    """Return the numbers of so many evaluation episodes."""
    return range(EVALUATION, EVALUATION + count)


def lesson_episodes(count: int, before: int) -> range:
    """Return the numbers of so many episodes to learn from, after those before."""
    return range(LESSONS + before, LESSONS + before + count)


def tuning_episodes(count: int) -> range:
    """Return the numbers of so many episodes to choose a recipe by."""
    return range(TUNING, TUNING + count)
