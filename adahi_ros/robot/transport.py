# SPDX-License-Identifier: Apache-2.0
"""What crosses between the robot and its verifier, and what carries it there and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adahi_ros.core.proposal import Proposal
from adahi_ros.protocol.description import Description
from adahi_ros.protocol.request import UNKNOWN_MS
from adahi_ros.protocol.window import WindowUpdate, WireWindow


@dataclass(frozen=True)
class StepRequest:
    """A request to verify the draft of one control step.

    Attributes:
        draft: that it is about (M = 1), no more of it than is sent.
        episode, step: that it belongs to.
        window: of observations and conditions, as they are sent.
        ahead: how many of the draft's actions, which are all sent then, the robot executes whatever is
            replied; the reply begins after them.
        instruction: what the target is told to do; empty for one that is told nothing.
        needed_in_s: how soon its reply is needed, from when it is made; 0 where nobody says.
        round_trip_ms: as `reported_round_trip_ms` returns it; the same where the request is sent again.
    """

    draft: Proposal
    episode: int
    step: int
    window: WireWindow
    ahead: int = 0
    instruction: str = ""
    needed_in_s: float = 0.0
    round_trip_ms: float = UNKNOWN_MS


@dataclass(frozen=True)
class Sent:
    """A message that is on its way.

    Attributes:
        id: names it to the transport; no other has the same.
        size_bytes: serialized.
    """

    id: int
    size_bytes: int


@dataclass(frozen=True)
class Reply:
    """What came back to a request; nothing of it is checked.

    Attributes:
        id: of the message that it replies to.
        status: 0, or a `RequestFault`.
        message: for people.
        episode, step: that it says it belongs to.
        first_step: control step of the first action.
        accepted: N.
        actions: T * A.
        compute_ms: the verifier's own share of the round trip.
        window_kept: a later request may name this window as its base.
        size_bytes: serialized.
        fault: why it cannot be read at all; then the rest says nothing.
        retry_after_s: of a verifier that is busy, when to ask again.
    """

    id: int
    status: int
    message: str
    episode: int
    step: int
    first_step: int
    accepted: Sequence[bool]
    actions: Sequence[float]
    compute_ms: float
    window_kept: bool
    size_bytes: int
    fault: str = ""
    retry_after_s: float = 0.0


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


HEDGES = ("late", "at_once", "off")
"""When another verifier is asked, too; see `HedgedTransport`."""


class Transport(Protocol):
    """Carries requests to the verifier and replies back. It may lose, double, delay and reorder both.

    Nothing here waits.
    """

    @property
    def figures(self) -> dict[str, object]:
        """For people: of several verifiers, what each was asked and how it replies."""
        return {}

    @property
    def present(self) -> bool:
        """Whether there is a verifier's end to send to."""

    @property
    def next_due_s(self) -> float:
        """When `poll` must be called, at the latest, though nothing comes; infinite for never."""

    def submit(self, request: StepRequest, update: WindowUpdate) -> Sent:
        """Send a request, of whose window only this."""

    def describe(self) -> int:
        """Ask the verifier what it is; return the message's id."""

    def poll(self) -> Sequence[Reply | Described | Sent]:
        """Return what has come since the last time, in that order.

        A message `Sent` is one from before of which more was sent meanwhile: so many bytes.
        """

    def cancel(self, sent: int) -> None:
        """Forget a message, whether or not anything has come back; whatever yet comes is dropped."""
