from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from test.papers.conftest import CODEC, seen

from adahi_lab.papers.dyq_vla.packing import BLOCK, packed
from adahi_lab.papers.dyq_vla.token_widths import (
    WIDTHS,
    Kinematics,
    WidthsPolicy,
    load_widths,
    packed_run,
    packed_session,
)
from adahi_lab.papers.tokens.token_checkpoint import load_tokens
from adahi_lab.papers.tokens.token_policy import TokenPolicy
from adahi_lab.papers.tokens.token_sequence import TokenDistribution
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import Policy

KINEMATICS = Kinematics((0, 1), coarse_speed=2.0, large_jerk=1.0, jerk_share=0.0, limits=(0.2, 0.5, 0.8))
SCALE = np.ones(5)
SETTINGS: dict[str, Any] = {
    "checkpoint": "target",
    "moving": [0, 1],
    "coarse_speed": 2.0,
    "large_jerk": 1.0,
    "jerk_share": 0.0,
    "limits": [0.2, 0.5, 0.8],
    "memory_kb": 500.0,
}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def windows(*speeds: float) -> np.ndarray:
    """Windows of four observations, each of a robot with a constant speed."""
    steps = np.arange(4)[None, :, None] * np.array(speeds)[:, None, None]
    return np.broadcast_to(steps, (len(speeds), 4, 5)).astype(np.float32)


def made(pair: Path, *limits: float) -> WidthsPolicy:
    read = load_tokens(pair / "target")
    return WidthsPolicy(read, packed_run(read, packed_session(read)[1]), replace(KINEMATICS, limits=limits))


def only(pair: Path, width: int) -> WidthsPolicy:
    return made(pair, *(-1.0 if each <= width else 2.0 for each in WIDTHS[1:]))


def probabilities(policy: Policy, batch: int = 3, rows: np.ndarray | None = None) -> np.ndarray:
    assert isinstance(policy, TokenPolicy)
    codes = np.random.default_rng(3).integers(CODEC.codebook_size, size=(batch, CODEC.codebooks))
    rows = np.arange(batch) if rows is None else rows
    found = policy.judge(seen(batch).rows(rows), codes[rows]).distribution
    assert isinstance(found, TokenDistribution)
    return found.probabilities


def test_packed_weights_are_near_and_exact_at_their_largest() -> None:
    matrix = np.random.default_rng(0).normal(size=(3, BLOCK + 5)).astype(np.float32)
    codes, scales = packed(matrix)
    assert codes.shape == (3, 2, BLOCK // 2)
    parts = np.stack([codes & 15, codes >> 4], axis=-1).reshape(3, 2, BLOCK).astype(np.float32) - 8.0
    found = (parts * scales[..., None]).reshape(3, -1)[:, : matrix.shape[1]]
    assert np.abs(found - matrix).max() <= np.abs(scales).max()
    first = np.abs(matrix[:, :BLOCK]).argmax(axis=1)
    np.testing.assert_allclose(found[range(3), first], matrix[range(3), first], rtol=1e-6)
    assert packed(np.zeros((1, 4), np.float32))[1].tolist() == [[1.0]]


def test_a_chunk_keeps_its_width_and_is_judged_with_it(pair: Path) -> None:
    policy = only(pair, 4)
    draws = np.random.default_rng(1).random((2, CODEC.codebooks))
    drawn = policy.propose(seen(2), draws).distribution
    assert isinstance(drawn, TokenDistribution)
    judged = policy.judge(seen(2), drawn.codes).distribution
    assert isinstance(judged, TokenDistribution)
    np.testing.assert_allclose(judged.probabilities, drawn.probabilities, atol=1e-5)
    assert judged.resumed is not None
    rest = judged.resumed(drawn.codes[1:], 2, np.array([1]))
    np.testing.assert_allclose(rest.probabilities[0], judged.probabilities[1, 2:], atol=1e-5)


def test_a_file_describes_such_a_policy(pair: Path, tmp_path: Path) -> None:
    described = {**SETTINGS, "kind": "widths", "checkpoint": str(pair / "target")}
    (tmp_path / "target.yaml").write_text(yaml.safe_dump(described))
    policy = load_policy(tmp_path / "target", "onnxruntime")
    assert isinstance(policy, WidthsPolicy)
    assert policy.digest == load_policy(pair / "target", "onnxruntime").digest


def test_the_full_network_is_used_where_the_budget_allows(pair: Path) -> None:
    wide = load_widths(pair, **SETTINGS | {"limits": [-1.0, -1.0, -1.0]})
    narrow = load_widths(pair, **SETTINGS | {"limits": [-1.0, -1.0, -1.0], "memory_kb": 40.0})
    full = probabilities(load_policy(pair / "target", "onnxruntime"))
    np.testing.assert_array_equal(probabilities(wide), full)
    assert np.abs(probabilities(narrow) - full).max() > 0.0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("memory_kb", 1.0, "memory_kb: 1.0, must be at least"),
        ("memory_kb", float("nan"), "memory_kb: nan, must be at least"),
        ("limits", [0.5, 0.2, 0.8], "limits"),
        ("limits", [0.2, float("nan"), 0.8], "limits"),
        ("jerk_share", 2.0, "jerk_share: 2.0, must be from 0 to 1"),
        ("coarse_speed", 0.0, "coarse_speed: 0.0, must be above 0"),
        ("moving", [7], "moving"),
        ("moving", [0.5], "moving"),
    ],
)
def test_wrong_settings_are_named(pair: Path, name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_widths(pair, **SETTINGS | {name: value})
