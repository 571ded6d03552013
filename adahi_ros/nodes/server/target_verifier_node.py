"""The server's node: what a target policy says to the drafts of robots.

Serves `verify_draft` (adahi_msgs/VerifyDraft) and `describe_target` (adahi_msgs/DescribeTarget);
publishes /diagnostics.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.node import Node

from adahi_ros.acceptance.rules import ACCEPTANCES
from adahi_ros.health import Health, Level
from adahi_ros.nodes.common.bounds import REQUEST
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher
from adahi_ros.nodes.common.messages import describe, fill_reply, from_request
from adahi_ros.nodes.common.parameters import LARGEST_INTEGER, ParameterError, Parameters, group, parameter
from adahi_ros.nodes.common.policies import (
    CHECKPOINT,
    PolicyParameters,
    VerificationParameters,
    encoder_from,
    policy_from,
)
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.urgent_executor import Urgent, UrgentExecutor
from adahi_ros.server.engine import Engine
from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.server.sessions import Sessions
from adahi_ros.server.verifier import TargetVerifier
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT
from adahi_ros.wire.description import Description
from adahi_ros.wire.request import RequestError, RequestFault
from adahi_ros.wire.texts import NAME_LENGTH, shortened

WARNING_PERIOD_S = 1.0
SHARED_WARNING_PERIOD_S = 10.0  # of two robots of one name
LONGEST_NAME = REQUEST["target"]


@dataclass(frozen=True)
class CacheParameters:
    """How much is remembered of robots."""

    robots: int = parameter(
        ROBOTS_KEPT,
        "Robots whose last windows are remembered, four of each, so that they send only what is new; more "
        "robots are answered alike, and send whole windows",
        1,
        65536,
    )
    max_age_s: float = parameter(
        MAX_AGE_S, "A robot that has asked nothing for so long leaves its place to another", 1.0, 86400.0
    )


@dataclass(frozen=True)
class TargetVerifierParameters(PolicyParameters):
    """What the node is told."""

    checkpoint: str = parameter("ball/target", CHECKPOINT)
    target: str = parameter(
        "",
        "Name of the policy, by which robots may ask for it; '' for the last two parts of checkpoint",
        optional=True,
    )
    seed: int = parameter(0, "Seed of the draws that accept and resample", 0, LARGEST_INTEGER)
    rule: str = parameter(
        "speculative",
        "speculative accepts or resamples the drafted codes; replace takes the target's own proposal, "
        "whatever was drafted",
        choices=tuple(ACCEPTANCES),
    )
    temperature: float = parameter(1.0, "Of the target's distributions", 1e-3, 100.0)
    encoder: str = parameter(
        "",
        "Checkpoint of the encoder of images that robots send; a relative path is below the package's "
        "checkpoints/encoders. '' for none: then they send features, or nothing of their cameras",
        optional=True,
    )
    cache: CacheParameters = group(CacheParameters)
    verification: VerificationParameters = group(VerificationParameters)


class TargetVerifierNode(Node):
    """See the module.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("target_verifier", **options)
        parameters = Parameters(self, TargetVerifierParameters)
        values = parameters.read()
        policy = policy_from(values)
        images = ReceivedImages(encoder_from(values.encoder)) if values.encoder else None
        name = values.target or "/".join(Path(values.checkpoint).parts[-2:])
        if len(name) > LONGEST_NAME:
            raise ParameterError(f"target: {name!r}, must have at most {LONGEST_NAME} characters")
        try:
            verifier = TargetVerifier(policy, values.rule, values.temperature)
        except ValueError as error:
            raise ParameterError(str(error)) from None
        parameters.frozen = True
        self._engine = Engine(
            verifier, values.seed, images, name, values.cache.robots, values.cache.max_age_s
        )
        encoder = "" if images is None else images.fingerprint
        self._description = describe(Description(name, values.rule, policy.signature, encoder))
        self._sessions = Sessions()
        self._replies: Counter[str] = Counter()
        self._compute_ms = 0.0
        self._refused = 0
        self._reported = 0
        self.create_service(DescribeTarget, "describe_target", self._describe)
        qos = verify_qos(values.verification.reliability)
        service = self.create_service(VerifyDraft, "verify_draft", self._verify, qos_profile=qos)
        self.urgent = Urgent(services=[service])
        """What robots wait for."""
        self._diagnostics = DiagnosticsPublisher(self, "verifier", self._health)
        self.get_logger().info(f"target policy of {policy.signature}, by the name {name!r}")

    def _describe(
        self, request: DescribeTarget.Request, response: DescribeTarget.Response
    ) -> DescribeTarget.Response:
        return self._description

    def _verify(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        start = time.perf_counter()
        response.episode_id = request.episode_id
        response.step_id = request.step_id
        response.first_step = request.first_step
        try:
            fill_reply(response, self._engine.verify(from_request(request), time.monotonic()))
            self._notice(request)
        except RequestError as error:
            response.status, response.message = int(error.fault), shortened(str(error))
        except Exception as error:  # noqa: BLE001  one robot's request must not end the service of the others
            response = VerifyDraft.Response(
                episode_id=request.episode_id, step_id=request.step_id, first_step=request.first_step
            )
            response.status = VerifyDraft.Response.STATUS_INTERNAL_ERROR
            response.message = shortened(f"{type(error).__name__}: {error}")
        response.compute_time_ms = 1e3 * (time.perf_counter() - start)
        self._count(request, response)
        return response

    def _notice(self, request: VerifyDraft.Request) -> None:
        """Say it where two robots ask by one name; they are answered all the same."""
        if self._sessions.heard(request.robot_id, request.session_id, time.monotonic()):
            self.get_logger().warning(
                f"robot_id: {request.robot_id!r}, two robots ask by this name, must be another for each",
                throttle_duration_sec=SHARED_WARNING_PERIOD_S,
            )

    def _count(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> None:
        if response.status == VerifyDraft.Response.STATUS_OK:
            self._replies["ok"] += 1
            self._compute_ms += response.compute_time_ms
            return
        internal = response.status == VerifyDraft.Response.STATUS_INTERNAL_ERROR
        self._replies["internal_error" if internal else RequestFault(response.status).name.lower()] += 1
        if response.status == RequestFault.WINDOW_UNKNOWN:
            return  # nobody's fault; the whole window is on its way
        self._refused += 1
        robot = shortened(request.robot_id, NAME_LENGTH)
        self.get_logger().warning(
            f"refused {robot!r}, episode {request.episode_id}, step {request.step_id}: {response.message}",
            throttle_duration_sec=WARNING_PERIOD_S,
        )

    def _health(self) -> Health:
        news, self._reported = self._refused - self._reported, self._refused
        shared = self._sessions.shared(time.monotonic())
        values = {
            "requests": self._replies.total(),
            "compute_ms_mean": f"{self._compute_ms / max(1, self._replies['ok']):.3f}",
            **{f"replies.{status}": count for status, count in self._replies.items()},
            "shared_names": len(shared),
        }
        troubles = [f"{news} requests refused"] if news else []
        if shared:
            name = max(shared, key=lambda name: shared[name])
            troubles.append(f"two robots are named {name!r}: sessions have come back {shared[name]} times")
        if troubles:
            return Health(Level.WARN, "; ".join(troubles), values)
        return Health(Level.OK, "serving", values)


def executor_of(node: TargetVerifierNode) -> UrgentExecutor:
    """Return the executor that serves robots before anyone else."""
    return UrgentExecutor(node, lambda: node.urgent)


def main() -> None:
    """Run the node as a process."""
    sys.exit(run(TargetVerifierNode, __doc__ or "", TargetVerifierParameters, make_executor=executor_of))


if __name__ == "__main__":
    main()
