# SPDX-License-Identifier: Apache-2.0
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
from types import MappingProxyType
from typing import Any

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import NO_IMAGES, ObservationBuffer
from adahi_ros.core.plan import BLENDS, LATEST, Plan
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, Observations
from adahi_ros.gates.gate_config import ControllerConfig, DeviationTracker, ThresholdedGate
from adahi_ros.gates.interface import GateContext, LinkEstimate, PlanContext
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.registry import PROPOSERS

LONGEST_MEMORY = 256  # steps; a plan that was asked for before is corrected as if it were of the oldest


@dataclass(frozen=True)
class Step:
    """The first half of a control step of B robots.

    Attributes:
        index: which control step of the episode.
        observations: what the policy reads.
        proposal: what was proposed on the robot now; None where they go on by their plan.
        sound: (B,) bool; where not, the policy proposes no action, and its proposal is a stand-in.
        intended: (B, A), what they would do without the target; NaN where there is nothing.
        deviation: (B,), infinite at the first step.
        trigger: that decided.
        score: (B,), the gate's.
        transmit: (B,) bool, whether to ask the target.
        planned: (B, A), what the target's plan says for this step; NaN where there is none.
        plan_age: (B,), how many steps ago that was asked for; infinite where there is none.
        plan_left: (B,), for how many steps from this one on there is a plan.
    """

    index: int
    observations: Observations
    proposal: Proposal | None
    sound: np.ndarray
    intended: np.ndarray
    deviation: np.ndarray
    trigger: ThresholdedGate
    score: np.ndarray
    transmit: np.ndarray
    planned: np.ndarray
    plan_age: np.ndarray
    plan_left: np.ndarray

    def draft(self, rows: np.ndarray) -> Proposal:
        """Return what the target is told of the proposals of some robots, by mask or index.

        Nothing where nothing is proposed: they go by their plan, or it is over.
        """
        if self.proposal is None or np.isnan(self.proposal.actions[rows]).all():
            return Proposal(np.zeros((*self.intended[rows].shape[:1], 0, self.intended.shape[1]), np.float32))
        actions, drawn = self.proposal.actions[rows], self.proposal.distribution
        if drawn is None or drawn.counts is None:
            return Proposal(actions)
        sent = drawn.probabilities[rows], drawn.codes[rows], drawn.actions_of, drawn.counts[rows]
        return Proposal(actions, CodeDistribution(*sent))


