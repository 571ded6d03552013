# SPDX-License-Identifier: Apache-2.0
"""LeRobot's asynchronous inference in a closed loop: its own `RobotClient` and `PolicyServer`.

Both are LeRobot's code; only the robot is simulated, and the loaded policy is ours. `chunk_size_threshold`
and `aggregate_fn_name` of `settings` go to the client's configuration. Each episode has a new client, from
its handshake, which is not in the episode's time, to its stop.

Where LeRobot offers options, we take the better one. A setting keeps the server from stretching inference to
1/30 s, its default. Numbers are in thousandths, because the server drops observations that are nearer than 1
to the last one it planned from; LeRobot's own are in degrees or percent. See `plan_server.py` for how to run
it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import numpy as np
import torch

from adahi_lab.peers.closed_loop import Drive, RealTimeWorld
from adahi_lab.peers.lerobot_grpc import InTheirPlace, serve_plans
from adahi_lab.peers.plan_server import RETRY_S, Planner, program, signature_of

from lerobot.async_inference import policy_server, robot_client  # isort: skip  # after what makes it importable
from lerobot.async_inference.configs import PolicyServerConfig, RobotClientConfig  # isort: skip
from lerobot.transport import services_pb2_grpc  # isort: skip
from lerobot.transport.utils import grpc_channel_options  # isort: skip

PER_UNIT = 1000.0


def _channel_options(**own: Any) -> list[tuple[str, Any]]:
    """Return LeRobot's options of a channel that shares nothing, and never waits for a server."""
    return [*grpc_channel_options(**own, enable_retries=False), ("grpc.use_local_subchannel_pool", 1)]


class LeRobotPlanner(InTheirPlace):
    """Makes plans with our target instead of one of LeRobot's policies."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def predict_action_chunk(self, observation: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return actions (1, T, A)."""
        values = observation["observation.state"].numpy().ravel() / np.float32(PER_UNIT)
        signature = self._planner.signature
        split = signature.history * signature.observation_dim
        window = values[:split].reshape(signature.history, -1)
        return torch.from_numpy(self._planner.plan(window, values[split:]))[None]


class WorldRobot:
    """The world with LeRobot's interface of a robot."""

    def __init__(self, world: RealTimeWorld, observed: int, action_dim: int) -> None:
        self._world = world
        self._names = [f"o{index}" for index in range(observed)]
        self.observation_features = dict.fromkeys(self._names, float)
        self.action_features = {f"a{index}": float for index in range(action_dim)}

    def connect(self) -> None:
        pass

    def disconnect(self) -> None:
        pass

    def get_observation(self) -> dict[str, object]:
        window, goal = self._world.observe()
        values = PER_UNIT * np.concatenate([window.ravel(), goal])
        return dict(zip(self._names, values.tolist(), strict=True))

    def send_action(self, action: dict[str, float]) -> dict[str, float]:
        self._world.command(np.array(list(action.values())))
        return action


def serve(wanted: Drive, planner: Planner, ready: Callable[[], None]) -> None:
    """See `program`."""
    config = PolicyServerConfig(wanted.address, wanted.port, wanted.settings["fps"], inference_latency=0)
    serve_plans(LeRobotPlanner(planner), policy_server.PolicyServer, config, ready)


def drive(wanted: Drive, world: RealTimeWorld) -> None:
    """See `program`."""
    signature = signature_of(wanted.target)
    observed = signature.history * signature.observation_dim + signature.goal_dim
    robot = WorldRobot(world, observed, signature.action_dim)
    robot_client.make_robot_from_config = lambda config: robot
    robot_client.grpc_channel_options = _channel_options
    for _ in range(wanted.episodes):
        _episode(wanted, world, signature.horizon)


def _episode(wanted: Drive, world: RealTimeWorld, horizon: int) -> None:
    """Do what LeRobot's `async_client` does, until the world's episode is over."""
    settings = wanted.settings
    client = robot_client.RobotClient(
        RobotClientConfig(
            policy_type="act",  # one that the server knows; it loads ours
            pretrained_name_or_path="target",
            robot=None,
            actions_per_chunk=horizon,
            server_address=f"{wanted.address}:{wanted.port}",
            chunk_size_threshold=settings["chunk_size_threshold"],
            fps=settings["fps"],
            aggregate_fn_name=settings["aggregate_fn_name"],
        )
    )
    if not client.start():
        raise RuntimeError(f"{wanted.address}:{wanted.port}: no LeRobot server")
    replied = client.stub.GetActions

    def counted(request: Any) -> Any:
        nonlocal replied
        try:
            reply = replied(request)
        except grpc.RpcError:  # the next server knows neither client nor policy
            while client.running:
                client.channel.close()
                client.channel = grpc.insecure_channel(client.server_address, _channel_options())
                client.stub = services_pb2_grpc.AsyncInferenceStub(client.channel)
                replied, client.stub.GetActions = client.stub.GetActions, counted
                if client.start():
                    break
                time.sleep(RETRY_S)
            client.must_go.set()
            if world.over.is_set():  # `start` takes back the end
                client.shutdown_event.set()
            raise
        if reply.data:  # empty without an observation for a while
            world.count_call()
        return reply

    client.stub.GetActions = counted
    receiver = threading.Thread(target=client.receive_actions, daemon=True)
    receiver.start()
    world.start()
    threading.Thread(target=lambda: (world.over.wait(), client.shutdown_event.set()), daemon=True).start()
    client.control_loop(task="")
    client.stop()
    receiver.join()


if __name__ == "__main__":
    program(serve, drive)
