# SPDX-License-Identifier: Apache-2.0
"""Our peer: asks a target verifier node about every draft, over DDS.

It sends the new part of a window, as the robot does. The server is the node itself; DDS discovers it and
ignores address and port. See `lab/peers/driving.py` for how to run it.
"""

from __future__ import annotations

import time

import numpy as np
import rclpy
from rclpy.node import Node

from adahi_lab.peers.driving import Client, peer
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Offer
from adahi_ros.nodes.common.executors import executor_of
from adahi_ros.nodes.common.timers import DueTimer
from adahi_ros.nodes.robot.dds_transport import DdsTransport, VerifierClients
from adahi_ros.policies.interface import Policy
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.request import Request, Sender, sent_codes
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Outcome
from adahi_ros.robot.session import VerifierSession, VerifierState

LOOK_S = 0.1  # longest interval between two checks of the deadline


class NoReplyError(Exception):
    """No verifier, or no reply by the deadline."""


class DdsClient(Client):
    """Sends requests as the draft policy node does."""

    failures = (NoReplyError,)

    def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
        self._timeout_s = timeout_s
        self._no_actions = np.zeros((1, 0, policy.signature.action_dim), np.float32)
        self._step = 0
        rclpy.init()
        node = Node("robot")
        signature = policy.signature
        offered = Offer({each.name: each.size for each in (*signature.features, *signature.conditions)})
        fingerprint = None if signature.codes is None else signature.codes.fingerprint
        clients = VerifierClients(node, "best_effort")
        transport = DdsTransport(clients, Sender.of_new_start("robot", "", fingerprint), self._poll)
        self._due = DueTimer(node, self._poll)
        self._session = VerifierSession(transport, Wants(signature, offered), True, lambda: None)
        self._executor = executor_of(node)
        self._session.start(time.monotonic())
        self._due.set(self._session.next_due_s)

    def _poll(self) -> None:
        self._session.poll(time.monotonic())
        self._due.set(self._session.next_due_s)

    def connect(self) -> None:
        """Wait for a verifier, at most for the timeout of one call."""
        give_up = time.monotonic() + self._timeout_s
        while self._session.link is not VerifierState.READY:
            if time.monotonic() > give_up:
                raise NoReplyError(self._session.trouble)
            self._executor.spin_once(LOOK_S)

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """See `Client.ask`."""
        draft = Proposal(self._no_actions, sent_codes(codes[None], counts[None]))
        outcomes: list[Outcome] = []
        sent = Request.from_draft(
            self._session.sent_parts.select(draft), 0, self._step, WireWindow.pack(window, goal)
        )
        self._session.submit(sent, self._timeout_s, time.monotonic(), outcomes.append)
        self._due.set(self._session.next_due_s)
        self._step += 1
        while not outcomes:
            self._executor.spin_once(LOOK_S)
        verification = outcomes[0].verification
        if verification is None:
            raise NoReplyError(outcomes[0].message or outcomes[0].reason.name)
        chunk: np.ndarray = verification.actions[0]
        return chunk, outcomes[0].compute_ms

    def rest(self, duration_s: float) -> None:
        """Spin, as a node does."""
        end = time.monotonic() + duration_s
        while (left_s := end - time.monotonic()) > 0.0:
            self._executor.spin_once(left_s)

    def close(self) -> None:
        """Keep the DDS participant: it reconnects by itself."""


if __name__ == "__main__":
    peer("adahi_dds", None, DdsClient)
