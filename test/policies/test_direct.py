from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.proposal import ActionRange
from adahi_ros.core.signature import Feature, Observations, Signature
from adahi_ros.policies.backends import is_policy, load_policy
from adahi_ros.policies.direct import DirectPolicy
from adahi_ros.policies.registry import POLICIES


class Scaled(DirectPolicy):
    """Two steps: what it sees, scaled, and half of that."""

    def __init__(self, folder: Path, gain: float = 1.0) -> None:
        if gain < 0:
            raise ValueError(f"gain: {gain}, must not be negative")
        self.folder = folder
        signature = Signature(history=1, horizon=2, action_dim=2, features=(Feature("observation", 2),))
        allowed = ActionRange(np.array([-1.0, -2.0]), np.array([1.0, 2.0]))
        super().__init__(signature, allowed, np.array([0.5, 0.5]), f"scaled {gain}")
        self._gain = gain

    def act(self, observations: Observations, draws: np.ndarray) -> np.ndarray:
        newest = self._gain * self.signature.window(observations)[:, -1:]
        return np.concatenate([newest, newest / 2], axis=1)


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES.shipped, "scaled", Scaled)


def described(folder: Path, text: str) -> Path:
    (folder / "draft.yaml").write_text(text)
    return folder / "draft"


def test_it_proposes_actions_without_codes(tmp_path: Path) -> None:
    policy = Scaled(tmp_path, 2.0)
    seen = Observations({"observation": np.array([[[0.25, 0.5]]], np.float32)}, {})
    proposal = policy.propose(seen, np.zeros((1, policy.draws)))
    np.testing.assert_array_equal(proposal.actions, [[[0.5, 1.0], [0.25, 0.5]]])
    assert proposal.actions.dtype == np.float32
    assert proposal.distribution is None


@pytest.mark.usefixtures("kinds")
def test_a_file_names_the_kind_and_its_arguments(tmp_path: Path) -> None:
    path = described(tmp_path, "kind: scaled\ngain: 3.0\n")
    assert is_policy(path)
    for each in (path, path.with_suffix(".yaml")):
        policy = load_policy(each, "onnxruntime")
        assert isinstance(policy, Scaled)
        assert policy.digest == "scaled 3.0"
        assert policy.folder == tmp_path


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: other", r"kind: 'other', must be one of .*scaled"),
        ("kind: [scaled]", r"kind: \['scaled'\], must be one of .*scaled"),
        ("gain: 1.0", r"kind: None, must be one of .*scaled"),
        ("[scaled]", r"must be a mapping from names, with a kind"),
        ("1: 2", r"must be a mapping from names, with a kind"),
        ("kind: {", r"not YAML"),
        ("kind: scaled\ngain: -1.0", r"kind: 'scaled': ValueError: gain: -1.0, must not be negative"),
        ("kind: scaled\nspeed: 1.0", r"kind: 'scaled': TypeError: .*'speed'"),
        ("kind: scaled\nfolder: x", r"kind: 'scaled': TypeError: .*'folder'"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = described(tmp_path, text)
    with pytest.raises(CheckpointError, match=rf"draft\.yaml: {reason}"):
        load_policy(path, "onnxruntime")


@pytest.mark.usefixtures("kinds")
def test_of_two_descriptions_none_is_taken(tmp_path: Path) -> None:
    path = described(tmp_path, "kind: scaled")
    (tmp_path / "draft.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"there is a \.json and a \.yaml of that name"):
        load_policy(path, "onnxruntime")


@pytest.mark.usefixtures("kinds")
def test_a_fault_of_a_file_is_reported_in_short(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"kind: 'kkk.*, must be one of .*scaled") as caught:
        load_policy(described(tmp_path, f"kind: {'k' * 70_000}"), "onnxruntime")
    assert len(str(caught.value)) <= 1000
