# SPDX-License-Identifier: Apache-2.0
"""Hidden states: a head keeps tokens that are not the target's likeliest, where that rarely matters.

WISV (Liu et al., "Wireless-Informed Semantic Verification", arXiv 2604.17701), by its abstract: a light
decision head at the target reads hidden states and the state of the channel. Here it reads the target's
hidden state before the token, the draft's, which the robot uploads, and the round trip and loss that the
robot measured.

A draft's data (`Proposal.data`) is, for each of B robots:

    states   (B, N, D) int8, hidden states by which its codes were chosen, see `packed_states`
    sent     (B, N) bool, the states that the target has; the others are zero there
    channel  (B, 2) float32, round trip in ms and share of lost requests; NaN where unknown

It is sent as two float32 (the channel), one bit for each code (whether its state is sent, the first code in
the highest bit), and the D bytes of each sent state. At first a robot sends all states, or none. Where the
target needs more, its reply has such bits of the codes of which it needs the states.

Decoding is greedy. The decided part of a chunk ends with the action in which a token is refused: the target
completes that action. `ChunkPrefixProposer` executes this part, and drafts again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from adahi_lab.papers.tokens.action_tokens import ActionRule, certain, greedy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution, TokenJudge
from adahi_lab.training.array_files import read_arrays, read_metadata, save_arrays
from adahi_ros.acceptance.interface import DataRule, LinkFacts, Verdict
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import CodeDistribution, Proposal
from adahi_ros.core.registry import argument
from adahi_ros.core.signature import Signature
from adahi_ros.core.tensor_files import Shapes

STEPS = 16.0  # of a hidden state's unit, as it is sent
FURTHEST = 5.0  # standard deviations at which inputs are clipped
WIDEST = 4096
CHANNEL = 3  # inputs for the channel
LEAST_MS, MOST_MS = 0.1, 60_000.0
CHANNEL_BYTES = 8
SIZES = "target", "target_size", "draft_size"  # in a file's metadata: of `StateHead`


def bits(flags: np.ndarray) -> bytes:
    """Return flags (N,) as bytes."""
    return np.packbits(flags).tobytes()


def bits_bytes(count: int) -> int:
    """Return how many bytes `bits` makes of so many flags."""
    return (count + 7) // 8


def from_bits(packed: bytes, count: int) -> np.ndarray:
    """Return flags (N,) bool from `bits`."""
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(bool)


def packed_states(hidden: np.ndarray) -> np.ndarray:
    """Return hidden states of any shape as int8, in units of 1 / `STEPS`."""
    packed: np.ndarray = np.clip(np.rint(hidden * STEPS), -127, 127).astype(np.int8)
    return packed


def channel_inputs(channel: np.ndarray) -> np.ndarray:
    """Return a head's inputs (M, CHANNEL) for a channel (M, 2); zeros for one that is not known.

    Args:
        channel: round trip in ms, share of lost requests; NaN where unknown.
    """
    known = ~np.isnan(channel).any(axis=1)
    trip_ms, loss = np.where(known[:, None], channel, 1.0).T
    trip = np.log10(np.maximum(trip_ms, LEAST_MS)) - 1.0
    made: np.ndarray = np.stack([np.ones(len(channel)), trip, 4.0 * loss], axis=1)
    return np.where(known[:, None], made, 0.0)


@dataclass(frozen=True)
class StateHead:
    """Predicts how likely it matters that a token is kept: a network with one hidden layer.

    Attributes:
        mean, scale: (F,) of the states in its training; F is their sizes added.
        weight_0, bias_0, weight_1, bias_1: (W, F + CHANNEL), (W,), (1, W) and (1,) of its layers.
        target: fingerprint of the target in its training; empty if unknown.
        target_size, draft_size: of their hidden states.
    """

    mean: np.ndarray
    scale: np.ndarray
    weight_0: np.ndarray
    bias_0: np.ndarray
    weight_1: np.ndarray
    bias_1: np.ndarray
    target: str = ""
    target_size: int = 0
    draft_size: int = 0

    def inputs(self, states: np.ndarray) -> np.ndarray:
        """Return states (M, F) in standard deviations."""
        return np.clip((states - self.mean) / self.scale, -FURTHEST, FURTHEST)

    def risk(self, states: np.ndarray, channel: np.ndarray) -> np.ndarray:
        """Return the probability (M,) that it matters.

        Args:
            states: (M, F), the target's, then the draft's.
            channel: (M, 2), see `channel_inputs`.
        """
        read = np.concatenate([self.inputs(states), channel_inputs(channel)], axis=1)
        hidden = np.maximum(read @ self.weight_0.T + self.bias_0, 0.0)
        logit = hidden @ self.weight_1[0] + self.bias_1[0]
        risk: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0)))
        return risk


def _sizes(shapes: Shapes) -> Shapes:
    read, wide = shapes.get("mean", (0,))[0], shapes.get("bias_0", (0,))[0]
    if not all(0 < size <= WIDEST for size in (read, wide)):
        raise ValueError(f"mean, bias_0: of {read} and {wide}, must be 1 to {WIDEST}")
    sizes: Shapes = {"mean": (read,), "scale": (read,), "weight_0": (wide, read + CHANNEL), "bias_0": (wide,)}
    return sizes | {"weight_1": (1, wide), "bias_1": (1,)}


def load_state_head(path: Path) -> StateHead:
    """Read a file of `save_state_head`.

    Raises:
        CheckpointError: it is missing, damaged, or another kind of file.
    """
    arrays, meta = read_arrays(path, "a head on hidden states", _sizes), read_metadata(path)
    target, ours, theirs = (meta.get(name, "") for name in SIZES)
    whole = re.fullmatch("([0-9a-f]{16})?", target) and ours.isdecimal() and theirs.isdecimal()
    if not whole or int(ours) + int(theirs) != len(arrays["mean"]):
        found = f"{', '.join(SIZES)}: {target!r}, {ours!r}, {theirs!r}"
        raise CheckpointError(f"{path}: {found}, must be 16 hexadecimal digits, and sizes of the states")
    return StateHead(**arrays, target=target, target_size=int(ours), draft_size=int(theirs))


def save_state_head(path: Path, head: StateHead, notes: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write a head atomically, with notes on how it was made."""
    arrays = {name: each for name, each in vars(head).items() if name not in SIZES}
    save_arrays(path, arrays, {**notes, **{name: str(getattr(head, name)) for name in SIZES}})


