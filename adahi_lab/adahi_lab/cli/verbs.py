# SPDX-License-Identifier: Apache-2.0
"""How the command `adahi` shows the lab's verbs; `setup.py` makes an entry point of each."""

from __future__ import annotations

from adahi_ros.core.verb_help import VerbHelp

HELP = VerbHelp(
    panels={
        "Start": ("demo", "report"),
        "Data": ("data",),
        "Train": ("train", "thresholds", "import", "export"),
        "Evaluate": ("evaluate", "choose", "methods"),
        "Lab": ("lab",),
    },
    groups={
        "bag": "A robot's bags: repair them, or replay methods on them.",
        "data": "Training data: from bags, from and to LeRobot, or simulated.",
        "train": "Train a policy, a corrector, an encoder, a gate or a rule.",
        "import": "A VQ-BeT of LeRobot as draft and target; for other policies: adahi lerobot init.",
        "lab": "Research: tables of papers, curves, benchmarks, an emulated wireless link.",
        "lab bench": "Measure, mostly across an emulated wireless link.",
        "lab libero": "LIBERO: its scene, converted once for the task libero_goal.",
        "lab link": "Emulate a wireless link between a robot and a server on this machine.",
    },
    defaults={"train": "policy"},
    settings={"lab link run": {"allow_interspersed_args": False}},  # what follows COMMAND is the command's
)
