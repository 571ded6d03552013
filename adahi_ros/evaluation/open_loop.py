"""The target alone, a chunk of actions at a time: plan, execute k of them blindly, plan again.

What users of chunking policies do today to call a server less often: n_action_steps in LeRobot,
the action horizon in openpi. It transmits 1/k of the steps and never looks at what happens between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adahi_ros.evaluation.rollout import Log, World
from adahi_ros.policy.drafting import draft_action
from adahi_ros.policy.history import ObservationWindow
from adahi_ros.policy.interface import Policy
from adahi_ros.randomness import EpisodeStreams

TEMPERATURE = 1.0


def open_loop_rollout(
    world: World,
    target: Policy,
    executed: int,
    seed: int,
    episodes: Sequence[int],
    on_step: Callable[[int], None] = lambda step: None,
) -> Log:
    """Run episodes to their end.

    A plan that is no action is refused, and what was executed last repeated until the next one is due.

    Args:
        world: is reset, and left at the end of the episodes.
        target: proposes chunks of W actions.
        executed: k, how many of them are executed before it is asked again.
        seed: of the world's and the target's draws.
        episodes: their numbers.
        on_step: called with the number of steps done.

    Raises:
        ValueError: k is not from 1 to W.
    """
    spec = target.spec
    if not 1 <= executed <= spec.chunk_length:
        raise ValueError(f"executed: {executed}, must be 1 to {spec.chunk_length}, the target's chunk length")
    numbers = list(episodes)
    world.reset(seed, numbers)
    window = ObservationWindow(len(numbers), spec.window_length, spec.observation_dim)
    draws = EpisodeStreams(seed, "open_loop", numbers, spec.codebooks)
    nothing = np.zeros((len(numbers), 0), dtype=bool)
    unknown = np.full(len(numbers), np.nan)
    action = np.zeros((len(numbers), spec.action_dim), dtype=np.float32)
    rows: list[tuple[np.ndarray, ...]] = []
    while not world.done.all():
        active = ~world.done
        windows = window.push(world.observation)
        ahead = len(rows) % executed
        if ahead == 0:
            goals = world.goal.astype(np.float32)
            plan = draft_action(target, windows, goals, draws.next(), TEMPERATURE, stand_in=action)
        action = plan.chunk[:, ahead]
        world.step(action)
        asked = np.full(len(numbers), ahead == 0)
        rows.append((active, asked, unknown, unknown, nothing, action, action, asked & ~plan.sound))
        on_step(len(rows))
    return Log(*(np.stack(column) for column in zip(*rows, strict=True)))
