# SPDX-License-Identifier: Apache-2.0
"""Proposals by retrieval: the actions that followed the nearest recorded observation.

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
from adahi_ros.core.proposal import ActionRange, Proposal
from adahi_ros.core.schema import within
from adahi_ros.core.signature import OBSERVATION, Observations
from adahi_ros.core.tensor_files import Shapes, read_tensors
from adahi_ros.policies.flat_signature import flat_signature
from adahi_ros.policies.interface import AS_TRAINED, Actor, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import NetworkSizes, Size, SizeOrNone, read_network
from adahi_ros.proposers.opened_file import opened

KIND = "retrieval"
INDEX = "DIRECTORY/NAME of an index, written by `adahi lab index`"
NEAREST = 64  # candidates; one per episode is used
COMPARED = 4  # actions compared between neighbours: the present one and three more, as in HeiSD
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
        error: (2,), weights of the neighbours' mean square disagreement, and of the squared distance to the
            nearest, in the expected mean square error of a retrieved plan.
    """

    mean: np.ndarray
    scale: np.ndarray
    keys: np.ndarray
    actions: np.ndarray
    last: np.ndarray
    action_scale: np.ndarray
    error: np.ndarray

    @cached_property
    def _squared(self) -> np.ndarray:
        squared: np.ndarray = np.square(self.keys).sum(axis=1)
        return squared

    def queries(self, observation: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return observations (B, O) and goals (B, G) as keys."""
        queries: np.ndarray = (np.concatenate([observation, goal], axis=1) - self.mean) / self.scale
        return queries.astype(np.float32)

    def nearest(
        self, queries: np.ndarray, count: int, without: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows (B, count), of different episodes where possible, and their distances.

        Nearest first; distances are root mean squares over the key.

        Args:
            queries: (B, Q).
            count: at most `NEAREST`.
            without: (B,), the last row of an episode to exclude, for each; None for none.
        """
        squared = self._squared - 2.0 * queries @ self.keys.T
        if without is not None:
            squared[self.last == without[:, None]] = np.inf
        most = min(NEAREST, len(self.keys))
        rows = np.argpartition(squared, most - 1, axis=1)[:, :most]
        apart = np.square(self.keys[rows] - queries[:, None]).mean(axis=2)
        if without is not None:
            apart[self.last[rows] == without[:, None]] = np.inf
        order = np.lexsort((rows, apart), axis=1)
        rows, apart = np.take_along_axis(rows, order, 1), np.take_along_axis(apart, order, 1)
        same = self.last[rows][:, :, None] == self.last[rows][:, None, :]
        again = np.tril(same, -1).any(axis=2)
        order = np.argsort(again, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(rows, order, 1), np.sqrt(np.take_along_axis(apart, order, 1))

    def plans(self, rows: np.ndarray, horizon: int) -> np.ndarray:
        """Return the actions from rows (...) on, (..., horizon, A); an episode's last one is repeated."""
        ahead = np.minimum(rows[..., None] + np.arange(horizon), self.last[rows][..., None])
        return self.actions[ahead]

    def doubt(self, rows: np.ndarray, apart: np.ndarray) -> np.ndarray:
        """Return the features of the expected error of plans: (B, 2), see `error`.

        Args:
            rows: (B, K), of neighbours, the nearest first.
            apart: (B, K), their distances.
        """
        plans = self.plans(rows, COMPARED) / self.action_scale
        disagreement = np.square(plans[:, 1:] - plans[:, :1]).mean(axis=(2, 3)).mean(axis=1)
        return np.stack([disagreement, np.square(apart[:, 0])], axis=1)


@dataclass(frozen=True)
class IndexSizes(NetworkSizes):
    """Sizes of an index; see `Retrieval`.

    Attributes:
        steps: of all demonstrations.
    """

    observation_dim: Size
    goal_dim: SizeOrNone
    action_dim: Size
    horizon: Annotated[int, within(1, LARGEST, "an integer")]
    neighbours: Annotated[int, within(2, NEAREST, "an integer")]
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
            "error": (2,),
        }


class Retrieval(Policy):
    """A `Policy` that repeats the actions of its index's nearest steps, with an expected error.

    Args:
        index: of demonstrations.
        observation_dim: O.
        horizon: T.
        neighbours: K, that are compared; at least 2.
        digest: of the index.
    """

    def __init__(
        self, index: Index, observation_dim: int, horizon: int, neighbours: int, digest: str
    ) -> None:
        goal_dim = index.keys.shape[1] - observation_dim
        margin = RANGE_MARGIN * index.action_scale
        allowed = ActionRange(index.actions.min(axis=0) - margin, index.actions.max(axis=0) + margin)
        action_dim = index.actions.shape[1]
        signature = flat_signature(1, horizon, action_dim, observation_dim, goal_dim)
        super().__init__(signature, allowed, index.action_scale, digest)
        self.index = index
        self._neighbours = neighbours

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; the expected error is a root mean square in action scales."""
        rows, apart = self._found(observations, self._neighbours)
        doubt = self.index.doubt(rows, apart)
        plans = self.index.plans(rows[:, 0], self.signature.horizon)
        return Proposal(plans, expected_error=np.sqrt(doubt @ self.index.error))

    def candidates(self, observations: Observations, count: int) -> np.ndarray:
        """Return the actions (B, count, A) of the nearest steps, the nearest first."""
        actions: np.ndarray = self.index.actions[self._found(observations, count)[0]]
        return actions

    def _found(self, observations: Observations, count: int) -> tuple[np.ndarray, np.ndarray]:
        newest = observations.features[OBSERVATION][:, -1]
        return self.index.nearest(self.index.queries(newest, self.signature.condition(observations)), count)


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
    if not ((index.scale > 0.0).all() and (index.action_scale > 0.0).all() and (index.error >= 0.0).all()):
        raise CheckpointError(f"{weights}: scale, action_scale: must be positive, and error not negative")
    if index.last.dtype != np.int64 or not _are_ends(index.last):
        raise CheckpointError(f"{weights}: last: must be the row that each row's episode ends with, an int64")
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()[:16]
    return Retrieval(index, sizes.observation_dim, sizes.horizon, sizes.neighbours, digest)


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
