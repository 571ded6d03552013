"""Garbage over DDS to nodes that run, amid good messages that are commanded; garbage to nodes that start."""

from __future__ import annotations

import os
import shutil
from array import array
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
import yaml
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool

from adahi_lab.nodes import robot_simulator_node
from adahi_lab.nodes.domain import exclusive_domain, loopback_environment
from adahi_ros.nodes.common.messages import from_stamp
from adahi_ros.nodes.common.parameters import rows
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.monitoring import bag_recorder_node, path_markers_node
from adahi_ros.nodes.robot import draft_policy_node, draft_policy_parameters
from adahi_ros.nodes.server import target_verifier_node, target_verifier_parameters
from test.fuzz import conftest as garbage
from test.system.stage import Robot, Stage

POSITION = 0.02  # rad
REPLY_S, ATTEMPTS = 0.4, 25  # for a command; then a new episode begins: the window may be full of garbage
BALL = {"contract": "ball"}
NODES: tuple[tuple[Any, Any, dict[str, Any]], ...] = (  # with what each needs
    (draft_policy_node.DraftPolicyNode, draft_policy_parameters.DraftPolicyParameters, BALL),
    (target_verifier_node.TargetVerifierNode, target_verifier_parameters.TargetVerifierParameters, {}),
    (robot_simulator_node.RobotSimulatorNode, robot_simulator_node.RobotSimulatorParameters, {}),
    (bag_recorder_node.BagRecorderNode, bag_recorder_node.BagRecorderParameters, BALL),
    (path_markers_node.PathMarkersNode, path_markers_node.PathMarkersParameters, {"point_of_action.x": 0}),
)
LIVE = sorted(row.name for row in rows(draft_policy_parameters.DraftPolicyParameters) if row.live)
few = settings(max_examples=max(1, settings().max_examples // 4), phases=[Phase.generate])  # none is shrunk


class Driven:
    """A draft policy node within limits, the robot that it drives, and a verifier's node beside it."""

    def __init__(self, stage: Stage, robot: Robot, limits: str) -> None:
        self.stage, self.robot, self.episode = stage, robot, 1000
        topics = ("joint_states", "task_state")
        self.nodes = [
            stage.start(
                "draft_policy_node",
                checkpoint="ball/draft",
                contract="ball",
                gate__name="never",
                verifier_wait_s=0.0,
                safety__limits=limits,
                safety__require_limits=False,
                safety__require_enable=False,
                command__lockstep=True,
                qos_overrides={f"/{each}": {"subscription": {"reliability": "reliable"}} for each in topics},
            ),
            stage.start(
                "target_verifier_node", checkpoint="ball/target", verification__reliability="reliable"
            ),
        ]
        assert stage.change_state("configure")
        assert stage.change_state("activate")
        self.enable_out = stage.node.create_publisher(Bool, "enable", 10)
        self.setting = stage.node.create_client(
            SetParametersAtomically, "draft_policy/set_parameters_atomically"
        )
        qos = verify_qos("reliable")
        self.verifying = stage.node.create_client(VerifyDraft, "verify_draft", qos_profile=qos)
        describing = stage.node.create_client(DescribeTarget, "describe_target")
        self.target = stage.call(describing, DescribeTarget.Request())
        self.expect()

    def send(self, topic: str, message: Any) -> None:
        publishers = {"joint_states": self.robot.joints_out, "task_state": self.robot.state_out}
        try:
            publishers.get(topic, self.enable_out).publish(message)
        except RuntimeError:  # what no middleware sends reaches nobody
            assert isinstance(message, bytes)

    def expect(self) -> None:
        """Show good observations until a command comes; garbage may have made a fresh press necessary."""
        for attempt in range(ATTEMPTS):
            self.episode += 1
            if attempt:
                self.enable_out.publish(Bool(data=False))
            self.enable_out.publish(Bool(data=True))
            stamp_ns = self.robot.show(self.episode, 0)
            commanded = partial(self.commanded, stamp_ns)
            try:
                self.stage.observer.wait_until(commanded, REPLY_S, "", self.stage.check)
            except TimeoutError:
                continue
            break
        else:
            pytest.fail(f"no command for {ATTEMPTS} good observations")
        for command in self.robot.commands:
            (point,) = command.points
            assert np.isfinite(point.positions).all()
            assert np.abs(point.positions).max() <= POSITION + 1e-9
        self.robot.commands.clear()
        for node in self.nodes:
            assert "Traceback" not in node.output

    def commanded(self, stamp_ns: int) -> bool:
        return any(from_stamp(command.header.stamp) == stamp_ns for command in self.robot.commands)


@pytest.fixture(scope="module")
def driven(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    limits = tmp_path_factory.mktemp("limits") / "limits.yaml"
    entry = {"position": [-POSITION, POSITION], "velocity": 0.5, "acceleration": 10.0}
    limits.write_text(yaml.safe_dump({"limits": {"default": entry}}))
    driven = Driven(stage, Robot(stage), str(limits))
    yield driven
    stage.processes.end()
    for node in driven.nodes:
        assert node.exit_code == 0
        assert "Traceback" not in node.output


@few
@given(data=st.data())
def test_garbage_to_a_node_that_drives_a_robot(driven: Driven, data: st.DataObject) -> None:
    now_ns = driven.robot.now()
    messages = {**garbage.observed(0, 0, now_ns), "enable": Bool(data=True)}
    for topic in data.draw(st.lists(st.sampled_from(sorted(messages)), min_size=1, max_size=4)):
        message = messages[topic]
        if data.draw(st.booleans()):
            serialized = serialize_message(message)  # without its header no middleware passes it on
            driven.send(topic, serialized[:4] + (garbage.torn(data.draw, serialized[4:]) or b"\0"))
        else:
            driven.send(topic, garbage.mutated(data.draw, message))
    name = data.draw(st.sampled_from((*LIVE, "checkpoint", "nowhere", "safety.limits")))
    value = garbage.mutated(data.draw, ParameterValue(string_value="always", double_value=0.5), 6)
    value.type = data.draw(st.integers(0, 10))
    parameter = ParameterMessage(name=name, value=value)
    result = driven.stage.call(driven.setting, SetParametersAtomically.Request(parameters=[parameter])).result
    assert result.successful or result.reason
    driven.expect()


@few
@given(data=st.data())
def test_garbage_to_a_verifier(driven: Driven, data: st.DataObject) -> None:
    its = driven.target
    good = VerifyDraft.Request(
        protocol=its.protocol,
        robot_id="robot",
        tokenizer_fingerprint=its.tokenizer_fingerprint,
        observation_window=array("f", bytes(4 * its.history * sum(its.feature_sizes))),
        goal=array("f", bytes(4 * sum(its.condition_sizes))),
        codes=array("H", bytes(2 * its.codebooks)),
        draft_probabilities=array("H", [65535, *[0] * (its.codebook_size - 1)] * its.codebooks),
    )
    response = driven.stage.call(driven.verifying, garbage.mutated(data.draw, good))
    assert response.status != VerifyDraft.Response.STATUS_INTERNAL_ERROR
    assert bool(response.message) == (response.status != VerifyDraft.Response.STATUS_OK)
    assert np.isfinite(response.actions).all()
    assert driven.stage.call(driven.verifying, good).status == VerifyDraft.Response.STATUS_OK


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A place on this machine where nobody else is, and an empty folder to work in."""
    with exclusive_domain() as domain, pytest.MonkeyPatch.context() as patch:
        for name, value in loopback_environment(domain).items():
            patch.setitem(os.environ, name, value)
        patch.chdir(tmp_path_factory.mktemp("started"))
        context = Context()
        rclpy.init(context=context, domain_id=domain)
        yield context
        rclpy.shutdown(context=context)


@few
@given(data=st.data())
def test_a_node_starts_or_says_which_parameter_is_wrong(context: Context, data: st.DataObject) -> None:
    for made in Path().iterdir():  # a recorder that has started has made its bag
        shutil.rmtree(made)
    make, kind, needs = data.draw(st.sampled_from(NODES))
    named = st.lists(st.sampled_from(rows(kind)), min_size=1, max_size=3)
    chosen = {row.name: row for row in data.draw(named)}
    inside = st.integers(-(2**63), 2**63 - 1)
    kinds = {
        bool: st.booleans(),
        int: inside,
        float: garbage.floats,
        str: garbage.texts,
        list: st.lists(garbage.texts, max_size=3),
    }
    values = {
        name: data.draw(kinds[type(row.default)] | st.one_of(*kinds.values())) for name, row in chosen.items()
    }
    try:
        node = make(
            context=context,
            parameter_overrides=[Parameter(name, value=value) for name, value in (needs | values).items()],
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
    except (ValueError, OSError) as error:
        if not any(name in str(error) for name in values):
            raise
        return
    try:
        if make is draft_policy_node.DraftPolicyNode:
            node.trigger_configure()
    finally:
        node.destroy_node()
