"""One control step, in two halves, with the request to the target in between.

    step = controller.begin(observed)
    # where step.transmit: ask the target, here by a call or over the air, or give up
    actions = controller.finish(step, verdict)  # to execute now
    # command them, or what is allowed of them
    controller.executed(commanded)

The same class drives the rollouts of the evaluation, many episodes at once, and the robot's node,
one at a time. Neither half waits for anything. What a step's deviation is taken from is made of what was
really commanded, which is what the policy wanted only where nothing else has a say in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.gates.config import ControllerConfig
from adahi_ros.gates.context import GateContext, LinkEstimate
from adahi_ros.gates.deviation import DeviationTracker
from adahi_ros.gates.scores import Trigger
from adahi_ros.policy.history import History
from adahi_ros.policy.interface import Policy
from adahi_ros.policy.proposal import Proposal
from adahi_ros.policy.signature import Observations
from adahi_ros.randomness import EpisodeStreams
from adahi_ros.robot.plan import Plan
from adahi_ros.robot.proposers import PROPOSERS, ProposerContext
from adahi_ros.wire.request import sent_codes

UNPLANNED = np.nan  # an action that nobody has proposed


@dataclass(frozen=True)
class Step:
    """The first half of a control step of B robots.

    Attributes:
        index: which step of the episode, from 0.
        observations: what the policy reads.
        proposal: what was proposed on the robot now; None where they go on by their plan.
        sound: (B,) bool; where not, the policy proposes no action, and its proposal is a stand-in.
        intended: (B, A), what they would do without the target; NaN where there is nothing.
        deviation: (B,), infinite at the first step.
        trigger: that decided.
        score: (B,), the gate's.
        transmit: (B,) bool, whether to ask the target.
    """

    index: int
    observations: Observations
    proposal: Proposal | None
    sound: np.ndarray
    intended: np.ndarray
    deviation: np.ndarray
    trigger: Trigger
    score: np.ndarray
    transmit: np.ndarray

    def draft(self, rows: np.ndarray) -> Proposal:
        """Return what the target is told of the proposals of some robots, by mask or index."""
        if self.proposal is None:
            return Proposal(np.zeros((*self.intended[rows].shape[:1], 0, self.intended.shape[1]), np.float32))
        actions, drawn = self.proposal.actions[rows], self.proposal.distribution
        if drawn is None or drawn.counts is None:
            return Proposal(actions)
        return Proposal(actions, sent_codes(drawn.codes[rows], drawn.counts[rows]))


class Controller:
    """Proposes, gates and corrects the actions of B robots.

    Args:
        policy: the draft policy; where nothing is drafted, the policy whose signature the robot has.
        config: how its proposals are made and judged.
        proposer: a key of `PROPOSERS`.
    """

    def __init__(self, policy: Policy, config: ControllerConfig, proposer: str = "draft") -> None:
        self.policy = policy
        self.config = config
        self._proposer = PROPOSERS[proposer](policy)
        self._deviation = DeviationTracker(policy.action_scale, config.smoothing, config.normalization)
        self.reset(0, [0])

    def reset(self, seed: int, episodes: list[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        self._batch = len(episodes)
        self._history = History(self.policy.signature, self._batch)
        self._plan = Plan(self._batch, self.policy.signature.action_dim)
        self._deviation.reset()
        self._draws = EpisodeStreams(seed, "controller", episodes, self.policy.draws + 1)
        self._step_draws: np.ndarray | None = None
        self._index = 0

    def begin(
        self,
        observed: Mapping[str, np.ndarray],
        link: LinkEstimate | None = None,
        stand_in: np.ndarray | None = None,
    ) -> Step:
        """Propose an action for each robot and decide whether to ask the target.

        Args:
            observed: by name, (B, size); what the policy does not read is there for the gate.
            link: how the way to the target is, for gates that go by it.
            stand_in: (B, A) float32, executed unasked where the policy makes nothing sound of an observation,
                so that the other robots go on; None raises an error there.

        Raises:
            ValueError: wrong shape, not finite, or the policy makes nothing sound of it; nothing has
                happened then, and begin may be called again.
        """
        observations = self._history.with_newest(observed)
        if self._step_draws is None:
            self._step_draws = self._draws.next()
        draws, index, plan = self._step_draws, self._index, self._plan
        plan.forget_before(index)
        context = ProposerContext(index, observations, plan, draws[:, 1:], self.config.draft_temperature)
        proposal = self._proposer.propose(context)
        sound = np.ones(self._batch, dtype=bool)
        if proposal is not None:
            sound = self.policy.sound(proposal.actions)
            proposal = replace(proposal, actions=self._executable(proposal.actions, stand_in))
            plan.splice(proposal.actions, index, index)
        age = plan.age(index)
        intended = self._intended(age)
        deviation = self._deviation.deviation(intended)
        trigger = self.config.trigger
        known = GateContext(index, observed, observations, proposal, deviation, age, draws[:, 0], link=link)
        score = trigger.score(known)
        transmit = ~(score <= trigger.threshold) & sound  # a score that is not a number asks, too
        step = Step(index, observations, proposal, sound, intended, deviation, trigger, score, transmit)
        self._history.keep(observations)
        self._step_draws = None
        self._index += 1
        return step

    def finish(
        self,
        step: Step,
        verdict: Verdict | None,
        rows: np.ndarray | None = None,
        stand_in: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the actions (B, A) to execute.

        Args:
            step: from `begin`.
            verdict: the target's, or None to execute what was intended.
            rows: the robots that it is for, by mask or index; None where it is for all.
            stand_in: (B, A) float32, executed where the verdict is no action, so that the other robots go on;
                None raises an error there.

        Raises:
            ValueError: the verdict is no action that the policy's robot can mean; nothing has happened
                then, and finish may be called again without it.
            LookupError: a robot has neither.
        """
        if verdict is not None:
            instead = None if stand_in is None else stand_in[slice(None) if rows is None else rows]
            actions = self._executable(verdict.actions, instead)
            self._plan.splice(actions, step.index, step.index, rows)
        return self._plan.at(step.index)

    def executed(self, actions: np.ndarray) -> None:
        """Take into the average what was commanded, (B, A) in action units; not called where nothing was."""
        self._deviation.update(actions)

    def _executable(self, actions: np.ndarray, stand_in: np.ndarray | None) -> np.ndarray:
        """Return actions (M, T, A), and a stand-in (M, A) for all of those that are not sound."""
        if stand_in is None:
            self.policy.check(actions)
            return actions
        sound = self.policy.sound(actions)
        return np.where(sound[:, None, None], actions, stand_in[:, None])

    def _intended(self, age: np.ndarray) -> np.ndarray:
        if np.isfinite(age).all():
            return self._plan.at(self._index)
        return np.full((self._batch, self.policy.signature.action_dim), UNPLANNED, dtype=np.float32)
