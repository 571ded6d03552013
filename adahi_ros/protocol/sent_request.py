# SPDX-License-Identifier: Apache-2.0
"""One robot's request as it is sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.texts import NO_FINGERPRINT
from adahi_ros.protocol.request import UNKNOWN_MS
from adahi_ros.protocol.window import WindowUpdate


@dataclass(frozen=True)
class SentRequest:
    """What a request says: flat, and unchecked where it was received.

    Attributes:
        robot_id: names the robot's windows and draws.
        target: name of the policy; empty takes the verifier's first.
        episode: its number.
        step: its number.
        first_step: control step at which the reply should begin.
        fingerprint: of the tokenizer that the codes are of; `NO_FINGERPRINT` without codes.
        update: of the robot's window.
        instruction: in a sentence; empty where there is none.
        actions: (T * A,) float32, from `step` on; the robot executes those before `first_step` whatever is
            replied. Empty where they are not sent.
        codes: (N,) int64; empty where there are none.
        counts: (N * K,) int64; empty without codes.
        round_trip_ms: what one takes now without the verifier's share; `UNKNOWN_MS` where nobody knows.
    """

    robot_id: str
    target: str
    episode: int
    step: int
    first_step: int
    fingerprint: int
    update: WindowUpdate
    instruction: str
    actions: np.ndarray
    codes: np.ndarray
    counts: np.ndarray
    round_trip_ms: float = UNKNOWN_MS

    @classmethod
    def of(
        cls,
        draft: Proposal,
        update: WindowUpdate,
        robot_id: str,
        episode: int,
        step: int,
        fingerprint: int = NO_FINGERPRINT,
        target: str = "",
        ahead: int = 0,
        instruction: str = "",
        round_trip_ms: float = UNKNOWN_MS,
    ) -> SentRequest:
        """Make the request about one robot's draft (M = 1).

        Args:
            draft: no more of it than is to be sent.
            update: of the window, as it is to be sent.
            robot_id: see the class.
            episode: see the class.
            step: see the class.
            fingerprint: of the draft's tokenizer.
            target: see the class.
            ahead: how many control steps after its own the reply should begin.
            instruction: see the class.
            round_trip_ms: see the class.
        """
        drawn = draft.distribution
        codes = counts = np.empty(0, dtype=np.int64)
        if drawn is None or drawn.counts is None:
            fingerprint = NO_FINGERPRINT
        else:
            codes, counts = drawn.codes[0], drawn.counts[0].ravel()
        return cls(
            robot_id=robot_id,
            target=target,
            episode=episode,
            step=step,
            first_step=step + ahead,
            fingerprint=fingerprint,
            update=update,
            instruction=instruction,
            actions=draft.actions[0].ravel(),
            codes=codes,
            counts=counts,
            round_trip_ms=round_trip_ms,
        )
