"""WISV on the robot: it executes what is decided of a chunk, and then drafts again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_ros.acceptance.interface import Verdict
from adahi_ros.core.assets import asset
from adahi_ros.gates.gate_config import ControllerConfig, ThresholdedGate
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy
from adahi_ros.robot.controller import Controller

OBSERVED, T, A = 18, 8, 4
NEVER = ControllerConfig(ThresholdedGate("never", 0.0))


@pytest.fixture(scope="module")
def draft() -> TokenPolicy:
    """The shipped one."""
    policy = load_policy(asset("checkpoints/metaworld/tokens") / "draft", "onnxruntime")
    assert isinstance(policy, TokenPolicy)
    return policy


def seen(robots: int, index: int) -> dict[str, np.ndarray]:
    return {"observation": np.full((robots, OBSERVED), 0.01 * index, dtype=np.float32)}


def test_it_drafts_again_where_the_decided_actions_end(draft: TokenPolicy) -> None:
    controller = Controller(draft, NEVER, "chunk_prefix")
    controller.reset(1, [0, 1])
    kept = np.array([[32, 0, 9], [5, 32, 4]])  # tokens before the first refusal, of each robot's replies
    asked, executed = [], []
    count = [0, 0]
    for index in range(10):
        step = controller.begin(seen(2, index))
        asked.append(step.transmit.tolist())
        verdict, rows = None, np.flatnonzero(step.transmit)
        if len(rows):
            actions = np.full((len(rows), T, A), 0.01 * index, dtype=np.float32)
            accepted = np.array([np.arange(32) < kept[row, count[row]] for row in rows])
            verdict = Verdict(actions, accepted)
            for row in rows:
                count[row] += 1
        actions = controller.finish(step, verdict, rows if len(rows) else None)
        controller.executed(actions)
        executed.append(actions[:, 0].round(2).tolist())
    of_first, of_second = zip(*asked, strict=True)
    assert np.flatnonzero(of_first).tolist() == [0, 8, 9]  # of 32 kept tokens 8 actions, of none one
    assert np.flatnonzero(of_second).tolist() == [0, 2]  # of 5 kept tokens two actions
    assert [row[1] for row in executed] == pytest.approx([0.0, 0.0, *[0.02] * 8])


def test_another_draft_is_refused(fixed_policy: Callable[..., Policy]) -> None:
    with pytest.raises(ValueError, match=r"^checkpoint: .*, must emit tokens, one for each entry"):
        Controller(fixed_policy([[0.5, 0.5]]), NEVER, "chunk_prefix")


def test_states_that_no_request_can_carry_are_refused(
    draft: TokenPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TokenPolicy, "hidden_size", 4096)  # 32 tokens: 8 + 4 + 32 * 4096 bytes
    with pytest.raises(ValueError, match=r"^checkpoint: hidden states of 4096 numbers, must be at most 4095"):
        Controller(draft, NEVER, "chunk_prefix")
    monkeypatch.setattr(TokenPolicy, "hidden_size", 4095)
    Controller(draft, NEVER, "chunk_prefix")
