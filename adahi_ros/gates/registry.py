# SPDX-License-Identifier: Apache-2.0
"""The gates, by name; a new one is a line here, or an entry point of another package."""

from __future__ import annotations

from adahi_ros.core.registry import Registry
from adahi_ros.gates.interface import Gate

GATES: Registry[type[Gate]] = Registry(
    "adahi_ros.gates",
    {
        "deviation": "adahi_ros.gates.scores:DeviationGate",
        "uncertainty": "adahi_ros.gates.scores:UncertaintyGate",
        "random": "adahi_ros.gates.scores:RandomGate",
        "age": "adahi_ros.gates.plans:AgeGate",
        "change": "adahi_ros.gates.change:ChangeGate",
        "expected_error": "adahi_ros.gates.plans:ExpectedErrorGate",
        "online": "adahi_ros.gates.online:OnlineGate",
        "always": "adahi_ros.gates.scores:AlwaysGate",
        "never": "adahi_ros.gates.scores:NeverGate",
    },
    Gate,
)
