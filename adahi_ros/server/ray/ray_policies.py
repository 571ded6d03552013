# SPDX-License-Identifier: Apache-2.0
"""The verifier's end of the policies on Ray Serve: asks replicas, and outlives them and the whole of Ray.

All of Ray's calls are made by one thread with an event loop. A batch whose replica dies goes to another, for
as long as its replies are of use: draws come with it, so it is the same verdict. Ray's head is watched by a
connection that ends with it. While there is none, batches are answered at once, and whoever asked is told to
come again; once there is one, its policies are deployed anew where they are not there, and asked again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from adahi_ros.core.texts import abridged
from adahi_ros.policies.interface import TargetUnavailableError
from adahi_ros.server.ray.fleet_file import FleetPolicy, application_of
from adahi_ros.server.ray.ray_head import check_installed
from adahi_ros.server.verifier import Verdicts, VerificationRequest

T = TypeVar("T")

RETRY_AFTER_S = 0.25  # robots come again while Ray is away
LOOK_S = 0.1  # for a Ray that is away
NOTICE_S = 1.0  # from the first call that fails of a Ray that dies to the end of its head's connection
PAUSE_S = 0.02  # before a batch goes to another replica
DEPLOYED_S = 300.0  # a policy's first replica, its weights loaded


@dataclass(eq=False)
class _Connection:
    """With a Ray that is there.

    Attributes:
        handles: Ray Serve's, of the policies by name.
        gone: done once it is there no more.
    """

    handles: dict[str, Any]
    gone: asyncio.Future[None]


class RayVerifier:
    """A `Verifier` whose target is on Ray Serve.

    Args:
        policies: has it.
        policy: as the fleet's file has it.
        described: by a replica.
    """

    def __init__(self, policies: RayPolicies, policy: FleetPolicy, described: Any) -> None:
        self.terms, self.device = described.terms, described.device
        self.at_once = policy.replicas.most * policy.replicas.under_way
        self._policies = policies
        self._policy = policy

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`; its clock is `time.monotonic`."""
        return self._policies.run(self._policies.verdicts(self._policy, request, draws, until_s))


