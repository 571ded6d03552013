# SPDX-License-Identifier: Apache-2.0
"""What requests would cost by two ways to send a draft: everything at once, or what mismatches first.

After WISV (arXiv 2604.17701). Everything at once is what a robot sends: of each code the whole distribution
that it was drawn from. Mismatch first, it sends the code and its probability alone, by which the verifier
tells whether it stands; of those that do not, it asks for the distributions, to draw in their place. The
verdict is the same (`acceptance/semantic.py`), so one run tells what both would have cost. No message has the
second way: it is counted here, by the sizes that its messages would have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_ros.core.signature import Signature
from adahi_ros.lab.evaluation.rollout import Log
from adahi_ros.lab.link.link_profile import LinkProfile
from adahi_ros.lab.tasks.task_interface import TaskSpec
from adahi_ros.protocol.sizes import reply_bytes, request_bytes


@dataclass(frozen=True)
class Uploads:
    """What R requests cost by one way.

    Attributes:
        rounds: (R,), round trips.
        up, down: (R,), bytes of messages, as `wire.sizes` counts them.
    """

    rounds: np.ndarray
    up: np.ndarray
    down: np.ndarray

    def waiting_ms(self, link: LinkProfile) -> np.ndarray:
        """Return how long each takes on a link on average, (R,), without the target's compute."""
        taken: np.ndarray = self.rounds * link.rtt_mean_ms + link.transfer_ms(1) * (self.up + self.down)
        return taken


def uploads(log: Log, target: Signature, spec: TaskSpec) -> tuple[Uploads, Uploads]:
    """Return what the requests of a run cost, everything at once and mismatch first.

    Args:
        log: of a rule on codes.
        target: what the target reads and proposes; of codes.
        spec: of the task.
    """
    assert target.codes is not None
    books, size = target.codes.codebooks, target.codes.codebook_size
    sent = log.transmitted & log.active
    gaps = [np.diff(np.flatnonzero(column), prepend=-target.history) for column in sent.T]
    rows = np.minimum(np.concatenate(gaps), target.history)
    rejected = (~log.accepted).sum(axis=-1).T[sent.T]
    told = reply_bytes(target.horizon * target.action_dim, books)

    def request(rows: int, codes: int, counts: int) -> int:
        numbers = len(spec.joint_names) + len(spec.state_names)
        goal = target.goal_dim if rows >= target.history else 0
        features = rows * (target.observation_dim - numbers)
        return request_bytes(rows * numbers, features, goal, 0, codes, counts)

    whole = np.array([request(int(each), books, books * size) for each in rows])
    brief = np.array([request(int(each), books, books) for each in rows])
    more = np.array([request(0, books, int(each) * size) if each else 0 for each in rejected])
    asked = rejected > 0
    once = Uploads(np.ones(len(rows)), whole, np.full(len(rows), told))
    return once, Uploads(1 + asked, brief + more, told + asked * reply_bytes(0, books))


def accepted_length(log: Log) -> float:
    """Return how many drafts in a row stand whole before one does not, or the episode ends, on average."""
    runs = rejected = 0
    for column in range(log.active.shape[1]):
        asked = (log.transmitted & log.active)[:, column]
        stands = log.accepted[asked, column].all(axis=-1)
        rejected += int((~stands).sum()) + 1
        runs += int(stands.sum())
    return runs / rejected
