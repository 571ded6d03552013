# SPDX-License-Identifier: Apache-2.0
"""The parameters of the draft policy node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adahi_ros.contract.contract import BY_CONTRACT, COMMAND_FIELDS
from adahi_ros.contract.sinks import INTERFACES
from adahi_ros.core.registry import LARGEST_INTEGER
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.gates.gate_config import NORMALIZATIONS
from adahi_ros.gates.registry import GATES
from adahi_ros.nodes.common.managed import ManagedParameters
from adahi_ros.nodes.common.parameters import arguments_of_named, group, parameter
from adahi_ros.nodes.common.policies import (
    CHECKPOINT,
    PolicyParameters,
    VerificationParameters,
)
from adahi_ros.nodes.common.verifier_messages import IMAGE_BYTES, REQUEST
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.loop import WAIT_POLICIES
from adahi_ros.robot.steps import FALLBACKS
from adahi_ros.robot.target_view import VIEWS
from adahi_ros.robot.transport import HEDGES
from adahi_ros.vision.interface import QUALITY

DRAWN = -1
WITHOUT_DRAFT = ("plan", "corrector")  # proposers that leave a robot held where there is no plan
FIRST_EPISODES = 2**31 - 1  # the largest; there are as many numbers after it


@dataclass(frozen=True)
class CommandParameters:
    """What the entries of an action are."""

    joint_names: tuple[str, ...] = parameter(
        (), "What the entries of the policy's action command; '' for the joints that it observes"
    )
    field: str = parameter(
        "positions",
        "What the entries of the policy's action are, and the field of a trajectory point where they go",
        choices=COMMAND_FIELDS,
    )
    velocities: bool = parameter(
        False,
        "Trajectory points carry velocities as well, so that the controller interpolates a cubic; "
        "joint_trajectory_controller needs allow_nonzero_velocity_at_trajectory_end: true",
    )
    lockstep: bool = parameter(
        False,
        "Commands carry the stamp of their observation, for a simulator that waits for each command "
        "(lockstep); never with a controller",
    )
    frame_id: str = parameter("base_link", "Of a twist: the frame that it is expressed in")


@dataclass(frozen=True)
class SafetyParameters:
    """What no command may leave, and when the robot is held."""

    limits: str = parameter(
        "",
        "Name or file (YAML, MoveIt's joint_limits.yaml, URDF) of the limits that no command may leave; "
        "where it is empty, or none, there are none",
        optional=True,
    )
    require_limits: bool = parameter(
        False,
        "Refuse to be configured without limits of every commanded entry, but where safety.limits says none",
    )
    hold_after_s: float = parameter(
        0.5, "Without an observation for so long, the robot is held", 1e-2, 3600.0
    )
    require_enable: bool = parameter(
        False, "Move only while enable (std_msgs/Bool), or ~/set_enabled, says so"
    )
    enable_timeout_s: float = parameter(
        0.5, "So long a true on enable holds, where it is required", 1e-2, 3600.0
    )


@dataclass(frozen=True)
class GateParameters:
    """Whether to ask."""

    name: str = parameter("deviation", "Scores the drafts", live=True, names=GATES)
    threshold: float = parameter(1.0, "A draft with a score above it is sent to the target", live=True)
    arguments: Mapping[str, Any] = arguments_of_named("name")


@dataclass(frozen=True)
class DeviationParameters:
    """How an action's deviation is measured."""

    smoothing: float = parameter(0.5, "Weight of the newest action in the moving average", 1e-3, 1.0)
    normalization: str = parameter("std", "Unit of the action deviation", choices=tuple(NORMALIZATIONS))


@dataclass(frozen=True)
class DraftVerificationParameters(VerificationParameters):
    """How the target is asked, and what it sees."""

    target: str = parameter(
        "",
        "Name of the target policy to ask, as its verifier calls it; '' takes the verifier's first",
        optional=True,
        longest=REQUEST["target"],
    )
    backups: tuple[str, ...] = parameter(
        (),
        "Namespaces of further verifiers of the same target, such as backup or /server_2, where their "
        "describe_target and verify_draft are; '' for none. The verifier without one is the first, and says "
        "what the target is",
    )
    hedge: str = parameter(
        "late",
        "With backups, when another verifier is asked, too: late, where a reply is later than the 95th "
        "percentile; at_once, always; off, where the request is refused. The first good reply is taken. The "
        "quickest is asked first, but by off, and one that does not reply not at all, until it replies again",
        choices=HEDGES,
    )
    hedge_unknown: bool = parameter(
        False,
        "Ask a backup although the weights of its policy, or of the first verifier's, are unknown; "
        "by default it is not asked, and a warning says so",
    )
    vision: str = parameter(
        BY_CONTRACT,
        "What the target sees of camera images: their features (float16, as the draft), the images as JPEG, "
        "or none; by_contract is jpeg where the contract's images are for the target, else features",
        choices=(BY_CONTRACT, *VIEWS),
    )
    jpeg_quality: int = parameter(QUALITY, "Of images as JPEG, at most", 1, 95)
    jpeg_budget_bytes: int = parameter(
        0, "An image's JPEG gets a lower quality where it would be larger; 0 for no budget", 0, IMAGE_BYTES
    )


