"""Diagnostics have the names that diagnostic_aggregator goes by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rclpy.node import Node

from adahi_ros.core.assets import asset
from adahi_ros.core.health_level import Health, Level
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher
from test.nodes.conftest import Make


@pytest.mark.parametrize(("name", "group"), [("draft_policy", "robots"), ("target_verifier", "verifiers")])
def test_the_shipped_aggregator_finds_a_node_of_ours(
    make_node: Make, name: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = yaml.safe_load(asset("config/diagnostics/aggregator.yaml").read_text())
    analyzers = values["analyzers"]["ros__parameters"]  # the name that aggregator_node gives its node
    published: list[Any] = []
    node = make_node(Node, name)
    monkeypatch.setattr(node, "create_publisher", lambda *_: SimpleNamespace(publish=published.append))
    health = Health(Level.WARN, "slow", {"calls": 3})
    DiagnosticsPublisher(node, "arm", "work", lambda: health)._publish()
    (status,) = published[0].status
    found = [each for each in ("robots", "verifiers") if analyzers[each]["contains"][0] in status.name]
    assert found == [group]
    assert (status.message, status.level, status.values[0].value) == ("slow", b"\1", "3")
