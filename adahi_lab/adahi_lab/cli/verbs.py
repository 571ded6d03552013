# SPDX-License-Identifier: Apache-2.0
"""How the command `adahi` shows the lab's verbs; `setup.py` makes an entry point of each."""

from __future__ import annotations

from importlib.metadata import entry_points

from adahi_ros.core.verb_help import VerbHelp

LAB = "lab "
IN_LAB = [entry.name for entry in entry_points(group="adahi_ros.verbs") if entry.name.startswith(LAB)]

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
        "import": "Checkpoints of LeRobot that run without LeRobot.",
        "lab": "Research: tables of papers, curves, benchmarks, an emulated wireless link.",
        "lab bench": "Measure, mostly across an emulated wireless link.",
        "lab libero": "LIBERO: its scene, converted once for the task libero_goal.",
        "lab link": "Emulate a wireless link between a robot and a server on this machine.",
    },
    former={
        "replay": "bag evaluate",
        "dataset from-bag": "data from-bag",
        "lerobot dataset": "data from-lerobot",
        "lerobot export": "data to-lerobot",
        "lerobot policy": "import vqbet",
        "demos": "data simulate",
        "distill": "train corrector",
        "encoder train": "train encoder",
        "calibrate": "thresholds",
        **{name.removeprefix(LAB): name for name in IN_LAB if name != "lab contract"},
    },
    defaults={"train": "policy"},
    settings={"lab link run": {"allow_interspersed_args": False}},  # what follows COMMAND is the command's
)
