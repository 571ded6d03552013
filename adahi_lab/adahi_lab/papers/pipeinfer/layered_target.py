# SPDX-License-Identifier: Apache-2.0
"""A target of tokens that reads several runs of a chunk at the same time, and stops void ones between layers.

PipeInfer (Butler et al., arXiv 2407.11798): runs of drafted tokens follow each other through the layers. A
run that continues another one reads that one's keys and values, layer by layer, while both are in progress
("pipelined KV cache"). When a token of a run is refused, all runs that continue it are void, and each stops
before its next layer ("early inference cancellation").

Tokens are chosen greedily, as OpenVLA decodes. So the target knows from the runs that it has read which
others are void, and needs no message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from adahi_lab.papers.pipeinfer.token_runs import contradicts
from adahi_lab.papers.tokens.texts import agreed
from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint, load_tokens
from adahi_lab.papers.tokens.token_network import CachedBlock, TokenNetwork
from adahi_lab.papers.tokens.token_policy import Embedding
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.tokens.token_torch import load_network
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling

CHUNKS_KEPT = 16  # with keys and values; a robot needs those of its newest chunk
AT_ONCE_MOST = 16


class VoidRunError(ValueError):
    """A run is void: one of its tokens was refused.

    Attributes:
        layers: that it had passed.
        known: the target's tokens so far.
    """

    def __init__(self, layers: int, known: list[int]) -> None:
        super().__init__(f"codes: void after {layers} layers, must continue the target's own tokens")
        self.layers, self.known = layers, known


@dataclass(eq=False)
class _Run:
    """A pass over the first tokens of a chunk.

    Attributes:
        tokens: it reads these.
        caches: keys and values of all positions, (1, 2, heads, P, width / heads), by layer.
        ready: which caches are there, by layer; the last one says that `own` is, too.
        own: the target's tokens: of each of these, and the next one.
        void: it has no result.
    """

    tokens: tuple[int, ...]
    caches: list[Tensor]
    ready: list[threading.Event]
    own: list[int] = field(default_factory=list)
    void: bool = False


@dataclass(eq=False)
class _Chunk:
    """What is known of the chunk for one observation: the target's own tokens, and all runs over it."""

    known: list[int] = field(default_factory=list)
    runs: list[_Run] = field(default_factory=list)


