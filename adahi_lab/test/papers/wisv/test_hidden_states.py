"""WISV's rule: every decided token is the target's likeliest one, or a drafted one that the head allows."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_lab.papers.wisv.hidden_states import (
    CHANNEL,
    CHANNEL_BYTES,
    DecidedTokens,
    HiddenStates,
    StateHead,
    bits,
    bits_bytes,
    from_bits,
    load_state_head,
    packed_states,
    save_state_head,
)
from adahi_lab.training.array_files import save_arrays
from adahi_ros.acceptance.interface import LinkFacts
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import CodeDistribution, Proposal, counted, rows_of
from adahi_ros.core.signature import CodeSpace, Feature, Signature

A, T, K, M, D, W = 4, 3, 16, 300, 5, 2
N = A * T
OURS = "0123456789abcdef"


@functools.cache
def likeliest_after(before: tuple[int, ...]) -> int:
    """The target's likeliest token after others, without structure."""
    return int(np.random.default_rng([len(before), *before]).integers(K))


def read(codes: np.ndarray, first: int = 0) -> TokenDistribution:
    """The target's distributions after known tokens; its hidden state is one of them."""
    last = min(codes.shape[1] + 1, N)
    q = np.full((len(codes), last - first, K), 0.5 / K, dtype=np.float32)
    for row, tokens in enumerate(codes.tolist()):
        for index in range(first, last):
            q[row, index - first, likeliest_after(tuple(tokens[:index]))] += 0.5

    def resumed(tokens: np.ndarray, start: int, rows: np.ndarray) -> TokenDistribution:
        assert len(tokens) == len(rows)
        return read(tokens, start)

    hidden = q.argmax(axis=-1)[..., None] * np.ones(W, np.float32)
    return TokenDistribution(q, codes, actions_of, hidden=hidden, resumed=resumed)


def actions_of(codes: np.ndarray) -> np.ndarray:
    return codes.reshape(len(codes), T, A).astype(np.float32)


def head(bias: float = 0.0, of_channel: float = 0.0) -> StateHead:
    """A risk above 1/2 where the draft's state is above 0; of an unknown channel."""
    weight = np.zeros((1, W + D + CHANNEL))
    weight[0, W] = 10.0
    two = np.concatenate([weight, -weight])
    two[1, -2] = of_channel
    return StateHead(
        np.zeros(W + D), np.ones(W + D), two, np.zeros(2), np.array([[1.0, -1.0]]), np.array([bias]),
        target=OURS, target_size=W, draft_size=D,
    )  # fmt: skip


@pytest.fixture
def rule(tmp_path: Path) -> HiddenStates:
    """One with that head."""
    save_state_head(tmp_path / "head", head())
    return HiddenStates(str(tmp_path / "head"), tolerance=0.5)


