"""One direction of a link, in simulated time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adahi_lab.link.channel import SMALL_BYTES, Channel
from adahi_lab.link.link_profile import LinkProfile, Outage

PLAIN = LinkProfile(rtt_mean_ms=12.0, rtt_jitter_ms=0.3, rate_mbit_s=55.4)
EVEN = LinkProfile(rtt_mean_ms=0.0, rtt_jitter_ms=0.0, rate_mbit_s=8.0)  # a byte in a microsecond
COUNT = 20_000
FAULTS: dict[str, Any] = {
    "loss": 0.1,
    "burst": {"to_bad": 0.05, "to_good": 0.3, "loss_in_bad": 0.5},
    "duplicate": 0.1,
    "reorder": 0.1,
}


def fates(
    profile: LinkProfile, count: int = COUNT, seed: int = 1, every_s: float = 0.01, size: int = SMALL_BYTES
) -> list[list[float]]:
    """When each packet arrives, counted from when it was sent, s."""
    channel = Channel(profile, seed, "up")
    return [
        [release_s - index * every_s for release_s in channel.arrivals(index * every_s, size)]
        for index in range(count)
    ]


def lost(found: list[list[float]]) -> np.ndarray:
    return np.array([not times for times in found])


def test_a_small_packet_takes_half_a_round_trip_with_half_its_variance() -> None:
    delays_ms = 1e3 * np.concatenate(fates(PLAIN))
    spread = 0.3 / 2**0.5
    assert delays_ms.mean() == pytest.approx(6.0, abs=5 * spread / COUNT**0.5)
    assert delays_ms.std() == pytest.approx(spread, rel=0.03)


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.3, 1.0])
def test_the_share_that_is_lost_is_the_profiles(loss: float) -> None:
    share = lost(fates(replace(PLAIN, loss=loss))).mean()
    assert share == pytest.approx(loss, abs=5 * (loss * (1 - loss) / COUNT) ** 0.5)


def test_the_queue_drops_what_is_too_much_and_empties_at_the_rate() -> None:
    channel = Channel(replace(EVEN, queue_bytes=10_000), 1, "up")
    assert [bool(channel.arrivals(0.0, 1000)) for _ in range(12)] == [True] * 10 + [False] * 2
    assert not channel.arrivals(0.5e-3, 1000)
    assert channel.arrivals(1.1e-3, 1000)
    assert not channel.arrivals(1.2e-3, 1000)


def test_nothing_gets_through_an_outage() -> None:
    outages = (Outage(at_s=10.0, for_s=5.0), Outage(at_s=50.0, for_s=1.0))
    gone = lost(fates(replace(PLAIN, outages=outages), count=10_000))
    assert gone[1000:1500].all()
    assert gone[5000:5100].all()
    assert gone.sum() == 600


def test_a_cut_lasts_as_long_as_specified_and_can_be_ended() -> None:
    channel = Channel(PLAIN, 1, "up")
    assert channel.arrivals(1.0, 100)
    channel.cut(2.0)
    assert not channel.arrivals(1.0, 100)
    assert not channel.arrivals(1.99, 100)
    assert channel.arrivals(2.0, 100)
    channel.cut(9.0)
    channel.cut(2.1)
    assert channel.arrivals(2.1, 100)


def test_states_take_turns() -> None:
    states = ({"for_s": 1.0}, {"for_s": 0.5, "loss": 1.0})
    gone = lost(fates(replace(PLAIN, states=states), count=1500, every_s=0.01))
    for begin in range(0, 1500, 150):
        assert not gone[begin + 1 : begin + 99].any()
        assert gone[begin + 101 : begin + 149].all()


def test_a_change_holds_at_once() -> None:
    channel = Channel(PLAIN, 1, "up")
    assert channel.arrivals(0.0, 100)
    channel.change(replace(PLAIN, loss=1.0))
    assert not channel.arrivals(0.01, 100)
    channel.change(PLAIN)
    assert channel.arrivals(0.02, 100)


def test_a_packet_that_is_out_of_order_overtakes_those_on_their_way() -> None:
    channel = Channel(replace(PLAIN, reorder=0.1), 1, "up")
    arrivals = [channel.arrivals(index * 1e-3, 100)[0] for index in range(COUNT)]
    early = sum(later < earlier for earlier, later in pairwise(arrivals))
    assert early / COUNT == pytest.approx(0.1 * 0.9, abs=0.02)


@given(
    gaps_ms=st.lists(st.floats(0, 3), min_size=2, max_size=60),
    jitter_ms=st.floats(0, 50),
    seed=st.integers(0, 2**32),
)
def test_packets_arrive_in_order_and_after_they_were_sent(
    gaps_ms: list[float], jitter_ms: float, seed: int
) -> None:
    channel = Channel(replace(PLAIN, rtt_jitter_ms=jitter_ms), seed, "down")
    sent = np.cumsum(gaps_ms) * 1e-3
    arrivals = np.array([channel.arrivals(at, 1500)[0] for at in sent.tolist()])
    assert (np.diff(arrivals) >= 0).all()
    assert (arrivals > sent).all()


@given(seed=st.integers(0, 2**32), size=st.integers(60, 1514))
def test_the_same_seed_means_the_same_fate(seed: int, size: int) -> None:
    link = replace(PLAIN, **FAULTS)
    assert fates(link, 100, seed, size=size) == fates(link, 100, seed, size=size)


def test_what_becomes_of_a_packet_does_not_depend_on_those_before_it() -> None:
    link = replace(PLAIN, loss=0.3)
    quiet, cut = Channel(link, 1, "up"), Channel(link, 1, "up")
    cut.cut(5.0)
    pairs = [(quiet.arrivals(at, 100), cut.arrivals(at, 100)) for at in np.arange(0, 10, 0.01).tolist()]
    assert all(not through for _, through in pairs[:500])
    assert [whole for whole, _ in pairs[501:]] == [through for _, through in pairs[501:]]