@dataclass(frozen=True)
class DraftPolicyParameters(PolicyParameters, ManagedParameters):
    """What the draft policy node is told."""

    autostart: bool = parameter(
        False, "Configure and activate the node as it starts; where that cannot be, it ends with exit code 1"
    )
    checkpoint: str = parameter(
        "ball/draft",
        f"{CHECKPOINT}; '' for none, with a contract, limits and the proposer plan or corrector: held "
        "without a plan",
        optional=True,
    )
    seed: int = parameter(0, "Seed of the draft's and the gate's draws", 0, LARGEST_INTEGER)
    first_episode: int = parameter(
        DRAWN,
        "Number of the first episode, where the contract has none: of its draws here and at the verifier. "
        "-1 for one that is drawn when the node is configured, and logged: trials are not to repeat draws",
        DRAWN,
        FIRST_EPISODES,
    )
    robot_id: str = parameter(
        "robot", "Names this robot's stream of random draws at the verifier", longest=NAME_LENGTH
    )
    instruction: str = parameter(
        "",
        "What a target that is told in a sentence is to do, until the topic instruction says otherwise",
        optional=True,
        longest=REQUEST["instruction"],
    )
    contract: str = parameter(
        "",
        "Name or YAML file of what observation and action are made of; where it is empty, they are the "
        "joints and the task state that the parameters from joint_names to max_age_s say",
        optional=True,
    )
    encoder_cache: bool = parameter(
        False,
        "Keep features of image patches that did not change, and run no encoder for a view that stands "
        "still; worth it where the encoder takes many times longer than half a millisecond",
    )
    joint_names: tuple[str, ...] = parameter(
        ("plate_roll_joint", "plate_pitch_joint"),
        "Joints that the policy observes: the leading entries of its observation; '' for none",
    )
    command: CommandParameters = group(CommandParameters)
    proposer: str = parameter(
        "draft",
        "Who proposes actions on the robot: draft, the policy of checkpoint; plan, the target's plan as it "
        "is; corrector, the target's plan, corrected at every step. Where there is no plan yet, or none any "
        "more, the policy of checkpoint goes on, as fallback says. Without a need of plans, and by one where "
        "there is one: retrieval, what was demonstrated where nearly the same was observed; mixture, that or "
        "the policy of checkpoint, by how the robot moves. kalman, as the last actions went; rectified, the "
        "policy of checkpoint, held against that",
        names=PROPOSERS,
    )
    proposer_arguments: Mapping[str, Any] = arguments_of_named("proposer")
    corrector: str = parameter(
        "",
        "DIRECTORY/NAME of the checkpoint of the proposer corrector; a relative path is below the package's "
        "checkpoints",
        optional=True,
    )
    index: str = parameter(
        "",
        "DIRECTORY/NAME of the index of 'adahi index' for the proposers retrieval and mixture; a relative "
        "path is below the package's checkpoints",
        optional=True,
    )
    execution_horizon: int = parameter(
        32,
        "Actions of a plan that are gone by at most, from the step of its request on; where no other has "
        "come by then, there is none",
        1,
        4096,
    )
    wait_policy: str = parameter(
        "wait",
        "wait: a command waits for the reply to its step's request, until deadline_s; ahead: no command "
        "waits, the robot goes on by its plan, and asks for the next one before it needs it",
        choices=WAIT_POLICIES,
    )
    heartbeat_timeout_s: float = parameter(
        1.0,
        "Seconds without a heartbeat of the policy runner, after which the node deactivates itself; 0 for "
        "never. A node that no policy runner activates receives none, and needs none",
        0.0,
        60.0,
    )
    control_rate_hz: float = parameter(
        20.0, "Control steps per second; a command is to be reached in one", 0.1, 1000.0
    )
    max_skew_s: float = parameter(
        0.0,
        "Allowed between the stamps of joint_states and task_state. 0 suits a simulator, which stamps "
        "them alike; where they are measured apart, half a control period",
        0.0,
        10.0,
    )
    max_age_s: float = parameter(
        0.2, "Of an observation when it arrives; an older one is ignored", 1e-3, 3600.0
    )
    command_interface: str = parameter(
        BY_CONTRACT,
        "Message type of command, what the robot's controller takes; by_contract is that of the contract's "
        "action, without one joint_trajectory",
        choices=(BY_CONTRACT, *INTERFACES),
    )
    safety: SafetyParameters = group(SafetyParameters)
    gate: GateParameters = group(GateParameters)
    deviation: DeviationParameters = group(DeviationParameters)
    draft_temperature: float = parameter(1.0, "Of the draft's code distributions", 1e-3, 100.0, live=True)
    deadline_s: float = parameter(
        0.03,
        "For the target's reply, where wait_policy is wait; past it the robot goes on without",
        1e-3,
        60.0,
        live=True,
    )
    fallback: str = parameter(
        "draft",
        "What becomes of a draft that the gate wants verified and that gets no reply: draft executes it; "
        "hold does so for fallback_limit steps in a row, then holds the robot until one is verified",
        choices=FALLBACKS,
    )
    fallback_limit: int = parameter(
        5,
        "Steps in a row that the draft may act alone where fallback is hold; 0 for none at all",
        0,
        1_000_000,
    )
    verification: DraftVerificationParameters = group(DraftVerificationParameters)
    verifier_wait_s: float = parameter(
        5.0, "How long to wait for a verifier before the first step", 0.0, 3600.0
    )
