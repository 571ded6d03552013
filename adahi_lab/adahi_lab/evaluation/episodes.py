# SPDX-License-Identifier: Apache-2.0
"""Numbers of the episodes for each purpose. Seed and number identify an episode; no two purposes share one.

Demonstrations have the numbers from 0, with their recipe's seed.
"""

from __future__ import annotations

CALIBRATION = 1_000_000
EVALUATION = 2_000_000
LESSONS = 3_000_000
TUNING = 4_000_000
HELD_OUT_SEED_OFFSET = 7_000_000  # of the expert's episodes for action errors: numbers from 0 of another seed


def calibration_episodes(count: int) -> range:
    """Return the numbers of so many calibration episodes."""
    return range(CALIBRATION, CALIBRATION + count)


def evaluation_episodes(count: int) -> range:
    """Return the numbers of so many evaluation episodes."""
    return range(EVALUATION, EVALUATION + count)


def lesson_episodes(count: int, before: int) -> range:
    """Return the numbers of so many training episodes, after earlier ones."""
    return range(LESSONS + before, LESSONS + before + count)


def tuning_episodes(count: int) -> range:
    """Return the numbers of so many episodes to choose a recipe by."""
    return range(TUNING, TUNING + count)
