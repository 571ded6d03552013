"""What is longer than a message may have it is refused before it is copied, and is never sent."""

from __future__ import annotations

import struct
import tracemalloc
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from adahi_msgs.msg import DraftStatus
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import CompressedImage

from adahi_ros.core.signature import IMAGE_FEATURES, CodeSpace, Feature, Signature
from adahi_ros.core.texts import INSTRUCTION_LENGTH, NAME_LENGTH, TEXT_LENGTH
from adahi_ros.nodes.common.messages import from_status, to_status
from adahi_ros.nodes.common.parameters import filled, rows
from adahi_ros.nodes.common.verifier_messages import (
    IMAGE_BYTES,
    REQUEST,
    RESPONSE,
    STATUS,
    check_signature_bounds,
    from_description,
    from_reply,
)
from adahi_ros.nodes.robot.draft_policy_parameters import DraftPolicyParameters
from adahi_ros.nodes.robot.draft_policy_parts import check_fit
from adahi_ros.nodes.server.robot_messages import from_request
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason, StepRecord
from adahi_ros.protocol.request import PARTS_MOST, PROTOCOL_VERSION, Request, RequestError, RequestFault
from adahi_ros.robot.compatibility import FitError
from adahi_ros.robot.outcomes import judged

SIGNATURE = Signature(
    history=10,
    horizon=1,
    action_dim=9,
    features=(Feature("observation", 60),),
    conditions=(Feature("goal", 4),),
    codes=CodeSpace("f123456789abcdef", 2, 16),
)
DESCRIBED = Description("target", "speculative", SIGNATURE)
MANY = 1 << 20
LONG: dict[str, tuple[Any, str]] = {
    "robot_id": ("x" * MANY, "robot_id: length 1048576, must be at most 64"),
    "observation_window": (
        array("f", bytes(4 * MANY)),
        "observation_window: length 1048576, must be at most 65536",
    ),
    "features": (array("H", bytes(2 * MANY)), "features: length 1048576, must be at most 65536"),
    "images": ([CompressedImage(format="jpeg")] * 65, "images: length 65, must be at most 64"),
    "goal": (array("f", bytes(4 * MANY)), "goal: length 1048576, must be at most 4096"),
    "codes": (array("H", bytes(2 * MANY)), "codes: length 1048576, must be at most 64"),
    "target": ("x" * MANY, "target: length 1048576, must be at most 64"),
    "instruction": ("x" * MANY, "instruction: length 1048576, must be at most 512"),
    "draft_actions": (array("f", bytes(4 * MANY)), "draft_actions: length 1048576, must be at most 4096"),
    "draft_probabilities": (
        array("H", bytes(2 * MANY)),
        "draft_probabilities: length 1048576, must be at most 65536",
    ),
}


@pytest.mark.parametrize(
    ("field", "value", "message"), [(key, *case) for key, case in LONG.items()], ids=LONG
)
def test_what_is_too_long_is_refused_and_not_copied(field: str, value: Any, message: str) -> None:
    request = VerifyDraft.Request(check_fields=False, protocol=PROTOCOL_VERSION, **{field: value})
    tracemalloc.start()
    try:
        fault = from_request(request).fault
        assert tracemalloc.get_traced_memory()[1] < MANY / 10
    finally:
        tracemalloc.stop()
    assert isinstance(fault, RequestError)
    assert (fault.fault, str(fault)) == (RequestFault.WRONG_SHAPE, message)


def test_an_image_has_a_bound_too() -> None:
    image = CompressedImage(format="jpeg", data=array("B", bytes(IMAGE_BYTES + 1)))
    images = [CompressedImage(format="jpeg"), image]
    request = VerifyDraft.Request(protocol=PROTOCOL_VERSION, images=images)
    fault = str(from_request(request).fault)
    assert fault == "images[1].data: length 10000001, must be at most 10000000"


def test_the_middleware_delivers_what_is_longer_than_its_bound() -> None:
    """Where this fails, `check_request_bounds` may go."""
    named = serialize_message(VerifyDraft.Request(check_fields=False, robot_id="x" * MANY))
    assert len(deserialize_message(named, VerifyDraft.Request).robot_id) == MANY
    # The end is two lengths of 0, of codes and probabilities, a bool and the length of rule_data. A sender
    # without bounds can write any.
    coded = serialize_message(VerifyDraft.Request())[:-16] + struct.pack("<I", MANY) + bytes(2 * MANY + 12)
    assert len(deserialize_message(coded, VerifyDraft.Request).codes) == MANY


def test_a_long_message_of_a_step_is_shortened(step_record: Callable[..., StepRecord]) -> None:
    status = to_status(step_record(message="x" * MANY))
    assert len(status.message) == TEXT_LENGTH
    assert from_status(deserialize_message(serialize_message(status), DraftStatus)).message.endswith("x...")


