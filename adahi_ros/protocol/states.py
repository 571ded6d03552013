# SPDX-License-Identifier: Apache-2.0
"""Hidden states of a draft in a request, instead of its distributions.

A rule that reads hidden states needs no distributions: its drafts are the likeliest codes. The field
`draft_probabilities` then has these numbers instead:

    share of lost requests, in 1/65534             65535 where the robot does not know its link
    n, number of states
    n indices of codes, ascending
    n x D numbers of the states, int8, two in each

At first a robot sends all states, or none. Where the verifier needs more, its reply has no actions, and
`accepted` says which codes need no state. The robot then sends the request again with those of the others.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from adahi_ros.core.proposal import UNITS, CodeDistribution, States
from adahi_ros.protocol.request import Request, RequestError, RequestFault, sent_codes

UNKNOWN, MOST = 65535, 65534
BEFORE = 2  # numbers before the indices


def stated(request: Request, loss: float) -> Request:
    """Return a robot's request with the states that are sent at first, and its loss; NaN where unknown."""
    states = request.states
    assert states is not None
    states = states._replace(loss=np.array([loss]))
    return replace(request, states=states, counts=to_numbers(states))


def answered(request: Request, accepted: np.ndarray) -> Request:
    """Return a request with the states of the codes that a reply does not accept, (N,) bool."""
    states = request.states
    assert states is not None
    states = states._replace(sent=~accepted[None])
    return replace(request, states=states, counts=to_numbers(states))


def to_numbers(states: States) -> np.ndarray:
    """Return the numbers of one robot's states, uint16."""
    sent = np.flatnonzero(states.sent[0])
    loss = float(states.loss[0])
    lost = UNKNOWN if math.isnan(loss) else round(min(max(loss, 0.0), 1.0) * MOST)
    numbers = states.values[0, sent].ravel()
    pairs = np.pad(numbers, (0, numbers.size % 2)).view(np.uint16)
    return np.concatenate([np.array([lost, len(sent), *sent], dtype=np.uint16), pairs])


def received(codes: np.ndarray, given: np.ndarray, entries: int, size: int) -> CodeDistribution:
    """Return one robot's drafted codes (N,), each certain, with their states; raises as `from_numbers`.

    Args:
        codes: checked.
        given: numbers of the states.
        entries: K, codes per codebook.
        size: D, numbers of a state.
    """
    states, one = from_numbers(given, len(codes), size), codes[None].astype(np.int64)
    sure = np.eye(entries, dtype=np.uint16)[one] * np.uint16(UNITS)
    return replace(sent_codes(one, sure), states=states)


def from_numbers(given: np.ndarray, codes: int, size: int) -> States:
    """Return one robot's states from received numbers (integers), or refuse them.

    Args:
        given: see `to_numbers`.
        codes: N, number of drafted codes.
        size: D, numbers of a state, as the rule reads it.

    Raises:
        RequestError: there are too few or too many numbers, or an index is out of range or not in order.
    """

    def refused(what: str) -> RequestError:
        return RequestError(RequestFault.WRONG_SHAPE, f"draft_probabilities: {what}")

    if given.size < BEFORE:
        raise refused(f"{given.size} values, must be at least {BEFORE} for a rule that reads hidden states")
    if (given < 0).any() or (given > UNKNOWN).any():
        raise refused(f"{given.min()} to {given.max()}, must be from 0 to {UNKNOWN}")
    lost, count = (int(each) for each in given[:BEFORE])
    if count > codes:
        raise refused(f"{count} hidden states, must be at most {codes}, one for each code")
    expected = BEFORE + count + (count * size + 1) // 2
    if given.size != expected:
        raise refused(f"{given.size} values, expected {expected} for {count} hidden states of {size}")
    sent = given[BEFORE : BEFORE + count]
    if count and not (sent[-1] < codes and (np.diff(sent) > 0).all()):
        raise refused(f"indices must ascend from 0 at least to {codes - 1} at most")
    numbers = given[BEFORE + count :].astype(np.uint16).view(np.int8)[: count * size]
    values, known = np.zeros((1, codes, size), dtype=np.int8), np.zeros((1, codes), dtype=bool)
    values[0, sent], known[0, sent] = numbers.reshape(count, size), True
    return States(values, known, np.array([np.nan if lost == UNKNOWN else lost / MOST]))
