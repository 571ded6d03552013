# SPDX-License-Identifier: Apache-2.0
"""A policy that draws codes: what VQ-BeT networks have in common, whatever runs them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from adahi_ros.core.proposal import CodeDistribution, Proposal, counted, probabilities_of, sample, softmax
from adahi_ros.core.signature import Observations, Signature
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.vqbet.decoder import ActionDecoder
from adahi_ros.policies.vqbet.vqbet_checkpoint import Checkpoint


@dataclass(frozen=True)
class Prediction:
    """A network's output for B windows.

    Attributes:
        logits: (B, N, K) float32, one independent distribution per codebook.
        offsets: (B, N, K, W, A) float32 in action units: what each code, if chosen, adds to the
            decoded chunk; summed over the codebooks.
    """

    logits: np.ndarray
    offsets: np.ndarray

    def where_finite(self) -> Prediction:
        """Return the same; of rows that are not finite even logits, and offsets that are not numbers."""
        finite = np.isfinite(self.logits).all(axis=(1, 2)) & np.isfinite(self.offsets).all(axis=(1, 2, 3, 4))
        if finite.all():
            return self
        logits, offsets = self.logits.copy(), self.offsets.copy()
        logits[~finite], offsets[~finite] = 0.0, np.nan
        return Prediction(logits, offsets)

    def offset_at(self, codes: np.ndarray) -> np.ndarray:
        """Return the offset (B, W, A) that goes with codes (B, N)."""
        rows = np.arange(codes.shape[0])[:, None]
        books = np.arange(codes.shape[1])[None, :]
        offset: np.ndarray = self.offsets[rows, books, codes].sum(axis=1)
        return offset


class CodePolicy(Policy):
    """A `Policy` of codes: a network predicts their distributions and offsets, a table decodes them.

    Args:
        signature: with the codes of the decoder.
        decoder: of the tokenizer that it speaks.
        digest: names its configuration and weights.
    """

    def __init__(self, signature: Signature, decoder: ActionDecoder, digest: str) -> None:
        super().__init__(signature, decoder.range, decoder.action_scale, digest, decoder.codebooks)
        self.decoder = decoder

    @abstractmethod
    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """Predict for B windows (B, H, O) and goals (B, G), both float32 in the task's units."""

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`."""
        window, condition = self.signature.window(observations), self.signature.condition(observations)
        prediction = self.predict(window, condition).where_finite()
        probabilities, counts = softmax(prediction.logits, sampling.temperature), None
        if sampling.sendable:
            counts = counted(probabilities)
            probabilities = probabilities_of(counts)

        def actions_of(codes: np.ndarray) -> np.ndarray:
            offset = prediction.offset_at(codes)
            actions: np.ndarray = self.decoder.decode(codes) + offset
            return actions

        codes = sample(probabilities if counts is None else counts, draws)
        return Proposal(actions_of(codes), CodeDistribution(probabilities, codes, actions_of, counts))


class VQBeTPolicy(CodePolicy):
    """A VQ-BeT as a `Policy`.

    Args:
        checkpoint: of the network.
        run: runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: Checkpoint, run: RunNetwork, device: str = "cpu") -> None:
        super().__init__(checkpoint.signature, checkpoint.decoder, checkpoint.digest())
        self.device = device
        self._run = run

    def predict(self, windows: np.ndarray, goals: np.ndarray) -> Prediction:
        """See `CodePolicy.predict`."""
        return Prediction(*self._run(windows, goals))
