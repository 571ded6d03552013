# SPDX-License-Identifier: Apache-2.0
"""Retrieval: the actions of the nearest recorded observations.

After HeiSD (arXiv 2603.17573), where the draft of a target's action is a trajectory from a database of
demonstrations. HeiSD's keys are image features; here the key is the robot's observation, and its goal if
it has one, in standard deviations. A search through all of some ten thousand takes less than a millisecond
on one core, so no graph and no package is needed; the index limits their number when it is made
(retrieval_index.py).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.schema import within
from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.core.tensor_files import Shapes, read_tensors
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.interface import Actor
from adahi_ros.policies.networks.network_checkpoint import NetworkSizes, Size, SizeOrNone, read_network
from adahi_ros.proposers.opened_file import opened

KIND = "retrieval"
INDEX = "DIRECTORY/NAME of an index, written by `adahi lab index`"
NEAREST = 64  # candidates; one per episode is used
RANGE_MARGIN = 3.0  # in units of the action scale, beyond the demonstrations
LARGEST = 2**24


@dataclass(frozen=True)
class Index:
    """N steps of demonstrations.

    Attributes:
        mean, scale: (Q,) of observation and goal.
        keys: (N, Q) float32, both in these units.
        actions: (N, A) float32.
        last: (N,) int64, the last row of each row's episode.
        action_scale: (A,) float32.
    """

    mean: np.ndarray
    scale: np.ndarray
    keys: np.ndarray
    actions: np.ndarray
    last: np.ndarray
    action_scale: np.ndarray

    @cached_property
    def _squared(self) -> np.ndarray:
        squared: np.ndarray = np.square(self.keys).sum(axis=1)
        return squared

    def queries(self, observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return observations (B, O) and goals (B, G) as keys."""
        queries: np.ndarray = (np.concatenate([observation, goal], axis=1) - self.mean) / self.scale
        return queries.astype(np.float32)

    def nearest(self, queries: np.ndarray, count: int) -> np.ndarray:
        """Return rows (B, count) for queries (B, Q), nearest first, of different episodes where possible.

        A distance is a root mean square over the key; the count is at most `NEAREST`.
        """
        squared = self._squared - 2.0 * queries @ self.keys.T
        most = min(NEAREST, len(self.keys))
        rows = np.argpartition(squared, most - 1, axis=1)[:, :most]
        apart = np.square(self.keys[rows] - queries[:, None]).mean(axis=2)
        rows = np.take_along_axis(rows, np.lexsort((rows, apart), axis=1), 1)
        same = self.last[rows][:, :, None] == self.last[rows][:, None, :]
        again = np.tril(same, -1).any(axis=2)
        order = np.argsort(again, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, order, 1)


@dataclass(frozen=True)
class IndexSizes(NetworkSizes):
    """Sizes of an index; see `Retrieval`.

    Attributes:
        steps: of all demonstrations.
    """

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    steps: Annotated[int, within(1, LARGEST, "an integer")]

    def shapes(self) -> Shapes:
        """See `NetworkSizes`."""
        observed = (self.observation_dim + self.goal_dim,)
        return {
            "keys": (self.steps, *observed),
            "actions": (self.steps, self.action_dim),
            "last": (self.steps,),
            "mean": observed,
            "scale": observed,
            "action_scale": (self.action_dim,),
        }


class Retrieval(Actor):
    """An `Actor` that has the actions of its index's nearest steps.

    Args:
        index: of demonstrations.
        observation_dim: O.
        digest: of the index.
    """

    def __init__(self, index: Index, observation_dim: int, digest: str) -> None:
        goal_dim = index.keys.shape[1] - observation_dim
        margin = RANGE_MARGIN * index.action_scale
        allowed = ActionRange(index.actions.min(axis=0) - margin, index.actions.max(axis=0) + margin)
        signature = flat_signature(1, 1, index.actions.shape[1], observation_dim, goal_dim)
        super().__init__(signature, allowed, index.action_scale, digest)
        self.index = index

    def candidates(self, observations: Observations, count: int) -> np.ndarray:
        """Return the actions (B, count, A) of the nearest steps, the nearest first."""
        newest = observations.features[OBSERVATION][:, -1]
        queries = self.index.queries(newest, self.signature.condition(observations))
        actions: np.ndarray = self.index.actions[self.index.nearest(queries, count)]
        return actions


def load_retrieval(path: Path) -> Retrieval:
    """Load an index from `DIRECTORY/NAME.json` (or the same path without suffix).

    Raises:
        CheckpointError: it is missing or damaged.
    """
    weights, sizes, _ = read_network(path, KIND, IndexSizes, trained=False)
    tensors = read_tensors(weights)
    index = Index(**{each.name: tensors[each.name] for each in fields(Index)})
    for name, values in vars(index).items():
        if not np.isfinite(values).all():
            raise CheckpointError(f"{weights}: {name}: must be finite")
    if not ((index.scale > 0.0).all() and (index.action_scale > 0.0).all()):
        raise CheckpointError(f"{weights}: scale, action_scale: must be positive")
    if index.last.dtype != np.int64 or not _are_ends(index.last):
        raise CheckpointError(f"{weights}: last: must be the row that each row's episode ends with, an int64")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:16]
    return Retrieval(index, sizes.observation_dim, digest)


def opened_index(policy: Actor, file: str) -> Retrieval:
    """Return the index in a file, relative to where a program runs; raises as `opened`."""
    return opened(policy, file and str(Path(file).expanduser().absolute()), Retrieval, load_retrieval)


def _are_ends(last: np.ndarray) -> bool:
    """Whether rows come episode by episode, each with the last row of its own episode."""
    ends, rows = last == np.arange(len(last)), np.arange(len(last))
    if not ends.any() or not ends[-1]:
        return False
    following = np.flatnonzero(ends)
    return bool((last == following[np.searchsorted(following, rows)]).all())
