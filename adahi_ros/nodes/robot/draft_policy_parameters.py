# SPDX-License-Identifier: Apache-2.0
"""The parameters of the draft policy node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adahi_ros.contract.contract import BY_CONTRACT
from adahi_ros.core.plan import BLENDS, LATEST
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
from adahi_ros.robot.outcomes import FALLBACKS
from adahi_ros.robot.target_view import VIEWS
from adahi_ros.robot.transport import HEDGES
from adahi_ros.robot.transports import TRANSPORTS
from adahi_ros.vision.interface import QUALITY

DRAWN = -1
TELEOPERATORS = ("none", "joint_state", "joint_trajectory")
FIRST_EPISODES = 2**31 - 1  # largest value; leaves as many numbers for later episodes


@dataclass(frozen=True)
class CommandParameters:
    """Parameters of the commands."""

    lockstep: bool = parameter(
        False,
        "Stamp commands with the time of their observation, for a simulator that waits for each command",
    )
    late_steps: int = parameter(0, "In lockstep, steps until a reply counts, while there is a plan", 0, 256)


@dataclass(frozen=True)
class SafetyParameters:
    """Limits of commands, and when the robot is held."""

    limits: str = parameter(
        "",
        "Limits that no command may leave: a shipped name, or a file (YAML, MoveIt's "
        "joint_limits.yaml, URDF); empty or none for no limits",
        optional=True,
    )
    require_limits: bool = parameter(
        True,
        "Refuse to be configured without limits for every commanded entry, except with safety.limits: none",
    )
    hold_after_s: float = parameter(
        0.5, "Hold the robot after this time without an observation, s", 1e-2, 3600.0
    )
    require_enable: bool = parameter(
        True, "Move only while enable (std_msgs/Bool) or ~/set_enabled allows it; false for simulators"
    )
    enable_timeout_s: float = parameter(0.5, "How long a true on enable lasts, s", 1e-2, 3600.0)
    shared_command: bool = parameter(
        False,
        "Allow other publishers of commands, and other active policies in this namespace",
    )


@dataclass(frozen=True)
class TakeoverParameters:
    """A person who takes the arm over from the policy."""

    command: str = parameter(
        "none",
        "Message type of teleop_command, by which a person who has taken over moves the arm; none for no "
        "takeover. Needs limits",
        choices=TELEOPERATORS,
    )
    button: int = parameter(
        -1,
        "Button of joy (sensor_msgs/Joy) that takes over while it is pressed; -1: the topic takeover "
        "(std_msgs/Bool)",
        -1,
        63,
    )


@dataclass(frozen=True)
class ProposerParameters:
    """Parameters of the proposer of actions."""

    name: str = parameter(
        "draft",
        "What proposes actions, see docs/reference/methods.md; without a plan, the draft acts as fallback "
        "allows",
        names=PROPOSERS,
    )
    arguments: Mapping[str, object] = arguments_of_named("name")


@dataclass(frozen=True)
class GateParameters:
    """Parameters of the gate, which decides when to send a request."""

    name: str = parameter("deviation", "Gate that decides when to send a request", live=True, names=GATES)
    threshold: float = parameter(
        1.0, "The robot sends a request where the gate's score is above this", live=True
    )
    arguments: Mapping[str, object] = arguments_of_named("name")


@dataclass(frozen=True)
class DeviationParameters:
    """Parameters of an action's deviation."""

    smoothing: float = parameter(0.5, "Weight of the newest action in the moving average", 1e-3, 1.0)
    normalization: str = parameter("std", "Unit of the action deviation", choices=tuple(NORMALIZATIONS))


@dataclass(frozen=True)
class TransportParameters:
    """Parameters of the transport of requests."""

    name: str = parameter(
        "", "Transport of another package, around that over DDS; '' for none", names=TRANSPORTS, optional=True
    )
    arguments: Mapping[str, object] = arguments_of_named("name")


@dataclass(frozen=True)
class DraftVerificationParameters(VerificationParameters):
    """Requests to the target, and what it sees."""

    target_name: str = parameter(
        "",
        "Name of the target at its verifier; '' for the verifier's first",
        optional=True,
        longest=REQUEST["target"],
    )
    backups: tuple[str, ...] = parameter(
        (),
        "Namespaces of more verifiers of the same target, such as /server_2; '' for none",
    )
    hedge: str = parameter(
        "late",
        "With backups, when a second verifier also gets the request. late: if the reply is later than"
        " the 95th percentile; at_once: always; off: if the request is refused; spread: never, each goes "
        "to the one with the fewest. See docs/how_to/several_robots.md",
        choices=HEDGES,
    )
    hedge_unknown: bool = parameter(
        False,
        "Also use a backup if the weights of its policy, or of the first verifier's, are unknown",
    )
    transport: TransportParameters = group(TransportParameters)
    vision: str = parameter(
        BY_CONTRACT,
        "What the target sees of the cameras: features, JPEGs, or nothing; by_contract is jpeg if the"
        " contract's images are for the target, else features",
        choices=(BY_CONTRACT, *VIEWS),
    )
    jpeg_quality: int = parameter(QUALITY, "Largest JPEG quality", 1, 95)
    jpeg_budget_bytes: int = parameter(
        0, "Lower the quality of a JPEG that would be larger than this; 0 for no budget", 0, IMAGE_BYTES
    )


