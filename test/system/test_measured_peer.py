"""What `adahi lab bench peers` times of ours: the request of the draft that it gets, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from adahi_lab.bench.peer_comparison import OURS, program
from adahi_lab.nodes.domain import loopback_environment
from adahi_lab.peers.driving import Observations
from adahi_ros.core.proposal import UNITS
from adahi_ros.policies.backends import load_policy
from test.system.stage import Stage

IMPOSSIBLE = 3  # of the calls: a code that its own distribution never draws


def test_ours_asks_about_the_draft_that_it_is_handed(stage: Stage, exported: Path, tmp_path: Path) -> None:
    policy = load_policy(exported / "draft", "onnxruntime")
    signature, calls = policy.signature, 6
    assert signature.codes is not None
    shape = calls, signature.codes.codebooks, signature.codes.codebook_size
    counts = np.zeros(shape, np.uint16)
    counts[..., 1] = UNITS
    codes = np.ones(shape[:2], np.int64)
    codes[IMPOSSIBLE, 0] = 0
    windows = np.zeros((calls, signature.history, signature.observation_dim), np.float32)
    handed = tmp_path / "observations.safetensors"
    Observations(windows, np.zeros((calls, signature.goal_dim), np.float32), codes, counts).save(handed)
    stage.start_verifier(exported, verification__reliability="best_effort")
    out = tmp_path / "calls.json"
    command = [sys.executable, *program(OURS), "drive", "--address", "127.0.0.1", "--port", "1"]
    command += ["--checkpoint", str(exported / "draft"), "--observations", str(handed)]
    command += ["--calls", str(calls), "--period_s", "0", "--timeout_s", "20", "--out", str(out)]
    subprocess.run(command, env={**os.environ, **loopback_environment(stage.domain)}, check=True)
    made = json.loads(out.read_text())["calls"]
    assert [call["ok"] for call in made] == [index != IMPOSSIBLE for index in range(calls)]
    assert all(0.0 < call["compute_ms"] < call["ms"] for call in made if call["ok"])
