# SPDX-License-Identifier: Apache-2.0
"""LeRobot's asynchronous inference: pickled observations over gRPC; the draft is part of the observation.

The server is LeRobot's own `PolicyServer` with its queue and its filter of observations, behind its own gRPC
service; only the loaded policy is ours. The client does what LeRobot's `RobotClient` does, without a robot:
one thread holds `GetActions` open while the control loop sends observations.

Where LeRobot offers options, we take the faster one. Window, goal and draft travel as one float32 array,
LeRobot's only type, which holds a draft's integers exactly, and not as one number per joint and name. Chunks
have one action, so the queue is empty at each observation, which therefore passes the filter (`must_go`). A
setting keeps the server from stretching inference to 1/30 s, its default. See `driving.py` for how to run it.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import threading
import time
from collections.abc import Callable
from concurrent import futures
from types import SimpleNamespace

import grpc
import numpy as np
import torch

from adahi_lab.peers.driving import Client, DraftVerifier, peer
from adahi_ros.core.signature import Signature
from adahi_ros.policies.interface import Policy
from adahi_ros.policies.remote.lerobot_folder import import_lerobot

WORKERS = 4  # as LeRobot serves
OBSERVATION = "window_goal_and_draft"

import_lerobot()

from lerobot.async_inference import helpers  # noqa: E402

helpers.get_logger.__defaults__ = (False,)  # no logs/ in the working directory

from lerobot.async_inference import policy_server  # noqa: E402
from lerobot.async_inference.configs import PolicyServerConfig  # noqa: E402
from lerobot.async_inference.helpers import (  # noqa: E402
    RemotePolicyConfig,
    TimedAction,
    TimedObservation,
)
from lerobot.transport import services_pb2, services_pb2_grpc  # noqa: E402
from lerobot.transport.utils import grpc_channel_options, send_bytes_in_chunks  # noqa: E402

logging.disable(logging.INFO)  # avoids several lines per step


class InTheirPlace:
    """Our target instead of one of LeRobot's policies."""

    config = SimpleNamespace(image_features={})

    def from_pretrained(self, name: str) -> InTheirPlace:
        return self

    def to(self, device: str) -> InTheirPlace:
        return self


def serve_plans(
    policy: InTheirPlace,
    kind: type[policy_server.PolicyServer],
    config: PolicyServerConfig,
    ready: Callable[[], None],
) -> None:
    """Let a LeRobot server load our policy, listen, call `ready`, and reply forever."""
    policy_server.get_policy_class = lambda name: policy
    policy_server.make_pre_post_processors = lambda *_, **__: (lambda x: x, lambda x: x)  # it has its own
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=WORKERS))
    services_pb2_grpc.add_AsyncInferenceServicer_to_server(kind(config), server)
    server.add_insecure_port(f"{config.host}:{config.port}")
    server.start()
    ready()
    server.wait_for_termination()


