# SPDX-License-Identifier: Apache-2.0
"""Episodes that execute the chunks of a token policy: what it sees at the start of each, and success."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from adahi_lab.evaluation.episodes import evaluation_episodes
from adahi_lab.evaluation.evaluate import batches
from adahi_lab.evaluation.loaded_policies import Bench, Policies, uncalibrated
from adahi_lab.evaluation.rollout import rollout
from adahi_lab.methods.methods import METHODS
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.tasks import make
from adahi_ros.core.signature import Observations
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

Seen = tuple[Observations, Observations]
"""An observation of one robot, as the draft and as the target read it."""


def load_token_policy(path: Path, backend: str = "onnxruntime") -> TokenPolicy:
    """Load a policy of tokens; raises as `load_policy`.

    Raises:
        ValueError: it is another policy.
    """
    policy = load_policy(path, backend)
    if not isinstance(policy, TokenPolicy):
        raise ValueError(f"{path}: {type(policy).__name__}, must emit tokens")
    return policy


def observed_chunks(
    task: str, draft: TokenPolicy, target: TokenPolicy, episodes: int, seed: int
) -> list[Seen]:
    """Return what robots see as they begin each chunk of the target, up to the end of their episodes."""
    seen: list[Seen] = []
    world = make(task)

    class Watching(TargetVerifier):
        def verdict(self, request, draws):  # type: ignore[no-untyped-def]
            assert len(draws) == len(world.done)  # all robots begin their chunks at once
            for row in np.flatnonzero(~world.done):
                here = request.observations.rows(np.array([row]))
                window = target.signature.window(here)[:, -draft.signature.history :]
                goal = target.signature.condition(here)[:, : draft.signature.goal_dim]
                seen.append((draft.signature.observations(window, goal), here))
            return super().verdict(request, draws)

    controller = Controller(draft, ControllerConfig(ThresholdedGate("never", 0.0)), "plan")
    numbers = list(evaluation_episodes(episodes))
    rollout(world, controller, Watching(target, "replace"), seed, numbers)
    return seen


def some_chunks(
    task: str, draft: TokenPolicy, target: TokenPolicy, episodes: int, count: int, seed: int
) -> list[Seen]:
    """Return a random `count` of these observations, at most."""
    seen = observed_chunks(task, draft, target, episodes, seed)
    chosen = np.random.default_rng(seed).choice(len(seen), min(count, len(seen)), replace=False)
    return [seen[index] for index in chosen]


def success_of_chunks(
    task: str, draft: Policy, target: Policy, episodes: Sequence[int], seed: int
) -> np.ndarray:
    """Return the success (E,) of episodes that execute each chunk of a target to its end."""
    policies, success = Policies(draft, target, plans=target), []
    bench = Bench(task, policies, uncalibrated(task, policies))
    for numbers in batches(episodes):
        world = make(task)
        METHODS["plan+never"].run(bench, world, seed, numbers)
        success.append(world.success)
    return np.concatenate(success)


def by_robot(seen: list[Seen], target: TokenPolicy) -> list[list[Seen]]:
    """Return the observations of each goal, in their order: those of one robot at one task."""
    groups: dict[bytes, list[Seen]] = {}
    for each in seen:
        groups.setdefault(target.signature.condition(each[1]).tobytes(), []).append(each)
    return list(groups.values())
