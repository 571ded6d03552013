# SPDX-License-Identifier: Apache-2.0
"""A method: what proposes actions, when a plan is requested, and how the target verifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adahi_lab.calibration.parameter_file import WITHOUT_THRESHOLD, Calibration, threshold_key
from adahi_lab.evaluation.loaded_policies import DRAFT_CODES, INTENTS, PLANS, Bench
from adahi_lab.evaluation.rollout import Log, rollout
from adahi_lab.methods.actors import (
    ALONE,
    DRAFT,
    ON_ROBOT,
    PLAN,
    STORED,
    TARGET,
    actor_of,
    drafts_plans,
    follows_plan,
    policy_of,
)
from adahi_lab.methods.oracles import ORACLES
from adahi_lab.methods.stored_intents import stored_intents
from adahi_lab.tasks.episodes import World
from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET, rule_for
from adahi_ros.core.plan import LATEST
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.interface import Gate
from adahi_ros.gates.registry import GATES
from adahi_ros.policies.intent.intent import Intent
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.draft import ACTIONS, CODES
from adahi_ros.proposers.interface import Proposer
from adahi_ros.proposers.registry import PROPOSERS
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier


class OwnClass(Protocol):
    """A user's class, which is the gate or the proposer of a method."""

    @property
    def digest(self) -> str | None:
        """Names the content of the file."""

    @property
    def proposes(self) -> bool:
        """Whether the class is a proposer; else it is a gate."""

    @property
    def by_plans(self) -> bool:
        """Whether a class that proposes executes plans of the target."""

    def made_gate(self) -> Gate:
        """Return a new gate."""

    def made_proposer(self, actor: Actor, rule: str) -> Proposer:
        """Return a new proposer.

        Args:
            actor: the policy that it is made from.
            rule: verifies its proposals, a key of `ACCEPTANCES`.
        """