class LeRobotPolicy(InTheirPlace):
    """Verifies the drafts in the observations."""

    def __init__(self, policy: Policy) -> None:
        self._verifier = DraftVerifier(policy)
        self.accepted = np.zeros(0, bool)
        self.compute_ms = 0.0

    def predict_action_chunk(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return actions (1, W, A)."""
        start = time.perf_counter()
        values = observation["observation.state"].numpy().ravel()
        signature = self._verifier.signature
        parts = np.split(values, np.cumsum(_sizes(signature))[:-1])
        window, goal = parts[0].reshape(signature.history, -1), parts[1]
        codes, counts = parts[2].astype(np.int64), parts[3].astype(np.uint16)
        verdict = self._verifier.verify(window, goal, codes, counts)
        self.accepted = verdict.accepted[0]
        self.compute_ms = 1e3 * (time.perf_counter() - start)
        return torch.from_numpy(verdict.actions)


class TimingPolicyServer(policy_server.PolicyServer):
    """LeRobot's server; adds the accepted codes and the policy's time to the first action."""

    def _predict_action_chunk(self, observation: TimedObservation) -> list[TimedAction]:
        actions: list[TimedAction] = super()._predict_action_chunk(observation)
        actions[0].accepted = self.policy.accepted
        actions[0].compute_ms = self.policy.compute_ms
        return actions


class GrpcServer:
    """LeRobot's service."""

    def __init__(self, policy: Policy) -> None:
        self._policy = LeRobotPolicy(policy)

    def serve(self, address: str, port: int, ready: Callable[[], None]) -> None:
        """See `Server.serve`."""
        config = PolicyServerConfig(host=address, port=port, inference_latency=0.0)
        serve_plans(self._policy, TimingPolicyServer, config, ready)


def _sizes(signature: Signature) -> tuple[int, int, int, int]:
    """Return the sizes of window, goal, codes and their distributions in an observation."""
    assert signature.codes is not None  # needed to verify drafts
    books, size = signature.codes.codebooks, signature.codes.codebook_size
    return signature.history * signature.observation_dim, signature.goal_dim, books, books * size


def _features(signature: Signature) -> dict[str, object]:
    """Return LeRobot's features of an observation: all its numbers in one array."""
    shape = (sum(_sizes(signature)),)
    return {"observation.state": {"dtype": "float32", "shape": shape, "names": [OBSERVATION]}}


class GrpcClient(Client):
    """Does what LeRobot's `RobotClient` does."""

    failures = (grpc.RpcError, TimeoutError)

    def __init__(self, address: str, port: int, timeout_s: float, policy: Policy) -> None:
        self._server = f"{address}:{port}"
        self._timeout_s = timeout_s
        self._setup = pickle.dumps(
            RemotePolicyConfig("vqbet", "target", _features(policy.signature), policy.signature.horizon)
        )
        self._channel: grpc.Channel | None = None
        self._timestep = 0

    def connect(self) -> None:
        """Connect and choose the policy."""
        self._channel = grpc.insecure_channel(self._server, grpc_channel_options())
        self._stub = services_pb2_grpc.AsyncInferenceStub(self._channel)
        self._stub.Ready(services_pb2.Empty(), timeout=self._timeout_s)
        self._stub.SendPolicyInstructions(services_pb2.PolicySetup(data=self._setup), timeout=self._timeout_s)
        self._received: queue.Queue[list[TimedAction]] = queue.Queue()
        threading.Thread(target=self._receive, args=(self._stub, self._received), daemon=True).start()

    @staticmethod
    def _receive(
        stub: services_pb2_grpc.AsyncInferenceStub, received: queue.Queue[list[TimedAction]]
    ) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):  # ValueError: the channel is closed
            while True:
                reply = stub.GetActions(services_pb2.Empty())
                if reply.data:  # empty without an observation for a while
                    received.put(pickle.loads(reply.data))  # noqa: S301 LeRobot's way

    def ask(
        self, window: np.ndarray, goal: np.ndarray, codes: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """See `Client.ask`."""
        give_up = time.monotonic() + self._timeout_s
        self._timestep += 1
        values = np.concatenate([window.ravel(), goal, codes, counts.ravel()], dtype=np.float32)
        observation = TimedObservation(
            timestamp=time.time(),
            timestep=self._timestep,
            observation={OBSERVATION: values, "task": ""},
            must_go=True,
        )
        messages = send_bytes_in_chunks(pickle.dumps(observation), services_pb2.Observation)
        self._stub.SendObservations(messages, timeout=self._timeout_s)
        try:
            actions = self._received.get(timeout=max(0.0, give_up - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"no actions after {self._timeout_s:g} s") from None
        return np.stack([each.get_action().numpy() for each in actions]), actions[0].compute_ms

    def close(self) -> None:
        """See `Client.close`."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


if __name__ == "__main__":
    peer("lerobot_grpc", GrpcServer, GrpcClient)
