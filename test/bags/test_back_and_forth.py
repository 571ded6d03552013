"""Two publishers of one joint are found in a bag, which has no sequence numbers; sound bags are sound."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.bags.back_and_forth import BackAndForth

TOPICS = {"a": "joint_states", "b": "joint_states"}
END_S = 3.0


def message(at_s: float, **positions: float) -> Any:
    seconds, nanoseconds = divmod(round(at_s * 1e9), 10**9)
    stamp = SimpleNamespace(sec=100 + seconds, nanosec=nanoseconds)
    return SimpleNamespace(
        header=SimpleNamespace(stamp=stamp), name=list(positions), position=list(positions.values())
    )


def surveyed(messages: Iterable[tuple[float, dict[str, float]]], topic: str = "joint_states") -> BackAndForth:
    found = BackAndForth(TOPICS)
    for at_s, positions in messages:
        found.take(topic, message(at_s, **positions), 0)
    return found


def arm(rate_hz: float, offset_s: float = 0.0, speed: float = 2.0) -> list[tuple[float, dict[str, float]]]:
    """Return a sound arm that swings by 1 rad around 1, with the noise of its encoders."""
    draw = np.random.default_rng(7)
    times = np.arange(0.0, END_S, 1 / rate_hz) + offset_s
    return [
        (t, {"a": 1.0 + np.sin(speed * t) + draw.normal(0, 0.002), "b": 0.3 + draw.normal(0, 0.002)})
        for t in times
    ]


def zeros(rate_hz: float, offset_s: float = 0.0) -> list[tuple[float, dict[str, float]]]:
    return [(t, {"a": 0.0, "b": 0.0}) for t in np.arange(0.0, END_S, 1 / rate_hz) + offset_s]


@pytest.mark.parametrize("rates_hz", [(100, 77), (100, 10), (500, 10), (50, 10), (100, 100), (77, 100)])
def test_zeros_beside_a_broadcaster_are_found(rates_hz: tuple[int, int]) -> None:
    messages = sorted(arm(rates_hz[0]) + zeros(rates_hz[1], 0.0037), key=lambda each: each[0])
    faults = surveyed(messages).faults()
    assert faults[0].startswith("joint_states: a jumps back and forth in ")
    assert "two publishers measure it, end one of them" in faults[0]
    if rates_hz[0] >= 100:
        assert faults[1].startswith("joint_states: b ")


@given(order=st.lists(st.booleans(), min_size=20, max_size=20))
def test_equal_stamps_are_found_in_any_order(order: list[bool]) -> None:
    messages = []
    for (at_s, measured), first in zip(arm(100), order * 15, strict=True):
        pair = [(at_s, measured), (at_s, {"a": 0.0, "b": 0.0})]
        messages += pair if first else pair[::-1]
    assert len(surveyed(messages).faults()) == 2


@given(
    rate_hz=st.sampled_from([10, 20, 50, 100, 500, 1000]),
    speed=st.floats(0.0, 8.0),
    repeats=st.integers(1, 3),
    jitter=st.floats(0.0, 0.5),
    seed=st.integers(0, 100),
)
def test_an_arm_that_swings_fast_is_sound_though_stamps_repeat(
    rate_hz: int, speed: float, repeats: int, jitter: float, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    messages = [
        (at_s + jitter * draw.random() / rate_hz, measured)
        for at_s, measured in arm(rate_hz, speed=speed)
        for _ in range(repeats)
    ]
    found = surveyed([each for each in messages for _ in range(repeats)])
    assert found.faults() == ()
    assert found.repeated["joint_states"] >= (repeats - 1) * len(messages)


def test_episodes_that_begin_anywhere_and_a_gripper_that_snaps_are_sound() -> None:
    draw = np.random.default_rng(3)
    messages = []
    for episode in range(20):
        start = draw.uniform(-2, 2)
        for step in range(50):
            grips = {"b": 0.8 * (step // 10 % 2)}
            messages.append((3.0 * episode + 0.05 * step, {"a": start + 0.01 * step, **grips}))
    assert surveyed(messages).faults() == ()


def test_two_publishers_of_different_joints_and_other_topics_are_sound() -> None:
    both = sorted(
        [(at_s, {"a": each["a"]}) for at_s, each in arm(100)]
        + [(at_s, {"b": 0.0, "wheel": 3.0}) for at_s, _ in zeros(77)],
        key=lambda each: each[0],
    )
    assert surveyed(both).faults() == ()
    mixed = sorted(arm(100) + zeros(77), key=lambda each: each[0])
    assert surveyed(mixed, "other").faults() == ()


def test_the_noise_of_encoders_in_degrees_is_sound() -> None:
    draw = np.random.default_rng(5)
    messages = [(t, {"a": -80.0 + 0.09 * draw.integers(-2, 3), "b": 0.2 * t}) for t in np.arange(0, 9, 0.01)]
    assert surveyed(messages).faults() == ()
    zeros_too = sorted(messages + zeros(77, 0.0037), key=lambda each: each[0])
    assert len(surveyed(zeros_too).faults()) == 1


def test_a_glitch_now_and_then_is_another_fault() -> None:
    messages = arm(1000)
    for place in (100, 700, 1500, 2000):
        messages[place] = (messages[place][0], {"a": 9.0, "b": 9.0})
    assert surveyed(messages).faults() == ()
