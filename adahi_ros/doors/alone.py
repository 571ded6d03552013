# SPDX-License-Identifier: Apache-2.0
"""A door and an engine in one process, without ROS."""

from __future__ import annotations

import asyncio
import math
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.signals import leave
from adahi_ros.doors.interface import Door
from adahi_ros.doors.target_worker import TargetWorker
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy, TargetUnavailableError
from adahi_ros.protocol.request import Request
from adahi_ros.server.engine import Engine
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import BatchParameters, BatchSchedule, Sender
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService, target_name
from adahi_ros.server.verifier import TargetVerifier

RULE = "replace"  # clients have no drafts
BACKEND = "onnxruntime"


def loaded(target: str, compute: Mapping[str, object], say: Callable[[str], object]) -> LoadedTarget:
    """Load a target, and run it once.

    Args:
        target: its file, or the name of a checkpoint.
        compute: see `load_policy`.
        say: called with the reason if a policy behind a server is unavailable for now.

    Raises:
        OSError: there is no such file.
        ValueError: it cannot be used; has the reason.
    """
    here = Path(target).expanduser()
    policy = load_policy(
        here.absolute() if here.is_file() else named(target, CHECKPOINTS), BACKEND, **compute
    )
    try:
        policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws)))
    except TargetUnavailableError as error:
        say(f"target unavailable; each request tries again: {error}")
    return target_of(policy, target_name("", target))


def target_of(policy: Policy, name: str) -> LoadedTarget:
    """Return a policy as a target of this name, for clients without drafts."""
    verifier = TargetVerifier(policy, RULE)
    return LoadedTarget(Engine(TargetWorker(verifier), 0), verifier.terms.described(name), policy.device)


class AloneFront:
    """A `Front` on the event loop of its door.

    Attributes:
        verification: makes the replies, and counts them.

    Args:
        targets: the first is the default.
        batch: parameters of the batches.
        say: called with each refusal.
    """

    def __init__(
        self, targets: Sequence[LoadedTarget], batch: BatchParameters, say: Callable[[str], object]
    ) -> None:
        first, *others = targets
        self.targets = ServedTargets(first)
        for each in others:
            self.targets.put(each)
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self.verification = VerificationService(self.targets)
        self._schedule = BatchSchedule(
            self.verification,
            batch,
            lambda refusal, shared: say(refusal or shared),
            self._wake,
        )

    def submit(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        """See `Front`."""
        self._schedule.receive(turn, read)
        self._serve()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._serve)

    def _serve(self) -> None:
        self._schedule.serve()
        if self._later is not None:
            self._later.cancel()
        wait_s = self._schedule.wait_s
        self._later = self._loop.call_later(wait_s, self._serve) if wait_s < math.inf else None


def serve_alone(
    door: Door, targets: Sequence[LoadedTarget], batch: BatchParameters, say: Callable[[str], object]
) -> None:
    """Serve targets through a door until SIGINT or SIGTERM; call it in the main thread.

    Args:
        door: closed.
        targets: the first is the default.
        batch: parameters of the batches.
        say: called with lines for people.

    Raises:
        KeyboardInterrupt: the signal was SIGINT.
        SystemExit: it was SIGTERM.
        ValueError: an argument of the door cannot be used.
    """
    opened, came = door.open(), list[int]()

    async def serve() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            came.append(number)  # to raise would cut a callback off, and the loop would wait for it for ever
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        front = AloneFront(targets, batch, say)
        say(f"serves {', '.join(front.targets.names)} at {opened.address}; Ctrl-C stops it")
        if opened.warning:
            say(opened.warning)
        await opened.serve(front)

    try:
        asyncio.run(serve())
    except asyncio.CancelledError:
        leave(came[0], None)