@dataclass(frozen=True)
class DraftPolicyParameters(PolicyParameters, ManagedParameters):
    """Parameters of the draft policy node."""

    renamed = (
        ("proposer", "proposer.name"),
        *((name, "proposer.file") for name in ("corrector", "intent", "index")),
        *((f"{name}.", "proposer.") for name in PROPOSERS),
        ("verification.target", "verification.target_name"),
        ("verification.tokens_per_run", "verification.transport.tokens_per_run"),
        ("joint_names", "in the contract, as observations"),
        ("command.joint_names", "in the contract, as actions"),
        ("command.field", "in the contract, as actions"),
        ("control_rate_hz", "in the contract, as fps"),
        ("max_skew_s", "in the contract, as tolerance_ms of an observation"),
        ("max_age_s", "in the contract, as max_age_s"),
        ("command_interface", "in the contract, as type of an action"),
        ("command.frame_id", "in the contract, as frame_id of an action"),
    )
    autostart: bool = parameter(
        False, "Configure and activate the node when it starts; on failure the node ends with exit code 1"
    )
    checkpoint: str = parameter(
        "",
        f"{CHECKPOINT}; '' for none, with a contract, limits and a proposer that acts by the target's "
        "replies: held without one",
        optional=True,
    )
    seed: int = parameter(0, "Seed of the random draws of draft and gate", 0, LARGEST_INTEGER)
    first_episode: int = parameter(
        DRAWN,
        "Number of the first episode if the contract has none; random draws depend on it. -1 for a "
        "random number, which is logged",
        DRAWN,
        FIRST_EPISODES,
    )
    robot_id: str = parameter(
        "robot",
        "Name of this robot at the verifier; its random draws depend on it, so each robot needs its own",
        longest=NAME_LENGTH,
    )
    instruction: str = parameter(
        "",
        "Sentence for a target that reads one, until the topic instruction has another",
        optional=True,
        longest=REQUEST["instruction"],
    )
    contract: str = parameter(
        "",
        "Name or YAML file of the contract, which defines observation and action; must be given",
        optional=True,
    )
    command: CommandParameters = group(CommandParameters)
    proposer: ProposerParameters = group(ProposerParameters)
    execution_horizon: int = parameter(
        32,
        "Most executed actions of a plan, from the step of its request",
        1,
        4096,
    )
    blend: str = parameter(LATEST, "How replies for the same step are combined", choices=tuple(BLENDS))
    wait_policy: str = parameter(
        "wait",
        "wait: a command waits for the reply to its step's request, until deadline_s; ahead: no "
        "command waits, the robot executes its plan and requests the next one before it ends",
        choices=WAIT_POLICIES,
    )
    heartbeat_timeout_s: float = parameter(
        1.0,
        "The node deactivates itself after this time without a heartbeat of the policy runner that "
        "activated it, s; 0 for never",
        0.0,
        60.0,
    )
    safety: SafetyParameters = group(SafetyParameters)
    takeover: TakeoverParameters = group(TakeoverParameters)
    gate: GateParameters = group(GateParameters)
    deviation: DeviationParameters = group(DeviationParameters)
    draft_temperature: float = parameter(
        1.0, "Temperature of the draft's code distributions", 1e-3, 100.0, live=True
    )
    deadline_s: float = parameter(
        0.03,
        "With wait_policy wait, how long a step waits for its reply, s",
        1e-3,
        60.0,
        live=True,
    )
    fallback: str = parameter(
        "hold",
        "What the robot does without a reply that its gate wants. hold: executes the draft for "
        "fallback_limit steps in a row, then holds until a reply arrives; draft: executes every draft, for "
        "simulations",
        choices=FALLBACKS,
    )
    fallback_limit: int = parameter(
        5,
        "With fallback hold, how many steps in a row the draft may act alone; 0 for none",
        0,
        1_000_000,
    )
    verification: DraftVerificationParameters = group(DraftVerificationParameters)
    verifier_wait_s: float = parameter(
        5.0, "How long to wait for a verifier before the first step, s", 0.0, 3600.0
    )
