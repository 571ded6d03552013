# SPDX-License-Identifier: Apache-2.0
"""The server's node: runs target policies, and replies to the requests of robots.

Serves `verify_draft` (adahi_msgs/VerifyDraft) and `describe_target` (adahi_msgs/DescribeTarget), or
`NAME/verify_draft` and `NAME/describe_target` for each robot in the parameter `robots`; `~/load_target`
(adahi_msgs/LoadTarget), `~/unload_target` (adahi_msgs/UnloadTarget) and `~/assign` (adahi_msgs/Assign).
Publishes `assignments` (adahi_msgs/Assignments) and /diagnostics. Serves metrics to Prometheus.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from adahi_msgs.srv import DescribeTarget, LoadTarget, UnloadTarget, VerifyDraft
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from adahi_ros.core.health_level import Health
from adahi_ros.core.texts import shortened
from adahi_ros.nodes.common.deferred_service import DeferredService
from adahi_ros.nodes.common.diagnostics import DiagnosticsPublisher
from adahi_ros.nodes.common.executors import LaterCall, executor_of
from adahi_ros.nodes.common.managed import ManagedNode, autostart
from adahi_ros.nodes.common.qos import verify_qos
from adahi_ros.nodes.common.spin import run
from adahi_ros.nodes.common.throttled_log import ThrottledLog
from adahi_ros.nodes.common.timers import DueTimer
from adahi_ros.nodes.server.machine import free_memory, memory_figures
from adahi_ros.nodes.server.request_scheduler import RequestScheduler
from adahi_ros.nodes.server.robot_messages import describe
from adahi_ros.nodes.server.target_verifier_parameters import ENGINES, TargetVerifierParameters, check_robots
from adahi_ros.protocol.request import PROTOCOL_VERSION, Request, RequestError
from adahi_ros.server.request_queue import Turn
from adahi_ros.server.schedule import Sender
from adahi_ros.server.server_health import HealthWatch
from adahi_ros.server.service import LoadedTarget, ServedTargets, VerificationService

PARTING_S = 0.1  # for the last replies: without it, a third of them is lost
SHARED_WARNING_PERIOD_S = 10.0  # of warnings about two robots with one name


class TargetVerifierNode(ManagedNode):
    """The server's node. Its services exist while it is active."""

    def __init__(self, **options: object) -> None:
        self._serving = ExitStack()
        self._scheduler: RequestScheduler | None = None  # None while inactive
        self._loading = False
        super().__init__("target_verifier", TargetVerifierParameters, **options)
        self._log = ThrottledLog(self)
        self._shared_log = ThrottledLog(self, SHARED_WARNING_PERIOD_S)
        from adahi_ros.nodes.server.exposure import exposure  # once

        if warning := exposure(os.environ):
            self.get_logger().warning(warning)
        self._loader = DeferredService(self, LoadTarget, "~/load_target", self._load_target)
        self.create_service(UnloadTarget, "~/unload_target", self._unload_target)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Serve robots."""
        doors = {name: door for name, door in vars(self._values.doors).items() if door.port}
        if doors:
            from adahi_ros.nodes.server.door_thread import open_doors

            fault = open_doors(doors, self._service.targets, self._submit, self.get_logger(), self._serving)
            if fault:
                self.stop_serving()
                self.last_error = fault
                self.get_logger().error(f"cannot be activated: {fault}")
                return TransitionCallbackReturn.FAILURE
        services = {robot: self._open_services(robot) for robot in self._values.robots or ("",)}
        if self._values.assigns:
            from adahi_ros.nodes.server.assignment_service import AssignmentService

            assigning = AssignmentService(self, self._service.targets, self._values.robots)
            self._service.assignments = assigning.assignments
            self._serving.callback(assigning.close)
        self._due = DueTimer(self, self._serve)
        self._turn = LaterCall(self, self._serve)
        self._serving.callback(self._due.destroy)
        self._scheduler = RequestScheduler(
            services, self._service, self._values.batch, self._served, self._unheard, self._wake
        )
        self._serving.callback(time.sleep, PARTING_S)
        self._serving.callback(self._scheduler.dismiss)  # called before the sleep
        return super().on_activate(state)

    def _submit(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        """Queue a door's request; called in the door's thread."""
        if self.executor is not None:
            self.executor.create_task(self._received_at_door, turn, read)

    def _received_at_door(self, turn: Turn[Sender], read: Callable[[], Request]) -> None:
        if self._scheduler is not None:
            self._scheduler.receive(turn, read)
            self._turn.request()

    def _received(self, robot: str, request: VerifyDraft.Request, header: object) -> None:
        if self._scheduler is not None:
            self._scheduler.admit(robot, request, header)
            self._turn.request()

    def _serve(self) -> None:
        """Serve the next requests, and set the timer."""
        if self._scheduler is not None:
            self._scheduler.serve()
            self._due.set(time.monotonic() + self._scheduler.wait_s)

    def _wake(self) -> None:
        """Serve a batch that was verified elsewhere; called in any thread, even after the node's end."""
        if self.executor is not None:
            self.executor.create_task(self._serve)

    def _open_services(self, robot: str) -> DeferredService:
        """Open the services of a robot, or of all if the name is empty; return that of requests."""
        verifying = DeferredService(
            self,
            VerifyDraft,
            self._service_name("verify_draft", robot),
            partial(self._received, robot),
            verify_qos(self._values.verification.reliability),
        )
        self._serving.callback(verifying.destroy)
        name = self._service_name("describe_target", robot)
        self._serving.callback(
            self.destroy_service, self.create_service(DescribeTarget, name, self._describe)
        )
        return verifying

    def _service_name(self, name: str, robot: str) -> str:
        """Return the name of a robot's service, beside the remapped shared one."""
        namespace, _, last = self.resolve_service_name(name).rpartition("/")
        return f"{namespace}/{robot}/{last}" if robot else name

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the services; robots notice that there is no verifier. The policy stays loaded."""
        self.stop_serving()
        return super().on_deactivate(state)

    def stop_serving(self) -> None:
        """End the services, and reply to waiting requests that they end."""
        self._scheduler = None
        self._serving.close()

    def _close(self) -> None:
        self.stop_serving()
        super()._close()

    def _open(self, values: TargetVerifierParameters) -> None:
        check_robots(values.robots)
        self._values = values
        source = ENGINES.made("engine", values.engine.name, values.engine.arguments)
        self._opened.callback(source.close)
        first, *others = targets = source.open(values, self.get_logger().warning, self._away)
        self._service = VerificationService(ServedTargets(first))
        self._opened.callback(delattr, self, "_service")  # frees memory before the next policy is loaded
        self._watch = HealthWatch()
        self._opened.callback(DiagnosticsPublisher(self, "verifier", "verification", self._health).destroy)
        for each in others:
            self._service.targets.put(each)
        if values.metrics_port:
            from adahi_ros.nodes.server.verifier_metrics import serve_metrics

            self._opened.callback(serve_metrics(values, self._service, self._waiting).close)
        for each in targets:
            self._log_target(each)

    def _waiting(self) -> int | None:
        """Return how many requests wait; None while inactive."""
        return None if self._scheduler is None else len(self._scheduler)

    def _log_target(self, target: LoadedTarget) -> None:
        description = target.description
        encoder = description.intent_fingerprint
        intents = f", {description.intent_size} numbers of intent by the encoder {encoder}" if encoder else ""
        self.get_logger().info(
            f"target policy of {description.signature}, by the name {description.target!r}, by the rule "
            f"{description.acceptance}{intents}"
        )

    def _away(self, why: str) -> None:
        self.get_logger().warning(f"target unavailable; each request tries again: {why}")

    def _describe(
        self, request: DescribeTarget.Request, response: DescribeTarget.Response
    ) -> DescribeTarget.Response:
        targets = self._service.targets
        try:
            response = describe(targets.named(request.target).description)
        except RequestError:
            response.protocol = PROTOCOL_VERSION
        response.targets = list(targets.names)
        return response

    def _load_target(self, request: LoadTarget.Request, header: object) -> None:
        """Load a policy in a thread while the others are served, then serve it."""
        refusal = self._refusal()
        if refusal:
            self._loader.send_response(LoadTarget.Response(message=refusal), header)
            return
        values = replace(self._values, checkpoint=request.checkpoint, target_name=request.target)
        default = self._service.targets.names[0]
        loaded, self._loading = partial(self._on_loaded, self._service, header), True

        def load() -> None:
            from adahi_ros.nodes.server.added_target import load_target

            made = load_target(values, default, self._away)
            if self.executor is not None:
                self.executor.create_task(loaded, made)

        threading.Thread(target=load, daemon=True).start()

    def _on_loaded(self, service: VerificationService, header: object, made: LoadedTarget | str) -> None:
        self._loading, fault = False, ""
        if isinstance(made, str):
            fault = made
        elif getattr(self, "_service", None) is not service:
            fault = "target_verifier: was cleaned up while it loaded"
        else:
            try:
                service.targets.put(made)
                self._log_target(made)
            except ValueError as error:
                fault = shortened(str(error))
        free_memory()  # also after a failure
        message = fault or _served_now(service.targets)
        self._loader.send_response(LoadTarget.Response(success=not fault, message=message), header)

    def _refusal(self) -> str:
        """Return why targets cannot be changed now; empty if they can."""
        if self._scheduler is None:
            return "target_verifier: it is not active"
        if not ENGINES[self._values.engine.name].loads_targets:
            return f"engine.name: {self._values.engine.name!r}, must be batched to load or unload targets"
        if not self._values.loads_targets:
            return "loads_targets: False, must be true to load or unload targets"
        return "target_verifier: another one is being loaded" if self._loading else ""

    def _unload_target(
        self, request: UnloadTarget.Request, response: UnloadTarget.Response
    ) -> UnloadTarget.Response:
        response.message = self._refusal()
        if not response.message:
            targets = self._service.targets
            try:
                targets.remove(request.target)
            except ValueError as error:
                response.message = shortened(str(error))
                return response
            free_memory()
            self.get_logger().info(f"target {request.target!r} was unloaded")
            response.success, response.message = True, _served_now(targets)
        return response

    def _served(self, refusal: str, shared: str) -> None:
        if shared:
            self._shared_log.warning("shared", shared)
        if refusal:
            self._log.warning("refused", refusal)

    def _unheard(self, request: Request) -> None:
        warning = self._service.unheard(request, self._values.verification.reliability)
        self._log.warning("unheard", warning)

    def _health(self) -> Health:
        shared = self._service.shared_names(time.monotonic())
        scheduler = self._scheduler
        device = self._service.targets.named("").device
        return self._watch.report(
            self._service.counts,
            shared,
            serving=scheduler is not None,
            waiting_most=0 if scheduler is None else scheduler.most_waited(),
            machine={"device": device, **memory_figures(device)},
        )


def _served_now(targets: ServedTargets) -> str:
    return shortened("served now: " + ", ".join(map(repr, targets.names)))


def main() -> None:
    """Run the node as a process."""
    sys.exit(
        run(
            TargetVerifierNode,
            __doc__ or "",
            TargetVerifierParameters,
            make_executor=executor_of,
            last_words=TargetVerifierNode.stop_serving,
            start=autostart,
        )
    )


if __name__ == "__main__":
    main()
