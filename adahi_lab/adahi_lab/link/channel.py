# SPDX-License-Identifier: Apache-2.0
"""One direction of a link in simulated time: loss and arrival time of each packet."""

from __future__ import annotations

import math
from statistics import NormalDist

from adahi_lab.link.link_profile import LinkProfile
from adahi_ros.core.randomness import EpisodeStreams

SMALL_BYTES = 98  # frame of an echo request of `ping`, which measures round-trip times
HALF_UNIT = 2.0**-54  # a draw of 0 would give minus infinity
_NORMAL = NormalDist()


class Channel:
    """A queue, a transmitter, and the air.

    A packet waits for earlier ones, is sent at the link's rate, may be lost, and arrives after a Gaussian
    delay, never before an earlier packet. Each direction has half of the round trip's mean and variance, so
    that both together match the profile. A packet's draws depend only on the seed and its number.

    Args:
        profile: of the link.
        seed: of every draw.
        direction: names the stream of draws, so that the two directions are independent.
    """

    def __init__(self, profile: LinkProfile, seed: int, direction: str) -> None:
        self._draws = EpisodeStreams(seed, f"link {direction}", [0], 6)
        self._clock_s = 0.0
        self._queued_bytes = 0.0
        self._last_release_s = 0.0
        self._bad = False
        self._cut_until_s = 0.0
        self.change(profile)

    def change(self, profile: LinkProfile) -> None:
        """Replace the profile; packets in transit are unaffected."""
        self._profile = profile
        self._state, self._state_until_s = profile, -math.inf

    def cut(self, until_s: float) -> None:
        """Let nothing through until then."""
        self._cut_until_s = until_s

    def arrivals(self, now_s: float, size_bytes: int) -> list[float]:
        """Return the arrival times of a packet sent now, s: none, one, or two.

        Args:
            now_s: since the link's start; a time before the last call's is replaced by that.
            size_bytes: of the packet.
        """
        alone, turn, in_burst, delay, twice, overtakes = self._draws.next()[0].tolist()
        now_s = max(now_s, self._clock_s)
        state = self._state_at(now_s)
        rate_bytes_s = state.rate_mbit_s * 125e3
        self._queued_bytes = max(0.0, self._queued_bytes - (now_s - self._clock_s) * rate_bytes_s)
        self._clock_s = now_s
        lost_in_burst = self._burst(state, turn, in_burst)
        if now_s < self._cut_until_s or self._profile.is_out(now_s):
            return []
        if self._queued_bytes + size_bytes > state.queue_bytes:
            return []
        self._queued_bytes += size_bytes
        if alone < state.loss or lost_in_burst:
            return []
        sent_s = now_s + self._queued_bytes / rate_bytes_s
        if overtakes < state.reorder:
            release_s = sent_s
        else:
            mean_ms = state.rtt_mean_ms / 2 - state.transfer_ms(SMALL_BYTES)
            spread_ms = state.rtt_jitter_ms / math.sqrt(2) * _NORMAL.inv_cdf(max(delay, HALF_UNIT))
            release_s = sent_s + max(0.0, mean_ms + spread_ms) * 1e-3
            self._last_release_s = release_s = max(release_s, self._last_release_s)
        return [release_s, release_s] if twice < state.duplicate else [release_s]

    def _state_at(self, now_s: float) -> LinkProfile:
        if now_s >= self._state_until_s:
            self._state, self._state_until_s = self._profile.state_at(now_s)
        return self._state

    def _burst(self, state: LinkProfile, turn: float, in_burst: float) -> bool:
        """Update the link's bad or good state; return whether this packet is lost."""
        if state.burst is None:
            self._bad = False
            return False
        self._bad = turn >= state.burst.to_good if self._bad else turn < state.burst.to_bad
        return self._bad and in_burst < state.burst.loss_in_bad
