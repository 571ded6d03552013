# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command `adahi`, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from adahi_ros.cli.terminal import warn
from adahi_ros.core.registry import Registry, RegistryError
from adahi_ros.core.verb_help import VerbHelp, merged

VERBS: Registry[Callable[..., None]] = Registry(
    "adahi_ros.verbs",
    {
        "watch": "adahi_ros.cli.top:top",
        "doctor": "adahi_ros.cli.doctor:doctor",
        "enable": "adahi_ros.cli.deadman:enable",
        "contract write": "adahi_ros.cli.contracts:write",
        "contract check": "adahi_ros.cli.contracts:check",
        "contract mock": "adahi_ros.cli.mock_arm:mock",
        "lerobot init": "adahi_ros.cli.lerobot:init",
        "lerobot drive": "adahi_ros.cli.lerobot:drive",
        "record": "adahi_ros.cli.bags:record",
        "bag repair": "adahi_ros.cli.bags:recover_bag",
        "bag rerun": "adahi_ros.cli.bags:show_bag",
        "serve fleet": "adahi_ros.cli.fleet_up:up",
        "serve lerobot": "adahi_ros.cli.doors:serve_lerobot",
        "serve openpi": "adahi_ros.cli.doors:serve_openpi",
        "keys": "adahi_ros.cli.security:secure",
    },
)


OURS = VerbHelp(
    panels={
        "Start": ("watch", "doctor"),
        "Robot": ("enable", "contract", "lerobot", "record", "bag", "serve", "keys"),
    },
    groups={
        "contract": "Contracts: what a robot's observation and action are made of.",
        "lerobot": "Policies and arms of LeRobot's: the files of a robot, and a driver.",
        "bag": "A robot's bags: repair them, show them in Rerun.",
        "serve": "Serve policies to robots.",
    },
    settings={"lerobot drive": {"allow_extra_args": True, "ignore_unknown_options": True}},
)

HELP: Registry[object] = Registry("adahi_ros.verb_help", {"adahi_ros": OURS})


def _usable() -> Iterator[VerbHelp]:
    """Yield the help of each package, and report what is none: other packages' verbs must go on."""
    for name in HELP:
        try:
            found = HELP[name]
        except RegistryError as error:
            warn(str(error))
            continue
        if isinstance(found, VerbHelp):
            yield found
        else:
            warn(f"{HELP.group}: {name!r} is {type(found).__name__}, must be a VerbHelp")


ALL = merged(_usable())
PANELS, GROUPS, SETTINGS, DEFAULTS = ALL.panels, ALL.groups, ALL.settings, ALL.defaults
