"""What goes into a message comes out of it, and the numbers in code and messages are the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus, LinkState
from adahi_msgs.srv import VerifyDraft
from diagnostic_msgs.msg import DiagnosticStatus
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message

from adahi_ros.gates.context import LinkEstimate
from adahi_ros.nodes.common.messages import (
    fill_reply,
    fingerprint_number,
    from_reply,
    from_request,
    from_stamp,
    from_status,
    to_command,
    to_link_state,
    to_request,
    to_stamp,
    to_status,
)
from adahi_ros.policy.distribution import counted
from adahi_ros.robot.health import Level
from adahi_ros.robot.requests import OK
from adahi_ros.robot.session import Link
from adahi_ros.server.engine import Answered
from adahi_ros.wire.records import Reason, StepRecord
from adahi_ros.wire.request import RequestError, RequestFault, Verification, VerificationRequest
from adahi_ros.wire.window import WireRows
from adahi_ros.wire.window_updates import WindowUpdate


def test_reasons_and_faults_have_the_numbers_of_the_messages() -> None:
    def constants(message: type, prefix: str) -> dict[str, int]:
        names = [name for name in dir(message) if name.startswith(prefix)]
        return {name.removeprefix(prefix): getattr(message, name) for name in names}

    assert constants(DraftStatus, "REASON_") == {reason.name: reason.value for reason in Reason}
    faults = {fault.name: fault.value for fault in RequestFault}
    assert constants(VerifyDraft.Response, "STATUS_") == {"OK": OK, **faults, "INTERNAL_ERROR": 6}


def test_links_and_levels_have_the_numbers_of_the_messages() -> None:
    for link in Link:
        assert getattr(LinkState, f"VERIFIER_{link.name}") == link
    for level in Level:
        assert getattr(DiagnosticStatus, level.name) == bytes([level])


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_stamps(nanoseconds: int) -> None:
    assert from_stamp(to_stamp(nanoseconds)) == nanoseconds


ROWS = {
    "state": WireRows(np.arange(8, dtype=np.float32).tobytes()),
    "features": WireRows(np.arange(4, dtype=np.float32).tobytes(), bytes(range(12))),
    "images": WireRows(np.arange(4, dtype=np.float32).tobytes(), b"", (b"\xff\xd8", b"", b"\0" * 70_000)),
}


def sent_request(
    rows: WireRows, books: int = 2, size: int = 8, seed: int = 0
) -> tuple[VerificationRequest, WindowUpdate, VerifyDraft.Request]:
    draw = np.random.default_rng(seed)
    request = VerificationRequest(
        np.zeros((1, 3, 4), np.float32),
        np.zeros((1, 2), np.float32),
        draw.integers(size, size=(1, books)),
        counted(draw.dirichlet(np.ones(size), size=(1, books))),
    )
    update = WindowUpdate(2**64 - 1, rows, np.float32([1.0, 2.0]).tobytes())
    return (
        request,
        update,
        to_request(request, update, "robot", 2**32 - 1, 7, 8, fingerprint_number("f123456789abcdef")),
    )


def over_the_wire(message: VerifyDraft.Request) -> VerifyDraft.Request:
    return deserialize_message(serialize_message(message), VerifyDraft.Request)


@pytest.mark.parametrize("kind", ROWS)
@given(seed=st.integers(0, 2**32 - 1), books=st.integers(1, 4), size=st.integers(2, 100))
def test_requests_survive_the_wire(kind: str, seed: int, books: int, size: int) -> None:
    request, update, sent = sent_request(ROWS[kind], books, size, seed)
    received = over_the_wire(sent)
    assert (received.robot_id, received.session_id) == ("robot", 2**32 - 1)
    assert (received.episode_id, received.step_id) == (7, 8)
    assert received.tokenizer_fingerprint == 0xF123456789ABCDEF
    got, codes, counts = from_request(received)
    assert got == update
    np.testing.assert_array_equal(codes, request.codes.ravel())
    np.testing.assert_array_equal(counts, request.counts.ravel())


def test_a_request_without_cameras_carries_nothing_of_them() -> None:
    """The serialized size is that of its fields, and the two lengths, of no features and no images."""
    *_, sent = sent_request(WireRows(np.zeros(6, np.float32).tobytes()))
    fields = 4 + 4 + 8 + 4 + 4 + 4 + 8 + 8 + (4 + 6 * 4) + 4 + 4 + (4 + 2 * 4) + (4 + 2 * 2) + (4 + 2 * 8 * 2)
    assert len(serialize_message(sent)) == fields


def test_an_image_of_another_format_is_refused() -> None:
    *_, sent = sent_request(ROWS["images"])
    sent.images[1].format = "png" * 100
    with pytest.raises(
        RequestError, match=r"images\[1\].format: 'pngpngpngpngpngpngpn', must be 'jpeg'"
    ) as refusal:
        from_request(over_the_wire(sent))
    assert refusal.value.fault is RequestFault.WRONG_SHAPE


@given(st.integers(0, 2**32 - 1))
def test_answers_survive_the_wire(seed: int) -> None:
    draw = np.random.default_rng(seed)
    verification = Verification(
        draw.integers(65536, size=(1, 3)), draw.random((1, 3)) < 0.5, np.float32(draw.normal(size=(1, 2, 4)))
    )
    response = VerifyDraft.Response()
    fill_reply(response, Answered(verification, window_kept=True))
    codes, accepted, offset = from_reply(
        deserialize_message(serialize_message(response), VerifyDraft.Response)
    )
    assert list(codes) == verification.codes[0].tolist()
    assert accepted == verification.accepted[0].tolist()
    np.testing.assert_array_equal(offset, verification.offset.ravel())
    assert response.window_kept


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
