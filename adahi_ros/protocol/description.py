# SPDX-License-Identifier: Apache-2.0
"""What a verifier tells of its target before the first request, and whether a robot can work with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adahi_ros.acceptance.interface import codes_differ, difference
from adahi_ros.acceptance.registry import ACCEPTANCES
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import RegistryError
from adahi_ros.core.signature import Offer, Signature
from adahi_ros.protocol.request import PROTOCOL_VERSION

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

    def known(self, draft: Proposal, accepted: Sequence[bool], ahead: int) -> int:
        """Return how many of the first actions a reply leaves out, because the robot knows them.

        Args:
            draft: as it was sent.
            accepted: which of its parts were, by the reply.
            ahead: of its actions, that are executed whatever is replied.
        """
        if not (ACCEPTANCES[self.acceptance].keeps_drafts and accepted and all(accepted)):
            return ahead
        return max(ahead, min(draft.actions.shape[1], self.signature.horizon))

    def difference_from(self, other: Description) -> str | None:
        """Name the first thing by which this is no description of another's target; None where none is.

        A fingerprint that nobody knows is not unlike another.
        """
        ours, theirs = ({**vars(each), **vars(each.signature)} for each in (self, other))
        for name, value in ours.items():
            if name not in ("signature", "policy_fingerprint") and value != theirs[name]:
                return f"{name}: {value}, must be {theirs[name]}"
        mine, its = self.policy_fingerprint, other.policy_fingerprint
        if mine and its and mine != its:
            return f"policy_fingerprint: {mine}, must be {its}; it has other weights"
        return None

    def parts(self, draft: Proposal) -> int | None:
        """Return how many parts of a draft a reply judges: its codes; None where the rule has other parts."""
        if not ACCEPTANCES[self.acceptance].needs_codes:
            return None
        return 0 if draft.distribution is None else draft.distribution.codes.size


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

    def to_send(self, draft: Proposal, described: Description, ahead: int = 0) -> Proposal:
        """Return as much of a draft as a target needs and can read.

        Args:
            draft: of the robot.
            described: the target.
            ahead: how many of its actions the robot executes whatever is replied. They are sent to any
                target: they are few, and one that cannot go on from them leaves them out of account.
        """
        rule = ACCEPTANCES[described.acceptance]
        actions = draft.actions if rule.needs_actions else draft.actions[:, :ahead]
        alike = codes_differ(self.draft, described.signature) is None
        return Proposal(actions, draft.distribution if alike else None)
