# SPDX-License-Identifier: Apache-2.0
"""The verifier's side of policies on Ray Serve. It survives the loss of replicas and of Ray.

One thread with an event loop makes all calls to Ray. If a replica dies, its batch goes to another one until
its deadline; the verdicts are the same, because the batch includes the draws. A connection to Ray's head
detects its end. Without Ray, robots get an error with a retry time at once. When Ray is back, missing
policies are deployed again.
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

RETRY_AFTER_S = 0.25  # for robots while Ray is away
LOOK_S = 0.1  # between attempts to connect
NOTICE_S = 1.0  # from the first failed call of a dying Ray to the end of its head's connection
PAUSE_S = 0.02  # before a batch goes to another replica
DEPLOYED_S = 300.0  # until a policy's first replica has loaded its weights


@dataclass(eq=False)
class _Connection:
    """A connection with Ray.

    Attributes:
        handles: Ray Serve's handles of the policies, by name.
        gone: done when Ray is gone.
    """

    handles: dict[str, Any]
    gone: asyncio.Future[None]


class RayVerifier:
    """A `Verifier` with its target on Ray Serve.

    Args:
        policies: of the fleet.
        policy: in the fleet's file.
        described: description of a replica.
    """

    def __init__(self, policies: RayPolicies, policy: FleetPolicy, described: Any) -> None:
        self.terms, self.device = described.terms, described.device
        self.at_once, self.alone = policy.replicas.fitting * policy.replicas.under_way, False
        self._policies = policies
        self._policy = policy

    def submit(self, request: VerificationRequest, draws: np.ndarray, until_s: float) -> Future[Verdicts]:
        """See `Verifier`; its clock is `time.monotonic`."""
        return self._policies.run(self._policies.verdicts(self._policy, request, draws, until_s))


class RayPolicies:
    """The policies of a fleet.

    Args:
        policies: deployed, or to be deployed.
        address: of Ray, for `ray.init`.
        say: called with log texts on Ray and replicas, in any thread.

    Raises:
        ImportError: Ray is not installed.
    """

    def __init__(self, policies: Sequence[FleetPolicy], address: str, say: Callable[[str], None]) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
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
        """Deploy missing policies, and return all.

        Raises:
            ValueError: there is no Ray, or a policy cannot be deployed; has the reason.
        """
        try:
            self.run(self._connect()).result()
        except Exception as error:
            raise ValueError(f"ray: {self._address!r}, {_fault(error)}") from error
        self._kept = self.run(self._keep())
        return [RayVerifier(self, each, self._described[each.name]) for each in self._policies]

    def close(self) -> None:
        """Disconnect from Ray; the policies stay deployed."""
        if self._kept is not None:
            self._kept.cancel()
        self.run(self._leave()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the thread of Ray's calls."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    # Requests

    async def verdicts(
        self, policy: FleetPolicy, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Verdicts:
        """Return the verdicts of a batch, which is split among replicas; raises nothing."""
        count = len(draws)
        parts = np.array_split(np.arange(count), -(-count // policy.batch))
        jobs = (self._ask_some(policy, request.rows(rows), draws[rows], until_s) for rows in parts)
        try:
            return [verdict for some in await asyncio.gather(*jobs) for verdict in some]
        except Exception as error:  # noqa: BLE001  whatever Ray raises, each request gets its reply
            return [_fault(error)] * count

    async def _ask_some(
        self, policy: FleetPolicy, request: VerificationRequest, draws: np.ndarray, until_s: float
    ) -> Verdicts:
        """Try one replica after the other until one replies."""
        from ray.exceptions import RayActorError, RayTaskError
        from ray.serve.exceptions import ReplicaUnavailableError

        while (connection := self._connection) is not None:
            left_s = until_s - time.monotonic()
            if left_s <= 0.0:
                return [TargetUnavailableError("no replica has replied in time", RETRY_AFTER_S)] * len(draws)
            try:
                reply = await _replied(connection, connection.handles[policy.name], (request, draws), left_s)
            except (RayActorError, ReplicaUnavailableError):
                self._say(f"a replica of {policy.name!r} has died; its requests go to another one")
                await asyncio.sleep(PAUSE_S)
            except Exception as error:  # noqa: BLE001  whatever else Ray raises
                # When Ray dies, calls fail in many ways, some before the head's connection ends.
                of_replica = isinstance(error, RayTaskError)
                if of_replica or not await _ends(connection, min(left_s, NOTICE_S)):
                    return [_fault(error)] * len(draws)
            else:
                if reply is not None:
                    return reply
        return [TargetUnavailableError("Ray is away", RETRY_AFTER_S)] * len(draws)

    # Connection

    async def _keep(self) -> None:
        """Connect again whenever Ray was lost."""
        while True:
            assert self._connection is not None
            await self._watch()
            self._say("Ray is away; robots get a retry time")
            self._connection.gone.set_result(None)
            self._connection = None
            await self._disconnected()
            while not await self._is_back():
                await asyncio.sleep(LOOK_S)
            self._say("Ray is back")

    async def _is_back(self) -> bool:
        """Connect with Ray again, if it is there; return whether it is."""
        try:
            (await _there(*self._head))[1].close()
        except (OSError, asyncio.TimeoutError):
            return False
        try:
            await self._connect()
        except Exception as error:  # noqa: BLE001  Ray may raise anything while it starts
            self._say(f"Ray is not back yet: {_words(error)}")
            await self._disconnected()
            return False
        return True

    async def _disconnected(self) -> None:
        """Disconnect from Ray, whatever its state."""
        try:
            await asyncio.to_thread(_disconnect)
        except Exception as error:  # noqa: BLE001  an exception would end the attempts to connect
            self._say(f"cannot disconnect from Ray: {_words(error)}")

    async def _watch(self) -> None:
        """Wait until Ray's head is gone."""
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
                self._say(f"policy {policy.name!r} is deployed with other settings; it is deployed again")
                handles[policy.name] = await asyncio.to_thread(_deployed, policy)
                described = await asyncio.wait_for(handles[policy.name].describe.remote(), DEPLOYED_S)
            before = self._described.setdefault(policy.name, described)
            was, now = before.terms, described.terms
            if replace(was.signature, parameters=0) != replace(now.signature, parameters=0):
                raise ValueError(f"policy {policy.name!r} is back, and reads or proposes something else")
            if was.intent_fingerprint != now.intent_fingerprint:
                raise ValueError(f"policy {policy.name!r} is back, and has another encoder of intents")
            if was.fingerprint != now.fingerprint:
                self._say(f"policy {policy.name!r} is back with other weights than its description says")
        self._connection = _Connection(handles, self._loop.create_future())

    def _handles(self) -> dict[str, Any]:
        """Connect with Ray, deploy missing policies, and return the handles of all."""
        import ray
        from ray import serve

        for name in ("ray", "ray.serve"):
            logging.getLogger(name).setLevel(logging.ERROR)  # this class logs what matters
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


