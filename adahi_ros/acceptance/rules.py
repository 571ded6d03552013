"""The acceptance rules, by name."""

from __future__ import annotations

from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.acceptance.replace import Replace
from adahi_ros.acceptance.speculative import Speculative
from adahi_ros.registry import Registry

ACCEPTANCES: Registry[type[Acceptance]] = Registry(
    "adahi_ros.acceptances", {"speculative": Speculative, "replace": Replace}
)