class Controller:
    """Proposes, gates and corrects the actions of B robots.

    Attributes:
        drafts: something is proposed for the target to judge, and not made of its own plans.

    Args:
        policy: what its proposer needs: the draft policy, a corrector, or, for a robot that goes on by its
            plans, any actor whose signature the robot has.
        config: how its proposals are made and judged.
        proposer: a key of `PROPOSERS`, or anything where one is given.
        backup: what a robot does that goes on by plans and has none; None for nothing.
        blend: a key of `BLENDS`, of replies for one step.
        execution_horizon: how many actions of a plan are gone by at most; None for all. What lies further
            ahead was planned from an observation that is too old.
        made: who proposes; None makes that of the name.
        arguments: of the proposer that is made of the name.
    """

    def __init__(
        self,
        policy: Actor,
        config: ControllerConfig,
        proposer: str = "draft",
        backup: Policy | None = None,
        blend: str = LATEST,
        execution_horizon: int | None = None,
        made: Proposer | None = None,
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.policy = policy
        self.config = config
        self._backup = None
        if backup is not None:
            from adahi_ros.robot.backup import Backup

            self._backup = Backup(backup)
        self._blend = BLENDS[blend]
        self._execution_horizon = execution_horizon
        self.proposer = proposer
        self._proposer = PROPOSERS[proposer](policy, **arguments) if made is None else made
        self.drafts = not self._proposer.needs_plan
        self._observes = self._proposer.observes
        self.seen = ObservationBuffer(LONGEST_MEMORY)
        self._deviation = DeviationTracker(policy.action_scale, config.smoothing, config.normalization)
        self.reset(0, [0])

    def reset(self, seed: int, episodes: list[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        self._batch = len(episodes)
        self.seen.clear(self._batch)
        self.forget_plan()
        self._deviation.reset()
        self._executed = np.full((self._batch, self.policy.signature.action_dim), np.nan)
        self._draws = EpisodeStreams(seed, "controller", episodes, self.policy.draws + 1)
        self._step_draws: np.ndarray | None = None
        self._next = 0
        self._begun = False
        if self._backup is not None:
            self._backup.reset(seed, episodes)

    def forget_plan(self) -> None:
        """Drop what the target has planned, for something else is to be done."""
        self._plan = Plan(self._batch, self.policy.signature.action_dim, self._blend)

    def begin(
        self,
        observed: Mapping[str, np.ndarray],
        link: LinkEstimate | None = None,
        stand_in: np.ndarray | None = None,
        at: int | None = None,
        beside: Mapping[str, np.ndarray] = NO_IMAGES,
        images: Mapping[str, np.ndarray] = NO_IMAGES,
    ) -> Step:
        """Propose an action for each robot and decide whether to ask the target.

        Args:
            observed: by name, (B, size); what the policy does not read is there for the gate, but for a goal:
                one that the policy is not told is for the target alone.
            link: how the way to the target is, for gates that go by it.
            stand_in: (B, A) float32, executed unasked where the policy makes nothing sound of an observation,
                so that the other robots go on; None raises an error there.
            at: which control step of the episode this is, where some have passed unseen; they never go
                back. None for the one after the last.
            beside: by name, (B, size), what the target alone reads.
            images: likewise, of a single robot; see `Seen`.

        Raises:
            ValueError: wrong shape, not finite, or the policy makes nothing sound of it; nothing has
                happened then, and begin may be called again.
        """
        index = self._next if at is None else at
        try:
            step = self._begin(index, observed, {**beside, **observed}, images, link, stand_in)
        except Exception:
            self.seen.drop_newest()
            raise
        self._step_draws = None
        self._next = index + 1
        self._begun = True
        return step

    def _begin(
        self,
        index: int,
        observed: Mapping[str, np.ndarray],
        everything: Mapping[str, np.ndarray],
        images: Mapping[str, np.ndarray],
        link: LinkEstimate | None,
        stand_in: np.ndarray | None,
    ) -> Step:
        """Return the step of an observation, which is the newest of the buffer then, also where it raises."""
        self.seen.keep(index, everything, images)
        observations = self.seen.window(self.policy.signature)
        if not self.policy.signature.conditions:
            observed = {name: values for name, values in observed.items() if name != GOAL}
        if self._step_draws is None:
            self._step_draws = self._draws.next()
        draws, plan = self._step_draws, self._plan
        plan.forget_before(index)
        age, left, planned, plan_age = plan.since(index), plan.left(index), plan.at(index), plan.age(index)
        ahead = plan.ahead(index, max(1, int(left.max())))
        temperature = self.config.draft_temperature
        context = ProposerContext(
            *(index, observations, self.seen, plan, draws[:, 1:], temperature),
            begins=not self._begun,
            executed=self._executed,
        )
        proposal = self._proposer.propose(context)
        unplanned = self._proposer.needs_plan & (left == 0)
        sound = np.ones(self._batch, dtype=bool)
        if proposal is None:
            intended = planned
        else:
            sound = self.policy.sound(proposal.actions) | unplanned
            if not sound.all():
                if stand_in is None:
                    self.policy.check(proposal.actions[~unplanned])
                else:
                    actions = np.where(sound[:, None, None], proposal.actions, stand_in[:, None])
                    proposal = replace(proposal, actions=actions)
            intended = proposal.actions[:, 0]
        if self._backup is not None and unplanned.any():
            intended = intended.copy()
            intended[unplanned] = self._backup.actions(self.seen, unplanned, index, temperature)
        deviation = self._deviation.deviation(intended)
        trigger = self.config.trigger
        scale = self.policy.action_scale
        course = PlanContext(self._executed / scale, intended / scale, ahead / scale, left)
        uniforms = draws[:, 0]
        known = GateContext(
            *(index, observed, observations, proposal, deviation, age, uniforms, link, course),
            begins=not self._begun,
        )
        score = trigger.gate.score(known)
        # A score that is not a number asks, too, and so does who has nothing to do.
        transmit = (~(score <= trigger.threshold) | unplanned) & sound
        return Step(
            *(index, observations, proposal, sound, intended, deviation, trigger, score, transmit),
            *(planned, plan_age, left),
        )

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
            stand_in: (B, A) float32, executed where the verdict is no action and nothing else was intended,
                so that the other robots go on; None raises an error there.

        Raises:
            ValueError: the verdict is no action that the policy's robot can mean; nothing has happened
                then, and finish may be called again without it.
            LookupError: a robot has neither.
        """
        if verdict is not None:
            who = np.arange(self._batch)[slice(None) if rows is None else rows]
            which = np.zeros(self._batch, dtype=bool)
            sound = self.policy.sound(verdict.actions)
            if stand_in is None and not sound.all():
                self.policy.check(verdict.actions)
            self._splice(verdict, step.index, who, sound)
            which[who[sound]] = True
            intended = np.where(which[:, None], self._plan.at(step.index), step.intended)
        else:
            intended = step.intended
        if stand_in is not None:
            intended = np.where(np.isnan(intended), stand_in, intended)
        if np.isnan(intended).any():
            raise LookupError(f"step {step.index}: a robot has no plan, and nothing to do instead")
        return intended

    def again(self, step: Step) -> Step:
        """Return a step by what is planned now.

        What was proposed where there was no plan is dropped, and what was made of a plan that is gone.
        """
        planned, left = self._plan.at(step.index), self._plan.left(step.index)
        otherwise = (step.plan_left > 0) != (left > 0)
        otherwise &= (left > 0) | self._proposer.needs_plan
        intended = np.where(otherwise[:, None], planned, step.intended)
        age = self._plan.age(step.index)
        return replace(step, intended=intended, planned=planned, plan_age=age, plan_left=left)

    def committed(self, step: Step, count: int) -> Proposal:
        """Return what B robots do from a step on, (B, count, A), before a reply to its request can come.

        Nothing where the gate learns from replies, for it learns of the very step that asked; and fewer than
        are gone by of a plan.
        """
        if self._execution_horizon is not None:
            count = min(count, self._execution_horizon - 1)
        if self.config.trigger.learns:
            count = 0
        actions = self._plan.ahead(step.index, count)
        actions[:, :1] = step.intended[:, None][:, :count]
        return Proposal(actions)

    def receive(
        self, verdict: Verdict, requested_at: int, rows: np.ndarray, committed: int = 0
    ) -> np.ndarray:
        """Take in a reply that comes later than the step that asked for it.

        Args:
            verdict: the target's, from the step that asked on.
            requested_at: that step, counted from 0.
            rows: the robots that it is for, by mask.
            committed: so many of its actions come first that are the robots' own.

        Returns:
            (M,) bool, whose reply is of actions; the others' are dropped.
        """
        sound = self.policy.sound(verdict.actions)
        self._splice(verdict, requested_at, np.flatnonzero(rows), sound, committed)
        return sound

    def _splice(
        self, verdict: Verdict, requested_at: int, who: np.ndarray, sound: np.ndarray, committed: int = 0
    ) -> None:
        """Take in what is sound, (M,) bool, of a verdict for robots (M,), by index."""
        if not sound.any():
            return
        actions = verdict.actions[sound]
        gone_by = actions[:, committed : self._execution_horizon]
        self._plan.splice(gone_by, requested_at + committed, requested_at, who[sound])
        if self.config.trigger.learns and not committed:
            first = actions[:, 0] / self.policy.action_scale
            self.config.trigger.gate.learn(requested_at, first, who[sound])
        if self._observes and not committed:
            self._proposer.observe_reply(requested_at, verdict.rows(sound), who[sound])

    def executed(self, actions: np.ndarray) -> None:
        """Take into the average what was commanded, (B, A) in action units; not called where nothing was."""
        self._deviation.update(actions)
        self._executed = actions
