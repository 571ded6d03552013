# SPDX-License-Identifier: Apache-2.0
"""Gates that no robot can have: they know how far what the robot would do is from what the target would.

They are for upper bounds: a gate that is to foresee the harm of not asking can do no better than to know it.
What comes after the step nobody knows, these neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.observation_buffer import History
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate, GateContext
from adahi_ros.gates.plans import distance
from adahi_ros.lab.calibration.target_plans import fresh_plans
from adahi_ros.lab.evaluation.loaded_policies import Bench
from adahi_ros.lab.evaluation.rollout import Log, World, for_target, rollout
from adahi_ros.lab.methods.named_numbers import named_number
from adahi_ros.lab.methods.plan_methods import actor_of, target_of
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

HARM = "harm"
SAMPLES = 8  # of the target's distribution, at every step
NAMED = re.compile(r"oracle:(draft|plan|corrector)(?:@([0-9]+(?:\.[0-9]+)?))?", re.ASCII)
HARM_GRAMMAR = "oracle:draft, oracle:plan or oracle:corrector, with a threshold @NUMBER"


class HarmGate(Gate):
    """Scores, in action scales, how far what robots would do is from the nearest of the target's fresh draws.

    Args:
        target: that draws.
        world: has the target's goal and what it sees of cameras, which a robot may not be told.
        action_scale: (A,).
        seed: of the draws.
        episodes: their numbers.
    """

    blind = False

    def __init__(
        self, target: Policy, world: World, action_scale: np.ndarray, seed: int, episodes: Sequence[int]
    ) -> None:
        self._target = target
        self._world = world
        self._scale = action_scale
        self._history = History(target.signature, len(episodes))
        self._draws = EpisodeStreams(seed, "oracle", episodes, SAMPLES * target.draws)

    def score(self, context: GateContext) -> np.ndarray:
        """See `Gate`; infinite where a robot has nothing to do."""
        assert context.course is not None
        intended = context.course.intended
        told = {GOAL: self._world.goal, **for_target(self._world)}
        observations = self._history.push({**context.observed, **told})
        draws = self._draws.next().reshape(len(intended), SAMPLES, -1)
        fresh = fresh_plans(self._target, observations, draws)[:, :, 0] / self._scale
        harm: np.ndarray = distance(intended[:, None], fresh).min(axis=1)
        return np.where(np.isnan(harm), np.inf, harm)


@dataclass(frozen=True)
class HarmOracleMethod:
    """Ask where the robot would do what the target would not.

    Attributes:
        label, about: see `Method`.
        proposer: a key of `PROPOSERS`.
        at: the threshold, in action scales; None takes the calibration's, which is one for this very label.
    """

    label: str
    about: str
    proposer: str
    at: float | None = None

    @property
    def drafts(self) -> bool:
        """Whether the target judges drafts, and makes no plans."""
        return self.proposer == "draft"

    @property
    def gate(self) -> str | None:
        """See `Method`; None where its threshold is its own."""
        return self.label if self.at is None else None

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        if not self.drafts:
            actor_of(bench.policies, self.proposer, self.label)
        return HARM, bench.calibration.threshold(self.label) if self.at is None else self.at

    def run(
        self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: Callable[[int], None]
    ) -> Log:
        """See `Method`."""
        policies, calibration = bench.policies, bench.calibration
        told = self.threshold(bench)
        assert told is not None
        actor: Actor = policies.draft
        target, rule = policies.target, "speculative" if policies.share_codes else "replace"
        if not self.drafts:
            actor = actor_of(policies, self.proposer, self.label)
            target, rule = target_of(policies, self.label), "replace"
        gate = HarmGate(target, world, actor.action_scale, seed, episodes)
        config = ControllerConfig(
            ThresholdedGate(HARM, told[1], gate),
            calibration.smoothing,
            calibration.normalization,
            calibration.draft_temperature,
        )
        controller = Controller(actor, config, self.proposer)
        verifier = TargetVerifier(target, rule)
        return rollout(world, controller, verifier, seed, episodes, on_step, across=bench.across)


def harm_method(name: str) -> HarmOracleMethod | None:
    """Return the method of a name, oracle:PROPOSER or oracle:PROPOSER@NUMBER; None where it is none.

    Raises:
        ValueError: the number is not finite, or too long.
    """
    told = NAMED.fullmatch(name)
    if told is None:
        return None
    proposer, threshold = told.groups()
    at = None if threshold is None else named_number(name, "threshold", threshold)
    return HarmOracleMethod(name, "ask where the target would do something else", proposer, at)
