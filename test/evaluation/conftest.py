from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adahi_ros.evaluation.bench import CHUNKS, Policies, PolicyFiles
from adahi_ros.evaluation.evaluate import Comparison
from adahi_ros.policy.interface import Policy
from adahi_ros.speculation.parameter_file import Calibration
from adahi_ros.speculation.records import Reason, StepRecord


@pytest.fixture(scope="session")
def files(
    checkpoints: Path, make_checkpoints: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> PolicyFiles:
    """Draft and target, and a target on chunks of eight actions beside them."""
    folder = tmp_path_factory.mktemp("with_chunks") / "policies"
    shutil.copytree(checkpoints, folder)
    shutil.copytree(make_checkpoints(chunk_length=8), folder / CHUNKS)
    return PolicyFiles(folder, "torch")


@pytest.fixture(scope="session")
def policies(files: PolicyFiles) -> Policies:
    return files.load()


@pytest.fixture(scope="session")
def calibration(policies: Policies) -> Calibration:
    """Thresholds that the scores of these drafts are above in some steps and below in others."""
    thresholds = {"deviation": 0.4, "uncertainty": 0.984, "oracle": 0.2, "random": 0.4}
    return Calibration(
        "ball", policies.draft.digest, policies.target.digest, 0.5, "std", 1.0, 0.6, thresholds
    )


@pytest.fixture(scope="session")
def comparison(files: PolicyFiles, calibration: Calibration) -> Comparison:
    return Comparison("ball", files, calibration, seed=5)


@pytest.fixture(scope="session")
def codes_of() -> Callable[[Policy, np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """From a policy, windows (B, H, O), goals (B, G) and chunks (B, W, A) to the codes (B, N) behind them."""

    def read(policy: Policy, windows: np.ndarray, goals: np.ndarray, chunks: np.ndarray) -> np.ndarray:
        prediction = policy.predict(windows, goals)
        every = np.array(list(np.ndindex((policy.spec.codebook_size,) * policy.spec.codebooks)))
        distances = []
        for codes in every:
            tiled = np.tile(codes, (len(windows), 1))
            could = policy.decoder.decode(tiled) + prediction.offset_at(tiled)
            distances.append(np.abs(could[:, : chunks.shape[1]] - chunks).max(axis=(1, 2)))
        assert np.min(distances, axis=0).max() < 1e-5  # every chunk has codes that it was made of
        return every[np.argmin(distances, axis=0)]

    return read


@pytest.fixture(scope="session")
def step_record() -> Callable[..., StepRecord]:
    """From what is different to a step: verified and accepted unless told otherwise."""

    def make(**changes: object) -> StepRecord:
        values: dict[str, object] = {
            "stamp_ns": 0,
            "robot_id": "robot",
            "episode": 0,
            "step": 0,
            "gate": "deviation",
            "deviation": 1.0,
            "score": 1.0,
            "threshold": 0.5,
            "transmitted": True,
            "verified": True,
            "accepted": (True, True),
            "reason": Reason.NONE,
            "message": "",
            "draft_action": (0.0, 0.0),
            "action": (0.0, 0.0),
            "draft_ms": 0.1,
            "verify_ms": 1.0,
            "target_compute_ms": 0.2,
            "total_ms": 1.5,
            "request_bytes": 400,
            "response_bytes": 60,
        }
        return StepRecord(**{**values, **changes})  # type: ignore[arg-type]

    return make
