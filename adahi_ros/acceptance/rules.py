"""The acceptance rules, by name."""

from __future__ import annotations

from adahi_ros.acceptance.interface import Acceptance
from adahi_ros.acceptance.replace import Replace
from adahi_ros.acceptance.speculative import Speculative

ACCEPTANCES: dict[str, type[Acceptance]] = {"speculative": Speculative, "replace": Replace}
