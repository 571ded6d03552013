# SPDX-License-Identifier: Apache-2.0
"""The interface of what carries messages between the robot and its verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.protocol.window import WireWindow
from adahi_ros.robot.outcomes import Check


@dataclass(frozen=True)
class Sent:
    """A message that was sent.

    Attributes:
        id: unique in its transport.
        size_bytes: serialized.
    """

    id: int
    size_bytes: int


HEDGES = ("late", "at_once", "off", "spread")
"""Which of several verifiers get a request, and when; see `HedgedTransport`."""


class Transport(Protocol):
    """Carries requests to the verifier and replies back. It may lose, double, delay and reorder both.

    No method blocks.
    """

    @property
    def figures(self) -> dict[str, object]:
        """Requests and replies of each of several verifiers, for people."""
        return {}

    @property
    def present(self) -> bool:
        """Whether there is a verifier to send to."""

    @property
    def absence(self) -> str:
        """Reason why there is none, where that is known; for people."""
        return ""

    @property
    def next_due_s(self) -> float:
        """Latest time to call `poll` if nothing arrives; infinite for never."""

    def accept_only(self, check: Check) -> None:
        """Count replies with other actions against their verifier; of no use to one that has no other."""
        return

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request with this part of its window."""

    def describe(self) -> int:
        """Request the verifier's description; return the message's id."""

    def poll(self) -> Sequence[Reply | Described | Sent]:
        """Return what has arrived since the last call, oldest first.

        A `Sent` means that more bytes of an earlier message were sent.
        """

    def cancel(self, sent: int) -> None:
        """Forget a message; replies to it are dropped."""
