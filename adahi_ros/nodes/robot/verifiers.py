# SPDX-License-Identifier: Apache-2.0
"""The verifier that a robot asks, or several of them, over DDS."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from rclpy.exceptions import InvalidServiceNameException
from rclpy.node import Node

from adahi_ros.nodes.common.parameters import ParameterError
from adahi_ros.nodes.robot.dds_transport import DdsTransport, VerifierClients
from adahi_ros.nodes.robot.draft_policy_parameters import DraftVerificationParameters
from adahi_ros.protocol.request import Sender
from adahi_ros.robot.hedged_transport import HedgedTransport
from adahi_ros.robot.robot_health import News
from adahi_ros.robot.transport import Transport


class Verifiers:
    """Opens clients of all verifiers that a robot is told.

    Attributes:
        clients: of each, the first named first.
        transport: to all of them.

    Args:
        node: spins the clients.
        told: which verifiers, and when each is asked.
        sender: makes the messages.
        on_arrival: called when there is something to poll.
        on_news: told what becomes of single ones of several.
        opened: closes the clients.

    Raises:
        ParameterError: there can be no verifier of a name, or it is another one's.
    """

    def __init__(
        self,
        node: Node,
        told: DraftVerificationParameters,
        sender: Sender,
        on_arrival: Callable[[], None],
        on_news: Callable[[News], None],
        opened: ExitStack,
    ) -> None:
        self.clients: list[VerifierClients] = []
        transports: dict[str, Transport] = {}
        for namespace in ("", *told.backups):
            try:
                clients = VerifierClients(node, told.reliability, namespace)
            except InvalidServiceNameException:
                raise ParameterError(
                    f"verification.backups: {namespace!r}, must be a namespace, such as backup or /server_2"
                ) from None
            opened.callback(clients.destroy)
            if clients.name in transports:
                raise ParameterError(
                    f"verification.backups: {namespace!r}, must not be that of another: {clients.name}"
                )
            self.clients.append(clients)
            transports[clients.name] = DdsTransport(clients, sender, on_arrival)
        self._hedged: HedgedTransport | None = None
        if told.backups:
            self._hedged = HedgedTransport(
                transports, told.hedge, time.monotonic, on_news, told.hedge_unknown
            )
        self.transport: Transport = self._hedged or next(iter(transports.values()))

    @property
    def figures(self) -> dict[str, object]:
        """What each of several was asked and how it replies, for people; nothing of a single one."""
        return {} if self._hedged is None else self._hedged.figures
