# SPDX-License-Identifier: Apache-2.0
"""openpi's closed loop, as in its examples: `Runtime`, `ActionChunkBroker`, `WebsocketClientPolicy`.

The robot requests when its chunk ends, after `action_horizon` (in `settings`) actions, and waits for the
reply. The client is openpi's; the server is that of `openpi_websocket.py`. Each observation triggers a step.
openpi's client ends with its connection. Here the rest of the last chunk is executed then, and the loop
connects again. See `plan_server.py` for how to run it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.base_policy import BasePolicy
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime
from openpi_client.websocket_client_policy import WebsocketClientPolicy
from websockets.exceptions import WebSocketException

from adahi_lab.peers.closed_loop import Drive, RealTimeWorld
from adahi_lab.peers.openpi_websocket import WebsocketServer
from adahi_lab.peers.plan_server import RETRY_S, Planner, program


class WorldEnvironment(Environment):
    """The world with the interface of openpi's runtime."""

    def __init__(self, world: RealTimeWorld, connect: Callable[[], object]) -> None:
        self._world, self._connect = world, connect

    def reset(self) -> None:
        """Begin an episode; the runtime also calls it after the last one, to move the robot home."""
        if self._world.left:
            self._connect()
            self._world.start()

    def is_episode_complete(self) -> bool:
        return self._world.over.is_set()

    def get_observation(self) -> dict[str, object]:
        window, goal = self._world.observe(wait=True)
        return {"window": window, "goal": goal}

    def apply_action(self, action: dict[str, Any]) -> None:
        self._world.command(action["actions"])


class ReconnectedPolicy(BasePolicy):
    """openpi's client, connected again after its server has ended; reports its calls to the world."""

    def __init__(self, wanted: Drive, world: RealTimeWorld) -> None:
        self._server, self._world = (wanted.address, wanted.port), world
        self._horizon = wanted.settings["action_horizon"]
        self._policy: WebsocketClientPolicy | None = None
        self.reset()

    def connect(self) -> WebsocketClientPolicy:
        """Return openpi's client; connect if there is no connection."""
        if self._policy is None:
            self._policy = WebsocketClientPolicy(*self._server)
        return self._policy

    def infer(self, obs: dict[str, object]) -> dict[str, object]:
        while not self._world.over.is_set():
            try:
                policy = self.connect()
                self._world.count_call()
                self._chunk = policy.infer(obs)["actions"]
                break
            except (OSError, WebSocketException):
                self._policy = None
                rest = self._chunk[self._horizon :]
                if len(rest) >= self._horizon:
                    self._chunk = rest
                    break
                time.sleep(RETRY_S)
                window, goal = self._world.observe()
                obs = {"window": window, "goal": goal}
        return {"actions": self._chunk}

    def reset(self) -> None:
        self._chunk = np.zeros((0, 0))


def serve(wanted: Drive, planner: Planner, ready: Callable[[], None]) -> None:
    """See `program`."""

    def reply(observation: dict[str, Any]) -> dict[str, Any]:
        return {"actions": planner.plan(**observation)}

    WebsocketServer(reply).serve(wanted.address, wanted.port, ready)


def drive(wanted: Drive, world: RealTimeWorld) -> None:
    """See `program`."""
    policy = ReconnectedPolicy(wanted, world)
    Runtime(
        WorldEnvironment(world, policy.connect),
        PolicyAgent(ActionChunkBroker(policy, wanted.settings["action_horizon"])),
        subscribers=[],
        num_episodes=wanted.episodes,
    ).run()


if __name__ == "__main__":
    program(serve, drive)
