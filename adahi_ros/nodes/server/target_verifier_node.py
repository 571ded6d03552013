"""The server's node: what a target policy says to the drafts of robots.

Serves `verify_draft` (adahi_msgs/VerifyDraft) and `describe_target` (adahi_msgs/DescribeTarget);
publishes /diagnostics.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from adahi_ros.acceptance.distance import WITHIN
from adahi_ros.acceptance.rules import ACCEPTANCES, BY_TARGET
from adahi_ros.health import Health
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher
from adahi_ros.nodes.common.managed import ManagedNode, ManagedParameters, started
from adahi_ros.nodes.common.messages import describe, to_reply
from adahi_ros.nodes.common.parameters import LARGEST_INTEGER, ParameterError, group, parameter
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
from adahi_ros.nodes.server.machine import memory_figures
from adahi_ros.nodes.server.serving import heading_of, serve
from adahi_ros.nodes.server.turns import Turns
from adahi_ros.policy.backends import COMPUTE, DTYPES
from adahi_ros.policy.slowed import SlowedPolicy
from adahi_ros.server.choice import SAMPLES
from adahi_ros.server.engine import Engine
from adahi_ros.server.health import HealthWatch
from adahi_ros.server.received_images import ReceivedImages
from adahi_ros.server.service import VerificationService, target_name
from adahi_ros.server.verifier import AGREEMENTS, TargetVerifier
from adahi_ros.server.window_cache import MAX_AGE_S, ROBOTS_KEPT
from adahi_ros.wire.description import Description, unservable

PARTING_S = 0.1  # for replies to go out: of a service that is destroyed at once, a third is lost
WARNING_PERIOD_S = 1.0
SHARED_WARNING_PERIOD_S = 10.0  # of two robots of one name


@dataclass(frozen=True)
class CacheParameters:
    """How much is remembered of robots."""

    robots: int = parameter(
        ROBOTS_KEPT,
        "Robots whose last windows are remembered, four of each, so that they send only what is new; more "
        "robots are served alike, and send whole windows",
        1,
        65536,
    )
    max_age_s: float = parameter(
        MAX_AGE_S, "A robot that has asked nothing for so long leaves its place to another", 1.0, 86400.0
    )


@dataclass(frozen=True)
class TargetVerifierParameters(PolicyParameters, ManagedParameters):
    """What the node is told."""

    autostart: bool = parameter(
        True, "Configure and activate the node as it starts; where that cannot be, it ends with exit code 1"
    )
    checkpoint: str = parameter("ball/target", CHECKPOINT)
    target: str = parameter(
        "",
        "Name of the policy, by which robots may ask for it; '' for checkpoint, of a long path its last two "
        "parts",
        optional=True,
    )
    device: str = parameter(
        "",
        "Where the target computes, as torch calls it; auto is cuda where there is one. '' is as its file "
        "says, or on the CPU. For the backends torch and lerobot, and targets of LeRobot",
        optional=True,
    )
    dtype: str = parameter(
        "",
        "Of its matrix products, by autocast; for the same, and '' is as its file says",
        choices=("", *DTYPES),
    )
    compile: bool = parameter(
        False,
        "Compile it by torch.compile as the node is configured, which may take minutes; for the same, and "
        "false is as its file says",
    )
    seed: int = parameter(0, "Seed of the draws that accept and resample", 0, LARGEST_INTEGER)
    rule: str = parameter(
        BY_TARGET,
        "speculative accepts or resamples the drafted codes; replace takes the target's own proposal, "
        "whatever was drafted; distance lets the draft stand where it is near to the target's own proposal; "
        "by_target is speculative for a target that speaks an action tokenizer, else replace",
        choices=(BY_TARGET, *ACCEPTANCES),
    )
    distance: float = parameter(
        WITHIN,
        "For the rule distance: how far off each entry of an action may be, in action scales",
        0.0,
        1e6,
    )
    temperature: float = parameter(1.0, "Of the target's distributions", 1e-3, 100.0)
    added_compute_s: float = parameter(
        0.0,
        "So much longer every proposal of the target takes: what a larger policy, or a slower machine, would "
        "do to robots",
        0.0,
        60.0,
    )
    agreement: str = parameter(
        "none",
        "What becomes of the actions that a robot says it executes whatever is replied. "
        + "; ".join(f"{name}: {what}" for name, what in AGREEMENTS.items()),
        choices=tuple(AGREEMENTS),
    )
    samples: int = parameter(
        SAMPLES, "Of how many plans agreement:=choose takes one; each costs a pass of the target", 1, 1024
    )
    encoder: str = parameter(
        "",
        "Checkpoint of the encoder of images that robots send; a relative path is below the package's "
        "checkpoints/encoders. '' for none: then they send features, or nothing of their cameras",
        optional=True,
    )
    cache: CacheParameters = group(CacheParameters)
    verification: VerificationParameters = group(VerificationParameters)


def told_to_compute(values: TargetVerifierParameters) -> dict[str, Any]:
    """Return what the parameters say of where and how the target computes."""
    return {name: value for name in COMPUTE if (value := getattr(values, name))}


class TargetVerifierNode(ManagedNode):
    """See the module. Its services are there while it is active; urgent is what robots wait for."""

    def __init__(self, **options: Any) -> None:
        self._serving = ExitStack()
        super().__init__("target_verifier", TargetVerifierParameters, **options)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Serve robots."""
        describing = self.create_service(DescribeTarget, "describe_target", self._describe)
        qos = verify_qos(self._values.verification.reliability)
        service = self.create_service(VerifyDraft, "verify_draft", self._verify, qos_profile=qos)
        for each in (describing, service):
            self._serving.callback(self.destroy_service, each)
        turns = Turns(service, self._overtaken, self._dismissed, self._unheard)
        self._serving.callback(time.sleep, PARTING_S)
        self._serving.callback(turns.dismiss)  # of these the last is called first
        self.urgent = Urgent(turns=[turns])
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Serve nobody; robots find that there is no verifier. The policy stays loaded."""
        self.serve_nobody()
        return super().on_deactivate(state)

    def serve_nobody(self) -> None:
        """End the services; who waits for a turn is told so."""
        self.urgent = Urgent()
        self._serving.close()

    def _close(self) -> None:
        self.serve_nobody()
        super()._close()

    def _open(self, values: TargetVerifierParameters) -> None:
        self._values = values
        policy = policy_from(values, self._away, **told_to_compute(values))
        fault = unservable(policy.signature)
        if fault is not None:
            raise ParameterError(f"checkpoint: {values.checkpoint!r}, {fault}")
        self._device = str(getattr(policy, "device", "cpu"))
        if values.added_compute_s:
            policy = SlowedPolicy(policy, values.added_compute_s, time.sleep)
        images = ReceivedImages(encoder_from(values.encoder)) if values.encoder else None
        name = target_name(values.target, values.checkpoint)
        verifier = TargetVerifier(
            policy,
            values.rule,
            values.temperature,
            agreement=values.agreement,
            samples=values.samples,
            distance=values.distance,
        )
        self._service = VerificationService(
            Engine(verifier, values.seed, images, name, values.cache.robots, values.cache.max_age_s)
        )
        self._opened.callback(delattr, self, "_service")  # the policy's memory, before another is loaded
        self._watch = HealthWatch()
        encoder = "" if images is None else images.fingerprint
        self._description = describe(Description(name, verifier.rule, policy.signature, encoder))
        self._opened.callback(DiagnosticsPublisher(self, "verifier", "verification", self._health).destroy)
        self.get_logger().info(f"target policy of {policy.signature}, by the name {name!r}")

    def _away(self, why: str) -> None:
        self.get_logger().warning(f"the target is not to be had yet, and is asked again by requests: {why}")

    def _describe(
        self, request: DescribeTarget.Request, response: DescribeTarget.Response
    ) -> DescribeTarget.Response:
        return self._description

    def _verify(self, request: VerifyDraft.Request, response: VerifyDraft.Response) -> VerifyDraft.Response:
        response, served = serve(self._service, request, time.monotonic())
        if served.shared:
            self.get_logger().warning(served.shared, throttle_duration_sec=SHARED_WARNING_PERIOD_S)
        if served.refusal:
            self.get_logger().warning(served.refusal, throttle_duration_sec=WARNING_PERIOD_S)
        return response

    def _overtaken(self, request: VerifyDraft.Request) -> VerifyDraft.Response:
        return to_reply(self._service.overtaken(heading_of(request)))

    def _dismissed(self, request: VerifyDraft.Request) -> VerifyDraft.Response:
        return to_reply(self._service.dismissed(heading_of(request)))

    def _unheard(self, request: VerifyDraft.Request) -> None:
        warning = self._service.unheard(heading_of(request), self._values.verification.reliability)
        self.get_logger().warning(warning, throttle_duration_sec=WARNING_PERIOD_S)

    def _health(self) -> Health:
        shared = self._service.shared_names(time.monotonic())
        turns = [each for each in self.urgent.turns if isinstance(each, Turns)]
        return self._watch.report(
            self._service.counts,
            shared,
            serving=bool(turns),
            waiting_most=max((each.most_waited() for each in turns), default=0),
            machine={"device": self._device, **memory_figures(self._device)},
        )


def executor_of(node: TargetVerifierNode) -> UrgentExecutor:
    """Return the executor that serves robots before anyone else."""
    return UrgentExecutor(node, lambda: node.urgent)


def main() -> None:
    """Run the node as a process."""
    sys.exit(
        run(
            partial(started, TargetVerifierNode),
            __doc__ or "",
            TargetVerifierParameters,
            make_executor=executor_of,
            last_words=TargetVerifierNode.serve_nobody,
        )
    )


if __name__ == "__main__":
    main()
