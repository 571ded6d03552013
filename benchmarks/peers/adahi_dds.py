"""Ours: hybrid inference at every step: drafts, and asks a target verifier node over DDS. See `driving.py`.

The draft is part of the step, as it is on the robot, and its time part of the models' compute. The server is
the node itself; address and port mean nothing to DDS, which finds it.
"""

from __future__ import annotations

import time

import numpy as np
import rclpy
from driving import TEMPERATURE, peer
from rclpy.node import Node

from adahi_ros.nodes.common.urgent_executor import UrgentExecutor
from adahi_ros.nodes.robot.question import Answer, Question
from adahi_ros.nodes.robot.verifier_client import Link, VerifierClient
from adahi_ros.policy.drafting import draft_action
from adahi_ros.policy.interface import Policy
from adahi_ros.wire.request import VerificationRequest
from adahi_ros.wire.window import WireWindow


class NoAnswerError(Exception):
    """No verifier to ask, or no answer by the deadline."""


class DdsClient:
    """Asks as the draft policy node does."""

    failures = (NoAnswerError,)

    def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
        self._timeout_s = timeout_s
        self._policy = policy
        self._draws = np.random.default_rng(0)
        self._step = 0
        rclpy.init()
        node = Node("robot")
        self._client = VerifierClient(node, policy, "robot", "best_effort", lambda: None)
        self._executor = UrgentExecutor(node, lambda: self._client.urgent)
        self._client.start()

    def connect(self) -> None:
        """Wait for a verifier; as long as one call may take."""
        give_up = time.monotonic() + self._timeout_s
        while self._client.link is not Link.READY:
            if time.monotonic() > give_up:
                raise NoAnswerError(self._client.trouble)
            self._executor.spin_once()

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """See `Client.ask`; drafts anew, and so needs no codes."""
        start = time.perf_counter()
        uniforms = self._draws.random((1, self._policy.spec.codebooks))
        draft = draft_action(self._policy, window[None], goal[None], uniforms, TEMPERATURE)
        draft_ms = 1e3 * (time.perf_counter() - start)
        request = VerificationRequest(window[None], goal[None], draft.codes, draft.counts)
        answers: list[Answer] = []
        question = Question(request, 0, self._step, WireWindow.of(window, goal))
        self._client.ask(question, self._timeout_s, answers.append)
        self._step += 1
        while not answers:
            self._executor.spin_once()
        verification = answers[0].verification
        if verification is None:
            raise NoAnswerError(answers[0].message or answers[0].reason.name)
        chunk: np.ndarray = verification.chunks(self._policy.decoder)[0]
        return chunk, draft_ms + answers[0].compute_ms

    def rest(self, duration_s: float) -> None:
        """Spin, as a node does."""
        self._client.settle()
        end = time.monotonic() + duration_s
        while (left_s := end - time.monotonic()) > 0.0:
            self._executor.spin_once(left_s)

    def close(self) -> None:
        """Keep what DDS knows: it comes back by itself."""


if __name__ == "__main__":
    peer("adahi_dds", None, DdsClient)
