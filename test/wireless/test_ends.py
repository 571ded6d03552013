from __future__ import annotations

import os

import pytest

from adahi_ros.wireless.ends import cores_of_ends


@pytest.mark.parametrize("usable", [{0, 1}, {1, 4, 7}, set(range(16))])
def test_the_ends_share_no_core_and_leave_none_unused(
    usable: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: usable)
    robot, server = cores_of_ends()
    assert robot
    assert server
    assert robot.isdisjoint(server)
    assert robot | server == usable


def test_a_core_that_is_alone_is_that_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3})
    assert cores_of_ends() == ({3}, {3})
