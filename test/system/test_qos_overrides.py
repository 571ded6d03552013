"""A QoS override that cannot be is told of, and what was opened before it is closed again."""

from __future__ import annotations

from pathlib import Path

from test.system.stage import Stage


def test_a_wrong_override_leaves_nothing_open(stage: Stage, exported: Path) -> None:
    process = stage.start_draft(
        exported, qos_overrides={"/task_state": {"subscription": {"reliability": "sometimes"}}}
    )
    for attempt in range(1, 3):
        assert not stage.change_state("configure")
        assert process.output.count("[ERROR]") == process.output.count("`sometimes`") == attempt
    stage.wait(lambda: stage.node.count_publishers("command") == 0, "closed publishers")
    assert stage.state() == "unconfigured"
    assert "Traceback" not in process.output
