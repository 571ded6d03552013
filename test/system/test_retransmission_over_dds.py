"""A request without a reply is sent again, and whichever reply comes first counts."""

from __future__ import annotations

from pathlib import Path

from adahi_ros.robot.link_estimate import FIRST_S
from test.ball_contract import ball_contract
from test.system.stage import HeldVerifier, Robot, Stage, describe_policy

TIMEOUT_NS = round(20 * FIRST_S * 1e9)


def test_a_request_is_retransmitted_word_for_word(stage: Stage, exported: Path) -> None:
    verifier = HeldVerifier(stage, describe_policy(exported / "draft"), "best_effort")
    robot = Robot(stage)
    contract = ball_contract(max_age_s=60.0)
    stage.start_draft(exported, contract=contract, deadline_s=30.0, verifier_wait_s=60.0)
    stage.activate()
    try:
        stage.wait(lambda: robot.show(0, 0) > 0 and bool(verifier.requests(0, 0)), "a request")
        first, sent_ns = verifier.requests(0, 0)[0], robot.now()
        # It knows nothing yet of how long a round trip takes, and waits for FIRST_S.
        stage.wait(lambda: robot.now() - sent_ns > TIMEOUT_NS, "its timeout")
        verifier.reply(first)
        record = robot.answer_to(0, 0)
        assert record.verified
        # The verifier was busy with the first; what came in the meantime was the same again.
        stage.wait(lambda: len(verifier.requests(0, 0)) > 1, "its retransmission")
        assert verifier.requests(0, 0)[1] == first
        assert record.request_bytes > 2 * 4 * len(first.observation_window)
        assert sum(each.step == 0 for each in robot.steps) == 1
    finally:
        verifier.close()
