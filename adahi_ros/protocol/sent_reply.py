# SPDX-License-Identifier: Apache-2.0
"""What a verifier says to one robot's request as it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from adahi_ros.protocol.request import NOTHING, RequestFault

OK = 0  # as a status, besides the numbers of `RequestFault`
INTERNAL_ERROR = 6  # likewise
PARTS_MOST = 64
"""Of a draft, that a reply may judge, as in `VerifyDraft.srv`."""
STATUS_NAMES = {
    OK: "ok",
    INTERNAL_ERROR: "internal_error",
    **{int(fault): fault.name.lower() for fault in RequestFault},
}


@dataclass(frozen=True)
class SentReply:
    """A reply, flat.

    Attributes:
        status: a key of `STATUS_NAMES`.
        message: for people; empty where the status is `OK`.
        episode, step, first_step: those of the request; the reply begins at the control step `first_step`.
        actions: ((T - (first_step - step)) * A,) float32; empty unless `OK`.
        accepted: N; empty unless `OK`.
        window_kept: a later request may name this window as its base.
        retry_after_s: when to ask again, where the verifier is busy; else 0.
    """

    status: int
    message: str
    episode: int
    step: int
    first_step: int
    actions: np.ndarray = field(default_factory=lambda: NOTHING)
    accepted: tuple[bool, ...] = ()
    window_kept: bool = False
    retry_after_s: float = 0.0
