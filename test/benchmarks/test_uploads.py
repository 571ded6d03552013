"""Mismatch first costs a second round trip where a code is rejected, and less of a request where none is."""

from __future__ import annotations

import numpy as np

from adahi_ros.lab.evaluation.loaded_policies import Policies
from adahi_ros.lab.evaluation.method_needs import Demands, traffic
from adahi_ros.lab.evaluation.rollout import Log
from adahi_ros.lab.link.link_profile import LinkProfile
from adahi_ros.lab.tasks import make
from benchmarks.semantic_uploads import accepted_length, uploads

KEPT = [[1, 1], [0, 1], [1, 1], [1, 1], [0, 0]]


def log(accepted: list[list[int]] = KEPT, sent: list[int] | None = None) -> Log:
    steps = len(accepted)
    flags = np.array(accepted, dtype=bool)[:, None]
    requested = np.ones((steps, 1), bool) if sent is None else np.array(sent, bool)[:, None]
    nothing = np.zeros((steps, 1))
    actions = np.zeros((steps, 1, 2), np.float32)
    active = np.ones((steps, 1), bool)
    return Log(active, requested, nothing, nothing, flags, actions, actions, ~active, nothing)


def test_rounds_and_bytes_by_both_ways(policies: Policies) -> None:
    spec, target = make("ball").spec, policies.target.signature
    once, first = uploads(log(), target, spec)
    np.testing.assert_array_equal(once.rounds, [1, 1, 1, 1, 1])
    np.testing.assert_array_equal(first.rounds, [1, 2, 1, 1, 2])
    assert target.codes is not None
    saved = 2 * target.codes.codebooks * (target.codes.codebook_size - 1)
    np.testing.assert_array_equal((once.up - first.up)[[0, 2, 3]], saved)
    assert first.up[4] - first.up[1] == 2 * target.codes.codebook_size  # of the other code, too
    assert (first.down > once.down).tolist() == [False, True, False, False, True]


def test_everything_at_once_is_what_is_counted_elsewhere(policies: Policies) -> None:
    spec, target = make("ball").spec, policies.target.signature
    sparse = log(sent=[1, 0, 0, 1, 1])
    once, _ = uploads(sparse, target, spec)
    assert traffic(sparse, Demands(target=target, codes=True), spec) == (once.up.sum(), once.down.sum())


def test_waiting_is_of_round_trips_and_bytes(policies: Policies) -> None:
    _, first = uploads(log(), policies.target.signature, make("ball").spec)
    link = LinkProfile(rtt_mean_ms=10.0, rtt_jitter_ms=0.0, rate_mbit_s=8.0)
    np.testing.assert_allclose(first.waiting_ms(link), 10.0 * first.rounds + (first.up + first.down) / 1e3)


def test_the_accepted_length_is_of_drafts_in_a_row() -> None:
    assert accepted_length(log()) == 3 / 3  # one, two and none, at the end of the episode
    assert accepted_length(log(sent=[1, 0, 1, 1, 0])) == 3.0
