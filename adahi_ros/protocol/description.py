# SPDX-License-Identifier: Apache-2.0
"""What a verifier tells of its target before the first request, and whether a robot can work with it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

from adahi_ros.acceptance.interface import Acceptance, codes_differ, difference
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.registry import RegistryError
from adahi_ros.core.signature import Offer, Signature
from adahi_ros.protocol.request import PROTOCOL_VERSION, SentParts

LONGEST_HISTORY = 64  # observations that a robot keeps to send
MOST_PICTURED = 8  # of them with their images, where these are sent as they are


def why_not_served(target: Signature) -> str | None:
    """Name what no robot can do for a target; None where there is nothing."""
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
        acceptance: name of the rule by which its proposals meet drafts.
        signature: what it reads and what it proposes.
        encoder_fingerprint: of the encoder of images beside it; empty where it takes none.
        protocol: version of what the verifier speaks.
        policy_fingerprint: of the target's configuration and weights; empty where nobody knows.
    """

    target: str
    acceptance: str
    signature: Signature
    encoder_fingerprint: str = ""
    protocol: int = PROTOCOL_VERSION
    policy_fingerprint: str = ""

    @property
    def without_weights(self) -> Description:
        """What robots are told of a target, but for whose weights it has."""
        signature = replace(self.signature, parameters=0)
        return replace(self, signature=signature, policy_fingerprint="")

    def difference_from(self, other: Description) -> str | None:
        """Name the first thing by which this is no description of another's target; None where none is.

        A fingerprint that nobody knows is not unlike another.
        """
        for ours, theirs in ((self, other), (self.signature, other.signature)):
            for each in fields(ours):
                value, its = getattr(ours, each.name), getattr(theirs, each.name)
                if each.name not in ("signature", "policy_fingerprint") and value != its:
                    return f"{each.name}: {value}, must be {its}"
        mine, its = self.policy_fingerprint, other.policy_fingerprint
        if mine and its and mine != its:
            return f"policy_fingerprint: {mine}, must be {its}; it has other weights"
        return None

    @cached_property
    def rule(self) -> type[Acceptance]:
        """The rule of that name."""
        return ACCEPTANCES[self.acceptance]


@dataclass(frozen=True)
class Described:
    """What a verifier says of itself.

    Attributes:
        id: of the message that it replies to.
        description: of its target; None where it cannot be read.
        fault: why not.
    """

    id: int
    description: Description | None
    fault: str = ""


@dataclass(frozen=True)
class Wants:
    """What a robot wants of a target.

    Attributes:
        draft: what its own policy reads and proposes.
        offered: what it observes, is told and does.
        target: name of the policy; empty takes any.
        encoder_fingerprint: of the encoder that the verifier must have; None where no images are sent.
        horizon: that its plans must have, for the robot corrects such; None where any will do.
    """

    draft: Signature
    offered: Offer
    target: str = ""
    encoder_fingerprint: str | None = None
    horizon: int | None = None

    def mismatch(self, described: Description) -> str | None:
        """Name the first thing that keeps robot and target apart, with both values; None where none does."""
        theirs, encoder = described.signature, self.encoder_fingerprint
        if described.protocol != PROTOCOL_VERSION:
            return (
                f"protocol: the robot's is {PROTOCOL_VERSION}, the verifier's {described.protocol}; "
                "must be the same"
            )
        if self.target not in ("", described.target):
            return f"target: the robot wants {self.target!r}, the verifier has {described.target!r}"
        if described.acceptance not in ACCEPTANCES:
            return f"acceptance: {described.acceptance!r}, must be one of {', '.join(sorted(ACCEPTANCES))}"
        fault = why_not_served(theirs)
        if fault is not None:
            return fault
        if theirs.horizon < 1:
            return f"horizon: the target's is {theirs.horizon}, must be at least 1"
        if self.horizon not in (None, theirs.horizon):
            return (
                f"horizon: the target's is {theirs.horizon}, must be {self.horizon}, that of the plans which "
                "the corrector knows"
            )
        try:
            fault = ACCEPTANCES[described.acceptance]().compatible(self.draft, theirs)
        except RegistryError as error:
            return f"acceptance: {error}"
        except Exception as error:  # noqa: BLE001  a rule of another package must not end the robot's node
            return f"acceptance: {described.acceptance!r}, {type(error).__name__}: {error}"
        fault = fault or theirs.unmet(self.offered)
        # A target that reads images as they are has no encoder, and needs none.
        if fault is None and not theirs.images and encoder not in (None, described.encoder_fingerprint):
            fault = difference("encoder_fingerprint", encoder, described.encoder_fingerprint or "none")
        return fault

    def sent_to(self, described: Description) -> SentParts:
        """Return which parts of a draft a target needs and can read."""
        alike = codes_differ(self.draft, described.signature) is None
        return SentParts(ACCEPTANCES[described.acceptance].needs_actions, alike)
