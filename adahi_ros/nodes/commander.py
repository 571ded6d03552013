"""The last of the robot's node before the wire: every command goes through the safety envelope, or holds."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from typing import Any

import numpy as np
from adahi_msgs.msg import SafetyState
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from std_msgs.msg import Bool, Header
from std_srvs.srv import SetBool

from adahi_ros.contract.assembler import Observation
from adahi_ros.contract.contract import Contract
from adahi_ros.nodes.command_interfaces import (
    command_qos,
)
from adahi_ros.nodes.commanded import commanded, interface_of, limits_of
from adahi_ros.nodes.messages import to_stamp
from adahi_ros.safety.envelope import Envelope
from adahi_ros.safety.intervention import Admitted, Intervention

HELD = frozenset(
    (Intervention.NOT_FINITE, Intervention.STALE, Intervention.DISABLED, Intervention.DEACTIVATED)
)
LASTING = HELD - {Intervention.NOT_FINITE}  # counted once, however many commands they take
AT_ONCE = 0  # as a stamp: the command answers no observation
STATE_PERIOD_S = 1.0  # of safety_state, where nothing happens
HOLDS_AT_REST = 3  # so many, for one may be lost on its way
EARLY = 0.25  # of a control period: so much before its time a command may be due, and have a whole period
LONGEST_STOP_S = 2.0  # of a robot whose node is closed
STOP_LOOK_S = 0.05
SETTLED_S = 0.5  # after its last command the robot is where it is measured; sooner that is behind


class Commander:
    """Sends actions as commands, none outside the envelope; holds the robot where something is wrong.

    It holds where there is no observation for too long, while it is not enabled, and when it is stopped.

    Attributes:
        counts: interventions since it was started.
        enabled: whether it may move the robot.

    Args:
        node: gets publishers, subscriptions, services and timers.
        contract: of the robot.
        values: the node's parameters.
        opened: what closes them.

    Raises:
        ParameterError: names the parameter, its value and what is allowed.
    """

    def __init__(
        self, node: LifecycleNode, contract: Contract, values: dict[str, Any], opened: ExitStack
    ) -> None:
        self._node = node
        self._contract = contract
        self._values = values
        self._what = commanded(contract, values)
        self._interface = interface_of(contract, self._what, values)
        self._limits = limits_of(values["safety.limits"], self._what.names)
        self._envelope = Envelope(self._limits, self._what.field, contract.period_s)
        self._measured_at = contract.measured(self._what.names)
        self._forget()
        # Not lifecycle publishers: a robot that is deactivated amid a motion has yet to come to rest.
        self._out = node.create_publisher(
            self._interface.message_type,
            contract.action.channel.topic,
            command_qos(),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._state_out = node.create_publisher(SafetyState, "safety_state", QoSProfile(depth=10))
        for publisher in (self._out, self._state_out):
            opened.callback(node.destroy_publisher, publisher)
        opened.callback(self.close)  # before its publishers
        enable = node.create_subscription(Bool, "enable", self._on_enable, QoSProfile(depth=1))
        opened.callback(node.destroy_subscription, enable)
        service = node.create_service(SetBool, "~/set_enabled", self._on_set_enabled)
        opened.callback(node.destroy_service, service)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._watch = node.create_timer(contract.period_s, self._look, clock=steady)
        opened.callback(node.destroy_timer, self._watch)
        state = node.create_timer(STATE_PERIOD_S, self._publish_quietly, clock=steady)
        opened.callback(node.destroy_timer, state)
        if not values["safety.limits"]:
            node.get_logger().warning("safety.limits: '', nothing limits where, and how fast, commands move")
        elif self._what.field == "positions" and self._measured_at is None:
            node.get_logger().warning(
                "contract: does not observe the positions that it commands; the first command may be far off"
            )

    @property
    def watch(self) -> Any:
        """The timer that holds the robot."""
        return self._watch

    def start(self) -> None:
        """Commands may be sent from now on."""
        self._forget()
        self._active = True

    def _forget(self) -> None:
        required = self._values["safety.require_enable"]
        self._active = False
        self._moving = False
        self._rested = 0
        self._why: Intervention | None = None
        self._measured: np.ndarray | None = None
        self._last: np.ndarray | None = None
        self._heard = time.monotonic()
        self._enabled_until = 0.0 if required else np.inf
        self.enabled = not required
        self.counts: Counter[Intervention] = Counter()
        self._envelope.reset()
        self._put_at = time.monotonic()
        self._earned_s = self._contract.period_s

    def stop(self) -> None:
        """Hold the robot from now on; actions are not commanded any more."""
        if self._active:
            self._active = False
            self._look()

    def close(self) -> None:
        """Bring the robot to rest, for nobody will be there to go on with it."""
        self.stop()
        end = time.monotonic() + LONGEST_STOP_S
        while self._moving and time.monotonic() < end:
            time.sleep(min(self._contract.period_s, STOP_LOOK_S))
            self._look()

    def heard(self) -> None:
        """There was an observation that the policy can act on."""
        self._heard = time.monotonic()

    def send(self, action: np.ndarray, observation: Observation) -> np.ndarray:
        """Command an action (A,) that answers an observation; return what is commanded now, as an action."""
        source = self._contract.action
        if not self.enabled:  # the watch has brought it to rest, or is about to
            self._intervene((Intervention.DISABLED,))
            return action if self._last is None else source.from_wire(self._last)
        if self._measured_at is not None:
            measured = observation.values[self._measured_at].astype(np.float64)
            if self._limits.far_outside(measured):  # no robot gets there: nothing is known of where it is
                held = self._envelope.hold(self._measured, self._interval_s(), Intervention.POSITION)
                self._put(held, AT_ONCE)
                return action if self._last is None else source.from_wire(self._last)
            self._measured = measured
        wanted = np.asarray(source.to_wire(action), dtype=np.float64)
        admitted = self._envelope.admit(wanted, self._measured, self._interval_s())
        self._why = None
        self._moving = True
        self._put(admitted, observation.stamp_ns)
        if admitted.action is None or not admitted.interventions:
            return action
        return source.from_wire(admitted.action)

    def repeat(self, observation: Observation) -> None:
        """Send the last command again, for an observation that was repeated."""
        if self._last is not None and self.enabled:
            self._publish(self._last, observation.stamp_ns)

    def _look(self) -> None:
        """Hold the robot where that is due; called every control period."""
        now = time.monotonic()
        enabled, self.enabled = self.enabled, now < self._enabled_until
        if self.enabled != enabled:
            self._publish_state(())
            if self.enabled and not self._moving and now - self._put_at > SETTLED_S:
                self._envelope.reset()  # somebody may have moved the robot since
        if not self._moving:
            return
        if not self._active:
            self._hold(Intervention.DEACTIVATED)
        elif not self.enabled:
            self._hold(Intervention.DISABLED)
        elif now - self._heard > self._values["safety.hold_after_s"]:
            self._hold(Intervention.STALE)

    def _hold(self, why: Intervention) -> None:
        self._put(self._envelope.hold(self._measured, self._interval_s(), why), AT_ONCE)
        self._rested = self._rested + 1 if self._envelope.at_rest else 0
        self._moving = self._rested < HOLDS_AT_REST

    def _interval_s(self) -> float:
        """Return the time that the next command has: a control period, or less where they come too fast.

        A command is to be reached in a period, so more would do no good after a pause. But what is commanded
        between two periods must share them, or a flood of observations would move the robot too fast.
        """
        now, period_s = time.monotonic(), self._contract.period_s
        self._earned_s = min(self._earned_s + now - self._put_at, (1.0 + EARLY) * period_s)
        self._put_at = now
        interval_s = min(self._earned_s, period_s)
        self._earned_s -= interval_s
        return interval_s

    def _put(self, admitted: Admitted, stamp_ns: int) -> None:
        if admitted.action is not None:
            self._publish(admitted.action, stamp_ns)
        self._last = admitted.action
        self._intervene(admitted.interventions)

    def _intervene(self, interventions: tuple[Intervention, ...]) -> None:
        """Count the interventions of one command, and tell of them."""
        for why in interventions:
            if why in LASTING and why is self._why:
                continue
            self.counts[why] += 1
            if why in LASTING:
                self._why = why
                self._node.get_logger().warning(f"held: {why.name.lower()}")
        if interventions:
            self._publish_state(interventions)

    def _publish(self, action: np.ndarray, stamp_ns: int) -> None:
        what = self._what
        self._out.publish(
            self._interface.message(what.names, what.field, action, self._contract.period_s, stamp_ns)
        )

    def _publish_quietly(self) -> None:
        if self._active:
            self._publish_state(())

    def _publish_state(self, interventions: tuple[Intervention, ...]) -> None:
        self._state_out.publish(
            SafetyState(
                header=Header(stamp=to_stamp(self._node.get_clock().now().nanoseconds)),
                robot_id=self._values["robot_id"],
                enabled=self.enabled,
                holding=not HELD.isdisjoint(interventions),
                interventions=[int(each) for each in interventions],
                counts=[self.counts[each] for each in Intervention],
            )
        )

    # Enabling

    def _on_enable(self, message: Bool) -> None:
        if not message.data:
            self._set_enabled(0.0)
        elif self._values["safety.require_enable"]:
            self._set_enabled(time.monotonic() + self._values["safety.enable_timeout_s"])
        else:
            self._set_enabled(np.inf)

    def _on_set_enabled(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if not self._active:
            response.message = "the node is not active"
            return response
        self._set_enabled(np.inf if request.data else 0.0)
        response.success = True
        response.message = "enabled" if request.data else "disabled, held"
        return response

    def _set_enabled(self, until: float) -> None:
        if not self._active:
            return
        self._enabled_until = until
        self._look()
