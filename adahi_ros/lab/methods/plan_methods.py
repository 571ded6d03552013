# SPDX-License-Identifier: Apache-2.0
"""Methods that go on by the target's plans: when a new one is asked for, and who acts in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adahi_ros.core.plan import BLENDS, LATEST
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.gates.registry import GATES, WITHOUT_THRESHOLD
from adahi_ros.lab.evaluation.loaded_policies import Bench, Policies
from adahi_ros.lab.evaluation.rollout import Log, World, rollout
from adahi_ros.lab.methods.named_numbers import named_arguments, named_number
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import AGREEMENTS, TargetVerifier

CORRECTOR = "corrector"
DRAFT_CHECKS_PLAN = "draft_checks_plan"
BLENDED = tuple(name for name in BLENDS if name != LATEST)
LATEST_REPLY = 99  # steps
EVERY = re.compile(
    rf"(plan|corrector|{'|'.join(BLENDED)})_([1-9][0-9]{{0,3}})"
    rf"(?:\+([1-9][0-9]?)(?::({'|'.join(AGREEMENTS)}))?)?",
    re.ASCII,
)
GATED = re.compile(r"(plan|corrector|draft_checks_plan):(\w+)((?::\w+=[^:@=]+)*)(?:@([^:@]+))?")
ONLINE = "online"  # learns its threshold itself, and has 0 in its place
GRAMMAR = (
    "plan_K, corrector_K or BLEND_K, and where replies are L steps late plan_K+L or plan_K+L:AGREEMENT, with "
    f"L from 1 to {LATEST_REPLY}, a BLEND of {', '.join(BLENDED)} and an AGREEMENT of "
    f"{', '.join(AGREEMENTS)}, or plan:GATE or corrector:GATE, with arguments :NAME=VALUE and a threshold "
    "@NUMBER where there are any"
)


@dataclass(frozen=True)
class PlanMethod:
    """The target's plans, followed blindly or corrected on the robot at every step.

    Attributes:
        label, about: see `Method`.
        proposer: a key of `PROPOSERS` that needs a plan.
        asks: a key of `GATES`.
        at: its threshold; None takes the calibration's, which is one for this very label.
        arguments: of the gate.
        late: see `rollout`.
        blend: a key of `BLENDS`, of plans that overlap.
        agreement: see `TargetVerifier`.
        wait_policy: of the robot's node, one of `WAIT_POLICIES`.
    """

    label: str
    about: str
    proposer: str
    asks: str
    at: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    late: int = 0
    blend: str = LATEST
    agreement: str = "none"
    wait_policy: str = "ahead"

    @property
    def gate(self) -> str | None:
        """See `Method`; None where its threshold is its own."""
        return self.label if self.at is None else None

    def trigger(self, bench: Bench) -> ThresholdedGate:
        """Return a new gate, that remembers nothing.

        Raises:
            ValueError: it cannot be made, or was not calibrated.
        """
        at = bench.calibration.threshold(self.label) if self.at is None else self.at
        return ThresholdedGate(self.asks, at, arguments=self.arguments)

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        actor_of(bench.policies, self.proposer, self.label)
        horizon = target_of(bench.policies, self.label).signature.horizon
        trigger = self.trigger(bench)
        if self.at is not None and self.asks == "age" and self.at >= horizon:
            raise ValueError(f"{self.label}: the target plans only {horizon} actions")
        return self.asks, trigger.threshold

    def run(
        self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: Callable[[int], None]
    ) -> Log:
        """See `Method`."""
        config = ControllerConfig(self.trigger(bench))
        actor = actor_of(bench.policies, self.proposer, self.label)
        controller = Controller(actor, config, self.proposer, blend=self.blend)
        verifier = TargetVerifier(target_of(bench.policies, self.label), "replace", agreement=self.agreement)
        return rollout(
            world, controller, verifier, seed, episodes, on_step, late=self.late, across=bench.across
        )


def target_of(policies: Policies, label: str) -> Policy:
    """Return the target that plans.

    Raises:
        ValueError: there is none; names who needs it by a label.
    """
    if policies.plans is None:
        raise ValueError(
            f"{label}: there is no target that plans beside these policies; train one with a recipe "
            "such as config/recipes/ball-plans.yaml"
        )
    return policies.plans


def actor_of(policies: Policies, proposer: str, label: str | None = None) -> Actor:
    """Return what a proposer is made of, the corrector, the draft or the target; raises as `target_of`."""
    label = proposer if label is None else label
    target = target_of(policies, label)
    if proposer == DRAFT_CHECKS_PLAN:
        return policies.draft
    if proposer != CORRECTOR:
        # As in the robot's node, who goes on by plans is told and shown no more than its draft is.
        ours, theirs = policies.draft.signature, target.signature
        knows_more = theirs.goal_dim > ours.goal_dim or theirs.image_dim > 0
        return policies.draft if knows_more else target
    if policies.corrector is None:
        raise ValueError(
            f"{label}: there is no corrector beside these policies; 'adahi train' makes one by a "
            "recipe such as config/recipes/ball-plans.yaml"
        )
    return policies.corrector


def every(kind: str, steps: int, late: int = 0, agreement: str = "none") -> PlanMethod:
    """Return the method that asks for a plan every so many steps.

    Args:
        kind: plan or corrector; or how plans that overlap are blended, a key of `BLENDS`.
        steps: from one request to the next, where a reply is there by then; at least 1.
        late: see `rollout`.
        agreement: see `TargetVerifier`.
    """
    label, how = {
        "plan": ("Plan", "blindly"),
        CORRECTOR: ("Corrected plan", "corrected at every step"),
    }.get(kind, (kind.replace("_", " ").capitalize(), f"those that overlap blended by {kind}"))
    label, about = f"{label}/{steps}", f"the target's plans, a new one every {steps} steps, {how}"
    if late:
        label, about = f"{label}+{late}", f"{about}, replies {late} steps late"
    if agreement != "none":
        label, about = f"{label} {agreement}", f"{about}; {AGREEMENTS[agreement]}"
    proposer, blend = ("plan", kind) if kind in BLENDED else (kind, LATEST)
    return PlanMethod(label, about, proposer, "age", steps - 1.0, {}, late, blend, agreement)


def plan_method(name: str) -> PlanMethod | None:
    """Return the method of a name; None where it is none of these.

    plan_K and corrector_K are a plan every K steps, followed blindly or corrected; BLEND_K, such as
    average_4, those that overlap blended; plan_K+L, each L steps late, and plan_K+L:AGREEMENT, one that
    agrees with what was done meanwhile, of `AGREEMENTS`. PROPOSER:GATE is any gate at the threshold that is
    searched for a wanted rate, PROPOSER:GATE@NUMBER at one that is given; arguments of the gate go between,
    as in corrector:learned:file=gate.safetensors@0.4.

    Raises:
        ValueError: a number of it is not finite or too long, or an argument is there twice.
    """
    periodic, gated = EVERY.fullmatch(name), GATED.fullmatch(name)
    if periodic is not None:
        kind, steps, late, agreement = periodic.groups()
        return every(kind, int(steps), int(late or 0), agreement or "none")
    if gated is None or gated[2] not in GATES:
        return None
    proposer, gate, given, threshold = gated.groups()
    arguments = named_arguments(name, given)
    at = 0.0 if gate in (*WITHOUT_THRESHOLD, ONLINE) else None
    if threshold is not None:
        at = named_number(name, "threshold", threshold)
        if at is None:
            return None
    return PlanMethod(name, "", proposer, gate, at, arguments)
