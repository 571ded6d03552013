from __future__ import annotations

from collections.abc import Callable

import pytest

from adahi_ros.evaluation.methods import METHODS, GatedMethod

pytest.importorskip("rclpy")

ON_AIR = [name for name, method in METHODS.items() if isinstance(method, GatedMethod)]


@pytest.mark.parametrize("name", sorted(METHODS.keys() - set(ON_AIR)))
def test_what_no_robot_can_do_is_refused_with_what_one_can(name: str, fails: Callable[..., str]) -> None:
    said = fails("demo", "ball", "--methods", f"adahi,{name}")
    assert said == f"adahi: methods: '{name}', must be of {', '.join(ON_AIR)}\n"
