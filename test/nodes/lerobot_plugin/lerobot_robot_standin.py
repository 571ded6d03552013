"""An arm that is not there, as a plugin of LeRobot's: its servos and their goals are in a file.

So they stay where they are while no process drives them. Its names are in another order than a policy's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from lerobot.robots import Robot, RobotConfig

SPEED = 200.0  # degrees/s
SHAPE = (48, 64, 3)


@RobotConfig.register_subclass("standin")
@dataclass
class StandInConfig(RobotConfig):
    servos: Path = field(default=Path("servos.json"))
    cameras_seen: list[str] = field(default_factory=list)
    disable_torque_on_disconnect: bool = True


class StandIn(Robot):
    config_class, name = StandInConfig, "standin"
    is_calibrated, is_connected = True, False
    action_features: Mapping[str, Any] = MappingProxyType({})
    observation_features: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, config: StandInConfig) -> None:
        super().__init__(config)
        self.config = config
        self.action_features = {f"{joint}.pos": float for joint in reversed(self.read()["goal"])}
        cameras = dict.fromkeys(config.cameras_seen, SHAPE)
        self.observation_features = {**self.action_features, **cameras}

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.config.servos.read_text())
        now_s, most = time.monotonic(), SPEED * (time.monotonic() - found["time"]) * found["torque"]
        for joint, at in found["position"].items():
            found["position"][joint] = at + float(np.clip(found["goal"][joint] - at, -most, most))
        return {**found, "time": now_s}

    def write(self, **changes: Any) -> None:
        partial = self.config.servos.with_suffix(".new")
        partial.write_text(json.dumps({**self.read(), **changes}))
        partial.replace(self.config.servos)

    def connect(self, calibrate: bool = True) -> None:
        self.write(torque=True)
        self.is_connected = True

    def disconnect(self) -> None:
        self.write(torque=not self.config.disable_torque_on_disconnect)
        self.is_connected = False

    def calibrate(self) -> None: ...

    def configure(self) -> None: ...

    def get_observation(self) -> dict[str, Any]:
        self.write()
        seen = {f"{joint}.pos": at for joint, at in self.read()["position"].items()}
        return {**seen, **{name: np.full(SHAPE, 90, np.uint8) for name in self.config.cameras_seen}}

    def send_action(self, action: dict[str, float]) -> dict[str, float]:
        self.write(goal={name.removesuffix(".pos"): value for name, value in action.items()})
        return action
