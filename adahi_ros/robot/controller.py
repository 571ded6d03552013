# SPDX-License-Identifier: Apache-2.0
"""One control step, in two halves, with the request to the target in between.

    step = controller.begin(observed)
    # where step.transmit is true: send the request, by a call or over the network
    actions = controller.finish(step, verdict)  # to execute now
    # command the actions, as far as the safety limits allow
    controller.executed(commanded)

The evaluation uses this class for many episodes at once, the robot's node for one. Neither half blocks. The
deviation uses the commanded actions, which the safety layer may have changed, not the proposed ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.observation_buffer import NO_IMAGES, ObservationBuffer
from adahi_ros.core.plan import BLENDS, LATEST, Plan
from adahi_ros.core.proposal import CodeDistribution, Proposal, rows_of
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import GOAL, Observations
from adahi_ros.gates.gate_config import ControllerConfig, DeviationTracker, ThresholdedGate
from adahi_ros.gates.interface import GateContext, LinkEstimate, PlanContext
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.backup import Backup

if TYPE_CHECKING:
    from adahi_ros.proposers.held import Held

LONGEST_MEMORY = 256  # steps; the corrector treats an older plan as if it were this old


@dataclass(frozen=True)
class Step:
    """The first half of a control step of B robots.

    Attributes:
        index: control step of the episode.
        observations: what the policy reads.
        proposal: the robot's proposal; None where the robots execute their plans unchanged.
        sound: (B,) bool; false where the policy made no valid action and the proposal is a stand-in.
        intended: (B, A), action without the target's reply; NaN where there is none.
        deviation: (B,), infinite at the first step.
        trigger: gate and threshold that decided.
        score: (B,), the gate's.
        transmit: (B,) bool, whether to send a request.
        planned: (B, A), the plan's action for this step; NaN without a plan.
        plan_age: (B,), steps since the request of the plan or intent; infinite without one.
        plan_left: (B,), steps left in the plan, or until the intent is too old, this one included.
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
        """Return the proposals to send for some robots, by mask or index; empty where there are none."""
        if self.proposal is None or np.isnan(self.proposal.actions[rows]).all():
            return Proposal(np.zeros((*self.intended[rows].shape[:1], 0, self.intended.shape[1]), np.float32))
        actions, drawn = self.proposal.actions[rows], self.proposal.distribution
        if drawn is None or drawn.counts is None:
            return Proposal(actions)
        data = self.proposal.data
        sent = drawn.probabilities[rows], drawn.codes[rows], drawn.actions_of, drawn.counts[rows]
        return Proposal(actions, CodeDistribution(*sent), data=data and rows_of(data, rows))