@dataclass(frozen=True)
class Method:
    """One way to share the work between robot and server.

    Attributes:
        name: as given; also the key of its threshold in a calibration, see `calibrated`.
        label: for tables and pictures.
        about: one-line description.
        proposer: a key of `PROPOSERS`, or of `ALONE`.
        gate: a key of `GATES` or `ORACLES`.
        gate_arguments: of the gate, by name.
        at: threshold of the gate; None takes the calibration's.
        acceptance: a key of `ACCEPTANCES`, or `BY_TARGET`.
        acceptance_arguments: of that rule, by name.
        horizon: how many actions of a plan are executed at most, by a proposer that also drafts; None
            requests single actions.
        delay: control steps until a reply arrives, see `rollout`.
        wait_policy: of the robot's node where plans are executed, one of `WAIT_POLICIES`.
        blend: a key of `BLENDS`, of plans that overlap.
        agreement: a key of `AGREEMENTS`.
        verifiers: how many a robot spreads its requests over; in process, one is enough.
        draft_temperature: None takes the calibration's.
        proposer_arguments: of the proposer, by name.
        source: completes the method when it is first used, for a task, or without one by what holds for every
            task, and raises ValueError where it cannot; None where the method is complete.
        own: a user's class that is its gate or its proposer.
        checkpoints: the folder of its policies, below the package's files, with {task} for the task; empty
            for the task's own.
        backend: of its policies; empty for the usual one.
    """

    name: str
    label: str
    about: str = ""
    proposer: str = DRAFT
    gate: str = "never"
    gate_arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    at: float | None = None
    acceptance: str = "speculative"
    acceptance_arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    horizon: int | None = None
    delay: int = 0
    wait_policy: str = "ahead"
    blend: str = LATEST
    agreement: str = "none"
    verifiers: int = 1
    draft_temperature: float | None = None
    proposer_arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    source: Callable[[Method, str], Method] | None = None
    own: OwnClass | None = None
    checkpoints: str = ""
    backend: str = ""

    def on(self, task: str = "") -> Method:
        """Return the complete method for a task; without a task, what holds for every task.

        Raises:
            ValueError: its source cannot complete it.
        """
        return self if self.source is None else self.source(self, task)

    @property
    def own_proposer(self) -> OwnClass | None:
        """The user's class, where it is the proposer of a complete method."""
        return self.own if self.own is not None and self.own.proposes else None

    @property
    def by_plans(self) -> bool:
        """Whether the robot executes plans of the target, and the target verifies no draft."""
        method = self.on()
        own = method.own_proposer
        return follows_plan(method.proposer) if own is None else own.by_plans

    @property
    def calibrated(self) -> str | None:
        """The key of its threshold in a calibration; None where it needs none."""
        method = self.on()
        if method.at is not None or method.gate in WITHOUT_THRESHOLD:
            return None
        if method.proposer != DRAFT or method.gate_arguments or method.own is not None:
            return method.name
        alike = method.gate in GATES and GATES[method.gate].blind  # whatever the actions are
        return threshold_key(method.gate, ACTIONS if alike else method.reply)

    @property
    def reply(self) -> str:
        """What is executed of a reply to a draft, one of `REPLIES`."""
        return str(self.proposer_arguments.get("reply", ACTIONS))

    @property
    def needs(self) -> tuple[str, ...]:
        """The fields of `Policies` that a complete method uses."""
        if self.by_plans:
            return (PLANS, *(self._on_robot if self.own_proposer is None else ()))
        if self.proposer in ALONE:
            return self._on_robot
        if self._on_robot != (DRAFT,):
            return (TARGET if self.horizon is None else PLANS, *self._on_robot)
        if (self.gate, self.acceptance, self.own) == ("always", "replace", None):
            return (TARGET,)  # its drafts have no effect
        if self.gate == "never" and not drafts_plans(self.proposer):
            return (DRAFT,)
        return (DRAFT, TARGET if self.horizon is None else PLANS)

    @property
    def _on_robot(self) -> tuple[str, ...]:
        return (DRAFT_CODES,) if self.reply == CODES else ON_ROBOT.get(self.proposer, (DRAFT,))

    def threshold_in(self, calibration: Calibration) -> float:
        """Return the gate's threshold.

        Raises:
            ValueError: the gate was not calibrated.
        """
        if self.at is not None:
            return self.at
        key = self.calibrated
        return 0.0 if key is None else calibration.threshold(key)

    def config(self, calibration: Calibration, gate: Gate | None = None) -> ControllerConfig:
        """Return the configuration of its controller.

        Args:
            calibration: of the gates.
            gate: where it is not made by name.

        Raises:
            ValueError: the gate cannot be made, or was not calibrated.
        """
        at = self.threshold_in(calibration)
        if gate is None:
            trigger = ThresholdedGate(self.gate, at, arguments=self.gate_arguments)
        else:
            trigger = ThresholdedGate(self.gate, at, gate)
        if self.by_plans or self.proposer in ALONE:
            return ControllerConfig(trigger)
        temperature = calibration.draft_temperature
        return ControllerConfig(
            trigger,
            calibration.smoothing,
            calibration.normalization,
            temperature if self.draft_temperature is None else self.draft_temperature,
        )

    def threshold(self, bench: Bench) -> tuple[str, float]:
        """Return its gate and that gate's threshold.

        Raises:
            ValueError: the bench lacks something that the method needs.
        """
        method = self.on(bench.task)
        actor, target, rule = method._parts(bench)
        if method.proposer not in ALONE:
            method._verifier(target, rule, actor, TargetVerifier)
        if method.gate in ORACLES:
            return method.gate, method.threshold_in(bench.calibration)
        if method.own_proposer is not None:
            method.own_proposer.made_proposer(actor, rule)
        elif "file" in method.proposer_arguments:  # it may be missing
            PROPOSERS.made("proposer", method.proposer, method.proposer_arguments, actor)
        trigger = method.config(bench.calibration, method._own_gate()).trigger
        return trigger.name, trigger.threshold

    def run(
        self,
        bench: Bench,
        world: World,
        seed: int,
        episodes: Sequence[int],
        on_step: Callable[[], None] = lambda: None,
        make_verifier: Callable[..., TargetVerifier] = TargetVerifier,
    ) -> Log:
        """Run episodes of a world to their end; raises as `threshold`.

        Args:
            bench: task and policies.
            world: of the episodes.
            seed: of every draw.
            episodes: their numbers.
            on_step: see `rollout`.
            make_verifier: a class derived from `TargetVerifier`, or a function with its arguments.
        """
        method = self.on(bench.task)
        actor, target, rule = method._parts(bench)
        gate, own = method._own_gate(), method.own_proposer
        if method.gate in ORACLES:
            gate = ORACLES[method.gate](target, world, actor, seed, episodes)
        controller = Controller(
            actor,
            method.config(bench.calibration, gate),
            DRAFT if method.proposer in ALONE else method.proposer,
            blend=method.blend,
            execution_horizon=method.horizon,
            made=None if own is None else own.made_proposer(actor, rule),
            arguments=method.proposer_arguments,
        )
        verifier = method._verifier(target, rule, actor, make_verifier)
        return rollout(world, controller, verifier, seed, episodes, on_step, method.delay, bench.across)

    def _verifier(
        self, target: Policy, rule: str, actor: Actor, make: Callable[..., TargetVerifier]
    ) -> TargetVerifier:
        """Return a new verifier of a complete method.

        Raises:
            ValueError: the rule does not fit the target.
        """
        return make(
            target,
            rule,
            agreement=self.agreement,
            arguments=self.acceptance_arguments,
            intents=actor.encoder_of_target if isinstance(actor, Intent) else None,
        )

    def _own_gate(self) -> Gate | None:
        return None if self.own is None or self.own.proposes else self.own.made_gate()

    def _parts(self, bench: Bench) -> tuple[Actor, Policy, str]:
        """Return the policy on the robot, the target, and the name of the acceptance rule.

        Raises:
            ValueError: a policy is missing, or they do not fit.
        """
        policies = bench.policies
        if self.proposer in ALONE:  # sends no requests: the target need not run
            alone = policy_of(policies, ALONE[self.proposer], self.name)
            if self.proposer == STORED:
                alone = stored_intents(bench.task, alone, policy_of(policies, PLANS, self.name))
            return alone, alone, self.acceptance
        planned = self.by_plans or self.horizon is not None
        target: Policy = policy_of(policies, PLANS if planned else TARGET, self.name)
        usual = PLAN if self.by_plans else DRAFT
        proposer = self.proposer if self.own_proposer is None else usual
        decoding = self._on_robot == (DRAFT_CODES,)
        actor = (
            policy_of(policies, DRAFT_CODES, self.name)
            if decoding
            else actor_of(policies, proposer, self.name)
        )
        rule = self.acceptance
        if rule == BY_TARGET:
            rule = rule_for(rule, target.signature) if policies.share_codes else "replace"
        if not self.by_plans:
            fault = ACCEPTANCES.made("rule", rule, self.acceptance_arguments).compatible(
                actor.signature, target.signature
            )
            if fault is not None:
                raise ValueError(f"{self.name}: {rule}: {fault}")
        horizon = target.signature.horizon
        never = (
            self.by_plans
            and self.proposer not in INTENTS
            and self.gate == "age"
            and self.at is not None
            and self.at >= horizon
        )
        if never or (self.horizon or 0) > horizon:
            raise ValueError(f"{self.name}: the target plans only {horizon} actions")
        return actor, target, rule
