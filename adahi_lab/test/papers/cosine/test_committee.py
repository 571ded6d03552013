"""Several drafts as one: what they propose together, and who may be a member."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test.papers.cosine.fixed_codes import B, FixedAction, FixedCodes, K, N, nothing_seen

from adahi_lab.papers.cosine.committee import FUSIONS, Committee, CommitteeRules
from adahi_ros.core.assets import asset
from adahi_ros.core.checkpoint_files import CheckpointError
from adahi_ros.core.schema import checked
from adahi_ros.policies.backends import load_policy
from adahi_ros.policies.interface import AS_TRAINED, Sampling

DRAWS = np.random.default_rng(0).random((B, N + 1))
SENT = Sampling(sendable=True)
SHARP, FLAT = np.array([0.94, 0.02, 0.02, 0.02]), np.full(K, 1 / K)


def committee(*members: Any, **rules: Any) -> Committee:
    return Committee(members, CommitteeRules(**rules))


def probabilities(made: Committee, credit: list[float], sampling: Sampling = AS_TRAINED) -> np.ndarray:
    opinions = made.opinions(nothing_seen(), DRAWS, sampling)
    proposal = made.fuse(opinions, np.tile(credit, (B, 1)), DRAWS, sampling)
    assert proposal.distribution is not None
    return proposal.distribution.probabilities


@pytest.mark.parametrize("fusion", FUSIONS)
def test_one_member_is_that_member_bit_for_bit(fusion: str) -> None:
    alone = FixedCodes(SHARP, 0.1)
    made = committee(alone, fusion=fusion)
    ours = made.propose(nothing_seen(), DRAWS[:, : made.draws], SENT)
    theirs = alone.propose(nothing_seen(), DRAWS[:, : alone.draws], SENT)
    assert (made.draws, made.digest) == (alone.draws, alone.digest)
    np.testing.assert_array_equal(ours.actions, theirs.actions)
    assert ours.distribution is not None
    assert theirs.distribution is not None
    for name in ("probabilities", "codes", "counts"):
        np.testing.assert_array_equal(getattr(ours.distribution, name), getattr(theirs.distribution, name))


@pytest.mark.parametrize("fusion", ["sum", "product"])
def test_who_is_certain_counts_for_more_than_who_knows_nothing(fusion: str) -> None:
    with_it = probabilities(committee(FixedCodes(SHARP), FixedCodes(FLAT), fusion=fusion), [0.5, 0.5])
    without = committee(FixedCodes(SHARP), FixedCodes(FLAT), fusion=fusion, confidence=False)
    assert (with_it[..., 0] > probabilities(without, [0.5, 0.5])[..., 0] + 0.05).all()
    np.testing.assert_allclose(with_it.sum(axis=-1), 1.0, atol=1e-6)


def test_members_without_codes_count_by_the_error_that_they_expect() -> None:
    made = committee(FixedAction(0.0, 0.1), FixedAction(1.0, 0.3), fusion="sum")
    proposal = made.propose(nothing_seen(), DRAWS[:, :0])
    np.testing.assert_allclose(proposal.actions, 0.1, atol=1e-6)
    assert proposal.expected_error is not None
    np.testing.assert_allclose(proposal.expected_error, np.sqrt(0.9 * 0.01 + 0.1 * 0.09))
    alike = committee(FixedAction(0.0, 0.1), FixedAction(1.0, 0.3), fusion="sum", confidence=False)
    np.testing.assert_allclose(alike.propose(nothing_seen(), DRAWS[:, :0]).actions, 0.5)


def test_members_must_read_and_propose_the_same() -> None:
    other = FixedCodes(SHARP)
    other.signature = replace(other.signature, history=2, parameters=7)
    with pytest.raises(ValueError, match=r"members\[1\]: history: 2, members\[0\] has 1"):
        committee(FixedCodes(SHARP), other)
    with pytest.raises(ValueError, match="members: none"):
        committee()


@pytest.mark.parametrize(
    ("name", "value"), [("fusion", "vote"), ("memory", 1.5), ("doubt", 0.0), ("error", 0), ("confidence", 1)]
)
def test_rules_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: {value!r}, must be"):
        checked(CommitteeRules, {name: value})


def test_a_file_names_its_members(tmp_path: Path) -> None:
    shipped = asset("checkpoints/ball") / "draft"
    (tmp_path / "two.yaml").write_text(f"kind: committee\nmembers: [{shipped}, {shipped}]\nfusion: sum\n")
    alone, made = load_policy(shipped, "onnxruntime"), load_policy(tmp_path / "two", "onnxruntime")
    assert made.signature.parameters == 2 * alone.signature.parameters
    assert made.digest != alone.digest
    seen, draws = made.signature.nothing(2), np.full((2, made.draws), 0.5)
    ours, theirs = made.propose(seen, draws), alone.propose(seen, draws)
    np.testing.assert_allclose(ours.actions, theirs.actions, atol=1e-6)
    (tmp_path / "bad.yaml").write_text("kind: committee\nmembers: draft\n")
    with pytest.raises(CheckpointError, match="members: 'draft', must be a list"):
        load_policy(tmp_path / "bad", "onnxruntime")
