"""A robot that sends its images and encodes none: with which of the shipped verifiers it works."""

from __future__ import annotations

import pytest

from adahi_ros.contract.parsing import load_contract
from adahi_ros.core.assets import CHECKPOINTS, ENCODERS, named
from adahi_ros.policies.backends import load_policy
from adahi_ros.protocol.description import Description, Wants
from adahi_ros.robot.compatibility import offer_of, wants_of
from adahi_ros.robot.target_view import VIEWS, view_of_contract
from adahi_ros.vision.encoder import load_files


@pytest.fixture(scope="module")
def wants() -> Wants:
    contract = load_contract("ball_seen")
    encoder = load_files(named(contract.encoder, ENCODERS))
    view = VIEWS[view_of_contract("by_contract", contract.images_for_target)](contract.number_dim, 80, 0)
    draft = load_policy(named("ball_seen/draft", CHECKPOINTS), "onnxruntime").signature
    offered = offer_of(contract, draft.observation_dim, encoder.features)
    return wants_of(draft, offered, "", view, encoder)


@pytest.mark.parametrize(
    ("checkpoint", "rule", "encoder", "field"),
    [
        ("ball_seen/target", "speculative", "ball_instructed", None),
        ("ball_seen/plans/target", "replace", "ball_instructed", None),
        ("ball_seen/target", "speculative", "", "encoder_fingerprint"),
        ("ball_seen/target", "speculative", "ball", "encoder_fingerprint"),
        ("ball_seen/plans/target", "replace", "kitchen", "encoder_fingerprint"),
        ("ball/target", "speculative", "", "tokenizer_fingerprint"),
        ("ball/target", "replace", "", "goal"),
        ("ball_camera/target", "speculative", "ball", "tokenizer_fingerprint"),
        ("ball_camera/target", "replace", "ball", "observation"),
        ("ball_instructed/target", "replace", "ball_instructed", "goal"),
    ],
)
def test_what_does_not_fit_is_named(
    wants: Wants, checkpoint: str, rule: str, encoder: str, field: str | None
) -> None:
    signature = load_policy(named(checkpoint, CHECKPOINTS), "onnxruntime").signature
    fingerprint = load_files(named(encoder, ENCODERS)).fingerprint if encoder else ""
    fault = wants.mismatch(Description(checkpoint, rule, signature, fingerprint))
    assert (fault is None) if field is None else str(fault).startswith(f"{field}: ")
