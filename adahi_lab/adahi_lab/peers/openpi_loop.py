# SPDX-License-Identifier: Apache-2.0
"""openpi's closed loop, as in its examples: `Runtime`, `ActionChunkBroker`, `WebsocketClientPolicy`.

The robot requests when its chunk ends, after `action_horizon` (in `settings`) actions, and waits for the
reply. The client is entirely openpi's; the server is that of `openpi_websocket.py`. Each observation triggers
a step. With `max_hz` of `settings` the runtime uses its own clock, which runs slow, because it does not
compensate for oversleeping. See `plan_server.py` for how to run it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openpi_client.action_chunk_broker import ActionChunkBroker
from openpi_client.base_policy import BasePolicy
from openpi_client.runtime.agents.policy_agent import PolicyAgent
from openpi_client.runtime.environment import Environment
from openpi_client.runtime.runtime import Runtime
from openpi_client.websocket_client_policy import WebsocketClientPolicy

from adahi_lab.peers.closed_loop import Drive, RealTimeWorld
from adahi_lab.peers.openpi_websocket import WebsocketServer
from adahi_lab.peers.plan_server import Planner, program


class WorldEnvironment(Environment):
    """The world with the interface of openpi's runtime."""

    def __init__(self, world: RealTimeWorld, wait: bool) -> None:
        self._world, self._wait = world, wait

    def reset(self) -> None:
        """Begin an episode; the runtime also calls it after the last one, to move the robot home."""
        if self._world.left:
            self._world.start()

    def is_episode_complete(self) -> bool:
        return self._world.over.is_set()

    def get_observation(self) -> dict[str, object]:
        window, goal = self._world.observe(self._wait)
        return {"window": window, "goal": goal}

    def apply_action(self, action: dict[str, Any]) -> None:
        self._world.command(action["actions"])


class CountedPolicy(BasePolicy):
    """A policy that reports its calls to the world."""

    def __init__(self, policy: BasePolicy, world: RealTimeWorld) -> None:
        self._policy, self._world = policy, world

    def infer(self, obs: dict[str, object]) -> dict[str, object]:
        self._world.count_call()
        return self._policy.infer(obs)

    def reset(self) -> None:
        self._policy.reset()


def serve(wanted: Drive, planner: Planner, ready: Callable[[], None]) -> None:
    """See `program`."""

    def reply(observation: dict[str, Any]) -> dict[str, Any]:
        return {"actions": planner.plan(**observation)}

    WebsocketServer(reply).serve(wanted.address, wanted.port, ready)


def drive(wanted: Drive, world: RealTimeWorld) -> None:
    """See `program`."""
    policy = CountedPolicy(WebsocketClientPolicy(wanted.address, wanted.port), world)
    max_hz = wanted.settings.get("max_hz", 0.0)
    Runtime(
        WorldEnvironment(world, wait=not max_hz),
        PolicyAgent(ActionChunkBroker(policy, wanted.settings["action_horizon"])),
        subscribers=[],
        max_hz=max_hz,
        num_episodes=wanted.episodes,
    ).run()


if __name__ == "__main__":
    program(serve, drive)
