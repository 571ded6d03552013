# SPDX-License-Identifier: Apache-2.0
"""Simulates the latency of every action of a logged run on a link.

The compute is measured on this machine, and the link is drawn from its profile. Each action costs a draft
and, if the gate transmitted, a round trip with the target's compute. `adahi demo` measures the same over DDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from adahi_lab.evaluation.loaded_policies import INTENTS, Policies
from adahi_lab.evaluation.rollout import Log
from adahi_lab.evaluation.step_costs import step_costs
from adahi_lab.link.link_profile import LinkProfile
from adahi_lab.methods.actors import CORRECTOR, DRAFT_CHECKS_PLAN
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.policies.interface import Policy

REPETITIONS = 200
REPETITIONS_OF_SLOW = 10
HALF_UNIT = 2.0**-54  # a draw of 0 would give minus infinity


@dataclass(frozen=True)
class Costs:
    """Costs of one step on this machine.

    Attributes:
        draft_ms: median of one prediction on the robot: of the draft, or of the corrector.
        target_ms: median of one prediction of the target.
        request_bytes: the new parts: an observation, codes and probabilities.
        response_bytes: codes, verdicts and offset.
    """

    draft_ms: float
    target_ms: float
    request_bytes: int
    response_bytes: int


def _median_ms(call: Callable[[], object], repetitions: int = 0) -> float:
    took = []
    for _ in range(repetitions or REPETITIONS):
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return float(np.median(took) * 1e3)


def measure_costs(draft: Policy, target: Policy) -> Costs:
    """Measure the costs of one robot's step."""
    signature = draft.signature
    codes = signature.codes
    drafted = 0 if codes is None else 2 * codes.codebooks * (1 + codes.codebook_size)
    verdict = 0 if codes is None else codes.codebooks
    return Costs(
        draft_ms=_median_ms(lambda: _propose(draft)),
        target_ms=_median_ms(lambda: _propose(target)),
        request_bytes=4 * signature.observation_dim + drafted,
        response_bytes=verdict + 4 * signature.horizon * signature.action_dim,
    )


def target_ms_of(target: Policy) -> float:
    """Measure one prediction of a target that may be slow or remote."""
    _propose(target)  # the first call may compile
    return _median_ms(lambda: _propose(target), REPETITIONS_OF_SLOW)


def measure_plan_costs(policies: Policies) -> dict[str, Costs]:
    """Measure the costs of one step of a robot with plans, by proposer.

    Args:
        policies: with a target that plans.
    """
    assert policies.plans is not None
    signature = policies.plans.signature
    took = {name: cost.median_ms for name, cost in step_costs(policies, REPETITIONS).items()}
    on_robot = {"plan": 0.0, CORRECTOR: took.get("corrector", 0.0), DRAFT_CHECKS_PLAN: took["draft"]}
    on_robot |= {name: took[name] for name in INTENTS if name in took}
    replies = dict.fromkeys(on_robot, 4 * signature.horizon * signature.action_dim)
    if policies.intent is not None and policies.intent.at_target:
        replies["intent"] = policies.intent.size  # instead of the plan
    return {
        proposer: Costs(
            draft_ms=draft_ms,
            target_ms=took["target that plans"],
            request_bytes=4 * signature.observation_dim,
            response_bytes=replies[proposer],
        )
        for proposer, draft_ms in on_robot.items()
    }


def _propose(policy: Policy) -> None:
    policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws)))


def simulated_latency(
    log: Log, drafts: bool, costs: Costs, link: LinkProfile, seed: int, episodes: Sequence[int]
) -> np.ndarray:
    """Return the latency of each action, (T, E) ms.

    Args:
        log: of the run.
        drafts: whether the robot drafts at every step.
        costs: of a step.
        link: between robot and server.
        seed: of the link's draws.
        episodes: numbers of the E episodes.
    """
    streams = EpisodeStreams(seed, "link", list(episodes), 1)
    draws = np.maximum(HALF_UNIT, np.stack([streams.next()[:, 0] for _ in range(len(log.active))]))
    round_trip = np.maximum(0.0, link.rtt_mean_ms + link.rtt_jitter_ms * norm.ppf(draws))
    round_trip += link.transfer_ms(costs.request_bytes + costs.response_bytes) + costs.target_ms
    latency: np.ndarray = costs.draft_ms * drafts + np.where(log.transmitted, round_trip, 0.0)
    return latency


def throughput(latency_ms: np.ndarray, active: np.ndarray, window: int) -> np.ndarray:
    """Return actions per second over windows of so many actions in a row, back to back.

    The paper does not define its window. One second of control steps distinguishes methods that transmit in
    bursts from methods that spread transmissions.

    Args:
        latency_ms: (T, E).
        active: (T, E) bool.
        window: actions per window.

    Returns:
        One number per whole window of all episodes, or of each episode where none is so long.
    """
    rates = []
    for column, alive in zip(latency_ms.T, active.T, strict=True):
        row = column[alive]
        size = min(window, len(row))
        whole = row[: len(row) // size * size].reshape(-1, size)
        rates.append(size / whole.sum(axis=1).clip(1e-9) * 1e3)
    return np.concatenate(rates)
