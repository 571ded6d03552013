"""Whatever is lost, repeated or restarted, the verifier sees the robot's window or says that it cannot."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.speculation.request import RequestError, RequestFault
from adahi_ros.speculation.window_updates import (
    ROBOTS_KEPT,
    WHOLE,
    WINDOWS_KEPT,
    SentWindows,
    WindowCache,
    WindowUpdate,
    window_digest,
)

H, O, G = 4, 3, 2  # noqa: E741
GOAL = np.zeros(G, np.float32)
FATES = ("answered", "lost", "late", "restart")


def windows(steps: int, seed: int = 0) -> list[np.ndarray]:
    """Windows of consecutive steps, each the one before moved on by a row."""
    rows = np.random.default_rng(seed).normal(size=(H + steps, O)).astype(np.float32)
    return [rows[step : step + H] for step in range(steps)]


def complete(cache: WindowCache, update: WindowUpdate, robot: str = "robot") -> tuple[np.ndarray, np.ndarray]:
    window, goal = cache.complete(robot, update.base, update.rows.ravel(), update.goal)
    return window.reshape(-1, O), goal


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from(FATES)), max_size=20),
)
def test_what_arrives_is_the_window_or_a_plain_no(seed: int, fates: list[tuple[int, str]]) -> None:
    sent, cache = SentWindows(), WindowCache(H, O)
    every, goals = windows(200, seed), np.random.default_rng(seed).normal(size=(200, G)).astype(np.float32)
    step = 0
    for skipped, fate in fates:
        step += skipped
        window, goal = every[step], goals[step // 7]
        update = sent.update(window, goal)
        if fate == "lost":
            continue
        if fate == "restart":
            cache = WindowCache(H, O)
        try:
            got_window, got_goal = complete(cache, update)
        except RequestError as error:
            assert error.fault is RequestFault.WINDOW_UNKNOWN  # noqa: PT017
            sent.forget()
            got_window, got_goal = complete(cache, sent.update(window, goal))
        np.testing.assert_array_equal(got_window, window)
        np.testing.assert_array_equal(got_goal, goal)
        cache.keep("robot", got_window, got_goal)
        if fate == "answered":
            sent.answered(window, goal)


@pytest.mark.parametrize("skipped", [0, 1, 2, 3])
def test_only_what_is_new_is_sent(skipped: int) -> None:
    sent, every = SentWindows(), windows(10)
    first = sent.update(every[0], GOAL)
    assert (first.base, first.rows.shape, first.goal.shape) == (WHOLE, (H, O), (G,))
    sent.answered(every[0], GOAL)
    update = sent.update(every[skipped], GOAL)
    assert update.base == window_digest(every[0], GOAL)
    np.testing.assert_array_equal(update.rows, every[skipped][H - skipped :])
    assert update.goal.size == 0


def test_a_window_that_shares_nothing_is_sent_whole() -> None:
    sent, every = SentWindows(), windows(10)
    sent.answered(every[0], GOAL)
    assert sent.update(every[H], GOAL).base == WHOLE


def test_another_goal_is_sent() -> None:
    sent, every = SentWindows(), windows(2)
    sent.answered(every[0], GOAL)
    update = sent.update(every[1], GOAL + 1)
    assert update.rows.shape == (1, O)
    np.testing.assert_array_equal(update.goal, GOAL + 1)


def test_the_base_is_a_copy() -> None:
    sent, (window,) = SentWindows(), windows(1)
    sent.answered(window, GOAL)
    before = window.copy()
    window += 1.0
    assert sent.update(window, GOAL).base == WHOLE
    assert sent.update(before, GOAL).rows.shape == (0, O)


def test_robots_do_not_share_windows() -> None:
    cache, every = WindowCache(H, O), windows(2)
    cache.keep("a", every[0], GOAL)
    update = WindowUpdate(window_digest(every[0], GOAL), every[1][-1:], GOAL[:0])
    np.testing.assert_array_equal(complete(cache, update, "a")[0], every[1])
    with pytest.raises(RequestError, match=re.escape("send the whole window")):
        complete(cache, update, "b")


def test_old_windows_and_old_robots_are_forgotten() -> None:
    cache, every = WindowCache(H, O), windows(WINDOWS_KEPT + 1)
    for window in every:
        cache.keep("a", window, GOAL)

    def known(robot: str, window: np.ndarray) -> bool:
        try:
            complete(cache, WindowUpdate(window_digest(window, GOAL), window[:1], GOAL[:0]), robot)
        except RequestError as error:
            assert error.fault is RequestFault.WINDOW_UNKNOWN  # noqa: PT017
            return False
        return True

    assert [known("a", window) for window in every] == [False] + [True] * WINDOWS_KEPT
    for robot in range(ROBOTS_KEPT):
        cache.keep(str(robot), every[0], GOAL)
    assert not known("a", every[-1])
    assert known("0", every[0])


@pytest.mark.parametrize("size", [1, O + 1, H * O, H * O + O])
def test_rows_that_do_not_fit_a_base_are_refused(size: int) -> None:
    cache, every = WindowCache(H, O), windows(1)
    cache.keep("a", every[0], GOAL)
    with pytest.raises(RequestError, match=f"observation_window: {size} values") as refusal:
        cache.complete("a", window_digest(every[0], GOAL), np.zeros(size, np.float32), GOAL[:0])
    assert refusal.value.fault is RequestFault.WRONG_SHAPE
