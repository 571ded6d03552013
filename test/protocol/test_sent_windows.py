"""A robot sends only what the verifier has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.protocol.window import WHOLE, SentWindows, WireRows, WireWindow, window_digest

H, S, F, G = 4, 3, 4, 2
CAMERAS = 2
GOAL = np.zeros(G, np.float32)
MODES = ("state", "features", "images", "nothing")
DRAW = np.random.default_rng(0)
NUMBERS = DRAW.normal(size=(3 * H, S)).astype(np.float32)
FEATURES = DRAW.normal(size=(3 * H, F)).astype(np.float16).astype(np.float32)
IMAGES = [DRAW.bytes(4) for _ in range(3 * H * CAMERAS)]


def window_of(mode: str, step: int, goal: np.ndarray = GOAL) -> WireWindow:
    """The window of a step, that of the step before moved on by a row."""
    rows = slice(step, step + H)
    if mode == "features":
        return WireWindow.pack(NUMBERS[rows], goal, features=FEATURES[rows])
    if mode == "images":
        return WireWindow.pack(NUMBERS[rows], goal, images=IMAGES[CAMERAS * step : CAMERAS * (step + H)])
    return WireWindow.pack(NUMBERS[rows], goal)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("skipped", [0, 1, 2, 3])
def test_only_what_is_new_is_sent(mode: str, skipped: int) -> None:
    sent, window, later = SentWindows(), window_of(mode, 0), window_of(mode, skipped)
    assert sent.update(window) == window
    sent.replied(window, kept=True)
    update = sent.update(later)
    assert update.base == window_digest(window.rows.digests(H), window.goal)
    assert update.rows == later.newest(skipped)
    assert len(update.rows.numbers) == 4 * S * skipped
    assert len(update.rows.features) == (2 * F * skipped if mode == "features" else 0)
    assert len(update.rows.images) == (CAMERAS * skipped if mode == "images" else 0)
    assert update.goal == b""


@pytest.mark.parametrize("mode", MODES)
def test_a_window_that_shares_nothing_is_sent_whole(mode: str) -> None:
    sent = SentWindows()
    sent.replied(window_of(mode, 0), kept=True)
    assert sent.update(window_of(mode, H)).base == WHOLE


def test_another_goal_is_sent() -> None:
    sent = SentWindows()
    sent.replied(window_of("state", 0), kept=True)
    update = sent.update(window_of("state", 1, GOAL + 1))
    assert len(update.rows.numbers) == 4 * S
    assert update.goal == (GOAL + 1).tobytes()


def test_what_was_sent_is_a_copy() -> None:
    sent, numbers = SentWindows(), np.ones((H, S), np.float32)
    sent.replied(WireWindow.pack(numbers, GOAL), kept=True)
    before = numbers.copy()
    numbers += 1.0
    assert sent.update(WireWindow.pack(numbers, GOAL)).base == WHOLE
    assert sent.update(WireWindow.pack(before, GOAL)).rows == WireRows(b"")
