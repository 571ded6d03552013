"""A chunk of tokens, drafted on the robot and verified over DDS, is what the evaluation executes."""

from __future__ import annotations

import pytest
from test.papers.over_dds import run_as_in_process

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.methods import parse_methods
from adahi_lab.nodes.domain import exclusive_domain
from adahi_ros.core.assets import asset

TASK = "metaworld"


@pytest.mark.timeout(300)
def test_chunks_over_dds_are_those_of_the_evaluation() -> None:
    (name,) = parse_methods("token_chunk+never/speculative", on_air=True)
    files = PolicyFiles(asset("checkpoints/metaworld/tokens_fast"), "onnxruntime")
    shipped = load_calibration(asset("config/metaworld.yaml"))
    with exclusive_domain() as domain:
        run = run_as_in_process(name, TASK, files, shipped, domain)
    horizon = files.load().target.signature.horizon
    assert [row.transmitted for row in run.steps] == [index % horizon == 0 for index in range(len(run.steps))]
    sent = [row.request_bytes for row in run.steps if row.transmitted]
    assert min(sent) < 6000  # all entries would take 16 KB; requests may be sent again
