# SPDX-License-Identifier: Apache-2.0
"""A policy that emits a chunk of actions as tokens, on any runtime of its network. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adahi_lab.papers.tokens.patches import HALF, patches_of
from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint, load_tokens
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.core.proposal import Proposal, counted, probabilities_of, sample, softmax
from adahi_ros.core.signature import Observations
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.policies.interface import AS_TRAINED, Policy, Sampling
from adahi_ros.policies.networks.network_checkpoint import RunNetwork
from adahi_ros.policies.registry import CheckpointKind

SENT_SHARE = 0.98
"""Of a draft's distribution: the likeliest tokens with this share are kept, so that few bytes are sent."""


PATCH_LAYERS = "0.weight", "0.bias", "2.weight", "2.bias"


class Embedding:
    """The first layer of a token policy's network: what it reads, as positions of the transformer.

    Args:
        checkpoint: of the network.

    Attributes:
        context: C, positions before the first token.
        scale: (S,), standard deviations of what one position reads of an observation.
    """

    def __init__(self, checkpoint: TokenCheckpoint) -> None:
        weights = read_tensors(checkpoint.weights)
        self._observation = _scaled(weights, "observation")
        self.scale = weights["observation_scale"]
        self._goal = _scaled(weights, "goal") if checkpoint.sizes.goal_dim else None
        self._code, self._position = weights["code_in.weight"], weights["position"]
        self._patch = [weights[f"patch_in.{name}"] for name in PATCH_LAYERS] if checkpoint.sizes.patch else []
        self._sizes, self.context = checkpoint.sizes, checkpoint.sizes.context

    def of_context(self, windows: np.ndarray, goals: np.ndarray) -> np.ndarray:
        """Return the positions (B, C, width) of windows (B, H, O) and goals (B, G)."""
        state = self._sizes.state_dim
        parts = [_affine(windows[..., :state], self._observation)]
        if self._goal is not None:
            parts.insert(0, _affine(goals, self._goal)[:, None])
        if self._patch:
            parts.insert(0, self.of_patches(patches_of(windows[:, -1, state:], self._sizes)))
        tokens: np.ndarray = np.concatenate(parts, axis=1) + self._position[: self.context]
        return tokens

    def of_patches(self, pixels: np.ndarray) -> np.ndarray:
        """Return the positions (..., width) of patches' pixels (..., 3 side^2), without their place."""
        inner, shift, outer, offset = self._patch
        made: np.ndarray = np.maximum((pixels / HALF - 1.0) @ inner.T + shift, 0.0) @ outer.T + offset
        return made.astype(np.float32)

    def of_codes(self, codes: np.ndarray, first: int) -> np.ndarray:
        """Return the positions (B, m, width) of tokens (B, m), which are tokens `first`, ... of a chunk."""
        start = self.context + first
        tokens: np.ndarray = self._code[codes] + self._position[start : start + codes.shape[1]]
        return tokens


_Affine = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _scaled(weights: dict[str, np.ndarray], name: str) -> _Affine:
    layer = f"{name}_in"
    return (
        *(weights[f"{name}_mean"], weights[f"{name}_scale"]),
        *(weights[f"{layer}.weight"].T, weights[f"{layer}.bias"]),
    )