async def _replied(connection: _Connection, handle: Any, jobs: Any, left_s: float) -> Verdicts | None:
    """Return a replica's verdicts on a batch; None to try again, if there is time.

    Raises:
        Exception: of any kind, by Ray or the replica.
    """
    response = handle.verify.remote(jobs)
    replied = asyncio.ensure_future(response)
    await asyncio.wait((replied, connection.gone), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
    if not replied.done():
        replied.cancel()
        response.cancel()
        return None
    if replied.cancelled():  # by Ray, as it ends
        await asyncio.sleep(PAUSE_S)
        return None
    verdicts: Verdicts = replied.result()
    return verdicts


async def _ends(connection: _Connection, wait_s: float) -> bool:
    """Return whether Ray is gone within `wait_s`."""
    await asyncio.wait((connection.gone,), timeout=wait_s)
    return connection.gone.done()


def _words(error: BaseException) -> str:
    return abridged(" ".join(str(error).split()))


def _fault(error: BaseException) -> RuntimeError:
    return RuntimeError(f"{type(error).__name__}: {_words(error)}")


async def _there(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.wait_for(asyncio.open_connection(host, port), 1.0)


def _deployed(policy: FleetPolicy) -> Any:
    """Deploy a policy; wait for a replica, and return the handle.

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
    """Remove the policies of a fleet from a Ray that keeps running.

    Args:
        policies: of the fleet.
        address: of Ray, for `ray.init`.
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

    # Otherwise Ray Serve would use this controller with the next Ray.
    context._set_global_client(None)
    ray.shutdown()
