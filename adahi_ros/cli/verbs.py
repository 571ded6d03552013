# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command `adahi`: their groups, and their former names."""

from __future__ import annotations

from collections.abc import Callable

from adahi_ros.core.registry import Registry

VERBS: Registry[Callable[..., None]] = Registry(
    "adahi_ros.verbs",
    {
        "demo": "adahi_ros.cli.lab.over_dds:demo",
        "watch": "adahi_ros.cli.robot.top:top",
        "report": "adahi_ros.cli.lab.run_report:report",
        "contract write": "adahi_ros.cli.lab.task_contract:write",
        "contract check": "adahi_ros.cli.robot.contracts:check",
        "contract mock": "adahi_ros.cli.lab.mock_arm:mock",
        "record": "adahi_ros.cli.robot.bags:record",
        "bag repair": "adahi_ros.cli.robot.bags:recover_bag",
        "bag evaluate": "adahi_ros.cli.lab.replay:replay",
        "serve fleet": "adahi_ros.cli.robot.fleet_up:up",
        "serve keys": "adahi_ros.cli.robot.key_release:keys",
        "serve fetch": "adahi_ros.cli.robot.key_release:fetch",
        "keys": "adahi_ros.cli.robot.security:secure",
        "data from-bag": "adahi_ros.cli.lab.dataset:from_bag",
        "data from-lerobot": "adahi_ros.cli.lab.lerobot:dataset",
        "data to-lerobot": "adahi_ros.cli.lab.lerobot:export",
        "data simulate": "adahi_ros.cli.lab.dataset:demos",
        "train policy": "adahi_ros.cli.lab.training:train",
        "train corrector": "adahi_ros.cli.lab.distill:distill",
        "train encoder": "adahi_ros.cli.lab.trained_parts:train_encoder",
        "train feedback": "adahi_ros.cli.lab.trained_parts:train_feedback",
        "train states": "adahi_ros.cli.lab.trained_parts:train_states",
        "thresholds": "adahi_ros.cli.lab.calibration:calibrate",
        "import vqbet": "adahi_ros.cli.lab.lerobot:policy",
        "export": "adahi_ros.cli.lab.training:export",
        "evaluate": "adahi_ros.cli.lab.comparison:evaluate",
        "choose": "adahi_ros.cli.lab.choosing:choose",
        "methods": "adahi_ros.cli.lab.methods:methods",
        "lab table": "adahi_ros.cli.lab.paper:table",
        "lab figures": "adahi_ros.cli.lab.paper:figures",
        "lab compare": "adahi_ros.cli.lab.comparison:compare",
        "lab curve": "adahi_ros.cli.lab.comparison:curve",
        "lab tune": "adahi_ros.cli.lab.tuning:tune",
        "lab spot": "adahi_ros.cli.lab.spot:spot",
        "lab learn": "adahi_ros.cli.lab.learning:learn",
        "lab committee": "adahi_ros.cli.lab.committee:committee",
        "lab index": "adahi_ros.cli.lab.dataset:index",
        "lab bench latency": "adahi_ros.cli.lab.bench:latency",
        "lab bench peers": "adahi_ros.cli.lab.bench:peers",
        "lab bench dds": "adahi_ros.cli.lab.bench:dds",
        "lab bench cameras": "adahi_ros.cli.lab.bench:cameras",
        "lab bench soak": "adahi_ros.cli.lab.bench:soak",
        "lab bench compute": "adahi_ros.cli.lab.bench:compute",
        "lab bench fleet": "adahi_ros.cli.lab.bench:fleet",
        "lab libero convert": "adahi_ros.cli.lab.libero:convert",
        "lab link run": "adahi_ros.cli.lab.link:run",
        "lab link set": "adahi_ros.cli.lab.link:change",
        "lab link check": "adahi_ros.cli.lab.link:check",
        "lab link list": "adahi_ros.cli.lab.link:listing",
    },
)

PANELS = {
    "Start": ("demo", "watch", "report"),
    "Robot": ("contract", "record", "bag", "serve", "keys"),
    "Data": ("data",),
    "Train": ("train", "thresholds", "import", "export"),
    "Evaluate": ("evaluate", "choose", "methods"),
    "Lab": ("lab",),
}
"""What the help shows together, and in which order."""

GROUPS = {
    "contract": "Contracts: what a robot's observation and action are made of.",
    "bag": "A robot's bags: repair them, or replay methods on them.",
    "serve": "Serve policies to a fleet of robots, and keys to attested verifiers.",
    "data": "Training data: from bags, from and to LeRobot, or simulated.",
    "train": "Train a policy, a corrector, an encoder, a gate or a rule.",
    "import": "Checkpoints of LeRobot that run without LeRobot.",
    "lab": "Research: tables of papers, curves, benchmarks, an emulated wireless link.",
    "lab bench": "Measure, mostly across an emulated wireless link.",
    "lab libero": "LIBERO: its scene, converted once for the task libero_goal.",
    "lab link": "Emulate a wireless link between a robot and a server on this machine.",
}

FORMER = {
    "top": "watch",
    "bag recover": "bag repair",
    "replay": "bag evaluate",
    "fleet up": "serve fleet",
    "secure": "keys",
    "dataset from-bag": "data from-bag",
    "lerobot dataset": "data from-lerobot",
    "lerobot export": "data to-lerobot",
    "lerobot policy": "import vqbet",
    "demos": "data simulate",
    "distill": "train corrector",
    "encoder train": "train encoder",
    "calibrate": "thresholds",
    **{name.removeprefix("lab "): name for name in VERBS.shipped if name.startswith("lab ")},
}
"""Names until version 0.4; they still work and are not in the help. `adahi train TASK` is `train policy`."""

SETTINGS = {"lab link run": {"allow_interspersed_args": False}}  # what follows COMMAND is the command's
