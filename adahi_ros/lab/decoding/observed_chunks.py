# SPDX-License-Identifier: Apache-2.0
"""Observations at which a robot asks a token policy for its next chunk, from held-out episodes."""

from __future__ import annotations

import numpy as np

from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.lab.evaluation.episodes import evaluation_episodes
from adahi_ros.lab.evaluation.rollout import rollout
from adahi_ros.lab.tasks import make
from adahi_ros.policies.tokens.token_policy import TokenPolicy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

Seen = tuple[Observations, Observations]
"""An observation of one robot, as the draft and as the target read it."""


def observed_chunks(
    task: str, draft: TokenPolicy, target: TokenPolicy, episodes: int, seed: int
) -> list[Seen]:
    """Return the observations of episodes that execute the target's chunks, in their order."""
    seen: list[Seen] = []

    class Watching(TargetVerifier):
        def verdict(self, request, draws):  # type: ignore[no-untyped-def]
            for row in range(len(draws)):
                here = request.observations.rows(np.array([row]))
                window = target.signature.window(here)[:, -draft.signature.history :]
                goal = np.zeros((1, draft.signature.goal_dim), dtype=np.float32)
                seen.append((draft.signature.observations(window, goal), here))
            return super().verdict(request, draws)

    controller = Controller(draft, ControllerConfig(ThresholdedGate("never", 0.0)), "plan")
    numbers = list(evaluation_episodes(episodes))
    rollout(make(task), controller, Watching(target, "replace"), seed, numbers)
    return seen


def by_robot(seen: list[Seen], target: TokenPolicy) -> list[list[Seen]]:
    """Return the observations of each goal, in their order: those of one robot at one task."""
    groups: dict[bytes, list[Seen]] = {}
    for each in seen:
        groups.setdefault(target.signature.condition(each[1]).tobytes(), []).append(each)
    return list(groups.values())
