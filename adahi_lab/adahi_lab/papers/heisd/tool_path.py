# SPDX-License-Identifier: Apache-2.0
"""Retrieves or drafts the tokens of one action, by how the tool moved: HeiSD (arXiv 2603.17573).

By its released code. Where the tool moved far and straight, it executes retrieved actions: two unverified,
then one that the target verifies by blocks. Elsewhere it drafts, and the target verifies token by token.
Before three positions are known, the target decodes by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adahi_lab.papers.heisd.retrieval import INDEX, Index, opened_index
from adahi_lab.papers.tokens.action_draft import ActionDrafter
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import OBSERVATION
from adahi_ros.policies.interface import Policy
from adahi_ros.proposers.interface import Proposer, ProposerContext

WINDOW = 5  # positions
LEAST = 3  # positions, for a circle
SHARE = 0.5  # of the radius in the metric
RANGES = 20_000  # windows of demonstrations that the metric's ranges are from


def displacement(points: np.ndarray) -> np.ndarray:
    """Return the sum of the distances (B,) of points (B, W, 3) to the last one."""
    summed: np.ndarray = np.linalg.norm(points[:, -1:] - points, axis=2).sum(axis=1)
    return summed


def radius(points: np.ndarray) -> np.ndarray:
    """Return HeiSD's radius (B,) of points (B, W, 3): their mean distance from their middle, in a plane.

    The released code fits a circle from there. The fit stops where it starts.
    """
    centred = points - points.mean(axis=1, keepdims=True)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat = centred @ axes[:, :2].transpose(0, 2, 1)
    mean: np.ndarray = np.linalg.norm(flat, axis=2).mean(axis=1)
    return mean


def measured(points: np.ndarray) -> np.ndarray:
    """Return radius and displacement (B, 2) of points (B, W, 3)."""
    return np.stack([radius(points), displacement(points)], axis=1)


class ToolMetric:
    """Radius and displacement as one number from 0 to 1, by their ranges in demonstrations.

    Attributes:
        limit: the metric that a share of the demonstrated paths does not exceed.

    Args:
        index: of demonstrations.
        tool: index of the tool's x among the observation's entries.
        share: of the limit.
    """

    def __init__(self, index: Index, tool: int, share: float) -> None:
        entries = slice(tool, tool + 3)
        seen = index.keys[:, entries] * index.scale[entries] + index.mean[entries]
        first = np.arange(len(seen) - WINDOW + 1)
        first = first[index.last[first] == index.last[first + WINDOW - 1]][:RANGES]
        values = measured(seen[first[:, None] + np.arange(WINDOW)])
        self._least, self._most = values.min(axis=0), values.max(axis=0)
        self.limit = float(np.quantile(self._fused(values), share))

    def fuse(self, points: np.ndarray) -> np.ndarray:
        """Return the metric (B,) of points (B, W, 3)."""
        return self._fused(measured(points))

    def _fused(self, values: np.ndarray) -> np.ndarray:
        shares = (values - self._least) / np.maximum(self._most - self._least, 1e-12)
        fused: np.ndarray = np.clip(shares, 0.0, 1.0) @ np.array([SHARE, 1.0 - SHARE])
        return fused


@dataclass(eq=False)
class ToolPathProposer(Proposer):
    """HeiSD: retrieves where the tool moves far, else drafts tokens.

    Its gate is `expected_error` at 0, its rule `blocks`.

    Raises:
        ValueError: the draft does not emit a token for each entry of an action, the observation has no
            such entries, or there is no index of this robot in the file.
    """

    policy: Policy
    file: str = argument("", INDEX, optional=True)
    tool: int = argument(0, "Place of the tool's x in the observation", 0, 4096)
    drafts: float = argument(0.25, "Share of the demonstrated paths where it would draft", 0.0, 1.0)
    skipped: int = argument(2, "Retrieved actions before a verified one", 0, 1_000_000)
    candidates: int = argument(5, "Retrieved actions that the target chooses from", 1, 6)
    within: float = argument(9.0, "Bins that a drafted token may be off", 0.0, 1024.0)

    def __post_init__(self) -> None:
        self._retrieval = opened_index(self.policy, self.file)
        observed = self.policy.signature.observation_dim
        if self.tool + 3 > observed:
            raise ValueError(f"tool: {self.tool}, must be at most {observed - 3}")
        self._drafter = ActionDrafter(self.policy, "tool_path")
        self._metric = ToolMetric(self._retrieval.index, self.tool, self.drafts)
        self._unverified = np.zeros(0, dtype=np.int64)  # retrieved actions in a row, of each robot

    def propose(self, context: ProposerContext) -> Proposal:
        """See `Proposer`; an action and a distance for the rule. The expected error is 0 or infinite."""
        batch, drafter = len(context.draws), self._drafter
        if context.begins or len(self._unverified) != batch:
            self._unverified = np.zeros(batch, dtype=np.int64)
        known = min(context.step, WINDOW)
        moved = np.zeros(batch)
        if known >= LEAST:
            moved = self._metric.fuse(self._path(context, known))
        retrieves = moved > self._metric.limit
        every = self._retrieval.candidates(context.observations, self.candidates)
        found = every[:, 0]
        codes, actions = drafter.clipped(drafter.bins(found)), found.copy()
        rows = np.flatnonzero(~retrieves)
        if rows.size:
            codes[rows], actions[rows] = drafter.draft(context.observations.rows(rows))
        skips = retrieves & (self._unverified < self.skipped)
        self._unverified = np.where(skips, self._unverified + 1, 0)
        # Below 0 by blocks, else by tokens; half a bin more, for rounding.
        bins = np.floor(self.within) + 0.5 if known >= LEAST else 0.5
        distance = np.where(retrieves[:, None], -0.5, bins) * drafter.width
        others = every[:, 1:] if (retrieves & ~skips).any() else every[:, :0]
        sent = np.concatenate([np.stack([actions, actions + distance], axis=1), others], axis=1)
        made = drafter.proposal(sent, codes)
        return Proposal(made.actions, made.distribution, np.where(skips, 0.0, np.inf))

    def _path(self, context: ProposerContext, known: int) -> np.ndarray:
        """Return the tool's positions (B, known, 3) before this step, as in the released code."""
        entries = slice(self.tool, self.tool + 3)
        steps = [np.full(len(context.draws), context.step - ago) for ago in range(known, 0, -1)]
        return np.stack([context.memory.at(OBSERVATION, at)[:, entries] for at in steps], axis=1)
