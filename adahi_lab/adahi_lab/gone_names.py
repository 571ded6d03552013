# SPDX-License-Identifier: Apache-2.0
"""Names of methods and verbs of this package that are gone, and what to use."""

from __future__ import annotations

from importlib.metadata import entry_points

IN_LAB = {" ".join(each.name.split()[:2]) for each in entry_points(group="adahi_ros.verbs")}

GONE = {
    **dict.fromkeys(("kalman", "rectified"), "the method kerv"),
    "semantic": "the rule hidden_states, as in the method wisv",
    "mixture": "the proposer tool_path, as in the method heisd",
    **dict.fromkeys(("visual_cache", "encoder_cache"), "kind: cached for a target of tokens"),
    "switched": "kind: widths for policies of tokens",
    "chunk": "the proposer token_chunk",
    **dict.fromkeys(("retrieval", "prefix"), "the method heisd"),
    **dict.fromkeys(("committee", "adahi lab committee"), "the engine cosine of a verifier"),
    "attested": "start_condition: {name: keys}",
    **dict.fromkeys(("adahi train gate", "adahi gate"), "the gate expected_error or online"),
    **dict.fromkeys(("adahi train rule", "adahi acceptance"), "adahi train states"),
    "adahi replay": "adahi bag evaluate",
    "adahi learn": "adahi train policy --from-corrections",
    "adahi dataset": "adahi data from-bag",
    "adahi lerobot dataset": "adahi data from-lerobot",
    "adahi lerobot export": "adahi data to-lerobot",
    "adahi lerobot policy": "adahi import vqbet",
    "adahi demos": "adahi data simulate",
    "adahi distill": "adahi train corrector",
    "adahi encoder": "adahi train encoder",
    "adahi calibrate": "adahi thresholds",
    **{
        f"adahi {name.removeprefix('lab ')}": f"adahi {name}"
        for name in sorted(IN_LAB)
        if name.startswith("lab ") and name != "lab contract"
    },
}
