# SPDX-License-Identifier: Apache-2.0
"""Entries of an action that leave nothing in a bag: goals of ROS actions, such as a gripper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adahi_ros.bags.definitions import BagError
from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import Contract, MeasuredPositions, Sink

OnMeasured = Callable[[str], None]


class WholeActions:
    """Completes the recorded entries of an action by measured positions, where a bag has no goals.

    Args:
        contract: of the robot.
        on_measured: called with a warning that names the entries; None refuses a contract with them.

    Raises:
        BagError: measured positions are not wanted, or not observed, or no entry is recorded.
    """

    def __init__(self, contract: Contract, on_measured: OnMeasured | None) -> None:
        sinks = contract.action.sinks
        unrecorded = [sink for sink in sinks if sink.is_ros_action]
        self._measured: list[tuple[Sink, MeasuredPositions | None]] = [
            (sink, contract.measured(sink.joint_names) if sink in unrecorded else None) for sink in sinks
        ]
        if not unrecorded:
            return
        keys = ", ".join(sink.key for sink in unrecorded)
        fault = f"contract: {keys}, goals of a ROS action are in no bag"
        if on_measured is None:
            raise BagError(
                f"{fault}; for a dataset the contract must name a topic with the same command, such as a "
                "leader arm's joint states"
            )
        if len(unrecorded) == len(sinks):
            raise BagError(f"{fault}; at least one part of the action must be a topic")
        places = [each for _, each in self._measured if each is not None]
        unknown = ", ".join(name for each in places for name in each.unknown)
        if unknown:
            raise BagError(
                f"{fault}; the observations must have the measured position of {unknown}, or the contract a "
                "topic with the same command"
            )
        on_measured(f"{fault}; the measured position counts instead")

    def action_from(self, recorded: Sequence[np.ndarray], observation: Observation) -> np.ndarray:
        """Return an action (A,) in the policy's units.

        Args:
            recorded: the numbers of each sink with a topic, in the contract's order.
            observation: of the same step.

        Raises:
            InputError: a measured position is not finite in the policy's units.
        """
        rest = iter(recorded)
        return np.concatenate(
            [
                next(rest) if places is None else sink.source.from_wire(places.positions_in(observation.read))
                for sink, places in self._measured
            ]
        )