@dataclass(frozen=True)
class DecidedTokens:
    """Chunks of M robots, as far as they are decided.

    Attributes:
        judge: how each token was decided; its `tokens` count up to `length`.
        length: (M,) int64, decided tokens: whole actions.
        mismatch: (M, n) bool, drafted tokens that are not the target's likeliest after those before.
        wanted: (M, n) bool, mismatches with hidden states that the verifier needs first.
    """

    judge: TokenJudge
    length: np.ndarray
    mismatch: np.ndarray
    wanted: np.ndarray


@dataclass(eq=False)
class HiddenStates(ActionRule, DataRule):
    """WISV: keeps tokens that a head on hidden states and the channel allows.

    Raises:
        CheckpointError: the file has no head.
    """

    needs_actions = False
    lockstep_parameters = MappingProxyType({"rule.channel": 0})  # a world that waits has no link

    file: str = argument("", "Weights written by `adahi train states`", optional=True)
    channel: int = argument(1, "1: the head reads the channel; 0: not", 0, 1)
    tolerance: float = argument(0.1, "Keep tokens below this predicted risk", 0.0, 1.0)

    def __post_init__(self) -> None:
        self.head = load_state_head(Path(self.file).expanduser()) if self.file else None

    def check_target(self, target: Signature, fingerprint: str) -> None:
        """See `Acceptance`: for another target the head's predictions are meaningless."""
        super().check_target(target, fingerprint)
        if self.head is None:
            raise ValueError("file: empty, must be a head's; 'adahi train states' makes one")
        if fingerprint and self.head.target not in ("", fingerprint):
            raise ValueError(f"file: a head for the target {self.head.target}, must be one for {fingerprint}")

    def verify(self, draft: Proposal, target: Proposal, draws: np.ndarray) -> Verdict:
        """See `Acceptance`; nothing is drawn. Behind the decided actions, the last one is repeated."""
        made, theirs = self.decide(draft, target), target.distribution
        assert theirs is not None
        actions, size = theirs.actions_of(made.judge.tokens), target.actions.shape[2]
        last = np.minimum(np.arange(actions.shape[1]), made.length[:, None] // size - 1)
        accepted = made.judge.accepted[:, : made.mismatch.shape[1]]
        asks = tuple(bits(each) if each.any() else b"" for each in made.wanted)
        return Verdict(actions[np.arange(len(actions))[:, None], last], accepted, asks=asks)

    @classmethod
    def pack(cls, data: Mapping[str, np.ndarray], link: LinkFacts) -> bytes:
        """See `DataRule`."""
        sent = data["sent"][0]
        trip_ms = min(max(link.round_trip_ms, LEAST_MS), MOST_MS)  # NaN stays
        channel = np.array([trip_ms, link.loss], dtype="<f4").tobytes()
        return channel + bits(sent) + data["states"][0, sent].tobytes()

    def unpack(self, packed: bytes, codes: np.ndarray) -> dict[str, np.ndarray]:
        """See `DataRule`."""
        count, size = len(codes), 0 if self.head is None else self.head.draft_size
        least = CHANNEL_BYTES + bits_bytes(count)
        if len(packed) < least:
            raise ValueError(f"{len(packed)} bytes, must be at least {least} for {count} codes")
        sent = from_bits(packed[CHANNEL_BYTES:least], count)
        expected = least + size * int(sent.sum())
        if len(packed) != expected:
            what = f"{int(sent.sum())} hidden states of {size}"
            raise ValueError(f"{len(packed)} bytes, must be {expected} for {what}")
        channel = np.frombuffer(packed, "<f4", 2)
        for name, value, most in zip(("round trip", "loss"), channel.tolist(), (MOST_MS, 1.0), strict=True):
            if not (math.isnan(value) or 0.0 <= value <= most):
                raise ValueError(f"{name} of {value:g}, must be from 0 to {most:g}, or NaN")
        states = np.zeros((1, count, size), dtype=np.int8)
        states[0, sent] = np.frombuffer(packed, np.int8, offset=least).reshape(-1, size)
        return {"states": states, "sent": sent[None], "channel": channel[None]}

    @classmethod
    def answered(cls, data: Mapping[str, np.ndarray], asked: bytes) -> dict[str, np.ndarray]:
        """See `DataRule`; the verifier has the states that it does not ask for, or needs none of them."""
        count = data["sent"].shape[1]
        if len(asked) != bits_bytes(count):
            raise ValueError(f"{len(asked)} bytes, must be {bits_bytes(count)} for {count} codes")
        return {**data, "sent": from_bits(asked, count)[None]}

    def decide(self, draft: Proposal, target: Proposal) -> DecidedTokens:
        """Return the decided tokens."""
        ours, theirs = draft.distribution, target.distribution
        assert ours is not None
        assert isinstance(theirs, TokenDistribution)
        codes, count = ours.codes, target.actions.shape[1] * target.actions.shape[2]
        sure = CodeDistribution(certain(codes, theirs.probabilities.shape[-1]), codes, theirs.actions_of)
        judge = TokenJudge(sure, greedy(theirs, count), np.zeros((*codes.shape[:1], count, 2)))
        kept, mismatch, wanted = self.kept(draft, theirs)
        return self._completed(judge, kept, target.actions.shape[2], mismatch, wanted)

    def kept(self, draft: Proposal, theirs: TokenDistribution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which drafted tokens are kept, and `mismatch` and `wanted` as in `DecidedTokens`, (M, n)."""
        assert draft.distribution is not None
        codes = draft.distribution.codes
        mismatch = codes != theirs.probabilities[:, : codes.shape[1]].argmax(axis=-1)
        stands, wanted = np.zeros(codes.shape, dtype=bool), np.zeros(codes.shape, dtype=bool)
        if draft.data and self.head is not None and self.tolerance > 0.0:  # else none is kept
            sent = draft.data["sent"]
            wanted = mismatch & ~sent.any(axis=1, keepdims=True)
            read = mismatch & sent
            channel = draft.data["channel"] if self.channel else np.full((len(codes), 2), np.nan)
            risk = self.risk(draft, theirs, read, channel[np.nonzero(read)[0]])
            stands[read] = risk < self.tolerance
        return ~mismatch | stands, mismatch, wanted

    def risk(
        self, draft: Proposal, theirs: TokenDistribution, of: np.ndarray, channel: np.ndarray
    ) -> np.ndarray:
        """Return the predicted risks (R,) of some tokens, (M, n) bool, on their channels (R, 2)."""
        assert self.head is not None
        size = theirs.hidden.shape[-1]
        if size != self.head.target_size:
            raise ValueError(
                f"file: a head for hidden states of {self.head.target_size} numbers, must be for the "
                f"target's {size}"
            )
        drafted = draft.data["states"][of] / STEPS
        return self.head.risk(np.concatenate([theirs.hidden[:, : of.shape[1]][of], drafted], axis=1), channel)

    def _completed(
        self, judge: TokenJudge, kept: np.ndarray, size: int, mismatch: np.ndarray, wanted: np.ndarray
    ) -> DecidedTokens:
        """Accept tokens up to the first that is not kept; let the target complete the action of that one."""
        judge.test(kept)
        length, count = judge.position, judge.tokens.shape[1]
        whole = np.zeros(len(kept), dtype=bool)
        while True:
            length = np.where(whole, length, judge.position)
            whole |= length % size == 0
            judge.position = np.where(whole, count, judge.position)
            if judge.done:
                break
            judge.end = judge.position.copy()
            judge.read(0)
            judge.test()
        return DecidedTokens(judge, length, mismatch, wanted)
