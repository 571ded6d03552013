"""When a long run has failed."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_lab.bench.endurance import Memory, grown, late_commands, memory_of


def test_memory_is_looked_at_after_the_warm_up_and_at_the_end() -> None:
    samples = [*range(20), *[1000] * 16, *[5] * 49, *[1500] * 15]
    assert memory_of(samples) == Memory(1000, 1500)
    assert memory_of(samples).growth == pytest.approx(0.5)
    assert memory_of([7]) == Memory(7, 7)


def test_one_outlier_is_no_growth() -> None:
    samples = [1000] * 100
    samples[-1] = 9000
    assert memory_of(samples).growth == 0.0


def test_growth_of_a_percent_is_a_fault_of_its_process() -> None:
    found = grown({"flat": Memory(1000, 1009), "robot": Memory(1000, 1010), "less": Memory(1000, 500)})
    assert found == ["robot: resident memory grew by 1.00% (1000 to 1010 bytes)"]


def test_late_is_what_is_above_the_limit() -> None:
    latencies_ms = np.array([1.0, 250.0, 250.1, 300.0])
    assert late_commands(latencies_ms, 250.0) == ["2 commands later than 250 ms"]
    assert late_commands(latencies_ms, 300.0) == []
