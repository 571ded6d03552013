# SPDX-License-Identifier: Apache-2.0
"""The common part of targets behind third-party servers: the connection, and the check of plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.interface import AS_TRAINED, Sampling, TargetUnavailableError
from adahi_ros.policies.remote.described import DescribedTarget
from adahi_ros.policies.remote.remote import Connection, PolicyServer, ServerFault
from adahi_ros.policies.remote.server_fields import ServerFile


class ServedTarget(DirectPolicy):
    """A policy behind a third-party server, with observations as described in a file.

    Args:
        read: the policy's inputs and outputs, from the file.
        file: the other fields of the file.
        digest: identifies the content of the file.
        connect: returns a connection within a timeout in seconds, or raises `ServerFault`; must not refer to
            this policy.
        clock: in seconds, only goes forward.

    Attributes:
        device: where it runs, the server's URL.
        at_once: number of connections.
    """

    weights_known = False

    def __init__(
        self,
        read: DescribedTarget,
        file: ServerFile,
        digest: str,
        connect: Callable[[float], Connection],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(read.signature, read.action_range, read.action_scale, digest)
        self.device, self.at_once = file.url, file.connections
        self._described = read
        self._server = PolicyServer(file.url, connect, file.timeout_s, clock, file.connections)
        finalize(self, self._server.close)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; actions beyond the action range are a fault of the server."""
        plans = self._described.relative.absolute(self.act(observations, draws), observations)
        try:
            self.check(plans[np.isfinite(plans).all(axis=(1, 2))])  # others are of a state without a pose
        except ValueError as error:
            raise TargetUnavailableError(f"{self.device}: answered {error}") from None
        return Proposal(plans)

    def _ask_each(self, messages: Sequence[bytes], read: Callable[[bytes], np.ndarray]) -> np.ndarray:
        """Return the plans (B, T, A) in the answers to B messages, which are in flight together.

        Args:
            messages: one of each robot.
            read: returns the plan (1, T, A) of an answer, or raises `ServerFault`.

        Raises:
            TargetUnavailableError: an answer is missing.
        """
        ask = partial(self._server.ask, read=read)
        side_by_side = min(len(messages), self.at_once)
        if side_by_side < 2:
            return np.concatenate([ask(message) for message in messages])
        with ThreadPoolExecutor(side_by_side) as threads:
            return np.concatenate(list(threads.map(ask, messages)))

    def _checked(self, name: str, plans: Any, robots: int) -> np.ndarray:
        """Return the first T actions of plans of B robots, (B, T, A) float32.

        Args:
            name: of the answer's entry, for messages.
            plans: unchecked; should be (B, T or more, A) numbers.
            robots: B.

        Raises:
            ServerFault: their shape or type is wrong, or they are not finite.
        """
        horizon, dim = self.signature.horizon, self.signature.action_dim
        shape = np.shape(plans) if isinstance(plans, np.ndarray) else None
        if shape is None or len(shape) != 3 or (shape[0], shape[2]) != (robots, dim) or shape[1] < horizon:
            found = type(plans).__name__ if shape is None else f"shape {shape}"
            raise ServerFault(f"answered {name}: {found}, must be ({robots}, {horizon} or more, {dim})")
        if plans.dtype.kind not in "fiu":
            raise ServerFault(f"answered {name}: of {plans.dtype}, must be numbers")
        with np.errstate(over="ignore"):
            plan = plans[:, :horizon].astype(np.float32)
        if not np.isfinite(plan).all():
            row, ahead, index = np.argwhere(~np.isfinite(plan))[0]
            raise ServerFault(
                f"answered {name}[{row}, {ahead}, {index}]: {plan[row, ahead, index]}, must be finite"
            )
        return plan


def connected(link: Connection, check: Callable[[], None]) -> Connection:
    """Return a connection that passes a check; close one that fails it with a `ServerFault`."""
    try:
        check()
    except ServerFault:
        link.close()
        raise
    return link
