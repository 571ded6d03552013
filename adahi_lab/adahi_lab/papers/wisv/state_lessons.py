# SPDX-License-Identifier: Apache-2.0
"""Lessons for the rule `hidden_states`: the effect of a kept token on the world.

A draft's chunk is judged every few steps. Where one of its tokens is not the target's likeliest, the world is
forked three times: with the drafted token, with the target's, and with another one that the target draws. The
target completes each chunk greedily, and each fork executes its chunk.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from adahi_lab.evaluation.episodes import lesson_episodes
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.history import History
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.wisv.hidden_states import packed_states
from adahi_lab.parallel import Job, run_jobs
from adahi_lab.tasks import make
from adahi_lab.tasks.episodes import World, episodes, seen_by_target
from adahi_lab.training.rows import Rows
from adahi_ros.core.proposal import sample
from adahi_ros.core.randomness import EpisodeStreams
from adahi_ros.core.signature import Observations

FIRST_EPISODE = 800_000  # of the lessons; lower numbers are for other parts
EVERY = 3  # steps from one lesson to the next
FIRST_SHARE = 0.5  # of the lessons are about a chunk's first mismatch, the others about any
DRAFT_SHARE = 0.5  # of the robots execute the chunk with the drafted token
BATCH = 25  # episodes side by side
DRAWS = 4  # of each robot and lesson


@dataclass(frozen=True)
class StateLessons(Rows):
    """M mismatches of drafted tokens.

    Attributes:
        episode: (M,), its number.
        token: (M,), its index in the chunk.
        nearer: (M,), share of the target's own draws that are nearer to its likeliest token.
        target_state: (M, W) float32, the target's hidden state before the token.
        draft_state: (M, D) int8, the draft's, as it is sent.
        kept: (M,), the distance of the worlds with the drafted token and with the target's, in standard
            deviations of the observation, root mean square.
        redrawn: (M,), the same of another token that the target draws, and its likeliest.
    """

    episode: np.ndarray
    token: np.ndarray
    nearer: np.ndarray
    target_state: np.ndarray
    draft_state: np.ndarray
    kept: np.ndarray
    redrawn: np.ndarray


def forked(world: World) -> World:
    """Return an independent copy of a world; parts without state are shared."""
    fork = copy.copy(world)
    for name, value in vars(world).items():
        if isinstance(value, np.ndarray | EpisodeStreams):
            setattr(fork, name, copy.deepcopy(value))
        elif isinstance(value, list):
            setattr(fork, name, list(value))
    return fork


def completed(target: TokenPolicy, seen: Observations, codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return chunks (B, N): the first `known` (B,) tokens of codes (B, N), at least one; then the likeliest.

    One pass per token.
    """
    made, first = codes.copy(), int(known.min())
    decoding = target.begin(seen, made[:, :first])
    for index in range(first, made.shape[1]):
        best = decoding.logits[:, -1].argmax(axis=-1)
        made[:, index] = np.where(index < known, made[:, index], best)
        if index + 1 < made.shape[1]:
            decoding = target.extend(decoding, made[:, index : index + 1])
    return made


def _led_to(world: World, actions: np.ndarray) -> np.ndarray:
    """Return the observation (E, O) of a fork after actions (E, T, A)."""
    world = forked(world)
    for step in range(actions.shape[1]):
        world.step(actions[:, step])
    return np.asarray(world.observation, dtype=np.float64)


