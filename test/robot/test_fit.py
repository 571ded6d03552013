"""What does not fit is named, with what was given and what is allowed."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from adahi_ros.contract.contract import BY_CONTRACT
from adahi_ros.contract.parsing import load_contract, parse_contract
from adahi_ros.core.assets import asset
from adahi_ros.core.signature import CodeSpace, Feature, Offer, Ranges, Signature
from adahi_ros.protocol.description import Description, Wants
from adahi_ros.robot.compatibility import (
    FitError,
    check_images,
    check_observation,
    check_sizes,
    offer_of,
    wants_of,
    wants_of_plans,
)
from adahi_ros.robot.target_view import VIEWS, view_of_contract
from adahi_ros.safety.limits_file import load_limits

BALL = Signature(
    history=10,
    horizon=1,
    action_dim=2,
    features=(Feature("observation", 6),),
    conditions=(Feature("goal", 2),),
    codes=CodeSpace("f123456789abcdef", 2, 16),
)
CAMERA = replace(BALL, features=(Feature("observation", 10),))


def encoder(features: int, rows: int = 64, columns: int = 64) -> Any:
    return SimpleNamespace(features=features, image_size=(rows, columns), fingerprint="e" * 16)


def refused(message: str) -> Any:
    return pytest.raises(FitError, match=f"^{re.escape(message)}$")


def test_a_contract_has_the_goal_and_the_action_of_the_policy() -> None:
    ball = load_contract("ball")
    check_sizes("ball", ball, BALL)
    with refused("contract: 'ball', its goal has 2 entries, must be 3, the size of the policy's"):
        check_sizes("ball", ball, replace(BALL, conditions=(Feature("goal", 3),)))
    check_sizes("ball", ball, replace(BALL, conditions=()))  # it passes the goal on
    with refused("contract: 'ball', its action has 2 entries, must be 9, the size of the policy's"):
        check_sizes("ball", ball, replace(BALL, action_dim=9))


def test_numbers_and_features_make_the_observation_of_the_policy() -> None:
    ball, camera = load_contract("ball"), load_contract("ball_camera")
    check_observation("ball", ball, BALL, None)
    with refused(
        "contract: 'ball', 6 numbers and 0 cameras of 0 features, must make 10 entries, the size of the "
        "policy's observation"
    ):
        check_observation("ball", ball, CAMERA, None)
    check_observation("ball_camera", camera, CAMERA, encoder(8))
    with refused(
        "contract: 'ball_camera', 2 numbers and 1 cameras of 7 features, must make 10 entries, the size of "
        "the policy's observation"
    ):
        check_observation("ball_camera", camera, CAMERA, encoder(7))
    with refused(
        "contract of 'ball_camera': observation.images.camera.apply.resize: [64, 64], must be [96, 48], the "
        "image size of its encoder 'ball'"
    ):
        check_observation("ball_camera", camera, CAMERA, encoder(8, 96, 48))


def test_a_window_has_no_more_images_than_a_request_may_have() -> None:
    check_images("jpeg", 6, 10, 60)
    for view in ("features", "none"):
        check_images(view, 7, 10, 60)
    with refused(
        "verification.vision: 'jpeg', sends 70 images with a window, must be at most 60; features has no "
        "such bound"
    ):
        check_images("jpeg", 7, 10, 60)


def test_images_that_no_one_encodes_are_not_sent_to_be_encoded() -> None:
    for view in ("none", "jpeg"):
        check_images(view, 1, 10, 60, images_for_target=True, encoded=True)
    check_images("none", 1, 10, 60, images_for_target=True, encoded=False)
    check_images("jpeg", 0, 10, 60, encoded=False)
    with refused(
        "verification.vision: 'jpeg', must be none or by_contract: the contract names no encoder for its "
        "images; only a target that reads raw images gets them"
    ):
        check_images("jpeg", 1, 10, 60, images_for_target=True, encoded=False)


def test_a_robot_that_makes_no_features_of_its_images_can_send_none() -> None:
    contract = replace(load_contract("ball_camera"), images_for_target=True)
    numbers = replace(BALL, features=(Feature("observation", 2),))
    check_observation("ball_camera", contract, numbers, encoder(8))
    with refused(
        "contract of 'ball_camera': observation.images.camera.apply.resize: [64, 64], must be [96, 48], the "
        "image size of its encoder 'ball'"
    ):
        check_observation("ball_camera", contract, numbers, encoder(8, 96, 48))
    assert [view_of_contract(BY_CONTRACT, for_target) for for_target in (False, True)] == ["features", "jpeg"]
    for view in ("jpeg", "none"):
        check_images(view, 1, 10, 60, images_for_target=True)
    with refused(
        "verification.vision: 'features', must be jpeg or none, or by_contract: the contract's images are "
        "for the target, so the robot computes no features"
    ):
        check_images(view_of_contract("features", True), 1, 10, 60, images_for_target=True)
    offered = offer_of(contract, 2, image_dim=8)
    assert offered.sizes == {
        "observation.joints": 2,
        "observation": 2,
        "goal": 2,
        "image_features": 8,
    }
    wants = wants_of(numbers, offered, "", VIEWS["jpeg"](2, 80, 0), encoder(8))
    assert wants.offered == offered
    assert wants.encoder_fingerprint == "e" * 16


def test_a_verifier_needs_the_robots_encoder_only_where_it_gets_images() -> None:
    for view, cameras, wanted in (
        ("features", encoder(8), None),
        ("jpeg", encoder(8), "e" * 16),
        ("jpeg", None, None),
    ):
        offered = Offer({"observation": 10, "goal": 2})
        wants = wants_of(CAMERA, offered, "large", VIEWS[view](2, 80, 0), cameras)
        assert wants.encoder_fingerprint == wanted
        assert (wants.target, wants.offered) == ("large", offered)


SO101 = (("positions", 5, (-60.0, 60.0)), ("position", 1, (2.0, 98.0)))


def so101_target(**changes: Any) -> Description:
    """Return a target of degrees and 0 to 100, as LeRobot's of an SO-101."""
    low = tuple(float(low) for _, count, (low, _) in SO101 for _ in range(count))
    high = tuple(float(high) for _, count, (_, high) in SO101 for _ in range(count))
    seen = Signature(1, 50, 6, (Feature("observation.state", 6),))
    learnt = {"feature_ranges": Ranges(low, high), "action_ranges": Ranges(low, high)}
    return Description("act", "replace", seen, **{**learnt, **changes})