@functools.cache
def drafted(share: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Codes (M, N) of which so many are the target's likeliest, and states (M, N, D)."""
    rng, codes = np.random.default_rng(5), np.zeros((M, 0), dtype=np.int64)
    for _ in range(N):
        best = np.array([likeliest_after(tuple(row)) for row in codes.tolist()])
        new = np.where(rng.random(M) < share, best, rng.integers(0, K, M))
        codes = np.concatenate([codes, new[:, None]], axis=1)
    return codes, packed_states(rng.normal(size=(M, N, D)))


def draft(sent: np.ndarray | bool = True, channel: tuple[float, float] = (np.nan, np.nan)) -> Proposal:
    codes, values = drafted()
    p = np.full((M, N, K), 1 / K, dtype=np.float32)
    drawn = CodeDistribution(p, codes, actions_of, counted(p))
    of_all = np.broadcast_to(sent, (M, N)).copy()
    data = {"states": values, "sent": of_all, "channel": np.tile(channel, (M, 1))}
    return Proposal(np.zeros((M, 0, A), np.float32), drawn, data=data)


def target() -> Proposal:
    return Proposal(np.zeros((M, T, A), np.float32), read(drafted()[0]))


def check(made: DecidedTokens, allowed: np.ndarray) -> dict[str, int]:
    """Check each decided token; return how many were of which kind."""
    codes, kinds = drafted()[0], {"alike": 0, "kept": 0, "the target's": 0}
    assert (made.length % A == 0).all()
    for row in range(M):
        tokens: list[int] = made.judge.tokens[row, : made.length[row]].tolist()
        refused = False
        for index, token in enumerate(tokens):
            best, own = likeliest_after(tuple(tokens[:index])), codes[row, index]
            if refused or (own != best and not allowed[row, index]):
                refused = True
                assert token == best
                assert not made.judge.accepted[row, index]
                kinds["the target's"] += 1
            else:
                assert token == own
                assert made.judge.accepted[row, index]
                kinds["alike" if own == best else "kept"] += 1
        assert len(tokens) == N or refused
    return kinds


def test_tokens_are_the_targets_or_those_that_the_head_allows(rule: HiddenStates) -> None:
    allowed = drafted()[1][:, :, 0] < 0
    kinds = check(rule.decide(draft(), target()), allowed)
    assert min(kinds.values()) > 50
    strict = replace(rule, tolerance=0.0).decide(draft(), target())
    assert check(strict, np.zeros((M, N), dtype=bool))["kept"] == 0
    assert check(replace(rule, tolerance=1.0).decide(draft(), target()), np.ones((M, N), dtype=bool))["kept"]


def test_states_that_come_second_lead_to_the_same_reply(rule: HiddenStates) -> None:
    draws = np.zeros((M, N, 2))
    once, first = (rule.verify(draft(sent), target(), draws) for sent in (True, False))
    assert not any(once.asks)
    codes = drafted()[0]
    alike = codes == read(codes).probabilities[:, :N].argmax(axis=-1)
    wanted = np.array([from_bits(asked, N) if asked else np.zeros(N, bool) for asked in first.asks])
    np.testing.assert_array_equal(wanted, ~alike)
    second = rule.verify(draft(wanted), target(), draws)
    assert not any(second.asks)
    np.testing.assert_array_equal(second.actions, once.actions)
    np.testing.assert_array_equal(second.accepted, once.accepted)


def test_a_mismatch_without_its_state_is_refused(rule: HiddenStates) -> None:
    sent = np.zeros((M, N), dtype=bool)
    sent[:, 0] = True
    allowed = (drafted()[1][:, :, 0] < 0) & sent
    made = rule.decide(draft(sent), target())
    assert not made.wanted.any()
    assert check(made, allowed)["kept"] < 100


SIGNATURE = Signature(1, T, A, (Feature("observation", 2),), codes=CodeSpace("ab", N, K, sequential=True))


@pytest.mark.parametrize(
    ("file", "changes", "fingerprint", "message"),
    [
        ("", {}, "", "file: empty, must be a head's; 'adahi train states' makes one"),
        ("head", {}, "f" * 16, f"file: a head for the target {OURS}, must be one for ffff"),
        ("head", {"codes": CodeSpace("ab", N, K)}, OURS, "rule: needs a target that emits tokens"),
    ],
)
def test_another_target_is_refused(
    tmp_path: Path, file: str, changes: dict[str, Any], fingerprint: str, message: str
) -> None:
    save_state_head(tmp_path / "head", head())
    rule = HiddenStates(str(tmp_path / file) if file else "")
    with pytest.raises(ValueError, match=f"^{message}"):
        rule.check_target(replace(SIGNATURE, **changes), fingerprint)
    HiddenStates(str(tmp_path / "head")).check_target(SIGNATURE, OURS)


@pytest.mark.parametrize(
    ("changes", "notes", "message"),
    [
        ({}, {"draft_size": "6"}, "target, target_size, draft_size: '0123456789abcdef', '2', '6', must be"),
        ({}, {"target": "none"}, "target, target_size, draft_size: 'none', '2', '5', must be"),
        ({}, {"target_size": "-1"}, "target, target_size, draft_size: .*, must be"),
        ({"weight_0": np.zeros((2, 3))}, {}, r"weight_0: of shape \(2, 3\), must be \(2, 10\)"),
        ({"bias_1": np.array([np.nan])}, {}, "bias_1: must be finite"),
        ({"mean": np.zeros(0)}, {}, "mean, bias_0: of 0 and 2, must be 1 to 4096"),
    ],
)
def test_a_file_of_another_head_is_refused(
    tmp_path: Path, changes: dict[str, np.ndarray], notes: dict[str, str], message: str
) -> None:
    right = head()
    arrays = {name: each for name, each in vars(right).items() if isinstance(each, np.ndarray)}
    said = {"target": OURS, "target_size": str(W), "draft_size": str(D)}
    save_arrays(tmp_path / "head", {**arrays, **changes}, {**said, **notes})
    with pytest.raises(CheckpointError, match=message):
        load_state_head(tmp_path / "head")


@pytest.mark.parametrize("which", [[], [6], [0, 3, 4], list(range(N))])
@pytest.mark.parametrize("link", [LinkFacts(12.5, 0.25), LinkFacts(0.0, 1.0), LinkFacts()])
def test_what_is_sent_is_read(rule: HiddenStates, which: list[int], link: LinkFacts) -> None:
    sent = np.isin(np.arange(N), which)
    given = rows_of(draft(sent).data, np.array([0]))
    packed = rule.pack(given, link)
    assert len(packed) == CHANNEL_BYTES + bits_bytes(N) + len(which) * D
    read_as = rule.unpack(packed, drafted()[0][0])
    np.testing.assert_array_equal(read_as["sent"][0], sent)
    np.testing.assert_array_equal(read_as["states"][0, sent], given["states"][0, sent])
    assert not read_as["states"][0, ~sent].any()
    trip_ms, loss = read_as["channel"][0]
    np.testing.assert_allclose(loss, link.loss)
    np.testing.assert_allclose(trip_ms, link.round_trip_ms or 0.1)


def test_a_robot_sends_the_states_that_a_reply_asks_for(rule: HiddenStates) -> None:
    given = rows_of(draft(sent=False).data, np.array([0]))
    wanted = np.isin(np.arange(N), [3, 5])
    np.testing.assert_array_equal(rule.answered(given, bits(wanted))["sent"], wanted[None])
    with pytest.raises(ValueError, match=f"^0 bytes, must be {bits_bytes(N)} for {N} codes$"):
        rule.answered(given, b"")


def channel_of(trip_ms: float, loss: float) -> bytes:
    """One hidden state, sent on such a channel."""
    return np.array([trip_ms, loss], "<f4").tobytes() + bits(np.isin(np.arange(N), [1])) + bytes(D)


RIGHT = channel_of(5.0, 0.5)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (b"", f"0 bytes, must be at least {CHANNEL_BYTES + bits_bytes(N)} for {N} codes"),
        (RIGHT[:-1], f"{len(RIGHT) - 1} bytes, must be {len(RIGHT)} for 1 hidden states of {D}"),
        (RIGHT + b"0", f"{len(RIGHT) + 1} bytes, must be {len(RIGHT)} for 1 hidden states of {D}"),
        (channel_of(-1.0, 0.5), "round trip of -1, must be from 0 to 60000, or NaN"),
        (channel_of(1.0, 1.5), "loss of 1.5, must be from 0 to 1, or NaN"),
        (channel_of(np.inf, 1.0), "round trip of inf, must be from 0 to 60000"),
    ],
)
def test_what_is_no_state_is_refused(rule: HiddenStates, packed: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        rule.unpack(packed, drafted()[0][0])
