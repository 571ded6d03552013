"""A chunk of tokens, drafted on the robot and verified over DDS, is what the evaluation executes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adahi_lab.calibration.parameter_file import load_calibration
from adahi_lab.evaluation.evaluate import Comparison
from adahi_lab.evaluation.loaded_policies import PolicyFiles
from adahi_lab.methods.dds_method import node_parameters
from adahi_lab.methods.methods import METHODS, parse_methods
from adahi_lab.nodes.dds_run import run_over_dds
from adahi_lab.nodes.domain import exclusive_domain
from adahi_lab.tasks import make
from adahi_ros.core.assets import asset
from adahi_ros.protocol.records import Reason

TASK, SEED, EPISODES = "metaworld", 11, range(3, 4)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("pair", ["tokens", "tokens_fast"])
def test_chunks_over_dds_are_those_of_the_evaluation(pair: str) -> None:
    (name,) = parse_methods("chunk+never/speculative", on_air=True)
    files = PolicyFiles(asset(f"checkpoints/metaworld/{pair}"), "onnxruntime")
    known = files.load()
    shipped = load_calibration(asset("config/metaworld.yaml"))
    fitting = replace(shipped, draft=known.draft.digest, target=known.target.digest)
    draft, target = node_parameters(name, TASK, files, fitting, 60.0, lockstep=True)
    with exclusive_domain() as domain:
        run = run_over_dds(TASK, draft, target, SEED, EPISODES, domain=domain)
    world = make(TASK)
    log = METHODS[name].run(Comparison(TASK, files, fitting, SEED).bench(), world, SEED, EPISODES)
    horizon = known.target.signature.horizon
    assert [row.step for row in run.steps] == list(range(len(log.action)))
    assert {row.reason for row in run.steps} == {Reason.NONE}
    assert [row.transmitted for row in run.steps] == [
        index % horizon == 0 for index in range(len(log.action))
    ]
    limits = np.array([world.spec.action_low, world.spec.action_high], np.float32)
    np.testing.assert_array_equal(
        np.array([row.action for row in run.steps], np.float32), np.clip(log.action[:, 0], *limits)
    )
    assert [episode.success for episode in run.episodes] == world.success.tolist()
    sent = [row.request_bytes for row in run.steps if row.transmitted]
    assert min(sent) < 6000  # all entries would take 16 KB; requests may be sent again
