"""Hidden states in a request: what is sent is what the verifier reads, and nothing else is taken for it."""

from __future__ import annotations

import numpy as np
import pytest

from adahi_ros.core.proposal import UNITS, CodeDistribution, Proposal, States, counted
from adahi_ros.protocol.request import Request, RequestError, SentParts
from adahi_ros.protocol.states import UNKNOWN, answered, from_numbers, received, stated, to_numbers
from adahi_ros.protocol.window import NO_WINDOW

N, K = 7, 16


def states(size: int, sent: np.ndarray, loss: float = 0.25) -> States:
    values = np.random.default_rng(size).integers(-127, 128, (1, N, size)).astype(np.int8)
    return States(values, sent[None], np.array([loss]))


@pytest.mark.parametrize("size", [1, 3, 48])
@pytest.mark.parametrize("which", [[], [6], [0, 3, 4], list(range(N))])
@pytest.mark.parametrize("loss", [0.25, 0.0, 1.0, np.nan])
def test_what_is_sent_is_read(size: int, which: list[int], loss: float) -> None:
    sent = np.isin(np.arange(N), which)
    given = states(size, sent, loss)
    numbers = to_numbers(given)
    assert numbers.dtype == np.uint16
    assert numbers.size == 2 + len(which) + (size * len(which) + 1) // 2
    read = from_numbers(numbers.astype(np.int64), N, size)
    np.testing.assert_array_equal(read.sent[0], sent)
    np.testing.assert_array_equal(read.values[0, sent], given.values[0, sent])
    assert not read.values[0, ~sent].any()
    np.testing.assert_allclose(read.loss, [loss], atol=1e-4)


RIGHT = to_numbers(states(4, np.isin(np.arange(N), [1, 5]))).astype(np.int64)


def changed(index: int, value: int) -> np.ndarray:
    numbers = RIGHT.copy()
    numbers[index] = value
    return numbers


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (RIGHT[:1], "1 values, must be at least 2 for a rule that reads hidden states"),
        (RIGHT[:-1], "7 values, expected 8 for 2 hidden states of 4"),
        (np.append(RIGHT, 0), "9 values, expected 8 for 2 hidden states of 4"),
        (changed(1, 8), "8 hidden states, must be at most 7, one for each code"),
        (changed(1, 3), "8 values, expected 11 for 3 hidden states of 4"),
        (changed(2, 5), "indices must ascend from 0 at least to 6 at most"),
        (changed(3, 7), "indices must ascend from 0 at least to 6 at most"),
        (changed(1, -1), "-1 to [0-9]+, must be from 0 to 65535"),
        (changed(4, 65536), "[0-9]+ to 65536, must be from 0 to 65535"),
    ],
)
def test_what_is_no_state_is_refused(numbers: np.ndarray, message: str) -> None:
    with pytest.raises(RequestError, match=f"^draft_probabilities: {message}$"):
        from_numbers(numbers, N, 4)


def draft(sent: bool) -> Proposal:
    p = np.full((1, N, K), 1 / K, dtype=np.float32)
    codes = np.arange(N)[None]
    given = states(4, np.full(N, sent))
    drawn = CodeDistribution(p, codes, lambda each: np.zeros((1, 1, 1)), counted(p), given)
    return Proposal(np.zeros((1, 0, 1), np.float32), drawn)


def test_a_robot_sends_the_rest_in_a_second_message() -> None:
    first = stated(Request.of(draft(False), 0, 3, NO_WINDOW), 0.5)
    assert first.counts.tolist() == [32767, 0]
    accepted = np.isin(np.arange(N), [0, 1, 2, 4])
    second = answered(first, accepted)
    read = received(second.codes, second.counts.astype(np.int64), K, 4)
    assert read.states is not None
    np.testing.assert_array_equal(read.states.sent[0], ~accepted)
    np.testing.assert_allclose(read.states.loss, [0.5], atol=1e-4)
    assert read.counts is not None
    assert (read.counts[0, np.arange(N), second.codes] == UNITS).all()
    once = stated(Request.of(draft(True), 0, 3, NO_WINDOW), np.nan)
    assert once.counts.size == 2 + N + 2 * N
    assert once.counts[:2].tolist() == [UNKNOWN, N]


def test_a_rule_without_states_gets_the_distributions() -> None:
    sent = SentParts(actions=False, codes=True).of(draft(True))
    request = Request.of(sent, 0, 3, NO_WINDOW)
    assert request.states is None
    assert request.counts.size == N * K
    asked = SentParts(actions=False, codes=True, states=True).of(draft(True))
    assert Request.of(asked, 0, 3, NO_WINDOW).states is not None
