# SPDX-License-Identifier: Apache-2.0
"""Costs of each policy's control step: weights, and time for one robot on this machine.

The draft, the corrector with its index, and the networks that act by intents run on the robot; targets run
on the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adahi_lab.evaluation.loaded_policies import INTENTS, Policies
from adahi_ros.core.observation_buffer import ObservationBuffer
from adahi_ros.core.plan import Plan
from adahi_ros.core.signature import GOAL, OBSERVATION
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.corrector import CorrectorProposer
from adahi_ros.proposers.draft import DraftProposer
from adahi_ros.proposers.intent import IntentProposer
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.robot.controller import LONGEST_MEMORY

BLOCK = 50  # steps in a row: each policy is timed warm, as on a robot, and short turns spread the noise


@dataclass(frozen=True)
class StepCost:
    """Costs of one step.

    Attributes:
        parameters: number of trainable weights.
        median_ms, p99_ms: time.
    """

    parameters: int
    median_ms: float
    p99_ms: float


def step_costs(policies: Policies, repetitions: int) -> dict[str, StepCost]:
    """Measure the available policies, by name, in turns.

    Args:
        policies: at least draft and target.
        repetitions: of every one, rounded up to whole turns; the turn before them warms up.
    """
    draft, target, plans, corrector = policies.draft, policies.target, policies.plans, policies.corrector
    calls: dict[str, tuple[Actor, Callable[[], object]]] = {
        "draft": (draft, _proposing(DraftProposer(draft), draft, 1)),
        "target": (target, _proposer_of(target)),
    }
    if corrector is not None:
        horizon = corrector.signature.horizon
        calls["corrector"] = (corrector, _proposing(CorrectorProposer(corrector), corrector, horizon))
    for name in INTENTS:
        if (intent := getattr(policies, name)) is not None:
            calls[name] = (intent, _proposing(IntentProposer(intent), intent, 1))
    if plans is not None:
        calls["target that plans"] = (plans, _proposer_of(plans))
    took: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(1 - (-repetitions // BLOCK)):
        for name, (_, call) in calls.items():
            for _ in range(BLOCK):
                started = time.perf_counter()
                call()
                if turn > 0:
                    took[name].append(1e3 * (time.perf_counter() - started))
    return {
        name: StepCost(
            actor.signature.parameters, float(np.median(took[name])), float(np.percentile(took[name], 99))
        )
        for name, (actor, _) in calls.items()
    }


def _proposer_of(target: Policy) -> Callable[[], object]:
    observations, draws = target.signature.nothing(), np.zeros((1, target.draws))
    return lambda: target.propose(observations, draws)


def _proposing(proposer: Proposer, actor: Actor, horizon: int) -> Callable[[], object]:
    """Return a step of a robot within an episode: its memory is full, and its plan half executed.

    Args:
        proposer: to call.
        actor: its policy.
        horizon: actions of a plan.
    """
    signature = actor.signature
    memory, plan = ObservationBuffer(LONGEST_MEMORY), Plan(1, signature.action_dim)
    observed = {
        OBSERVATION: np.zeros((1, signature.observation_dim), np.float32),
        GOAL: np.zeros((1, signature.goal_dim), np.float32),
    }
    step = LONGEST_MEMORY
    for earlier in range(step + 1):
        memory.keep(earlier, observed)
    requested = step - horizon // 2
    plan.splice(np.zeros((1, horizon, signature.action_dim), np.float32), requested, requested)
    plan.forget_before(step)
    draws = np.zeros((1, actor.draws))
    context = ProposerContext(step, signature.nothing(), memory, plan, draws, 1.0)
    return lambda: proposer.propose(context)
