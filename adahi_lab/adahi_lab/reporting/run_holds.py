# SPDX-License-Identifier: Apache-2.0
"""Why an arm was held, and for how long, from the states of its safety envelope and of its link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from adahi_ros.robot.session import VerifierState
from adahi_ros.safety.guard import HELD
from adahi_ros.safety.intervention import Intervention

WHY = {
    Intervention.DISABLED: "not enabled",
    Intervention.UNVERIFIED: "no reply of the target",
    Intervention.STALE: "no observation",
    Intervention.FOLLOWING: "the arm did not follow its commands",
    Intervention.TAKEOVER: "a person had the arm and did not move it",
    Intervention.SHARED: "another program sent commands",
    Intervention.MEASURED: "wrong measurement",
}
DETAILED = (Intervention.DRIVER, Intervention.FOLLOWING, Intervention.SHARED, Intervention.MEASURED)
LINKS = {int(state): state.label for state in VerifierState if state is not VerifierState.READY}
SHORT_S = 0.5  # a shorter hold is no news: the first reply takes as long


@dataclass(frozen=True, order=True)
class Held:
    """Whether an arm was held at a time.

    Attributes:
        time_s: as in `BagRun.times_s`.
        why: it was, for people; empty if it was not.
        detail: more about it; may be empty.
    """

    time_s: float
    why: str
    detail: str


def held(time_s: float, message: Any, link: int) -> Held:
    """Read a SafetyState, beside the verifier's state in the newest LinkState."""
    kinds = [kind for kind in sorted(HELD) if kind in message.interventions and message.holding]
    if not kinds or kinds == [Intervention.DEACTIVATED]:  # as every run ends
        return Held(time_s, "", "")
    if message.stopped:
        return Held(time_s, "stopped by the operator", "")
    kind = kinds[0]
    _, _, said = message.message.removeprefix("at rest: ").partition(": ")
    detail = said.partition("; press enable")[0] if kind in DETAILED else ""
    if kind is Intervention.UNVERIFIED:
        detail = LINKS.get(link, "")
    return Held(time_s, WHY.get(kind, kind.name.lower().replace("_", " ")), detail)


def in_words(states: Sequence[Held]) -> str:
    """Return how long an arm was held and why, the longest reason first; empty without a long hold."""
    found = defaultdict[str, list[tuple[float, float, str]]](list)
    for why, group in groupby(pairwise(sorted(states)), lambda pair: pair[0].why):
        pairs = list(group)
        from_s, to_s = max(0.0, pairs[0][0].time_s), pairs[-1][1].time_s
        detail = next((before.detail for before, _ in pairs if before.detail), "")
        if why and to_s - from_s >= SHORT_S:
            found[why].append((to_s - from_s, from_s, f"{why} ({detail})" if detail else why))
    longest = sorted(found.values(), key=lambda holds: -sum(long_s for long_s, *_ in holds))
    words = [
        f"{f'{len(holds)} times, ' if len(holds) > 1 else ''}for {sum(long_s for long_s, *_ in holds):.1f} s "
        f"from {holds[0][1]:.1f} s on: {max(holds)[2]}"
        for holds in longest
    ]
    return f"The arm was held {'; '.join(words)}. " if words else ""
