# SPDX-License-Identifier: Apache-2.0
"""Requests of some robots each, as one request of all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from adahi_ros.core.proposal import Proposal
from adahi_ros.core.signature import Observations
from adahi_ros.protocol.request import VerificationRequest, sent_codes


def kind_of(request: VerificationRequest) -> Hashable:
    """Return what is the same of requests that `joined` can join: which parts of a draft they have."""
    return request.draft.actions.shape[1], request.draft.distribution is None


def joined(requests: Sequence[VerificationRequest]) -> VerificationRequest:
    """Return requests, all of a kind, as one of all their robots, in their order."""
    if len(requests) == 1:
        return requests[0]
    return VerificationRequest(
        _observations([each.observations for each in requests]),
        _drafts([each.draft for each in requests]),
        _committed(requests),
        _round_trips(requests),
    )


def _observations(each: Sequence[Observations]) -> Observations:
    first = each[0]
    return Observations(
        {name: np.concatenate([other.features[name] for other in each]) for name in first.features},
        {name: np.concatenate([other.conditions[name] for other in each]) for name in first.conditions},
        tuple(told for other in each for told in other.instructions),
        {name: np.concatenate([other.images[name] for other in each]) for name in first.images},
    )


def _drafts(drafts: Sequence[Proposal]) -> Proposal:
    actions = np.concatenate([each.actions for each in drafts])
    drawn = [each.distribution for each in drafts if each.distribution is not None]
    if not drawn:
        return Proposal(actions)
    counts = [each.counts for each in drawn if each.counts is not None]
    return Proposal(
        actions, sent_codes(np.concatenate([each.codes for each in drawn]), np.concatenate(counts))
    )


def _committed(requests: Sequence[VerificationRequest]) -> np.ndarray | None:
    """Return what robots have committed to, (M, d, A), NaN behind the end of who has to less."""
    told = [each.committed for each in requests if each.committed is not None]
    if not told:
        return None
    most, size = max(actions.shape[1] for actions in told), told[0].shape[2]
    parts = []
    for each in requests:
        part = np.full((len(each.draft.actions), most, size), np.nan, dtype=np.float32)
        if each.committed is not None:
            part[:, : each.committed.shape[1]] = each.committed
        parts.append(part)
    return np.concatenate(parts)


def _round_trips(requests: Sequence[VerificationRequest]) -> np.ndarray | None:
    """Return what a round trip of each robot takes, (M,) ms, NaN of those of which nobody knows."""
    if all(each.round_trip_ms is None for each in requests):
        return None
    return np.concatenate(
        [
            np.full(len(each.draft.actions), np.nan) if each.round_trip_ms is None else each.round_trip_ms
            for each in requests
        ]
    )
