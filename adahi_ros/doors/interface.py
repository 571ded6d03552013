# SPDX-License-Identifier: Apache-2.0
"""What a door is, and what it may ask of the engine behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from adahi_ros.protocol.request import Request
    from adahi_ros.server.request_queue import Turn
    from adahi_ros.server.schedule import Sender
    from adahi_ros.server.service import ServedTargets

CONNECTIONS_MOST = 256  # of all clients of a door


class Front(Protocol):
    """The engine, as a door sees it.

    Attributes:
        targets: that it serves.
    """

    @property
    def targets(self) -> ServedTargets: ...

    def submit(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        """Queue a request, from any thread; see `BatchSchedule.receive`."""


class OpenDoor(ABC):
    """A door that listens.

    Attributes:
        address: for the log.
        warning: what makes it unsafe, for the log; empty for nothing.
    """

    address: str
    warning: str

    @abstractmethod
    async def serve(self, front: Front) -> None:
        """Serve clients until cancelled; then end all connections."""

    @abstractmethod
    def close(self) -> None:
        """Stop listening where nothing serves."""


class Door(ABC):
    """Another wire to the engine. A new one derives from this, as a frozen dataclass.

    Its arguments are fields made with `argument`. They are parameters of the verifier, and options of
    `adahi serve`.

    Attributes:
        port: to listen at; 0 for a door that stays closed.
    """

    port: int

    @abstractmethod
    def open(self) -> OpenDoor:
        """Begin to listen.

        Raises:
            ValueError: an argument cannot be used; names it, its value and what is allowed.
        """
