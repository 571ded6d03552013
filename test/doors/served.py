"""A door in front of a target that a test makes; who imports this is skipped where a door cannot be."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.signature import Feature, ImageInput, Observations, Signature
from adahi_ros.doors.alone import AloneFront
from adahi_ros.doors.interface import Door
from adahi_ros.doors.openpi import OpenPiDoor
from adahi_ros.doors.target_worker import TargetWorker
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.server.engine import Engine
from adahi_ros.server.schedule import BatchParameters
from adahi_ros.server.service import Counts, LoadedTarget
from adahi_ros.server.verifier import TargetVerifier

REASON = "pip install -r requirements/remote_targets.txt"
pytest.importorskip("msgpack", reason=REASON)
pytest.importorskip("websockets.asyncio.server", reason=REASON)

from websockets.sync.client import ClientConnection, connect  # noqa: E402

from adahi_ros.policies.remote.packed_arrays import pack_openpi, unpack_openpi  # noqa: E402

LIMIT_S = 30.0  # only a broken door is slower
ARM = Signature(
    1,
    4,
    2,
    (Feature("observation.state", 3),),
    images=(ImageInput("observation.images.front", 4, 6),),
    instruction=True,
    action_names=("x", "y"),
    rate_hz=20.0,
)
"""Plans 4 actions of 2 numbers from 3 numbers, an image and a sentence."""
STATE = np.array([0.1, 0.2, 0.3], np.float32)
PICTURE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
SEEN: dict[str, Any] = {
    "observation.state": STATE,
    "observation.images.front": PICTURE,
    "prompt": "stack the cups",
}


class Planner(Policy):
    """Plans for each robot its first numbers, plus 1 for each action; waits until it may.

    Attributes:
        seen: the observations of each batch.
        may: set where it need not wait.
        waiting: set while it waits.
    """

    def __init__(self, signature: Signature = ARM) -> None:
        dim = signature.action_dim
        ends = np.full(dim, 1e6)
        super().__init__(signature, ActionRange(-ends, ends), np.ones(dim, np.float32), "planner", 1)
        self.seen: list[Observations] = []
        self.may, self.waiting = threading.Event(), threading.Event()
        self.may.set()

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        self.seen.append(observations)
        self.waiting.set()
        assert self.may.wait(LIMIT_S)
        signature = self.signature
        first = observations.features[signature.features[0].name][:, -1, : signature.action_dim]
        return Proposal(first[:, None] + np.arange(signature.horizon, dtype=np.float32)[:, None])

    @property
    def sizes(self) -> list[int]:
        """The number of robots in each batch."""
        return [len(next(iter(each.features.values()))) for each in self.seen]


def target_of(policy: Policy, name: str = "arm", rule: str = "replace") -> LoadedTarget:
    verifier = TargetVerifier(policy, rule)
    return LoadedTarget(Engine(TargetWorker(verifier), 0), verifier.terms.described(name))


class Served:
    """A door and its engine, in a thread.

    Attributes:
        refusals: that were logged.
        counts: of its replies.
    """

    def __init__(self, door: Door, targets: Sequence[LoadedTarget], batch: BatchParameters) -> None:
        self.refusals: list[str] = []
        self.counts = Counts()
        self._opened = door.open()
        self.address = self._opened.address
        self._targets, self._batch = targets, batch
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._serve())
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    async def _serve(self) -> None:
        front = AloneFront(self._targets, self._batch, self.refusals.append)
        self.counts = front.verification.counts
        await self._opened.serve(front)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            self._loop.close()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


@contextmanager
def served(
    *policies: Policy,
    batch: BatchParameters | None = None,
    rule: str = "replace",
    kind: Callable[..., Door] = OpenPiDoor,
    **arguments: Any,
) -> Iterator[Served]:
    """Serve policies by a door at a free port for a while; their names are arm, arm_1, arm_2."""
    targets = [target_of(each, f"arm_{at}" if at else "arm", rule) for at, each in enumerate(policies)]
    door = kind(**{"port": 0, **arguments})
    with closing(Served(door, targets, batch or BatchParameters(quota_hz=0.0))) as serving:
        yield serving


class Client:
    """Speaks the protocol, and what it does not allow.

    Attributes:
        metadata: the server's first message.
    """

    def __init__(self, address: str, **options: Any) -> None:
        self._stack = ExitStack()
        opened: Any = connect(address, compression=None, proxy=None, **options)
        self.connection: ClientConnection = self._stack.enter_context(opened)
        self._stack.callback(self.cut)
        self.metadata = unpack_openpi(self.connection.recv(LIMIT_S))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def cut(self) -> None:
        """End the connection without a word; a thread that is sending ends too."""
        with suppress(OSError):  # it is closed
            self.connection.socket.shutdown(socket.SHUT_RDWR)

    def send(self, message: Any) -> None:
        """Send an observation, or a message as it is."""
        self.connection.send(message if isinstance(message, bytes | str) else pack_openpi(message))

    def receive(self) -> Any:
        """Return an answer; a refusal is a text."""
        answer = self.connection.recv(LIMIT_S)
        return answer if isinstance(answer, str) else unpack_openpi(answer)

    def ask(self, message: Any) -> Any:
        self.send(message)
        return self.receive()

    def plan(self, message: Any = SEEN) -> np.ndarray:
        answer = self.ask(message)
        assert isinstance(answer, dict), answer
        plan: np.ndarray = answer["actions"]
        return plan
