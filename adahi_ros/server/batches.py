"""Requests of one robot each, as one request of all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from adahi_ros.policy.proposal import Proposal
from adahi_ros.policy.signature import Observations
from adahi_ros.wire.request import VerificationRequest, sent_codes


def kind_of(request: VerificationRequest) -> Hashable:
    """Return what is the same of requests that `joined` can join: which parts of a draft they have."""
    return request.draft.actions.shape[1], request.draft.distribution is None


def joined(requests: Sequence[VerificationRequest]) -> VerificationRequest:
    """Return requests of one robot each (M = 1), all of a kind, as one of M robots."""
    if len(requests) == 1:
        return requests[0]
    return VerificationRequest(
        _observations([each.observations for each in requests]),
        _drafts([each.draft for each in requests]),
        _committed([each.committed for each in requests]),
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


def _committed(each: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return what robots have committed to, (M, d, A), NaN behind the end of who has to less."""
    told = [actions for actions in each if actions is not None]
    if not told:
        return None
    most, size = max(actions.shape[1] for actions in told), told[0].shape[2]
    rows = np.full((len(each), most, size), np.nan, dtype=np.float32)
    for row, actions in zip(rows, each, strict=True):
        if actions is not None:
            row[: actions.shape[1]] = actions[0]
    return rows
