# SPDX-License-Identifier: Apache-2.0
"""What crosses between the robot and its verifier, and what carries it there and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adahi_ros.protocol.description import Described
from adahi_ros.protocol.request import Reply, Request
from adahi_ros.protocol.window import WireWindow


@dataclass(frozen=True)
class Sent:
    """A message that is on its way.

    Attributes:
        id: names it to the transport; no other has the same.
        size_bytes: serialized.
    """

    id: int
    size_bytes: int


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

    def submit(self, request: Request, window: WireWindow) -> Sent:
        """Send a request, of whose window only this."""

    def describe(self) -> int:
        """Ask the verifier what it is; return the message's id."""

    def poll(self) -> Sequence[Reply | Described | Sent]:
        """Return what has come since the last time, in that order.

        A message `Sent` is one from before of which more was sent meanwhile: so many bytes.
        """

    def cancel(self, sent: int) -> None:
        """Forget a message, whether or not anything has come back; whatever yet comes is dropped."""
