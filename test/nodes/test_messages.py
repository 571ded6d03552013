"""What goes into a message comes out of it, and the numbers in code and messages are the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus, LinkState
from adahi_msgs.srv import VerifyDraft
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.nodes.messages import (
    fill_answer,
    fingerprint_number,
    from_answer,
    from_request,
    from_stamp,
    from_status,
    to_command,
    to_link_state,
    to_request,
    to_stamp,
    to_status,
)
from adahi_ros.speculation.link_estimate import LinkEstimate
from adahi_ros.speculation.records import Reason, StepRecord
from adahi_ros.speculation.request import RequestFault, Verification, VerificationRequest
from adahi_ros.speculation.sampling import counted
from adahi_ros.speculation.window_updates import WindowUpdate


def test_reasons_and_faults_have_the_numbers_of_the_messages() -> None:
    def constants(message: type, prefix: str) -> dict[str, int]:
        names = [name for name in dir(message) if name.startswith(prefix)]
        return {name.removeprefix(prefix): getattr(message, name) for name in names}

    assert constants(DraftStatus, "REASON_") == {reason.name: reason.value for reason in Reason}
    faults = {fault.name: fault.value for fault in RequestFault}
    assert constants(VerifyDraft.Response, "STATUS_") == {"OK": 0, **faults, "INTERNAL_ERROR": 6}


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_stamps(nanoseconds: int) -> None:
    assert from_stamp(to_stamp(nanoseconds)) == nanoseconds


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 65535))
def test_requests_survive_the_wire(seed: int, books: int, size: int) -> None:
    draw = np.random.default_rng(seed)
    request = VerificationRequest(
        draw.normal(size=(1, 3, 4)).astype(np.float32),
        draw.normal(size=(1, 2)).astype(np.float32),
        draw.integers(size, size=(1, books)),
        counted(draw.dirichlet(np.ones(5), size=(1, books))),
    )
    window_sent = WindowUpdate(2**64 - 1, request.windows[0, 1:], request.goals[0])
    sent = to_request(request, window_sent, "robot", 7, 8, fingerprint_number("f123456789abcdef"))
    received = deserialize_message(serialize_message(sent), VerifyDraft.Request)
    assert (received.robot_id, received.episode_id, received.step_id) == ("robot", 7, 8)
    assert (received.base_window, received.tokenizer_fingerprint) == (2**64 - 1, 0xF123456789ABCDEF)
    rows, goal, codes, counts = from_request(received)
    np.testing.assert_array_equal(rows, request.windows[0, 1:].ravel())
    np.testing.assert_array_equal(goal, request.goals.ravel())
    np.testing.assert_array_equal(codes, request.codes.ravel())
    np.testing.assert_array_equal(counts, request.counts.ravel())


@given(st.integers(0, 2**32 - 1))
def test_answers_survive_the_wire(seed: int) -> None:
    draw = np.random.default_rng(seed)
    answer = Verification(
        draw.integers(65536, size=(1, 3)), draw.random((1, 3)) < 0.5, np.float32(draw.normal(size=(1, 2, 4)))
    )
    response = VerifyDraft.Response()
    fill_answer(response, answer)
    codes, accepted, offset = from_answer(
        deserialize_message(serialize_message(response), VerifyDraft.Response)
    )
    assert codes.tolist() == answer.codes[0].tolist()
    assert accepted.tolist() == answer.accepted[0].tolist()
    np.testing.assert_array_equal(offset, answer.offset.ravel())


def test_a_status_survives_the_wire() -> None:
    record = StepRecord(
        stamp_ns=1_500_000_000,
        robot_id="robot",
        episode=1,
        step=2,
        gate="deviation",
        deviation=math.inf,
        score=math.inf,
        threshold=0.5,
        transmitted=True,
        verified=True,
        accepted=(True, False),
        reason=Reason.NONE,
        reason_counts=(3, 0, 1, 0, 0, 0, 0),
        message="",
        draft_action=(0.25, -0.5),
        action=(0.125, 0.0),
        draft_ms=1.0,
        verify_ms=2.0,
        target_compute_ms=0.5,
        total_ms=4.0,
        request_bytes=300,
        response_bytes=50,
    )
    assert from_status(deserialize_message(serialize_message(to_status(record)), DraftStatus)) == record


def test_a_link_state_survives_the_wire() -> None:
    estimate = LinkEstimate(12.5, 0.25, 0.125, math.nan, 2048.0, 10, 9)
    sent = to_link_state(estimate, "robot", LinkState.VERIFIER_DOUBTED, 2, 1_500_000_000)
    state = deserialize_message(serialize_message(sent), LinkState)
    assert (state.robot_id, state.verifier, state.windows_resent) == ("robot", 3, 2)
    assert (state.rtt_ms, state.rtt_deviation_ms, state.loss) == (12.5, 0.25, 0.125)
    assert math.isnan(state.misses)
    assert (state.goodput_bytes_s, state.questions, state.answers) == (2048.0, 10, 9)


@pytest.mark.parametrize(("period_s", "sec", "nanosec"), [(0.05, 0, 50_000_000), (2.5, 2, 500_000_000)])
def test_a_command_is_one_point_a_period_after_its_observation(
    period_s: float, sec: int, nanosec: int
) -> None:
    command = to_command(["a", "b"], "positions", np.float32([0.1, 0.2]), period_s, 12)
    assert from_stamp(command.header.stamp) == 12
    assert command.joint_names == ["a", "b"]
    (point,) = command.points
    assert list(point.positions) == np.float32([0.1, 0.2]).astype(float).tolist()
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (sec, nanosec)
