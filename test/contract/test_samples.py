from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_ros.contract.assembler import Samples
from adahi_ros.contract.contract import Alignment, Camera, Channel, Source
from adahi_ros.contract.fields import InputError

MS = 1_000_000
CHANNEL = Channel("joint_states", "sensor_msgs/msg/JointState")
AGE_MS = 50  # of a step, and of a sample when it comes


def source(strategy: str, tolerance_ms: float, size: int = 1) -> Source:
    align = Alignment(strategy, "header", 1e-3 * tolerance_ms)
    return Source("observation.state", CHANNEL, tuple(f"position.{n}" for n in range(size)), align)


@given(
    st.sampled_from(["asof", "hold"]),
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 5), st.integers(-20, AGE_MS)), min_size=1, max_size=100),
    st.integers(0, AGE_MS),
)
def test_what_is_kept_is_what_all_that_came_would_give(
    strategy: str, tolerance_ms: int, arrivals: list[tuple[int, int]], step_age_ms: int
) -> None:
    """In whatever order they come, early or late, and however many have the same stamp."""
    samples = Samples(source(strategy, tolerance_ms))
    came: dict[int, int] = {}
    now = 0
    for number, (passed, age) in enumerate(arrivals):
        now += passed
        came.setdefault(now - age, number)
        samples.add((now - age) * MS, number, (now - AGE_MS) * MS, (now + AGE_MS) * MS)
    step = now - step_age_ms
    near = sorted(came) if strategy == "asof" else [at for at in came if at <= step]
    best = min(near, key=lambda at: abs(at - step), default=None)
    if best is None or (abs(best - step) > tolerance_ms and strategy == "asof"):
        assert samples.at(step * MS) is None
    elif abs(best - step) > tolerance_ms:
        with pytest.raises(InputError, match="joint_states: its newest sample is"):
            samples.at(step * MS)
    else:
        assert samples.at(step * MS) == came[best]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_flood_of_numbers_is_bounded_in_memory(size: int) -> None:
    samples = Samples(source("hold", 1e9, size))
    count = 140_000 if size == 1 else 20_000
    for number in range(count):
        samples.add(number, number, 0, count)
    kept = [at for at in range(count) if _has(samples, at)]
    assert 64 <= len(kept) * size <= max(2**17, 64 * size)
    assert kept[-1] == count - 1


def _has(samples: Samples, at_ns: int) -> bool:
    return samples.at(at_ns) == at_ns


def test_a_flood_of_images_is_bounded_in_memory() -> None:
    camera = Camera("observation.images.top", CHANNEL, Alignment("hold", "header", 1e9), 8, 8)
    samples = Samples(camera)
    for number in range(1000):
        samples.add(number, number, 0, 1000)
    assert sum(_has(samples, number) for number in range(1000)) == 64


def test_what_came_before_the_clock_went_back_is_of_no_step() -> None:
    samples = Samples(source("asof", 1e6))
    samples.add(1000 * MS, "before", 900 * MS, 1100 * MS)
    samples.add(10 * MS, "after", 0, 110 * MS)
    assert samples.at(900 * MS) == "after"