class LayeredTarget(Policy):
    """See the module. Its threads may judge several runs of one robot at once.

    Args:
        checkpoint: of the network.
        at_once: threads.
    """

    def __init__(self, checkpoint: TokenCheckpoint, at_once: int = 4) -> None:
        codec = checkpoint.codec
        super().__init__(checkpoint.signature, codec.range, codec.action_scale, checkpoint.digest())
        self.codec, self.at_once = codec, at_once
        self._network: TokenNetwork = load_network(checkpoint).eval()
        self._embedding = Embedding(checkpoint)
        self._stages = [threading.Lock() for _ in self._network.blocks]  # one run at a time each
        self._lock = threading.Lock()
        self._chunks: OrderedDict[bytes, _Chunk] = OrderedDict()

    @property
    def layers(self) -> int:
        """Number of layers, between which a pass can stop."""
        return len(self._network.blocks)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy`; token by token, the likeliest each. Nothing is drawn."""
        codes = []
        for row in range(len(draws)):
            here, tokens = observations.rows(np.array([row])), list[int]()
            for _ in range(self.codec.codebooks):
                tokens.append(self.run(here, tuple(tokens))[-1])
            codes.append(tokens)
        every = np.array(codes, dtype=np.int64).reshape(len(draws), self.codec.codebooks)
        windows, goals = self.signature.window(observations), self.signature.condition(observations)
        finite = np.isfinite(windows).all(axis=(1, 2)) & np.isfinite(goals).all(axis=1)
        return Proposal(np.where(finite[:, None, None], self.codec.decode(every), np.float32(np.nan)))

    def judge(
        self, observations: Observations, codes: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `TokenPolicy.judge`, of runs (B, n); each distribution is certain of the likeliest token.

        For a void run it returns what is known by then: the target's tokens up to the one that was refused,
        and 0 for those after it.
        """
        read = codes[:, : self.codec.codebooks - 1]
        own = np.zeros((len(codes), read.shape[1] + 1), dtype=np.int64)
        for row, tokens in enumerate(read.tolist()):
            try:
                found = self.run(observations.rows(np.array([row])), tuple(tokens))
            except VoidRunError as error:
                if not contradicts(tokens, error.known):  # the run that it continues has failed
                    raise
                found = error.known[: len(tokens) + 1]
            own[row, : len(found)] = found
        probabilities = np.eye(self.codec.codebook_size, dtype=np.float32)[own]
        shape = len(codes), self.codec.chunk_length, self.codec.action_dim
        drawn = TokenDistribution(probabilities, codes, self.codec.decode, resumed=_not_resumed)
        return Proposal(np.full(shape, np.nan, dtype=np.float32), drawn)

    def run(
        self, observations: Observations, tokens: tuple[int, ...], void: Callable[[], bool] = lambda: False
    ) -> list[int]:
        """Return the target's tokens: of each of a run's n, and the next one, n + 1.

        Args:
            observations: of one robot.
            tokens: the first n of a chunk, n below N.
            void: whether the caller knows that other tokens were verified; called before each layer.

        Raises:
            VoidRunError: it is void.
        """
        windows = self.signature.window(observations)
        goals = self.signature.condition(observations)
        with self._lock:
            chunk = self._chunk(windows.tobytes() + goals.tobytes())
            if len(chunk.known) > len(tokens) and tuple(chunk.known[: len(tokens)]) == tokens:
                return chunk.known[: len(tokens) + 1]
            before = _longest(chunk.runs, tokens)
            run = _Run(tokens, [], [threading.Event() for _ in range(self.layers)])
            chunk.runs.append(run)
        try:
            if before is not None and before.tokens == tokens:  # a copy of it
                before.ready[-1].wait()
                if before.void:
                    raise VoidRunError(0, list(chunk.known))
                return before.own
            return self._pass(chunk, run, before, windows, goals, void)
        except BaseException:
            run.void = True
            with self._lock:
                chunk.runs = [each for each in chunk.runs if each is not run]
            raise
        finally:
            for event in run.ready:  # so that no other run waits for it
                event.set()

    def _chunk(self, key: bytes) -> _Chunk:
        chunk = self._chunks.setdefault(key, _Chunk())
        self._chunks.move_to_end(key)
        if len(self._chunks) > CHUNKS_KEPT:
            self._chunks.popitem(last=False)
        return chunk

    @torch.inference_mode()
    def _pass(
        self,
        chunk: _Chunk,
        run: _Run,
        before: _Run | None,
        windows: np.ndarray,
        goals: np.ndarray,
        void: Callable[[], bool],
    ) -> list[int]:
        """Pass all layers; reads only tokens that the run before has not."""
        codes, read = np.array([run.tokens], dtype=np.int64).reshape(1, -1), 0
        if before is None:
            embedded = self._embedding.of_context(windows, goals)
        else:
            read = len(before.tokens)
            embedded = np.zeros((1, 0, self._network.config.width), dtype=np.float32)
        embedded = np.concatenate([embedded, self._embedding.of_codes(codes[:, read:], read)], axis=1)
        values, new = torch.from_numpy(embedded.astype(np.float32)), embedded.shape[1]
        old = 0 if before is None else self._embedding.context + read
        mask = torch.full((new, old + new), -torch.inf).triu(old + 1)
        empty = self._network.no_past(1)[:, 0]
        for layer, block in enumerate(self._network.blocks):
            if void() or contradicts(run.tokens, chunk.known):
                raise VoidRunError(layer, list(chunk.known))
            if before is not None:
                before.ready[layer].wait()
                if before.void:  # then so is this one, which continues it
                    raise VoidRunError(layer, list(chunk.known))
            assert isinstance(block, CachedBlock)
            past = empty if before is None else before.caches[layer]
            with self._stages[layer]:
                values, cache = block.attend(values, past, mask)
            run.caches.append(cache)
            if layer < self.layers - 1:
                run.ready[layer].set()
        logits = self._network.code_out(self._network.final_norm(values))[0]
        own = logits.argmax(dim=-1).tolist()
        run.own = own[self._embedding.context - 1 :] if before is None else before.own + own
        with self._lock:
            accepted, following = agreed(run.tokens, run.own)
            if accepted + 1 > len(chunk.known):
                chunk.known = [*run.tokens[:accepted], following]
            if len(chunk.known) == self.codec.codebooks:
                chunk.runs = []  # no more are needed
        run.ready[-1].set()
        return run.own


def _not_resumed(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
    raise ValueError("rule: must be 'likeliest' for a target of kind layered, which only reads runs")


def _longest(runs: list[_Run], tokens: tuple[int, ...]) -> _Run | None:
    """Return the run with the most tokens that a run of these tokens continues."""
    fitting = [run for run in runs if run.tokens == tokens[: len(run.tokens)]]
    return max(fitting, key=lambda run: len(run.tokens), default=None)


def load_layered(folder: Path, /, *, checkpoint: str, at_once: int = 4) -> LayeredTarget:
    """Load a target from the values of a YAML file of `kind: layered`.

    Args:
        folder: of the file.
        checkpoint: DIRECTORY/NAME of tokens, beside the file or below the package's checkpoints.
        at_once: runs of all robots that are read at the same time.

    Raises:
        ValueError: names the field, its value and what was allowed.
        CheckpointError: the checkpoint cannot be loaded.
    """
    if not (type(at_once) is int and 1 <= at_once <= AT_ONCE_MOST):
        raise ValueError(f"at_once: {at_once!r}, must be an integer from 1 to {AT_ONCE_MOST}")
    path = folder / checkpoint
    if not path.with_name(f"{path.name}.json").is_file():
        path = named(checkpoint, CHECKPOINTS)
    return LayeredTarget(load_tokens(path), at_once)
