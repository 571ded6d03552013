"""A verifier that unloads a target which no robot requests."""

from __future__ import annotations

from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray

from adahi_ros.client import VerifierClient, VerifierError
from test.system.stage import DEADLINE_S, Stage

TARGET = "ball/target"
UNLOADED, LOADED = f"target '{TARGET}': unloaded", "loaded again in"


def test_an_idle_target_is_unloaded_and_plans_the_same_when_it_is_back(stage: Stage) -> None:
    verifier = stage.start(
        "target_verifier_node",
        checkpoint=TARGET,
        rule__name="replace",
        idle_unload_s=2.0,
        verification__reliability="reliable",
    )
    reports: list[DiagnosticArray] = stage.received(DiagnosticArray, "/diagnostics")
    client = VerifierClient(stage.node, "arm", reliability="reliable", deadline_s=DEADLINE_S)
    signature = stage.awaited(client.describe).signature
    window = np.zeros((signature.history, signature.observation_dim))
    steps = iter(range(1000))

    def plan() -> Any:
        step = next(steps)  # a request twice gets the same reply, without the target
        try:
            return stage.awaited(client.ask, window, np.zeros(signature.goal_dim), step=step).actions
        except VerifierError as error:
            return str(error)

    def state(wanted: str) -> bool:
        values = [each for report in reports for status in report.status for each in status.values]
        return any((each.key, each.value) == (f"target.{TARGET}", wanted) for each in values)

    def happened(what: str) -> int:
        return verifier.output.count(what)

    first = plan()
    while isinstance(first, str):  # the machine is slow, and it was unloaded before the first request
        first = plan()
    stage.wait(lambda: happened(UNLOADED) > happened(LOADED), "an unloaded target")
    reports.clear()
    stage.wait(lambda: state("unloaded"), "diagnostics of an unloaded target")
    loads = happened(LOADED)
    assert "the target is being loaded" in plan()
    stage.wait(lambda: happened(LOADED) > loads, "a loaded target")
    again = plan()
    while isinstance(again, str):
        again = plan()
    assert again.shape == first.shape
    assert "Traceback" not in verifier.output
