# SPDX-License-Identifier: Apache-2.0
"""Names of gates, proposers, rules, policies, parameters and verbs that are gone, and what to use."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points

OURS = {
    **dict.fromkeys(("plan_deviation", "surprise", "reversal", "adaptive_age", "overlap"), "age or online"),
    "learned": "the gate expected_error or online",
    "lerobot": "torch, with a checkpoint of this package that was made from LeRobot's",
    **dict.fromkeys(("command.points", "command.velocities"), "nothing: trajectories carry curves"),
    "adahi top": "adahi watch",
    "adahi bag recover": "adahi bag repair",
    "adahi fleet": "adahi serve fleet",
    "adahi secure": "adahi keys",
}
"""What to use instead of a name, for names that 0.3.0 had and no registry has; a verb begins with adahi.

Packages have such mappings of their own, by entry points.
"""


@cache
def all_gone() -> dict[str, str]:
    """Return what to use instead of each name that is gone, of all packages."""
    found = dict(OURS)
    for entry in entry_points(group="adahi_ros.gone_names"):
        with suppress(Exception):  # another package's module may raise anything; the name stays unknown
            found |= entry.load()
    return found


def gone(name: object) -> str:
    """Return what to use instead of an unknown name that existed, in brackets; empty for all others."""
    use = all_gone().get(name) if isinstance(name, str) else None
    return f" (gone since 0.4.0; 0.3.0 last had it; use {use})" if use else ""
