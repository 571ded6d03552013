# SPDX-License-Identifier: Apache-2.0
"""A verifier's description of its target before the first request, and a robot's compatibility check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from adahi_ros.acceptance.interface import Acceptance, DataRule, codes_differ, difference
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.learnt_units import unlike_in
from adahi_ros.core.registry import RegistryError
from adahi_ros.core.signature import ACTION, Feature, Offer, Ranges, Signature
from adahi_ros.protocol.request import PROTOCOL_VERSION, SentParts, fingerprint_number

LONGEST_HISTORY = 64  # observations that a robot keeps to send
MOST_PICTURED = 8  # with images, where the robot sends them


def why_not_served(target: Signature) -> str | None:
    """Return the requirement of a target that no robot fulfils; None without one."""
    if not 1 <= target.history <= LONGEST_HISTORY:
        return f"history: the target's is {target.history}, must be from 1 to {LONGEST_HISTORY}"
    if target.images and target.history > MOST_PICTURED:
        most = f"{MOST_PICTURED} at most where it reads images"
        return f"history: the target's is {target.history}, must be {most}"
    return None


@dataclass(frozen=True)
class Description:
    """A target as its verifier describes it.

    Attributes:
        target: name of the policy.
        acceptance: name of its acceptance rule.
        signature: its inputs and outputs.
        encoder_fingerprint: of its image encoder; empty without one.
        protocol: the verifier's protocol version.
        policy_fingerprint: of the target's configuration and weights; empty if unknown.
        intent_fingerprint: of its encoder of intents; empty without one.
        intent_size: Z, numbers of an intent; 0 without an encoder of intents.
        feature_ranges, action_ranges: of the data that the target learnt from.
    """

    target: str
    acceptance: str
    signature: Signature
    encoder_fingerprint: str = ""
    protocol: int = PROTOCOL_VERSION
    policy_fingerprint: str = ""
    intent_fingerprint: str = ""
    intent_size: int = 0
    feature_ranges: Ranges = field(default=Ranges(), compare=False)
    action_ranges: Ranges = field(default=Ranges(), compare=False)

    @property
    def without_weights(self) -> Description:
        """The description except the fingerprint of the weights."""
        signature = replace(self.signature, parameters=0)
        return replace(self, signature=signature, policy_fingerprint="")

    def difference_from(self, other: Description) -> str | None:
        """Return the first difference from another description; None without one.

        An unknown fingerprint equals any other.
        """
        for ours, theirs in ((self, other), (self.signature, other.signature)):
            for each in fields(ours):
                value, its = getattr(ours, each.name), getattr(theirs, each.name)
                if each.compare and each.name not in ("signature", "policy_fingerprint") and value != its:
                    return f"{each.name}: {value}, must be {its}"
        mine, its = self.policy_fingerprint, other.policy_fingerprint
        if mine and its and mine != its:
            return f"policy_fingerprint: {mine}, must be {its}; it has other weights"
        return None

    @cached_property
    def rule(self) -> type[Acceptance]:
        """The rule of that name."""
        return ACCEPTANCES[self.acceptance]

    @cached_property
    def intent_number(self) -> int:
        """The fingerprint of its encoder of intents, as replies have it."""
        return fingerprint_number(self.intent_fingerprint)


@dataclass(frozen=True)
class Described:
    """A verifier's answer to a request for its description.

    Attributes:
        id: of the answered message.
        description: of its target; None where it cannot be read.
        fault: the reason.
    """

    id: int
    description: Description | None
    fault: str = ""


@dataclass(frozen=True)
class Wants:
    """A robot's requirements of a target.

    Attributes:
        draft: inputs and outputs of its own policy.
        offered: its observations, conditions and actions.
        target: name of the policy; empty takes any.
        encoder_fingerprint: of the encoder that the verifier must have; None without images.
        horizon: that its plans must have, for the robot's network that reads them; None for any.
        intent: of the encoder that the verifier must have, its fingerprint and the numbers of an intent; None
            where the robot needs no intents of the verifier.
        decodes: the robot decodes the codes of replies; see `Proposer`.
    """

    draft: Signature
    offered: Offer
    target: str = ""
    encoder_fingerprint: str | None = None
    horizon: int | None = None
    intent: tuple[str, int] | None = None
    decodes: bool = False

    def mismatch(self, described: Description) -> str | None:
        """Return the first difference between robot and target, with both values; None without one."""
        theirs, encoder = described.signature, self.encoder_fingerprint
        if described.protocol != PROTOCOL_VERSION:
            return (
                f"protocol: the robot's is {PROTOCOL_VERSION}, the verifier's {described.protocol}; "
                "must be the same"
            )
        if self.target not in ("", described.target):
            return f"target: the robot wants {self.target!r}, the verifier has {described.target!r}"
        if described.acceptance not in ACCEPTANCES:
            return ACCEPTANCES.refusal("acceptance", described.acceptance)
        fault = why_not_served(theirs)
        if fault is not None:
            return fault
        if theirs.horizon < 1:
            return f"horizon: the target's is {theirs.horizon}, must be at least 1"
        if self.horizon not in (None, theirs.horizon):
            return (
                f"horizon: the target's is {theirs.horizon}, must be {self.horizon}, that of the plans which "
                "the robot's network knows"
            )
        try:
            fault = ACCEPTANCES[described.acceptance]().compatible(self.draft, theirs)
        except RegistryError as error:
            return f"acceptance: {error}"
        except Exception as error:  # noqa: BLE001  a rule of another package must not end the robot's node
            return f"acceptance: {described.acceptance!r}, {type(error).__name__}: {error}"
        fault = fault or theirs.unmet(self.offered) or self._undecodable(described)
        # A target that reads the images themselves has no encoder.
        if fault is None and not theirs.images and encoder not in (None, described.encoder_fingerprint):
            fault = difference("encoder_fingerprint", encoder, described.encoder_fingerprint or "none")
        return fault or self._other_intent(described) or self._beyond_limits(described) or None

    def _beyond_limits(self, described: Description) -> str:
        """Return which of the robot's limits are in another unit than the target's data."""
        acted = (Feature(ACTION, described.signature.action_dim),)
        return unlike_in(acted, described.action_ranges, self.offered.quantities) or self.unlike(described)

    def unlike(self, described: Description, observed: Mapping[str, np.ndarray] | None = None) -> str:
        """Return what is in another unit or order than the target's data, for people; else ''.

        Args:
            described: the target.
            observed: by name, (N, size) of N observations; None compares the limits of what is observed.
        """
        features = described.signature.features
        return unlike_in(features, described.feature_ranges, self.offered.quantities, observed)

    def _undecodable(self, described: Description) -> str | None:
        if not self.decodes:
            return None
        if not described.rule.gives_codes:
            giving = ", ".join(name for name, rule in ACCEPTANCES.items() if rule.gives_codes)
            return f"rule: {described.acceptance!r}, must be one of {giving}: the robot decodes replies"
        return codes_differ(self.draft, described.signature)

    def _other_intent(self, described: Description) -> str | None:
        if self.intent is None:
            return None
        for name, ours in zip(("intent_fingerprint", "intent_size"), self.intent, strict=True):
            theirs = getattr(described, name) or "none"
            if ours != theirs:
                return f"{name}: the robot's is {ours}, the verifier's {theirs}; must be the same"
        return None

    def sent_to(self, described: Description) -> SentParts:
        """Return the parts of a draft that a target needs and can read."""
        alike = codes_differ(self.draft, described.signature) is None
        rule = ACCEPTANCES[described.acceptance]
        return SentParts(rule.needs_actions, alike, issubclass(rule, DataRule))
