# SPDX-License-Identifier: Apache-2.0
"""Verifications by a session without loss or delay, to measure message sizes."""

from __future__ import annotations

import math

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.proposal import Proposal
from adahi_ros.protocol.description import Wants
from adahi_ros.protocol.request import Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Outcome
from adahi_ros.robot.session import WATCH_PERIOD_S, VerifierSession, VerifierState
from adahi_ros.robot.transport import Transport

NOW_S = WATCH_PERIOD_S  # when a session started at 0 looks for its verifier; no time passes


class VerificationCalls:
    """One robot's session with a verifier.

    Attributes:
        request_bytes: size of each request, serialized.
        response_bytes: size of each reply.

    Args:
        transport: has the reply as soon as a request is sent.
        wants: requirements on the verifier.

    Raises:
        ValueError: the verifier does not fit; names the first difference.
    """

    def __init__(self, transport: Transport, wants: Wants) -> None:
        self.request_bytes: list[int] = []
        self.response_bytes: list[int] = []
        self._session = VerifierSession(transport, wants, False, lambda: None)
        self._session.start(0.0)
        for _ in range(2):  # it asks for the description, and takes it
            self._session.poll(NOW_S)
        if self._session.link is not VerifierState.READY:
            raise ValueError(self._session.trouble)

    def ask(self, draft: Proposal, window: WireWindow, episode: int, step: int) -> Verdict:
        """Return the verdict on one draft (M = 1); only this window of its observations is sent.

        Raises:
            RuntimeError: there is none; names the reason.
        """
        outcomes: list[Outcome] = []
        request = Request.from_draft(self._session.sent_parts.select(draft), episode, step, window)
        pending = self._session.submit(request, math.inf, NOW_S, outcomes.append)
        self._session.poll(NOW_S)
        (outcome,) = outcomes
        if outcome.verification is None:
            raise RuntimeError(f"{outcome.reason.name.lower()}: {outcome.message}")
        self.request_bytes.append(pending.request_bytes)
        self.response_bytes.append(outcome.reply_bytes)
        return outcome.verification
