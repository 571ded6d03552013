# SPDX-License-Identifier: Apache-2.0
"""Names of methods and verbs of this package that are gone, and what to use."""

from __future__ import annotations

GONE = {
    **dict.fromkeys(("kalman", "rectified"), "the method kerv"),
    "semantic": "the rule hidden_states, as in the method wisv",
    "mixture": "the proposer tool_path, as in the method heisd",
    **dict.fromkeys(("visual_cache", "encoder_cache"), "kind: cached for a target of tokens"),
    "switched": "kind: widths for policies of tokens",
    "attested": "start_condition: {name: keys}",
    **dict.fromkeys(("train gate", "gate train"), "the gate expected_error or online"),
    **dict.fromkeys(("train rule", "acceptance train"), "adahi train states"),
}
