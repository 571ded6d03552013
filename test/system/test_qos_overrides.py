"""A QoS override that cannot be is told of, and what was opened before it is closed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_a_wrong_override_leaves_nothing_open(stage: Any, exported: Path) -> None:
    process = stage.start(
        "draft_policy_node",
        checkpoint=str(exported / "draft"),
        qos_overrides={"/task_state": {"subscription": {"reliability": "sometimes"}}},
    )
    for attempt in range(1, 3):
        assert not stage.change_state("configure")
        assert process.output.count("[ERROR]") == process.output.count("`sometimes`") == attempt
    stage.wait(lambda: stage.node.count_publishers("command") == 0, "closed publishers")
    assert stage.observer.state("draft_policy", 30.0, stage.check) == "unconfigured"
    assert "Traceback" not in process.output