def _affine(values: np.ndarray, by: _Affine) -> np.ndarray:
    mean, scale, weight, bias = by
    made: np.ndarray = (values - mean) / scale @ weight + bias
    return made.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Decoding:
    """Chunks of B robots on their way: the tokens read so far, and the next one's distribution.

    Attributes:
        logits: (B, m, K) float32, of the next token at each of the last m positions read.
        hidden: (B, m, width) float32, the last layer's at these positions.
        cache: (B, layers, 2, heads, P, width / heads) float32, keys and values of all positions read.
        read: n, tokens read.
        widths: (B,), bits of activations, where the policy allocates them; see `TokenPolicy.widths`.
    """

    logits: np.ndarray
    hidden: np.ndarray
    cache: np.ndarray
    read: int
    widths: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The first n tokens of chunks of B robots, each the likeliest after those before.

    Attributes:
        codes: (B, n) int64.
        logits: (B, n, K) float32, that each is the largest of.
        hidden: (B, n, width) float32, the last layer's, from which these are made.
        finite: (B,) bool, all logits are.
    """

    codes: np.ndarray
    logits: np.ndarray
    hidden: np.ndarray
    finite: np.ndarray


class Passes(Protocol):
    """Called with the robots and the positions of each pass of a network."""

    def __call__(self, robots: int, positions: int) -> None: ...


class TokenPolicy(Policy):
    """A `Policy` of tokens: a network emits them one after another, a tokenizer decodes the chunk.

    Attributes:
        codec: its action tokenizer.
        on_pass: called before each pass of the network, to count them; None for nothing.

    Args:
        checkpoint: of the network.
        run: runs it.
        device: where that is.
    """

    def __init__(self, checkpoint: TokenCheckpoint, run: RunNetwork, device: str = "cpu") -> None:
        codec = checkpoint.codec
        super().__init__(
            checkpoint.signature, codec.range, codec.action_scale, checkpoint.digest(), codec.codebooks
        )
        self.codec = codec
        self.device = device
        self.on_pass: Passes | None = None
        self._sizes = checkpoint.sizes
        self._embedding = Embedding(checkpoint)
        self._run = run

    @property
    def hidden_size(self) -> int:
        """Numbers of the hidden state at a token."""
        return self._sizes.width

    def begin(self, observations: Observations, codes: np.ndarray | None = None) -> Decoding:
        """Read observations and the first n tokens (B, n) of chunks in one pass.

        Returns:
            The distributions of tokens 0, ..., n: `logits` is (B, n + 1, K).
        """
        windows, goals = self.signature.window(observations), self.signature.condition(observations)
        embedded, sizes = self._embedding.of_context(windows, goals), self._sizes
        read = 0 if codes is None else codes.shape[1]
        if codes is not None and read:
            embedded = np.concatenate([embedded, self._embedding.of_codes(codes, 0)], axis=1)
        shape = len(windows), sizes.layers, 2, sizes.heads, 0, sizes.width // sizes.heads
        widths = self.widths(observations)
        logits, hidden, cache = self._pass(embedded, np.zeros(shape, dtype=np.float32), widths)
        before = sizes.context - 1
        return Decoding(logits[:, before:], hidden[:, before:], cache, read, widths)

    def widths(self, observations: Observations) -> np.ndarray | None:
        """Return the bits of activations for each robot, (B,), for whole chunks; None where none differ."""
        return None

    def extend(self, decoding: Decoding, codes: np.ndarray, after: int | None = None) -> Decoding:
        """Read m more tokens (B, m) in one pass.

        Args:
            decoding: of the same robots.
            codes: the next tokens, at least one.
            after: how many of the tokens read are kept before them; None for all.

        Returns:
            The distributions of the tokens after each of these: `logits` is (B, m, K).
        """
        kept = decoding.read if after is None else after
        past = decoding.cache[..., : self._sizes.context + kept, :]
        made = self._pass(self._embedding.of_codes(codes, kept), past, decoding.widths)
        return Decoding(*made, kept + codes.shape[1], decoding.widths)

    def _pass(
        self, embedded: np.ndarray, past: np.ndarray, widths: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.on_pass is not None:
            self.on_pass(*embedded.shape[:2])
        logits, hidden, cache = self._computed(embedded, np.ascontiguousarray(past), widths)
        return logits, hidden, cache

    def _computed(
        self, embedded: np.ndarray, past: np.ndarray, widths: np.ndarray | None
    ) -> tuple[np.ndarray, ...]:
        return self._run(embedded, past)

    def propose(
        self, observations: Observations, draws: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """See `Policy.propose`; token by token, one pass each. Actions are NaN where a state is not finite.

        A draft that is sent keeps the likeliest tokens, see `SENT_SHARE`.
        """
        decoding = self.begin(observations)
        tokens: list[np.ndarray] = []
        made: list[np.ndarray] = []
        hidden: list[np.ndarray] = []
        sent: list[np.ndarray] = []
        finite = np.ones(len(draws), dtype=bool)
        for index in range(self.codec.codebooks):
            if index and not self._over(tokens[-1]):
                decoding = self.extend(decoding, tokens[-1][:, None])
            finite &= np.isfinite(decoding.logits).all(axis=(1, 2))
            logits = self._ending(
                _finite(decoding.logits[:, -1:]), np.stack(tokens, axis=1) if tokens else None
            )[:, 0]
            probabilities, counts = distribution(logits, sampling)
            tokens.append(sample(probabilities if counts is None else counts, draws[:, index]))
            made.append(probabilities)
            hidden.append(decoding.hidden[:, -1])
            if counts is not None:
                sent.append(counts)
        codes, counts = np.stack(tokens, axis=1), np.stack(sent, axis=1) if sent else None
        drawn = TokenDistribution(
            np.stack(made, axis=1), codes, self.codec.decode, counts, hidden=np.stack(hidden, axis=1)
        )
        return Proposal(_where(finite, self.codec.decode(codes)), drawn)

    def likeliest(self, observations: Observations, count: int) -> Likeliest:
        """Return the first tokens of chunks, each the likeliest."""
        decoding = self.begin(observations)
        codes = np.zeros((len(decoding.logits), 0), dtype=np.int64)
        finite = np.ones(len(codes), dtype=bool)
        logits, hidden = [], []
        for index in range(count):
            if index:
                decoding = self.extend(decoding, codes[:, -1:])
            finite &= np.isfinite(decoding.logits).all(axis=(1, 2))
            logits.append(_finite(decoding.logits[:, -1]))
            hidden.append(decoding.hidden[:, -1])
            codes = np.concatenate([codes, logits[-1].argmax(axis=-1)[:, None]], axis=1)
        return Likeliest(codes, np.stack(logits, axis=1), np.stack(hidden, axis=1), finite)

    def _over(self, tokens: np.ndarray) -> bool:
        """Return whether chunks with these last tokens (B,) are all over."""
        return self.codec.end is not None and bool((tokens == self.codec.end).all())

    def _ending(self, logits: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """Return logits (B, m, K) after the last m of tokens (B, n): behind the end, only the end follows."""
        end = self.codec.end
        if end is None or codes is None or not codes.shape[1]:
            return logits
        count = logits.shape[1]
        over = np.logical_or.accumulate(codes == end, axis=1)
        over = np.concatenate([np.zeros((len(codes), 1), dtype=bool), over], axis=1)[:, -count:]
        only = np.where(np.arange(logits.shape[-1]) == end, np.float32(0.0), np.float32(-np.inf))
        return np.where(over[..., None], only, logits)

    def judge(
        self, observations: Observations, codes: np.ndarray, sampling: Sampling = AS_TRAINED
    ) -> Proposal:
        """Return the distribution of every token of chunks (B, n), given the ones before, by one pass.

        Where n is below N, the distribution of the token after them is among these.

        Returns:
            `actions` NaN (B, T, A): a rule decides on the tokens. The distribution continues by `resumed`.
        """
        read = codes[:, : self.codec.codebooks - 1]  # nothing follows the last token
        return self._judged(self.begin(observations, read), codes, sampling)

    def _judged(self, decoding: Decoding, codes: np.ndarray, sampling: Sampling) -> Proposal:
        read = codes[:, : decoding.read]
        probabilities, _ = distribution(self._ending(_finite(decoding.logits), read), sampling)

        def resumed(tokens: np.ndarray, first: int, rows: np.ndarray) -> TokenDistribution:
            widths = None if decoding.widths is None else decoding.widths[rows]
            of_rows = Decoding(decoding.logits, decoding.hidden, decoding.cache[rows], decoding.read, widths)
            last = self.codec.codebooks - 1
            further = self.extend(of_rows, tokens[:, first - 1 : last], first - 1)
            drawn = self._judged(further, tokens, sampling).distribution
            assert isinstance(drawn, TokenDistribution)
            return drawn

        drawn = TokenDistribution(
            probabilities,
            codes,
            self.codec.decode,
            hidden=decoding.hidden,
            resumed=resumed,
            end=self.codec.end,
        )
        shape = len(codes), self.codec.chunk_length, self.codec.action_dim
        return Proposal(np.full(shape, np.nan, dtype=np.float32), drawn)


def distribution(logits: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray | None]:
    """Return distributions (..., K) float32 of logits (..., K) and, if they are to be sent, their counts."""
    probabilities = softmax(logits, sampling.temperature)
    if not sampling.sendable:
        return probabilities, None
    counts = counted(likeliest(probabilities, SENT_SHARE))
    return probabilities_of(counts), counts


def likeliest(probabilities: np.ndarray, share: float) -> np.ndarray:
    """Return distributions (..., K) of the likeliest tokens only, as few as have the share together.

    Speculative sampling stays exact: only what is sampled from matters (nucleus sampling; Holtzman et
    al., 2020).
    """
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=-1)
    kept = np.cumsum(ordered, axis=-1) - ordered < share
    few = np.zeros_like(probabilities)
    np.put_along_axis(few, order, np.where(kept, ordered, 0.0), axis=-1)
    made: np.ndarray = few / few.sum(axis=-1, keepdims=True)
    return made


def _finite(logits: np.ndarray) -> np.ndarray:
    """Return logits; uniform ones where they are not finite."""
    finite = np.isfinite(logits).all(axis=-1, keepdims=True)
    return logits if finite.all() else np.where(finite, logits, np.float32(0.0))


def _where(finite: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return actions (B, T, A), NaN for robots with a state that was not finite."""
    return np.where(finite[:, None, None], actions, np.float32(np.nan))


TOKENS = CheckpointKind(load_tokens, TokenPolicy)
