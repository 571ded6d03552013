# SPDX-License-Identifier: Apache-2.0
"""Traces of single episodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.evaluation.rollout import Log


@dataclass(frozen=True)
class Trace:
    """One episode of T steps, as its gate saw it.

    Attributes:
        time_s: (T,).
        deviation: (T,), infinite without a past.
        transmitted: (T,) bool.
        verified: (T,) bool, the reply came in time.
        accepted: (T,) bool, every code was kept.
        threshold: of the deviation; None where another gate decided.
    """

    time_s: np.ndarray
    deviation: np.ndarray
    transmitted: np.ndarray
    verified: np.ndarray
    accepted: np.ndarray
    threshold: float | None

    @classmethod
    def from_log(cls, log: Log, episode: int, rate_hz: float, threshold: float | None) -> Trace:
        """Take one column of a log without lost replies."""
        length = int(log.active[:, episode].sum())
        sent = log.transmitted[:length, episode]
        return cls(
            time_s=np.arange(length) / rate_hz,
            deviation=log.deviation[:length, episode],
            transmitted=sent,
            verified=sent,
            accepted=np.all(log.accepted[:length, episode], axis=-1),
            threshold=threshold,
        )
