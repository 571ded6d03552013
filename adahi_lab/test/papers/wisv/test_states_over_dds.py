"""Hidden states over DDS, at once or only those of mismatches: the robot does what the evaluation does."""

from __future__ import annotations

import numpy as np
import pytest
from test.papers.over_dds import run_as_in_process

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.methods import for_task, parse_methods
from adahi_lab.nodes.domain import exclusive_domain
from adahi_ros.core.assets import asset

TASK = "metaworld"
FOLDER = asset("checkpoints/metaworld/tokens")
RULE = "hidden_states:file={checkpoints}/wisv.safetensors"
pytest.importorskip("metaworld")


@pytest.mark.timeout(300)
def test_states_of_mismatches_alone_lead_to_the_same_actions() -> None:
    names = parse_methods(for_task(f"wisv,chunk_prefix:first=none+never/{RULE}", TASK, FOLDER), on_air=True)
    files = PolicyFiles(FOLDER, "onnxruntime")
    shipped = load_calibration(asset("config/metaworld.yaml"))
    sent = []
    with exclusive_domain() as domain:
        for name in names:
            run = run_as_in_process(name, TASK, files, shipped, domain)
            executed = np.array([row.action for row in run.steps], np.float32)
            sent.append((executed, [row.request_bytes for row in run.steps if row.transmitted]))
    (at_once, all_states), (first, of_mismatches) = sent
    np.testing.assert_array_equal(at_once, first)
    assert min(all_states) > 32 * 48  # a state of each token
    assert sum(of_mismatches) < sum(all_states)


def test_in_lockstep_the_head_reads_no_channel() -> None:
    """A world that waits for every reply has no link; else the head reads what the robot measures."""
    (name,) = parse_methods(for_task("wisv", TASK, FOLDER), on_air=True)
    files = PolicyFiles(FOLDER, "onnxruntime")
    shipped = load_calibration(asset("config/metaworld.yaml"))
    for lockstep in (True, False):
        _, target = node_parameters(name, TASK, files, shipped, 1.0, lockstep=lockstep)
        assert target.get("rule.channel", 1) == int(not lockstep)
