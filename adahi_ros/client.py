# SPDX-License-Identifier: Apache-2.0
"""Requests actions from a target verifier, from any rclpy node, without this package's robot node.

    client = VerifierClient(node, "my_arm")
    description = await client.describe()  # sizes, by name
    answer = await client.ask(window, goal, episode=0, step=12)
    answer.actions  # (T, A), from step 12 on

A target that reads raw camera images and an instruction also needs
`images={"observation.images.front": pictures}, instruction="stack the cups"`.

The client keeps no history, sends whole windows, and sends each request once. `adahi_ros.robot` adds partial
windows, retransmission, a breaker and plans. See docs/how_to/client.md.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from adahi_msgs.srv import DescribeTarget, VerifyDraft
from rclpy.client import Client
from rclpy.node import Node

from adahi_ros.acceptance.interface import DataRule, LinkFacts
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import IMAGE_FEATURES, ImageInput, Signature
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.replies import NotRepliedError, replied
from adahi_ros.nodes.common.verifier_messages import from_described, from_reply, to_request
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.records import Reason
from adahi_ros.protocol.request import PROTOCOL_VERSION, Request, Sender
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import judged
from adahi_ros.vision.images import resized, to_jpeg, within
from adahi_ros.vision.interface import QUALITY

SESSION_BITS = 32
NO_IMAGES: Mapping[str, np.ndarray] = {}


class VerifierError(RuntimeError):
    """The verifier gave no answer; the message says why."""


@dataclass(frozen=True)
class Answer:
    """A verifier's answer to an observation window.

    Attributes:
        actions: (T, A) float32, from the requested step on, in action units.
        accepted: (N,) bool, which codes of the draft were kept; empty without codes.
        round_trip_ms: request sent to reply received.
        compute_ms: the part of `round_trip_ms` that the verifier spent.
    """

    actions: np.ndarray
    accepted: np.ndarray
    round_trip_ms: float
    compute_ms: float


class VerifierClient:
    """Sends requests to a verifier. The coroutines run in the node's executor, which the caller spins.

    Args:
        node: gets the clients.
        robot_id: names this robot's stream of random draws at the verifier.
        target: name of the policy; empty for the verifier's first.
        reliability: of requests and replies, `best_effort` or `reliable`, as at the verifier.
        deadline_s: longest wait for a reply.
    """

    def __init__(
        self,
        node: Node,
        robot_id: str,
        target: str = "",
        reliability: str = "best_effort",
        deadline_s: float = 1.0,
    ) -> None:
        self._node = node
        self._name = robot_id, secrets.randbits(SESSION_BITS), target
        self._deadline_s = deadline_s
        self._description: Description | None = None
        self._describing = node.create_client(DescribeTarget, "describe_target")
        self._verifying = node.create_client(VerifyDraft, "verify_draft", qos_profile=verify_qos(reliability))

    def destroy(self) -> None:
        """Free the clients; pending calls get no answer."""
        for client in (self._describing, self._verifying):
            self._node.destroy_client(client)

    async def describe(self) -> Description:
        """Return what the verifier's target reads and proposes.

        Raises:
            VerifierError: no reply by the deadline, or a reply that cannot be read.
        """
        response = await self._call(self._describing, DescribeTarget.Request(target=self._name[2]))
        described = from_described(0, response)
        if described.description is None:
            raise VerifierError(f"describe_target: {described.fault}")
        spoken = described.description.protocol
        if spoken != PROTOCOL_VERSION:
            raise VerifierError(f"describe_target: protocol: {spoken}, must be {PROTOCOL_VERSION}")
        self._description = described.description
        return described.description

    async def ask(
        self,
        window: np.ndarray,
        goal: np.ndarray | None = None,
        *,
        episode: int = 0,
        step: int = 0,
        draft: Proposal | None = None,
        images: Mapping[str, np.ndarray] = NO_IMAGES,
        instruction: str = "",
    ) -> Answer:
        """Return the target's actions for a window.

        Robot, episode and step determine the random draws: the same request gets the same answer.

        Args:
            window: (H, O) float, the newest observations, oldest first, in SI units.
            goal: (G,) float; None for a target without conditions.
            episode: number of the episode.
            step: control step, counts from 0 within the episode.
            draft: the robot's proposal (M = 1), for rules that need it.
            images: by name, (H, rows, columns, 3) uint8, for a target that reads raw images. They are sent
                as JPEG, scaled down to the size that the target reads.
            instruction: a sentence, for a target that reads one.

        Raises:
            VerifierError: no reply by the deadline, a refusal, or an invalid reply.
            ValueError: window, goal, images or instruction do not match the target.
        """
        target = self._description or await self.describe()
        signature = target.signature
        if signature.image_dim:
            raise VerifierError(
                f"describe_target: the target reads {IMAGE_FEATURES}, must read raw images: this client "
                "makes no features"
            )
        goal = np.zeros(0) if goal is None else np.asarray(goal)
        sizes = (signature.history, sum(each.size for each in signature.features))
        if np.shape(window) != sizes:
            raise ValueError(f"window: shape {np.shape(window)}, must be {sizes}")
        conditions = sum(each.size for each in signature.conditions)
        if goal.shape != (conditions,):
            raise ValueError(f"goal: shape {goal.shape}, must be ({conditions},)")
        if draft is None:
            draft = Proposal(np.zeros((1, 0, signature.action_dim), np.float32))
        codes = signature.codes
        fingerprint = None if codes is None or draft.distribution is None else codes.fingerprint
        if signature.instruction and not instruction.strip():
            raise ValueError("instruction: empty, must say what to do: the target reads an instruction")
        jpegs = _jpegs(signature, images)
        sent = WireWindow.pack(np.asarray(window, np.float32), goal, images=jpegs)
        sentence = instruction if signature.instruction else ""
        request = Request.from_draft(draft, episode, step, sent, 0, sentence, self._deadline_s)
        rule = target.rule
        if draft.data and issubclass(rule, DataRule):
            request = replace(request, rule_data=rule.pack(draft.data, LinkFacts()))
        message = to_request(request, sent, Sender(*self._name, fingerprint))
        started_s = time.monotonic()
        response = await self._call(self._verifying, message)
        outcome = judged(target, request, from_reply(0, response), 1e3 * (time.monotonic() - started_s))
        if outcome.verification is None:
            self._description = None  # there may be another verifier by now
            reason = Reason(outcome.reason).name.lower()
            raise VerifierError(f"verify_draft: {reason}: {outcome.message}")
        verdict = outcome.verification
        return Answer(verdict.actions[0], verdict.accepted[0], outcome.verify_ms, outcome.compute_ms)

    async def _call(self, client: Client, request: object) -> object:
        try:
            return await replied(self._node, client, request, self._deadline_s)
        except NotRepliedError as error:
            raise VerifierError(str(error)) from None


def _jpegs(signature: Signature, images: Mapping[str, np.ndarray]) -> list[bytes]:
    """Return the JPEGs to send, the oldest observation's first.

    Raises:
        ValueError: the images do not match the target.
    """
    names = [each.name for each in signature.images]
    if set(images) != set(names):
        found = ", ".join(images) or "none"
        raise ValueError(f"images: {found}; must be {', '.join(names) or 'none, as the target reads none'}")
    for name, pictures in images.items():
        if pictures.dtype != np.uint8 or pictures.ndim != 4 or pictures.shape[::3] != (signature.history, 3):
            raise ValueError(
                f"images.{name}: {pictures.dtype} {pictures.shape}, must be uint8 "
                f"({signature.history}, rows, columns, 3)"
            )
    return [
        _jpeg(images[each.name][row], each) for row in range(signature.history) for each in signature.images
    ]


def _jpeg(picture: np.ndarray, wanted: ImageInput) -> bytes:
    """Return a picture scaled down to the wanted size; a smaller one keeps its size."""
    rows, columns = picture.shape[:2]
    size = within((rows, columns), wanted.rows, wanted.columns, wanted.padded)
    return to_jpeg(resized(picture, *size), QUALITY)
