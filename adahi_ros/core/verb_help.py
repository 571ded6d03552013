# SPDX-License-Identifier: Apache-2.0
"""Help of the command `adahi` for the verbs of a package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class VerbHelp:
    """Help for a package's verbs; an entry point in `adahi_ros.verb_help` names an object of this class.

    Attributes:
        panels: verbs and groups by the title under which the help shows them, in order.
        groups: from a group, such as "bag", to its help.
        settings: from a verb to the settings of its click context.
        defaults: from a group to its verb that a word which is none stands for: with `{"plan": "plan make"}`,
            the words `plan ball` are `plan make ball`.
    """

    panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


def merged(every: Iterable[VerbHelp]) -> VerbHelp:
    """Return one help for the verbs of all packages; panels with one title become one."""
    panels: dict[str, tuple[str, ...]] = {}
    groups: dict[str, str] = {}
    settings: dict[str, Mapping[str, bool]] = {}
    defaults: dict[str, str] = {}
    for each in every:
        for title, names in each.panels.items():
            panels[title] = (*panels.get(title, ()), *names)
        groups.update(each.groups)
        settings.update(each.settings)
        defaults.update(each.defaults)
    return VerbHelp(panels, groups, settings, defaults)
