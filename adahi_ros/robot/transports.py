# SPDX-License-Identifier: Apache-2.0
"""Transports of other packages, by name: each is put around the one over DDS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from adahi_ros.core.registry import Registry
from adahi_ros.policies.interface import Policy
from adahi_ros.robot.transport import Transport


class AroundTransport(ABC):
    """Makes a transport of another one. Arguments are fields of a dataclass, made with `argument`."""

    @abstractmethod
    def around(self, transport: Transport, policy: Policy, clock: Callable[[], float]) -> Transport:
        """Return the transport that the robot uses.

        Args:
            transport: to the verifiers.
            policy: the robot's own.
            clock: the time, s.

        Raises:
            ValueError: it does not fit the policy; names the parameter.
        """


TRANSPORTS: Registry[type[AroundTransport]] = Registry("adahi_ros.transports", {}, AroundTransport)
