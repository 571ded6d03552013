"""A target that stalls delays neither describe_target nor the end of its node."""

from __future__ import annotations

import time
from pathlib import Path

from adahi_msgs.srv import DescribeTarget, VerifyDraft

from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.protocol.request import PROTOCOL_VERSION
from test.system.stage import Stage

LONG_S = 20.0


def test_describe_and_the_end_do_not_wait_for_a_stalled_target(stage: Stage, exported: Path) -> None:
    process = stage.start_verifier(exported, rule__name="replace", added_compute_s=60.0)
    describe = stage.client(DescribeTarget, "describe_target")
    described = describe(DescribeTarget.Request())
    asking = stage.node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos("best_effort"))
    assert asking.wait_for_service(LONG_S)
    request = VerifyDraft.Request(
        protocol=PROTOCOL_VERSION, robot_id="arm", observation_window=[0.5] * 18, goal=[0.1, -0.1]
    )
    reply = asking.call_async(request)
    started_s = time.monotonic()
    for _ in range(5):
        assert describe(DescribeTarget.Request()).target == described.target
    assert not reply.done()
    stage.end(process)
    assert time.monotonic() - started_s < LONG_S  # the target needs 60 s