def test_a_long_message_of_a_verifier_is_shortened() -> None:
    response = VerifyDraft.Response(check_fields=False, status=6, message="x" * MANY)
    request = Request(0, 0, 0)
    assert judged(DESCRIBED, request, from_reply(0, response), 1.0).message == "x" * (TEXT_LENGTH - 3) + "..."


def test_what_a_verifier_describes_at_length_is_shortened() -> None:
    long = "x" * MANY
    described = DescribeTarget.Response(
        check_fields=False,
        target=long,
        acceptance=long,
        feature_names=[long],
        feature_sizes=[60],
    )
    found = from_description(described)
    texts = found.target, found.acceptance, found.signature.features[0].name
    assert set(texts) == {"x" * (TEXT_LENGTH - 3) + "..."}


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("accepted", [True] * 65),
        ("actions", array("f", bytes(4 * 4097))),
    ],
)
def test_a_reply_that_is_too_long_is_a_bad_one_and_is_not_measured(
    status: int, field: str, value: Any
) -> None:
    response = VerifyDraft.Response(check_fields=False, status=status, **{field: value})
    with pytest.raises(RuntimeError):
        serialize_message(response)  # a message that came, and cannot be sent
    request = Request(0, 0, 0)
    judgement = judged(DESCRIBED, request, from_reply(0, response), 1.0)
    assert (judgement.verification, judgement.reason) == (None, Reason.BAD_REPLY)
    assert judgement.message.startswith(f"{field}: length {len(value)}, must be at most")
    assert judgement.reply_bytes == 0


def test_texts_have_the_bounds_of_the_messages() -> None:
    assert REQUEST["robot_id"] == REQUEST["target"] == NAME_LENGTH
    assert REQUEST["instruction"] == INSTRUCTION_LENGTH
    assert RESPONSE["accepted"] == PARTS_MOST
    assert RESPONSE["message"] == STATUS["message"] == TEXT_LENGTH


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"history": 65536, "features": (Feature("observation", 2),)},
            "history times observation_dim: 131072, must be",
        ),
        (
            {"history": 17, "features": (Feature("observation", 2), Feature(IMAGE_FEATURES, 65536))},
            "history times image_dim: 1114112, must be at most 1048576",
        ),
        ({"conditions": (Feature("goal", 4097),)}, "goal_dim: 4097, must be at most 4096"),
        ({"codes": CodeSpace("", 65, 16)}, "codebooks: 65, must be at most 64"),
        ({"codes": CodeSpace("", 2, 32769)}, "codebooks times codebook_size: 65538, must be at most 65536"),
        ({"horizon": 456}, "horizon times action_dim: 4104, must be at most 4096"),
        ({"action_dim": 1025}, "action_dim: 1025, must be at most 1024"),
    ],
)
def test_a_policy_that_no_message_has_room_for_is_refused(sizes: dict[str, Any], message: str) -> None:
    check_signature_bounds(SIGNATURE)
    with pytest.raises(ValueError, match=message):
        check_signature_bounds(replace(SIGNATURE, **sizes))


def test_features_of_sent_images_need_no_room() -> None:
    features = (Feature("observation", 2), Feature(IMAGE_FEATURES, 65536))
    check_signature_bounds(replace(SIGNATURE, history=4, features=features))


@pytest.mark.parametrize(("name", "right"), [("x", True), ("ü" * 64, True), ("", False), ("x" * 65, False)])
def test_a_robot_is_named_by_what_a_message_can_say(name: str, right: bool) -> None:
    (row,) = (row for row in rows(DraftPolicyParameters) if row.name == "robot_id")
    assert (row.fault(name) is None) == right
    assert row.allowed == "a string of 1 to 64 characters"


@pytest.mark.parametrize(("cameras", "fits"), [(6, True), (7, False)])
def test_more_images_than_a_request_may_have_are_refused_before_the_first(cameras: int, fits: bool) -> None:
    encoder = SimpleNamespace(features=8, image_size=(8, 8))
    contract = SimpleNamespace(
        cameras=("camera",) * cameras,
        images_for_target=False,
        encoder="arm",
        number_dim=60 - 8 * cameras,
        check_image_size=lambda size: None,
    )
    features, jpegs = (
        filled(DraftPolicyParameters, {"contract": "arm", "verification.vision": name})
        for name in ("features", "jpeg")
    )
    check_fit(features, contract, SIGNATURE, encoder)  # type: ignore[arg-type]
    message = "verification.vision: 'jpeg', sends 70 images with a window, must be at most 64"
    with nullcontext() if fits else pytest.raises(FitError, match=message):
        check_fit(jpegs, contract, SIGNATURE, encoder)  # type: ignore[arg-type]


def test_a_value_of_a_parameter_is_reported_in_short() -> None:
    for row in rows(DraftPolicyParameters):
        if isinstance(row.default, str) and (fault := row.fault("x" * MANY)):
            assert fault.startswith(f"{row.name}: 'xxxx")
            assert len(fault) < TEXT_LENGTH
