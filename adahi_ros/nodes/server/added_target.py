# SPDX-License-Identifier: Apache-2.0
"""Loads a target that a service added to a verifier."""

from __future__ import annotations

from dataclasses import replace

from adahi_ros.core.texts import shortened
from adahi_ros.nodes.server.target_verifier_parameters import Say, TargetVerifierParameters, served_target
from adahi_ros.server.service import LoadedTarget, target_name


def load_target(values: TargetVerifierParameters, default: str, away: Say) -> LoadedTarget | str:
    """Load a policy; return the reason if that fails.

    As text: an exception would keep the partly loaded policy in memory. The encoder of intents is for the
    default target, whatever its weights.

    Args:
        values: parameters of the verifier, with the new checkpoint and name.
        default: name of the default target.
        away: see `served_target`.
    """
    try:
        # Check the name before a load that may take minutes.
        if target_name(values.target_name, values.checkpoint) != default:
            values = replace(values, intent="")
        return served_target(values, away)
    except ValueError as error:
        return shortened(str(error))
    except Exception as error:  # noqa: BLE001  the client needs a reply in any case
        return shortened(f"checkpoint: {values.checkpoint!r}, cannot be loaded: {error}")
