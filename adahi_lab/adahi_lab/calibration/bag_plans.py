# SPDX-License-Identifier: Apache-2.0
"""A target's plans at every step of a robot's bags. They are requested once and stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from adahi_lab.calibration.plan_store import PlanStore, digest_of_bags
from adahi_lab.calibration.target_inputs import (
    Query,
    check_target,
    read_inputs,
    verifiers_encoder,
)
from adahi_lab.calibration.target_plans import TEACHER, Planned, fresh_plans
from adahi_lab.datasets.bag_dataset import BagDataset
from adahi_ros.core.randomness import step_uniforms
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import Policy

STORED = 64  # steps in a file, fewer where a run ends earlier
FOLDER = "planned"


def plan_bags(
    target: Policy,
    dataset: BagDataset,
    query: Query,
    folder: Path,
    on_steps: Callable[[int], None] = lambda steps: None,
    person: np.ndarray | None = None,
) -> Planned:
    """Return a target's plans at every step of a dataset; stored plans are not requested again.

    Args:
        target: plans.
        dataset: of the bags, by the contract.
        query: how the target is asked.
        folder: stores the plans as they arrive, also for later calls.
        on_steps: called with the number of steps that have just been planned.
        person: see `Planned.sound`.

    Raises:
        TargetUnavailableError: the target is not available; plans made so far are kept.
        ValueError: the target does not fit, or its plans have another shape than its signature.
    """
    signature = target.signature
    encoder = verifiers_encoder(query.contract, signature)
    check_target(query.contract, query.name, signature, encoder)
    samples = query.samples if target.draws else 1
    shape = samples, signature.horizon, signature.action_dim
    question = {
        "bags": digest_of_bags(query.bags),
        "namespace": query.namespace,
        "steps": _digest(dataset),
        "encoder": None if encoder is None else encoder.fingerprint,
        **{f"jpeg_{name}": value for name, value in query.jpeg._asdict().items()},
        "draws": [query.seed, samples] if target.draws else None,
        **query.origin,
    }
    store = PlanStore(folder / FOLDER, question, shape)
    done = len(store)
    on_steps(done)
    inputs = read_inputs(query, dataset, signature, encoder, done)
    fresh: list[np.ndarray] = []
    try:
        for batch in _batches(inputs, query.batch):
            draws = _draws(dataset, range(done, done + len(batch)), query.seed, samples, target.draws)
            fresh.append(_plans(target, side_by_side(batch), draws, shape))
            done += len(batch)
            on_steps(len(batch))
            if sum(map(len, fresh)) >= STORED:
                store.append(np.concatenate(fresh))
                fresh = []
    finally:
        if fresh:
            store.append(np.concatenate(fresh))
    return Planned.sound(target, dataset.trajectories, store.load(), person)


def side_by_side(each: Sequence[Observations]) -> Observations:
    """Return the observations of several robots joined into one; all have the same parts."""
    first = each[0]
    return Observations(
        {name: np.concatenate([one.features[name] for one in each]) for name in first.features},
        {name: np.concatenate([one.conditions[name] for one in each]) for name in first.conditions},
        tuple(instruction for one in each for instruction in one.instructions),
        {name: np.concatenate([one.images[name] for one in each]) for name in first.images},
    )


def _plans(
    target: Policy, observations: Observations, draws: np.ndarray, shape: tuple[int, int, int]
) -> np.ndarray:
    plans = fresh_plans(target, observations, draws)
    if plans.shape[1:] != shape:
        raise ValueError(
            f"target: proposes actions of shape {plans.shape[2:]}, must be {shape[1:]} as its signature says"
        )
    return plans


def _draws(dataset: BagDataset, steps: range, seed: int, samples: int, count: int) -> np.ndarray:
    """Return the draws (N, S, count) of N steps, by episode and step."""
    ends = dataset.trajectories.ends
    drawn = []
    for step in steps:
        episode = int(np.searchsorted(ends, step, side="right"))
        start = int(ends[episode - 1]) if episode else 0
        drawn.append(step_uniforms(seed, TEACHER, episode, step - start, samples * count))
    return np.stack(drawn).reshape(len(steps), samples, count)


def _batches(inputs: Iterator[Observations], size: int) -> Iterator[list[Observations]]:
    while batch := list(islice(inputs, size)):
        yield batch


def _digest(dataset: BagDataset) -> str:
    """Name the steps of a dataset and the instruction at each."""
    instructions = "\0".join(dataset.instructions).encode()
    return hashlib.blake2b(dataset.places.tobytes() + instructions, digest_size=16).hexdigest()
