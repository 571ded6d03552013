"""The acceptance rules, by name."""

from __future__ import annotations

from adahi_ros.acceptance.distance import Distance
from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.acceptance.replace import Replace
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.registry import Registry

ACCEPTANCES: Registry[type[Acceptance]] = Registry(
    "adahi_ros.acceptances", {"speculative": Speculative, "replace": Replace, "distance": Distance}
)


def keeps_drafts(rule: str) -> bool:
    """Whether by this rule a draft that is accepted stands as it is, so that nobody need say it again."""
    return getattr(ACCEPTANCES[rule], "keeps_drafts", False)