class RayPolicies:
    """The policies of a fleet.

    Args:
        policies: to be deployed, or there.
        address: of a Ray, as `ray.init` takes it.
        say: told what happens to Ray, and to replicas; by any thread.

    Raises:
        ImportError: Ray is not installed.
    """

    def __init__(self, policies: Sequence[FleetPolicy], address: str, say: Callable[[str], None]) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers
        check_installed()
        self._policies = policies
        self._address = address
        self._say = say
        self._connection: _Connection | None = None
        self._described: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ray policies", daemon=True)
        self._thread.start()
        self._kept: Future[None] | None = None

    def open(self) -> list[RayVerifier]:
        """Have the policies deployed where they are not there, and return them once all are.

        Raises:
            ValueError: there is no Ray, or a policy cannot be deployed; says why.
        """
        try:
            self.run(self._connect()).result()
        except Exception as error:
            raise ValueError(f"ray: {self._address!r}, {_fault(error)}") from error
        self._kept = self.run(self._keep())
        return [RayVerifier(self, each, self._described[each.name]) for each in self._policies]

    def close(self) -> None:
        """Leave Ray; the policies stay there."""
        if self._kept is not None:
            self._kept.cancel()
        self.run(self._leave()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the thread of Ray's calls."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    # Asking

    async def verdicts(
        self, policy: FleetPolicy, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Verdicts:
        """Return the verdicts on a batch, which goes to replicas in parts; raises nothing."""
        count = len(draws)
        parts = np.array_split(np.arange(count), -(-count // policy.batch))
        asked = (self._ask_some(policy, request.rows(rows), draws[rows], until_s) for rows in parts)
        try:
            return [verdict for told in await asyncio.gather(*asked) for verdict in told]
        except Exception as error:  # noqa: BLE001  whatever Ray raises, each request gets its reply
            return [_fault(error)] * count

    async def _ask_some(
        self, policy: FleetPolicy, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Verdicts:
        """Ask one replica after the other until one replies."""
        from ray.exceptions import RayActorError, RayTaskError
        from ray.serve.exceptions import ReplicaUnavailableError

        while (connection := self._connection) is not None:
            left_s = until_s - time.monotonic()
            if left_s <= 0.0:
                return [TargetUnavailableError("no replica has replied in time", RETRY_AFTER_S)] * len(draws)
            try:
                told = await _replied(connection, connection.handles[policy.name], (request, draws), left_s)
            except (RayActorError, ReplicaUnavailableError):
                self._say(f"a replica of {policy.name!r} has died; another is asked")
                await asyncio.sleep(PAUSE_S)
            except Exception as error:  # noqa: BLE001  whatever else Ray raises
                # Of a Ray that dies, calls fail in many ways, some before its head's connection ends.
                of_replica = isinstance(error, RayTaskError)
                if of_replica or not await _ends(connection, min(left_s, NOTICE_S)):
                    return [_fault(error)] * len(draws)
            else:
                if told is not None:
                    return told
        return [TargetUnavailableError("Ray is away", RETRY_AFTER_S)] * len(draws)

    # Ray, there and away

    async def _keep(self) -> None:
        """Stay connected, whatever becomes of Ray."""
        while True:
            assert self._connection is not None
            await self._watch()
            self._say("Ray is away; robots are told to come again")
            self._connection.gone.set_result(None)
            self._connection = None
            await self._disconnected()
            while not await self._is_back():
                await asyncio.sleep(LOOK_S)
            self._say("Ray is back")

    async def _is_back(self) -> bool:
        """Connect with Ray again, if it is there."""
        try:
            (await _there(*self._head))[1].close()
        except (OSError, asyncio.TimeoutError):
            return False
        try:
            await self._connect()
        except Exception as error:  # noqa: BLE001  Ray raises what it likes while it starts
            self._say(f"Ray is not back yet: {_words(error)}")
            await self._disconnected()
            return False
        return True

    async def _disconnected(self) -> None:
        """Forget Ray, in whatever state it is."""
        try:
            await asyncio.to_thread(_disconnect)
        except Exception as error:  # noqa: BLE001  nobody would look for Ray any more
            self._say(f"Ray was not left in order: {_words(error)}")

    async def _watch(self) -> None:
        """Wait until there is no head any more."""
        while True:
            try:
                reader, writer = await _there(*self._head)
            except (OSError, asyncio.TimeoutError):
                return
            try:
                while await reader.read(1 << 16):
                    pass
            except OSError:
                pass
            finally:
                writer.close()

    async def _connect(self) -> None:
        handles = await asyncio.to_thread(self._handles)
        for policy in self._policies:
            described = await asyncio.wait_for(handles[policy.name].describe.remote(), DEPLOYED_S)
            if described.made_of != policy:
                self._say(f"policy {policy.name!r} is there and is another; it is deployed anew")
                handles[policy.name] = await asyncio.to_thread(_deployed, policy)
                described = await asyncio.wait_for(handles[policy.name].describe.remote(), DEPLOYED_S)
            before = self._described.setdefault(policy.name, described)
            was, now = before.terms, described.terms
            if replace(was.signature, parameters=0) != replace(now.signature, parameters=0):
                raise ValueError(f"policy {policy.name!r} is back, and reads or proposes something else")
            if was.fingerprint != now.fingerprint:
                self._say(f"policy {policy.name!r} is back with other weights than robots are told")
        self._connection = _Connection(handles, self._loop.create_future())

    def _handles(self) -> dict[str, Any]:
        """Connect with Ray, and return the handles of the policies, deployed where they are not there."""
        import ray
        from ray import serve

        for name in ("ray", "ray.serve"):
            logging.getLogger(name).setLevel(logging.ERROR)  # what matters is said here
        ray.init(address=self._address, log_to_driver=False, logging_level=logging.ERROR)
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self._head = host, int(port)
        serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR"})
        there = serve.status().applications
        return {
            policy.name: serve.get_app_handle(application_of(policy.name))
            if getattr(there.get(application_of(policy.name)), "status", "") in ("DEPLOYING", "RUNNING")
            else _deployed(policy)
            for policy in self._policies
        }

    async def _leave(self) -> None:
        if self._connection is not None:
            self._connection.gone.set_result(None)
            self._connection = None
        await self._disconnected()


async def _replied(connection: _Connection, handle: Any, asked: Any, left_s: float) -> Verdicts | None:
    """Return what a replica says to a batch; None where it is to be asked again, if there is time.

    Raises:
        Exception: whatever Ray or the replica does.
    """
    response = handle.verify.remote(asked)
    replied = asyncio.ensure_future(response)
    await asyncio.wait((replied, connection.gone), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
    if not replied.done():
        replied.cancel()
        response.cancel()
        return None
    if replied.cancelled():  # by Ray, as it ends
        await asyncio.sleep(PAUSE_S)
        return None
    told: Verdicts = replied.result()
    return told


async def _ends(connection: _Connection, wait_s: float) -> bool:
    """Return whether Ray is there no more, or is not within so long."""
    await asyncio.wait((connection.gone,), timeout=wait_s)
    return connection.gone.done()


def _words(error: BaseException) -> str:
    return abridged(" ".join(str(error).split()))


def _fault(error: BaseException) -> RuntimeError:
    return RuntimeError(f"{type(error).__name__}: {_words(error)}")


async def _there(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.wait_for(asyncio.open_connection(host, port), 1.0)


def _deployed(policy: FleetPolicy) -> Any:
    """Deploy a policy, and return its handle once a replica is there.

    Raises:
        RuntimeError: it cannot be loaded.
    """
    from ray import serve

    from adahi_ros.server.ray.replica import deployment

    return serve.run(
        deployment(policy),
        name=application_of(policy.name),
        route_prefix=None,
        logging_config={"log_level": "ERROR", "enable_access_log": False},
    )


def remove_policies(policies: Sequence[FleetPolicy], address: str) -> None:
    """Remove the policies of a fleet from a Ray that stays.

    Args:
        policies: of the fleet.
        address: of Ray, as `ray.init` takes it.
    """
    import ray
    from ray import serve

    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        for policy in policies:
            if application_of(policy.name) in serve.status().applications:
                serve.delete(application_of(policy.name))
    finally:
        _disconnect()


def _disconnect() -> None:
    import ray
    from ray.serve import context

    # Ray Serve would take this controller for the next Ray's, which counts its clients anew.
    context._set_global_client(None)
    ray.shutdown()
