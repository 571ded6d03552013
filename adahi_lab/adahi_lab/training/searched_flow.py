# SPDX-License-Identifier: Apache-2.0
"""A target that searches: at each request it finds the presses of a puzzle, and a flow plans the motion.

The flow learns from demonstrations with what the search found at every step, and reads no goal. The search
reads the newest observation and the goal. The same flow without the search, which reads the goal instead, is
the policy that a robot would have alone.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from adahi_lab.datasets.trajectories import NO_FEATURES, Trajectories
from adahi_lab.tasks.lights_out import board, hand_of
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import GOAL, IMAGE_FEATURES, OBSERVATION, Feature, Observations
from adahi_ros.policies.flow.flow_checkpoint import FlowCheckpoint, load_flow
from adahi_ros.policies.flow.flow_policy import FlowPolicy
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.registry import CheckpointKind


class SearchedFlowCheckpoint(FlowCheckpoint):
    """A flow policy on disk that reads what a search finds, beside the observation."""

    kind = "searched_flow"


class UnsearchedFlowCheckpoint(FlowCheckpoint):
    """The same, which reads the goal of every step instead."""

    kind = "unsearched_flow"


class SearchedFlow(Policy):
    """The search and the flow.

    Args:
        checkpoint: of the flow.
        run: runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: FlowCheckpoint, run: RunNetwork, device: str = "cpu") -> None:
        self._motion = motion = FlowPolicy(checkpoint, run, device)
        observed, found = motion.signature.features
        signature = replace(motion.signature, features=(observed,), conditions=(Feature(GOAL, found.size),))
        super().__init__(signature, motion, motion.action_scale, motion.digest, motion.draws)
        self.device = device

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        observed, wrong = observations.features[OBSERVATION], observations.conditions[GOAL]
        found = self._found(observed[:, -1], wrong)[:, None]
        features = {OBSERVATION: observed, IMAGE_FEATURES: found.repeat(observed.shape[1], axis=1)}
        return self._motion.propose(Observations(features, {}), draws, sampling)

    def _found(self, observed: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        """Return what the flow reads (B, N), for observations (B, O) and wrong lights (B, N)."""
        return board().marks(hand_of(observed), wrong)


class UnsearchedFlow(SearchedFlow):
    """The flow without the search."""

    def _found(self, observed: np.ndarray, wrong: np.ndarray) -> np.ndarray:
        return wrong


MADE = {each.kind: each for each in (FlowCheckpoint, SearchedFlowCheckpoint, UnsearchedFlowCheckpoint)}
SEARCHED = CheckpointKind(partial(load_flow, made=SearchedFlowCheckpoint), SearchedFlow)
UNSEARCHED = CheckpointKind(partial(load_flow, made=UnsearchedFlowCheckpoint), UnsearchedFlow)


def as_read(data: Trajectories, kind: str) -> Trajectories:
    """Return demonstrations as a flow of some kind reads them: what was found in place of the goals."""
    if kind == FlowCheckpoint.kind:
        return data
    pressed = data.labels > 0
    wrong = (pressed @ board().changes.T % 2).astype(np.float32)
    read = data.labels if kind == SearchedFlowCheckpoint.kind else wrong
    return replace(data.without_goals(), image_features=read, labels=NO_FEATURES)
