# SPDX-License-Identifier: Apache-2.0
"""Methods of proposers that need no plan of the target's, and may go on by one: any gate, any rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adahi_ros.acceptance.registry import ACCEPTANCES, BY_TARGET
from adahi_ros.gates.gate_config import ThresholdedGate
from adahi_ros.gates.registry import GATES, WITHOUT_THRESHOLD
from adahi_ros.lab.evaluation.loaded_policies import Bench, Policies
from adahi_ros.lab.evaluation.rollout import Log, World, rollout
from adahi_ros.lab.methods.named_numbers import named_arguments, named_number
from adahi_ros.lab.methods.plan_methods import ONLINE, target_of
from adahi_ros.policies.interface import Actor, Policy
from adahi_ros.proposers.retrieval import DraftAndRetrieval
from adahi_ros.robot.controller import Controller
from adahi_ros.server.verifier import TargetVerifier

MIXTURE, FILTERS = "mixture", ("kalman", "rectified")
RULES = {"retrieval": "prefix", MIXTURE: "prefix", "kalman": "replace", "rectified": BY_TARGET}
"""By which the target judges what proposers say, unless a name says another."""
NAME = re.compile(
    rf"({'|'.join(RULES)})(?:_([1-9][0-9]{{0,3}}))?:(\w+?)(?:/(\w+))?((?::\w+=[^:@=]+)*)(?:@([^:@]+))?",
    re.ASCII,
)
NAMED = {
    "heisd": "mixture_8:expected_error@0.4",
    "kerv": "rectified:expected_error@0",
}
ABOUT = {
    "heisd": "what was shown where that agrees, drafts where motion is slow; plans of the target's else",
    "kerv": "drafts, rectified by a Kalman filter, verified where that may not be",
}
LABELS = {"heisd": "HeiSD", "kerv": "KERV"}
PROPOSER_GRAMMAR = (
    f"{', '.join(NAMED)}, PROPOSER:GATE or PROPOSER_K:GATE, of plans of which K actions are gone by, with a "
    f"PROPOSER of {', '.join(RULES)}, a rule /RULE of the target's, arguments :NAME=VALUE and a threshold "
    "@NUMBER where there are any"
)


@dataclass(frozen=True)
class ProposerMethod:
    """Who proposes is not told to go by a plan, and may do so where there is one.

    Attributes:
        label, about: see `Method`.
        proposer: a key of `RULES`.
        asks: a key of `GATES`.
        at: its threshold; None takes the calibration's, which is one for this very label.
        arguments: of the gate.
        rule: a key of `ACCEPTANCES`, or `BY_TARGET`.
        horizon: actions of a plan that are gone by at most; None asks the target of single actions.
    """

    label: str
    about: str
    proposer: str
    asks: str
    at: float | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rule: str = BY_TARGET
    horizon: int | None = None

    @property
    def gate(self) -> str | None:
        """See `Method`; None where its threshold is its own."""
        return self.label if self.at is None else None

    def threshold(self, bench: Bench) -> tuple[str, float] | None:
        """See `Method`."""
        self._parts(bench)
        return self.asks, self._trigger(bench).threshold

    def run(
        self, bench: Bench, world: World, seed: int, episodes: Sequence[int], on_step: Callable[[int], None]
    ) -> Log:
        """See `Method`."""
        return rollout(world, *self._parts(bench), seed, episodes, on_step, across=bench.across)

    def _trigger(self, bench: Bench) -> ThresholdedGate:
        at = bench.calibration.threshold(self.label) if self.at is None else self.at
        return ThresholdedGate(self.asks, at, arguments=self.arguments)

    def _parts(self, bench: Bench) -> tuple[Controller, TargetVerifier]:
        """Return the robot's side, that remembers nothing, and the verifier.

        Raises:
            ValueError: the bench lacks what they need.
        """
        policies = bench.policies
        actor, target = self._actor(policies), self._target(policies)
        verifier = TargetVerifier(target, self.rule)
        fault = verifier.acceptance.compatible(actor.signature, target.signature)
        if fault is not None:
            raise ValueError(f"{self.label}: {verifier.rule}: {fault}")
        if self.horizon is not None and self.horizon > target.signature.horizon:
            raise ValueError(f"{self.label}: the target plans only {target.signature.horizon} actions")
        config = replace(bench.calibration.controller("always"), trigger=self._trigger(bench))
        return Controller(actor, config, self.proposer, execution_horizon=self.horizon), verifier

    def _target(self, policies: Policies) -> Policy:
        return policies.target if self.horizon is None else target_of(policies, self.label)

    def _actor(self, policies: Policies) -> Actor:
        if self.proposer in FILTERS:
            return policies.draft
        if policies.retrieval is None:
            raise ValueError(
                f"{self.label}: there is no index of demonstrations beside these policies; 'adahi index "
                "TASK' makes one"
            )
        if self.proposer == "retrieval":
            return policies.retrieval
        return DraftAndRetrieval(policies.draft, policies.retrieval)


def proposer_method(name: str) -> ProposerMethod | None:
    """Return the method of a name; None where it is none of these: see `PROPOSER_GRAMMAR`.

    Raises:
        ValueError: a number of it is not finite or too long, or an argument is there twice.
    """
    found = NAME.fullmatch(NAMED.get(name, name))
    if found is None:
        return None
    proposer, horizon, gate, rule, given, threshold = found.groups()
    if gate not in GATES or (rule is not None and rule not in ACCEPTANCES):
        return None
    at = 0.0 if gate in (*WITHOUT_THRESHOLD, ONLINE) else None
    if threshold is not None:
        at = named_number(name, "threshold", threshold)
        if at is None:
            return None
    return ProposerMethod(
        LABELS.get(name, name),
        ABOUT.get(name, ""),
        proposer,
        gate,
        at,
        named_arguments(name, given),
        rule or RULES[proposer],
        None if horizon is None else int(horizon),
    )
