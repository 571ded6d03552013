# SPDX-License-Identifier: Apache-2.0
"""Shared by the peers' servers and drivers of plans: the target and the command line.

    python -m MODULE serve SETTINGS.json             prints `ready`, and replies until SIGTERM
    python -m MODULE drive SETTINGS.json LOGS.json    runs the episodes of a `Drive`, and writes their logs

A server reads address, port, target, seed and `settings.added_compute_s` from the file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from adahi_lab.link.restarted_server import link_of
from adahi_lab.peers.closed_loop import Drive, RealTimeWorld, save_logs
from adahi_lab.peers.driving import BACKEND, freeze_garbage
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.core.signature import Signature
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.slowed import SlowedPolicy

RETRY_S = 0.02  # between attempts to connect again


class Planner:
    """Makes plans with the target policy.

    Args:
        target: DIRECTORY/NAME.
        seed: of its draws.
        added_compute_s: added to the time of every plan.
    """

    def __init__(self, target: str, seed: int, added_compute_s: float = 0.0) -> None:
        policy = load_policy(Path(target), BACKEND)
        self.signature = policy.signature
        self._policy = SlowedPolicy(policy, added_compute_s, time.sleep) if added_compute_s else policy
        self._seed, self._made = seed, 0
        policy.propose(policy.signature.nothing(), np.zeros((1, policy.draws)))  # the first takes longer

    def plan(self, window: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return actions (T, A) float32 for a window (H, O) and a goal (G,)."""
        draws = step_uniforms(self._seed, "closed_loop/plan", 0, self._made, self._policy.draws)
        self._made += 1
        observations = self.signature.observations(window[None], goal[None])
        return self._policy.propose(observations, draws[None]).actions[0]


def signature_of(target: str) -> Signature:
    """Return the signature of the target at DIRECTORY/NAME."""
    return load_policy(Path(target), BACKEND).signature


@contextmanager
def open_world(drive: Drive, signature: Signature) -> Iterator[Any]:
    """Yield the world of a client: a `RealTimeWorld`, or a `JudgedWorld` with the same interface."""
    if drive.judged:
        from adahi_lab.peers.judged_world import judged_world

        with judged_world(drive, signature) as world:
            yield world
    else:
        yield RealTimeWorld(drive, signature, link_of(drive.restart))


def program(
    serve: Callable[[Drive, Planner, Callable[[], None]], None],
    drive: Callable[[Drive, RealTimeWorld], None],
) -> None:
    """Run a peer's command line.

    Args:
        serve: listens, calls its last argument, and replies forever.
        drive: runs all episodes of a world.
    """
    command, wanted = sys.argv[1], Drive.load(Path(sys.argv[2]))
    if command == "serve":
        planner = Planner(wanted.target, wanted.seed, wanted.settings.get("added_compute_s", 0.0))
        freeze_garbage()
        serve(wanted, planner, lambda: print("ready", flush=True))
        return
    with open_world(wanted, signature_of(wanted.target)) as world:
        freeze_garbage()
        drive(wanted, world)
    save_logs(world.logs, Path(sys.argv[3]))