def _chosen(mismatch: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return one mismatch (B,) of each chunk's (B, N), by draws (B, 2); 0 where there is none."""
    counts = mismatch.sum(axis=1)
    nth = np.floor(draws[:, 1] * counts) * (draws[:, 0] >= FIRST_SHARE)
    chosen: np.ndarray = (np.cumsum(mismatch, axis=1) > nth[:, None]).argmax(axis=1)
    return chosen


def mismatches_of(
    task: str, files: PolicyFiles, seed: int, numbers: Sequence[int]
) -> tuple[StateLessons, np.ndarray]:
    """Return lessons with unscaled differences of observations, and all observations (S, O).

    The returned `kept` and `redrawn` are (M, O).
    """
    policies = files.load()
    draft, target = policies.draft, policies.target
    assert isinstance(draft, TokenPolicy)
    assert isinstance(target, TokenPolicy)
    world, count, tokens = make(task), len(numbers), target.codec.codebooks
    draft_seen, seen = History(draft.signature, count), History(target.signature, count)
    draws = EpisodeStreams(seed, "hidden states", list(numbers), DRAWS)
    found: list[tuple[np.ndarray, ...]] = []
    observed, everyone = [], np.arange(count)
    actions = np.zeros((count, 0, target.codec.action_dim), dtype=np.float32)
    for step, active in enumerate(episodes(world, seed, numbers)):
        uniforms, visible = draws.next(), seen_by_target(world)
        observed.append(np.asarray(world.observation, np.float64)[active])
        drafting, observations = draft_seen.push(visible), seen.push(visible)
        if step % EVERY == 0:
            ours = draft.likeliest(drafting, tokens)
            theirs = target.judge(observations, ours.codes).distribution
            assert isinstance(theirs, TokenDistribution)
            best = theirs.probabilities.argmax(axis=-1)
            mismatch = ours.codes != best
            at = _chosen(mismatch, uniforms[:, :2])
            here = everyone, at
            three = np.repeat(ours.codes[None], 3, axis=0)  # the target's token, the draft's, another draw
            three[0, everyone, at] = best[here]
            three[2, everyone, at] = sample(theirs.probabilities[here], uniforms[:, 2])
            thrice = observations.rows(np.tile(everyone, 3))
            chunks = target.codec.decode(
                completed(target, thrice, three.reshape(-1, tokens), np.tile(at + 1, 3))
            )
            chunks = chunks.reshape(3, count, *chunks.shape[1:])
            rows = active & mismatch.any(axis=1)
            ends = [_led_to(world, each)[rows] for each in chunks]
            states = theirs.hidden[here], packed_states(ours.hidden[here])
            apart, given = np.abs(ours.codes[here] - best[here]), theirs.probabilities[here]
            nearer = given * (np.abs(np.arange(given.shape[1]) - best[here][:, None]) < apart[:, None])
            of_all = np.asarray(numbers), at, nearer.sum(axis=1), *states
            found.append((*(each[rows] for each in of_all), ends[1] - ends[0], ends[2] - ends[0]))
            actions = np.where((uniforms[:, 3] < DRAFT_SHARE)[:, None, None], chunks[1], chunks[0])
        world.step(actions[:, step % EVERY])
    return StateLessons(*(np.concatenate(column) for column in zip(*found, strict=True))), np.concatenate(
        observed
    )


def lessons(task: str, files: PolicyFiles, seed: int, episodes: int, workers: int) -> StateLessons:
    """Return the lessons of so many episodes; no evaluation uses their numbers.

    Raises:
        ValueError: draft or target does not emit tokens.
    """
    policies = files.load()
    if not all(isinstance(each, TokenPolicy) for each in (policies.draft, policies.target)):
        raise ValueError(f"{files.folder}: draft and target must emit tokens for the rule hidden_states")
    numbers = lesson_episodes(episodes, FIRST_EPISODE)
    parts = [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]
    jobs: list[Job[tuple[StateLessons, np.ndarray]]] = [
        (mismatches_of, (task, files, seed, part)) for part in parts
    ]
    results = run_jobs(jobs, workers)
    scale = np.concatenate([observed for _, observed in results]).std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    joined = StateLessons.joined([part for part, _ in results])
    led = {name: np.sqrt(((getattr(joined, name) / scale) ** 2).mean(axis=1)) for name in ("kept", "redrawn")}
    return replace(joined, **led)