def so101_wants(without: str = "") -> Wants:
    """Return what the SO-101 wants with its limits; `without` operators of one kind."""
    values = yaml.safe_load(asset("config/contracts/so101.yaml").read_text())
    state = values["observations"]["observation.state"]
    for source in (*state, *values["actions"].values()):
        if without and without in str(source["apply"]):
            del source["apply"]
    contract = parse_contract(values)
    return wants_of_plans(contract, load_limits(asset("config/limits/so101.yaml"), contract.commanded_names))


def test_a_target_in_the_units_of_the_contract_fits_its_limits() -> None:
    assert so101_wants().mismatch(so101_target()) is None
    assert so101_wants().mismatch(so101_target(feature_ranges=Ranges(), action_ranges=Ranges())) is None


def test_a_contract_without_its_operators_is_refused_with_the_likely_unit() -> None:
    found = so101_wants("rad2deg").mismatch(so101_target())
    assert found is not None
    assert found.startswith("action: positions.")
    assert found.endswith("rad instead of degrees?")
    found = so101_wants("scale").mismatch(so101_target())
    assert found is not None
    assert found.startswith(
        "action: position.gripper: the policy learnt 2 to 98, the robot's limits allow 0 to 3.1"
    )


def test_the_limits_of_what_is_observed_are_compared_too() -> None:
    found = so101_wants("rad2deg").mismatch(so101_target(action_ranges=Ranges()))
    assert found is not None
    assert found.startswith("observation.state: position.")


def test_observations_are_compared_by_the_names_that_the_target_reads() -> None:
    wants, target = so101_wants(), so101_target()
    rest = np.array([[0.0, -55.0, 58.0, 40.0, 10.0, 3.0]])
    assert wants.unlike(target, {"observation.state": rest}) == ""
    found = wants.unlike(target, {"observation.state": np.rad2deg(rest)})
    assert found.startswith("observation.state: position.")
    assert "degrees instead of rad" in found
    assert wants.unlike(target, {}) == ""
    whole = replace(target.signature, features=(Feature("observation", 6),))
    found = wants.unlike(replace(target, signature=whole), {"observation": np.rad2deg(rest)})
    assert found.startswith("observation: position.")
