"""What a node needs of its machine's memory."""

from __future__ import annotations

import mmap
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from adahi_ros.nodes.server.machine import memory_figures


def test_what_a_process_takes_shows() -> None:
    before = memory_figures("cpu")
    taken = np.frombuffer(mmap.mmap(-1, 100_000_000), np.uint8)  # malloc may have as much left
    taken[:] = 1
    after = memory_figures("cpu")
    assert after["memory_bytes"] - before["memory_bytes"] > 0.5 * taken.nbytes  # others may free some
    assert after["memory_peak_bytes"] >= after["memory_bytes"]
    assert set(after) == {"memory_bytes", "memory_peak_bytes"}


def test_of_a_gpu_its_own_memory_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(
        memory_allocated=lambda device: {"cuda:1": 5}[device],
        max_memory_allocated=lambda device: {"cuda:1": 7}[device],
        get_device_properties=lambda device: SimpleNamespace(total_memory=100),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    figures = memory_figures("cuda:1")
    assert {name: figures[name] for name in figures if name.startswith("device")} == {
        "device_memory_bytes": 5,
        "device_memory_peak_bytes": 7,
        "device_memory_total_bytes": 100,
    }
    assert not any(name.startswith("device") for name in memory_figures("ws://gpu:8000"))
