# SPDX-License-Identifier: Apache-2.0
"""Names of gates, proposers, rules, policies, parameters and verbs that are gone, and what to use."""

from __future__ import annotations

GONE = {
    **dict.fromkeys(("kalman", "rectified"), "the method kerv"),
    "semantic": "the rule hidden_states, as in the method wisv",
    "mixture": "the proposer tool_path, as in the method heisd",
    **dict.fromkeys(("visual_cache", "encoder_cache"), "kind: cached for a target of tokens"),
    "switched": "kind: widths for policies of tokens",
    **dict.fromkeys(("plan_deviation", "surprise", "reversal", "adaptive_age"), "age, overlap or online"),
    **dict.fromkeys(("learned", "train gate", "gate train"), "the gate expected_error or online"),
    "lerobot": "torch, with the checkpoint that 'adahi import vqbet' writes",
    "attested": "start_condition: {name: keys}",
    **dict.fromkeys(("train rule", "acceptance train"), "adahi train states"),
}
"""What to use instead of a name, for names that 0.3.0 had and no registry has."""


def gone(name: object) -> str:
    """Return what to use instead of an unknown name that existed, in brackets; empty for all others."""
    use = GONE.get(name) if isinstance(name, str) else None
    return f" (gone since 0.4.0; 0.3.0 last had it; use {use})" if use else ""
