"""What goes into a message comes out of it, and the numbers in code and messages are the same."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from adahi_msgs.msg import DraftStatus, LinkState
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from diagnostic_msgs.msg import DiagnosticStatus
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage
from trajectory_msgs.msg import JointTrajectoryPoint

from adahi_ros.contract.contract import COMMAND_FIELDS
from adahi_ros.contract.sinks.interface import Command
from adahi_ros.contract.sinks.joint_trajectory import JointTrajectorySink
from adahi_ros.core.health_level import Level
from adahi_ros.core.proposal import Proposal, counted
from adahi_ros.core.signature import CodeSpace, Feature, ImageInput, Ranges, Signature
from adahi_ros.gates.interface import LinkEstimate
from adahi_ros.nodes.common.messages import (
    from_stamp,
    from_status,
    to_link_state,
    to_stamp,
    to_status,
)
from adahi_ros.nodes.common.qos import new_message
from adahi_ros.nodes.common.verifier_messages import (
    DESCRIPTION,
    RESPONSE,
    from_description,
    from_reply,
    size_of,
    to_request,
)
from adahi_ros.nodes.server.robot_messages import describe, from_request, to_reply
from adahi_ros.policies.intent.intent_checkpoint import LONGEST_INTENT
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.protocol.request import (
    INTERNAL_ERROR,
    NO_FINGERPRINT,
    OK,
    PROTOCOL_VERSION,
    STATUS_NAMES,
    Reply,
    Request,
    RequestError,
    RequestFault,
    Sender,
    fingerprint_number,
    sent_codes,
)
from adahi_ros.protocol.window import WireRows, WireWindow, reply_bytes
from adahi_ros.robot.session import VerifierState


def test_reasons_and_faults_have_the_numbers_of_the_messages() -> None:
    def constants(message: type, prefix: str) -> dict[str, int]:
        names = [name for name in dir(message) if name.startswith(prefix)]
        return {name.removeprefix(prefix): getattr(message, name) for name in names}

    assert constants(DraftStatus, "REASON_") == {reason.name: reason.value for reason in Reason}
    assert VerifyDraft.Request.PROTOCOL_VERSION == PROTOCOL_VERSION
    assert constants(VerifyDraft.Response, "STATUS_") == {
        name.upper(): status for status, name in STATUS_NAMES.items()
    }


def test_a_command_has_the_fields_of_the_message() -> None:
    fields = JointTrajectoryPoint.get_fields_and_field_types()
    assert tuple(fields) == (*COMMAND_FIELDS, "time_from_start")


def test_links_and_levels_have_the_numbers_of_the_messages() -> None:
    for link in VerifierState:
        assert getattr(LinkState, f"VERIFIER_{link.name}") == link
    for level in Level:
        assert getattr(DiagnosticStatus, level.name) == bytes([level])


@given(st.integers(0, 2**31 * 10**9 - 1))
def test_stamps(nanoseconds: int) -> None:
    assert from_stamp(to_stamp(nanoseconds)) == nanoseconds


SENDER = Sender("robot", 2**32 - 1, "ball/target", "f123456789abcdef")
ROWS = {
    "state": WireRows(np.arange(8, dtype=np.float32).tobytes()),
    "features": WireRows(np.arange(4, dtype=np.float32).tobytes(), bytes(range(12))),
    "images": WireRows(np.arange(4, dtype=np.float32).tobytes(), b"", (b"\xff\xd8", b"", b"\0" * 70_000)),
}


def request_of(rows: WireRows, books: int = 2, size: int = 8, seed: int = 0, horizon: int = 0) -> Request:
    draw = np.random.default_rng(seed)
    codes = draw.integers(size, size=(1, books))
    drawn = sent_codes(codes, counted(draw.dirichlet(np.ones(size), size=(1, books))))
    draft = Proposal(draw.normal(size=(1, horizon, 2)).astype(np.float32), drawn)
    window = WireWindow(2**64 - 1, rows, np.array([1.0, 2.0], np.float32).tobytes())
    request = Request.from_draft(draft, 7, 8, window)
    fingerprint = fingerprint_number(SENDER.fingerprint or "")
    return replace(
        request, robot_id="robot", session=SENDER.session, target="ball/target", fingerprint=fingerprint
    )


def assert_same(one: Request, other: Request) -> None:
    for field in fields(Request):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        same = np.array_equal(mine, its) if isinstance(mine, np.ndarray) else mine == its
        assert same, field.name


def over_the_wire(message: VerifyDraft.Request) -> VerifyDraft.Request:
    return deserialize_message(serialize_message(message), VerifyDraft.Request)


@pytest.mark.parametrize("kind", ROWS)
@given(
    seed=st.integers(0, 2**32 - 1),
    books=st.integers(1, 4),
    size=st.integers(2, 100),
    horizon=st.integers(0, 3),
)
def test_requests_survive_the_wire(kind: str, seed: int, books: int, size: int, horizon: int) -> None:
    request = request_of(ROWS[kind], books, size, seed, horizon)
    request = replace(request, first_step=9, instruction="fold", without_actions=True, rule_data=b"\0\xff")
    received = over_the_wire(to_request(request, request.window, SENDER))
    assert (received.protocol, received.robot_id, received.target) == (
        PROTOCOL_VERSION,
        "robot",
        "ball/target",
    )
    assert received.session_id == 2**32 - 1
    assert (received.episode_id, received.step_id, received.first_step) == (7, 8, 9)
    assert received.tokenizer_fingerprint == 0xF123456789ABCDEF
    assert_same(from_request(received), request)


def test_a_request_without_codes_names_no_tokenizer() -> None:
    bare = np.empty(0, np.int64)
    request = replace(request_of(ROWS["state"]), codes=bare, counts=bare, fingerprint=NO_FINGERPRINT)
    received = over_the_wire(to_request(request, request.window, SENDER))
    assert received.tokenizer_fingerprint == 0
    assert len(received.codes) == len(received.draft_probabilities) == len(received.draft_actions) == 0
    assert_same(from_request(received), request)


@pytest.mark.parametrize("version", [0, PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1])
def test_another_protocol_is_found_out_before_anything_else_is_read(version: int) -> None:
    request = request_of(ROWS["images"])
    sent = to_request(request, request.window, SENDER)
    sent.protocol, sent.images[0].format = version, "png"
    fault = str(from_request(over_the_wire(sent)).fault)
    assert fault.startswith(f"protocol: the request's is {version}, the verifier's {PROTOCOL_VERSION};")


def test_a_request_without_cameras_carries_nothing_of_them() -> None:
    """The serialized size is that of its fields, and the two lengths, of no features and no images."""
    request = request_of(WireRows(np.zeros(6, np.float32).tobytes()))
    sent = to_request(request, request.window, replace(SENDER, target=""))
    names = (4 + 6) + (4 + 1)  # each ends with a zero
    numbers = 4 * 4 + 2 * 8  # session, episode and steps; fingerprint and base
    draft = 4 + (4 + 2 * 2) + (4 + 2 * 8 * 2)  # no actions; codes and counts
    described = 4 + 1 + numbers + names + (4 + 6 * 4) + 4 + 4 + (4 + 2 * 4) + (4 + 1) + draft + 4 + 1
    padding = len(serialize_message(sent)) - described
    assert 0 <= padding < 4 * 8


LATER = PROTOCOL_VERSION + 1


def test_a_later_protocol_with_more_fields_at_the_end_is_recognised() -> None:
    """So that of protocol 5 is by robots and verifiers of protocol 4: what came with it is at the end."""
    assert list(VerifyDraft.Request.get_fields_and_field_types())[-1] == "rule_data"
    assert list(DescribeTarget.Response.get_fields_and_field_types())[-1] == "action_q99"
    assert list(VerifyDraft.Response.get_fields_and_field_types())[-1] == "rule_data"
    request = request_of(ROWS["images"])
    sent = to_request(request, request.window, SENDER)
    sent.protocol = LATER
    later = from_request(deserialize_message(serialize_message(sent) + bytes(16), VerifyDraft.Request))
    assert str(later.fault).startswith(f"protocol: the request's is {LATER}, ")
    described = replace(Description("ball", "replace", Signature(1, 1, 1, FEATURES)), protocol=LATER)
    received = serialize_message(describe(described)) + bytes(16)
    assert from_description(deserialize_message(received, DescribeTarget.Response)) == described


def test_an_image_of_another_format_is_refused() -> None:
    request = request_of(ROWS["images"])
    sent = to_request(request, request.window, SENDER)
    sent.images[1].format = "png" * 100
    fault = from_request(over_the_wire(sent)).fault
    assert isinstance(fault, RequestError)
    assert str(fault) == "images[1].format: 'pngpngpngpngpngpngpn', must be 'jpeg'"
    assert fault.fault is RequestFault.WRONG_SHAPE


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_replies_survive_the_wire(seed: int, books: int) -> None:
    draw = np.random.default_rng(seed)
    actions, accepted = np.float32(draw.normal(size=8)), tuple((draw.random(books) < 0.5).tolist())
    codes, data = draw.integers(2**16, size=books), bytes(range(books))
    reply = Reply(OK, "", 7, 8, 9, accepted, actions, window_kept=True, codes=codes, rule_data=data)
    sent = to_reply(reply, 0.5)
    received = from_reply(3, deserialize_message(serialize_message(sent), VerifyDraft.Response))
    assert tuple(received.accepted) == accepted
    np.testing.assert_array_equal(received.actions, actions)
    np.testing.assert_array_equal(received.codes, codes)
    assert received.rule_data == data
    assert (received.episode, received.step, received.first_step) == (7, 8, 9)
    assert (received.id, received.status, received.compute_ms, received.window_kept) == (3, OK, 500.0, True)


@given(st.lists(st.integers(-128, 127), max_size=LONGEST_INTENT), st.integers(0, 2**64 - 1))
def test_intents_survive_the_wire(intent: list[int], fingerprint: int) -> None:
    sent = to_reply(
        Reply(OK, "", 7, 8, 9, intent=np.array(intent, np.int8), intent_fingerprint=fingerprint), 0.5
    )
    received = from_reply(3, deserialize_message(serialize_message(sent), VerifyDraft.Response))
    assert list(received.intent) == intent
    assert (received.intent_fingerprint, len(received.actions)) == (fingerprint, 0)


@pytest.mark.parametrize(("actions", "intent"), [(16 * 7, 0), (16 * 7, 8), (0, 8), (0, 5), (2, 1)])
def test_the_size_of_a_reply_is_that_of_its_message(actions: int, intent: int) -> None:
    reply = Reply(OK, "", 7, 8, 9, (), np.zeros(actions, np.float32), intent=np.zeros(intent, np.int8))
    sent = to_reply(reply, 0.5)
    assert from_reply(3, sent).size_bytes == len(serialize_message(sent))


def test_an_intent_alone_is_a_few_bytes() -> None:
    whole, alone = reply_bytes(16 * 7, intent=8), reply_bytes(0, intent=8)
    assert (whole, alone) == (532, 84)


def test_an_intent_that_is_too_long_is_refused() -> None:
    assert RESPONSE["intent"] == LONGEST_INTENT
    response = VerifyDraft.Response(check_fields=False, intent=array("b", bytes(LONGEST_INTENT + 1)))
    assert from_reply(0, response).fault == "intent: length 65, must be at most 64"
    described = describe(Description("arm/act", "replace", SEES, intent_fingerprint="c" * 16))
    described.intent_size = LONGEST_INTENT + 1
    with pytest.raises(ValueError, match=r"^intent_size: 65, must be at most 64$"):
        from_description(described)


@pytest.mark.parametrize(("field", "code"), [("codes", "H"), ("rule_data", "B")])
def test_other_fields_of_a_reply_that_are_too_long_are_refused(field: str, code: str) -> None:
    values = array(code, [0] * (RESPONSE[field] + 1))
    fault = from_reply(0, VerifyDraft.Response(check_fields=False, **{field: values})).fault
    assert fault == f"{field}: length {len(values)}, must be at most {RESPONSE[field]}"


def test_more_ranges_than_fit_are_not_sent() -> None:
    most = DESCRIPTION["action_minimum"]
    for count, sent in ((most, most), (most + 1, 0)):
        described = Description("arm/act", "replace", SEES, action_ranges=Ranges((0.0,) * count))
        assert len(describe(described).action_minimum) == sent


def test_refusals_survive_the_wire() -> None:
    sent = to_reply(Reply(INTERNAL_ERROR, "KeyError: 3", 7, 8, 9), 0.0)
    response = deserialize_message(serialize_message(sent), VerifyDraft.Response)
    assert (response.status, response.message, response.window_kept) == (INTERNAL_ERROR, "KeyError: 3", False)
    assert len(response.accepted) == len(response.actions) == 0


CODES = CodeSpace("f123456789abcdef", 2, 16)
FEATURES = (Feature("observation.state", 5), Feature("observation.images.front", 64))
SEES = Signature(
    2,
    4,
    2,
    (Feature("observation.state", 2, ("a.pos", "b.pos")), Feature("observation.force", 1, ("z",))),
    images=(ImageInput("front", 480, 640), ImageInput("wrist", 224, 224, padded=True)),
    instruction=True,
    action_names=("a", "b"),
    rate_hz=12.5,
)


@pytest.mark.parametrize(
    "described",
    [
        Description("ball", "speculative", Signature(6, 1, 2, FEATURES, (Feature("goal", 2),), CODES)),
        Description("", "replace", Signature(1, 8, 7, FEATURES, (), None, True, 2**40), "a" * 16, 1),
        Description("ball", "replace", Signature(1, 8, 7, FEATURES), policy_fingerprint="b" * 16),
        Description("a", "replace", Signature(1, 8, 7, ()), intent_fingerprint="c" * 16, intent_size=64),
        Description("arm/act", "replace", SEES),
        Description(
            *("arm/act", "replace", SEES),
            feature_ranges=Ranges((0.0, -1.5, 0.25), (1.0, 2.0, 0.5), q99=(0.9, 1.9, 0.4)),
            action_ranges=Ranges(q01=(-1.0, 0.0)),
        ),
    ],
)
def test_a_description_survives_the_wire(described: Description) -> None:
    sent = serialize_message(describe(described))
    received = from_description(deserialize_message(sent, DescribeTarget.Response))
    assert received == described
    assert received.feature_ranges == described.feature_ranges
    assert received.action_ranges == described.action_ranges


def test_ranges_make_no_other_target() -> None:
    one, other = (
        Description("arm/act", "replace", SEES, action_ranges=Ranges(minimum=(end, end)))
        for end in (0.0, math.nan)
    )
    assert one.difference_from(other) is None


@pytest.mark.parametrize("kind", ["feature", "condition"])
def test_a_description_with_a_name_too_many_is_refused(kind: str) -> None:
    broken = describe(Description("ball", "replace", Signature(1, 1, 1, FEATURES)))
    setattr(broken, f"{kind}_names", [*getattr(broken, f"{kind}_names"), "another"])
    size = len(getattr(broken, f"{kind}_sizes"))
    expected = f"{kind}_sizes: {size}, must be as many as {kind}_names, {size + 1}"
    with pytest.raises(ValueError, match=f"^{expected}$"):
        from_description(broken)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("feature_entries", ["a.pos"], "feature_entries: 1, must be none, or the sum of feature_sizes, 3"),
        ("image_rows", [480], "image_rows: 1, must be as many as image_names, 2"),
        ("image_padded", [True] * 3, "image_padded: 3, must be as many as image_names, 2"),
        ("image_columns", [640, 0], "image_columns: 0, must be from 1 to 65500"),
        ("feature_minimum", [0.0] * 2, "feature_minimum: 2, must be none, or 3"),
        ("action_q99", [0.0] * 3, "action_q99: 3, must be none, or 2"),
        ("action_maximum", [0.0, math.inf], "action_maximum: infinite, must be finite, or NaN if unknown"),
        ("rate_hz", math.nan, "rate_hz: nan, must be finite and at least 0"),
        ("history", 33, "history times images: 66, must be at most 64"),
    ],
)
def test_a_description_whose_parts_do_not_fit_is_refused(field: str, value: list, message: str) -> None:
    broken = describe(Description("arm/act", "replace", SEES))
    setattr(broken, field, value)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        from_description(broken)


FLOATS = (
    "deviation",
    "threshold",
    "expected_error",
    "draft_ms",
    "verify_ms",
    "target_compute_ms",
    "total_ms",
)
COUNTS = ("episode", "step", "plan_age", "plan_left", "requests_pending", "request_bytes", "response_bytes")


def test_a_status_survives_the_wire(step_record: Callable[..., StepRecord]) -> None:
    record = step_record(
        **{name: 0.5 + place for place, name in enumerate(FLOATS)},
        **{name: 1 + place for place, name in enumerate(COUNTS)},
        stamp_ns=1_500_000_000,
        score=math.inf,
        accepted=(True, False),
        reason_counts=(3, 0, 1, 0, 0, 0, 0),
        proposer="corrector",
        draft_action=(0.25, -0.5),
        planned_action=(0.5, -0.5),
        action=(0.125, 0.0),
    )
    assert from_status(deserialize_message(serialize_message(to_status(record)), DraftStatus)) == record


def test_a_link_state_survives_the_wire() -> None:
    estimate = LinkEstimate(12.5, 0.25, 0.125, math.nan, 2048.0, 10, 9)
    sent = to_link_state(estimate, "robot", LinkState.VERIFIER_UNRESPONSIVE, 2, 1_500_000_000)
    state = deserialize_message(serialize_message(sent), LinkState)
    assert (state.robot_id, state.verifier, state.windows_resent) == ("robot", 3, 2)
    assert (state.rtt_ms, state.rtt_deviation_ms, state.loss) == (12.5, 0.25, 0.125)
    assert math.isnan(state.misses)
    assert (state.goodput_bytes_s, state.requests, state.replies) == (2048.0, 10, 9)


@pytest.mark.parametrize(("period_s", "sec", "nanosec"), [(0.05, 0, 50_000_000), (2.5, 2, 500_000_000)])
def test_a_command_is_one_point_a_period_after_its_observation(
    period_s: float, sec: int, nanosec: int
) -> None:
    given = Command(["a", "b"], "positions", np.array([0.1, 0.2], np.float32), period_s, 12)
    command = JointTrajectorySink().message(given, new_message)
    assert from_stamp(command.header.stamp) == 12
    assert command.joint_names == ["a", "b"]
    (point,) = command.points
    assert list(point.positions) == np.array([0.1, 0.2], np.float32).astype(float).tolist()
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (sec, nanosec)


TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=9)
SIZES = st.tuples(*[st.integers(0, 9)] * 7, *[TEXTS] * 3, st.lists(st.integers(0, 9), max_size=3))


@given(SIZES)
def test_requests_are_as_long_as_computed(sizes: tuple[Any, ...]) -> None:
    *counts, robot_id, target, instruction, images = sizes
    floats = [array("f", bytes(4 * count)) for count in (counts[0], counts[2], counts[3])]
    words = [array("H", bytes(2 * count)) for count in (counts[1], counts[4], counts[5])]
    message = VerifyDraft.Request(
        robot_id=robot_id,
        target=target,
        observation_window=floats[0],
        features=words[0],
        images=[CompressedImage(format="jpeg", data=array("B", bytes(size))) for size in images],
        goal=floats[1],
        instruction=instruction,
        draft_actions=floats[2],
        codes=words[1],
        draft_probabilities=words[2],
        rule_data=array("B", bytes(counts[6])),
    )
    assert size_of(message) == len(serialize_message(message))


@given(*[st.integers(0, 9)] * 4, TEXTS)
def test_replies_are_as_long_as_computed(
    actions: int, accepted: int, codes: int, data: int, message: str
) -> None:
    response = VerifyDraft.Response(
        message=message,
        actions=array("f", bytes(4 * actions)),
        accepted=[True] * accepted,
        codes=array("H", bytes(2 * codes)),
        rule_data=array("B", bytes(data)),
    )
    assert from_reply(0, response).size_bytes == len(serialize_message(response))
