# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command `adahi`: their groups, and their former names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from adahi_ros.core.registry import Registry, RegistryError
from adahi_ros.core.verb_help import VerbHelp, merged

VERBS: Registry[Callable[..., None]] = Registry(
    "adahi_ros.verbs",
    {
        "watch": "adahi_ros.cli.top:top",
        "contract write": "adahi_ros.cli.contracts:write",
        "contract check": "adahi_ros.cli.contracts:check",
        "contract mock": "adahi_ros.cli.mock_arm:mock",
        "record": "adahi_ros.cli.bags:record",
        "bag repair": "adahi_ros.cli.bags:recover_bag",
        "serve fleet": "adahi_ros.cli.fleet_up:up",
        "serve keys": "adahi_ros.cli.key_release:keys",
        "serve fetch": "adahi_ros.cli.key_release:fetch",
        "keys": "adahi_ros.cli.security:secure",
    },
)


OURS = VerbHelp(
    panels={"Start": ("watch",), "Robot": ("contract", "record", "bag", "serve", "keys")},
    groups={
        "contract": "Contracts: what a robot's observation and action are made of.",
        "bag": "A robot's bags: repair them, or replay methods on them.",
        "serve": "Serve policies to a fleet of robots, and keys to attested verifiers.",
    },
    former={
        "top": "watch",
        "bag recover": "bag repair",
        "fleet up": "serve fleet",
        "secure": "keys",
    },
)

HELP: Registry[VerbHelp] = Registry("adahi_ros.verb_help", {"adahi_ros": OURS})


def _usable() -> Iterator[VerbHelp]:
    for name in HELP:
        with suppress(RegistryError):  # the package's verbs say the same error
            yield HELP[name]


ALL = merged(_usable())
PANELS, GROUPS, FORMER, SETTINGS = ALL.panels, ALL.groups, ALL.former, ALL.settings