class Controller:
    """Proposes, gates and corrects the actions of B robots.

    Attributes:
        drafts: the proposer makes a draft at every step, for the target to verify, not actions from the
            target's plans.
        sends_drafts: it makes drafts at every step, or where there is no plan.
        interprets, decodes: see `Proposer`.
        held: what the robots act by, such as the plan or an intent.
        wanted: horizon, intent and decoding of a target that the proposer wants, see `Wants`.

    Args:
        policy: the robot's own. A proposer without a file also takes what it acts by, such as a corrector.
        config: how proposals are made and judged.
        proposer: a key of `PROPOSERS`; any name if `made` is given.
        backup: policy that acts where a robot that executes plans has none; None for none.
        blend: a key of `BLENDS`: how several replies for one step are combined.
        at_once: indices of actions that are never blended.
        execution_horizon: largest number of actions executed of a plan; None for all. Later actions were
            planned from an observation that is too old.
        made: the proposer; None creates it from its name.
        arguments: of the proposer that is created from its name.
    """

    def __init__(
        self,
        policy: Actor,
        config: ControllerConfig,
        proposer: str = "draft",
        backup: Policy | None = None,
        blend: str = LATEST,
        at_once: Sequence[int] = (),
        execution_horizon: int | None = None,
        made: Proposer | None = None,
        arguments: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.config = config
        self._backup = None if backup is None else Backup(backup)
        self._blend, self._at_once = BLENDS[blend], at_once
        self.execution_horizon = execution_horizon
        self.proposer = proposer
        self._proposer: Proposer = (
            made if made is not None else PROPOSERS.made("proposer", proposer, arguments, policy)
        )
        self.policy = policy if self._proposer.actor is None else self._proposer.actor
        self.drafts = not self._proposer.needs_plan
        self.sends_drafts = self.drafts or self._proposer.drafts_plans
        self.interprets, self.decodes = self._proposer.interprets, self._proposer.decodes
        self._observes = self._proposer.observes
        self.seen = ObservationBuffer(LONGEST_MEMORY)
        self._deviation = DeviationTracker(self.policy.action_scale, config.smoothing, config.normalization)
        self.reset(0, [0])

    @property
    def drops_actions(self) -> bool:
        """Whether the actions of replies have no effect, so that they need not be sent."""
        return self.held.alone and not self.config.trigger.learns

    @property
    def wanted(self) -> tuple[int | None, tuple[str, int] | None, bool]:
        """See the class."""
        return self._proposer.wanted_horizon, self._proposer.wanted_intent, self.decodes

    def reset(self, seed: int, episodes: list[int]) -> None:
        """Start the episodes with these numbers; B is how many there are."""
        self._batch = len(episodes)
        self.seen.clear(self._batch)
        self._plan = Plan(self._batch, self.policy.signature.action_dim, self._blend, self._at_once)
        self.held: Held = self._proposer.held or self._plan
        self.forget_plan()
        self._deviation.reset()
        self._executed = np.full((self._batch, self.policy.signature.action_dim), np.nan)
        self._draws = EpisodeStreams(seed, "controller", episodes, self.policy.draws + 1)
        self._step_draws: np.ndarray | None = None
        self._next = 0
        self._started = False
        if self._backup is not None:
            self._backup.reset(seed, episodes)

    def forget_plan(self) -> None:
        """Drop what the robots act by and the target's plans, because the task has changed."""
        self._plan.forget()
        self.held.forget()

    def coming(self, step: int) -> np.ndarray:
        """Return the planned actions (K, A) of the first robot from a control step on."""
        return self._plan.coming(step, int(self._plan.left(step)[0]))[0]

    def begin(
        self,
        observed: Mapping[str, np.ndarray],
        link: LinkEstimate | None = None,
        stand_in: np.ndarray | None = None,
        at: int | None = None,
        beside: Mapping[str, np.ndarray] = NO_IMAGES,
        images: Mapping[str, np.ndarray] = NO_IMAGES,
    ) -> Step:
        """Propose an action for each robot and decide whether to send a request.

        Args:
            observed: by name, (B, size). The gate reads also what the policy does not read, except a goal:
                that is for the target only.
            link: estimate of the link, for gates that use it.
            stand_in: (B, A) float32, executed without a request where the policy makes no valid action, so
                that the other robots continue; None raises an error instead.
            at: control step of the episode, if steps were skipped; must increase. None for the next step.
            beside: by name, (B, size), what only the target reads.
            images: likewise, of a single robot; see `Seen`.

        Raises:
            ValueError: wrong shape, not finite, or the policy makes no valid action. The state is then
                unchanged, and begin may be called again.
        """
        index = self._next if at is None else at
        try:
            step = self._begin(index, observed, {**beside, **observed}, images, link, stand_in)
        except Exception:
            self.seen.drop_newest()
            raise
        self._step_draws = None
        self._next = index + 1
        self._started = True
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
        """Return the step of an observation; the buffer keeps the observation even if this raises."""
        self.seen.keep(index, everything, images)
        observations = self.seen.window(self.policy.signature)
        if not self.policy.signature.conditions:
            observed = {name: values for name, values in observed.items() if name != GOAL}
        if self._step_draws is None:
            self._step_draws = self._draws.next()
        draws, plan = self._step_draws, self._plan
        temperature = self.config.draft_temperature
        context = ProposerContext(
            *(index, observations, self.seen, plan, draws[:, 1:], temperature),
            begins=not self._started,
            executed=self._executed,
        )
        proposal = self._proposer.propose(context)
        plan.forget_before(index)
        age, planned, plan_left = plan.since(index), plan.at(index), plan.left(index)
        ahead = plan.ahead(index, max(1, int(plan_left.max())))
        self.held = self._proposer.held or plan
        left, plan_age = self.held.left(index), self.held.age(index)
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
        course = PlanContext(self._executed / scale, intended / scale, ahead / scale, plan_left)
        uniforms = draws[:, 0]
        known = GateContext(
            *(index, observed, observations, proposal, deviation, age, uniforms, link, course),
            begins=not self._started,
        )
        score = trigger.gate.score(known)
        # A NaN score and a robot without a plan always send a request.
        transmit = (~(score <= trigger.threshold) | unplanned) & sound
        return Step(
            *(index, observations, proposal, sound, intended, deviation, trigger, score, transmit),
            *(planned, plan_age, left),
        )

    def understood(self, step: Step, verdict: Verdict, rows: np.ndarray) -> Verdict:
        """Return the reply to a step's request with the actions to execute; see `Proposer.understood`."""
        if not self.interprets or step.proposal is None:
            return verdict
        return self._proposer.understood(verdict, step.proposal, rows)

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
            verdict: the target's, as `understood` returns it, or None to execute the intended actions.
            rows: robots that the verdict is for, by mask or index; None for all.
            stand_in: (B, A) float32, executed where there is neither a valid verdict nor an intended action,
                so that the other robots continue; None raises an error instead.

        Raises:
            ValueError: the verdict is no valid action of this robot. The state is then unchanged, and finish
                may be called again without it.
            LookupError: a robot has neither a verdict nor an intended action.
        """
        if verdict is not None:
            verdict = self._without_plan(verdict)
            who = np.arange(self._batch)[slice(None) if rows is None else rows]
            which = np.zeros(self._batch, dtype=bool)
            sound = self.policy.sound(verdict.actions)
            if stand_in is None and not sound.all():
                self.policy.check(verdict.actions)
            self._splice(verdict, step.index, who, sound)
            which[who[sound]] = True
            intended = np.where(which[:, None], self.held.at(step.index), step.intended)
        else:
            intended = step.intended
        if stand_in is not None:
            intended = np.where(np.isnan(intended), stand_in, intended)
        if np.isnan(intended).any():
            raise LookupError(f"step {step.index}: a robot has no plan and no other action")
        return intended

    def again(self, step: Step) -> Step:
        """Return the step updated to the current plan or intent.

        Proposals that were made without a plan, or from a plan that is gone, are dropped. A step that got a
        plan meanwhile needs no request for one.
        """
        held = self.held
        planned, left = self._plan.at(step.index), held.left(step.index)
        otherwise = (step.plan_left > 0) != (left > 0)
        otherwise &= (left > 0) | self._proposer.needs_plan
        intended = np.where(otherwise[:, None], held.at(step.index), step.intended)
        transmit = step.transmit & ~(otherwise & (left > 0))
        age = held.age(step.index)
        return replace(
            step, intended=intended, planned=planned, plan_age=age, plan_left=left, transmit=transmit
        )

    def committed(self, step: Step, count: int) -> Proposal:
        """Return the actions (B, count, A) that B robots execute before a reply to a step's request arrives.

        Fewer than the execution horizon. Empty if the gate or the proposer learns from replies: it needs the
        reply to the step of the request.
        """
        if self.execution_horizon is not None:
            count = min(count, self.execution_horizon - 1)
        if self.config.trigger.learns or self._observes:
            count = 0
        actions = self._plan.ahead(step.index, count)
        actions[:, :1] = step.intended[:, None][:, :count]
        return Proposal(actions)

    def receive(
        self, verdict: Verdict, requested_at: int, rows: np.ndarray, committed: int = 0
    ) -> np.ndarray:
        """Take in a reply that arrives after the step of its request.

        Args:
            verdict: the target's, from the step of the request on; without actions by an intent alone.
            requested_at: that step, counted from 0.
            rows: robots that the verdict is for, by mask.
            committed: number of leading actions that are the robots' own.

        Returns:
            (M,) bool, which replies are valid; the others are dropped.
        """
        verdict = self._without_plan(verdict)
        sound = self.policy.sound(verdict.actions)
        self._splice(verdict, requested_at, np.flatnonzero(rows), sound, committed)
        return sound

    def _without_plan(self, verdict: Verdict) -> Verdict:
        """Return a verdict without the actions, where the proposer needs none."""
        return replace(verdict, actions=verdict.actions[:, :0]) if self.drops_actions else verdict

    def _splice(
        self, verdict: Verdict, requested_at: int, who: np.ndarray, sound: np.ndarray, committed: int = 0
    ) -> None:
        """Take in the sound rows, (M,) bool, of a verdict for robots (M,), by index."""
        if not sound.any():
            return
        actions = verdict.actions[sound]
        executable = actions[:, committed : self.execution_horizon]
        self._plan.splice(executable, requested_at + committed, requested_at, who[sound])
        if self.config.trigger.learns and not committed and actions.shape[1]:
            first = actions[:, 0] / self.policy.action_scale
            self.config.trigger.gate.learn(requested_at, first, who[sound])
        if self._observes and not committed:
            self._proposer.observe_reply(requested_at, verdict.rows(sound), who[sound])

    def executed(self, actions: np.ndarray) -> None:
        """Add the commanded actions, (B, A) in action units, to the average; not called without a command."""
        self._deviation.update(actions)
        self._executed = actions
